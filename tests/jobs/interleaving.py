"""One story of jobs by chance: requests, failures, kills, pauses, restarts, crashes, refusals.

Real jobs over a real state file with a fake clock. What a run considered is a row of a table of
the story's own, written in the transaction that ends the job, as an extraction's cursor is. A crash
is a copy of the state file at that instant, which the next jobs begin with. While the state file
refuses, each transaction fails as on a full disk.
"""

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import anyio
from anyio import to_thread

from memd.daemon.app import SCHEMAS
from memd.jobs.service import Jobs, Running
from memd.state import jobs
from memd.state.database import Cursor, Database, StateUnusableError, open_database
from memd.state.jobs import Job, JobState, JobTable
from tests.jobs.bench import LaterError, ModelDownError, NeverError, Sink, Steered, at_work
from tests.support.clock import FakeClock

SESSIONS, PROJECTS = 5, 3
_STEPS = 14
_SCHEMA = """
CREATE TABLE IF NOT EXISTS considered (
    project TEXT NOT NULL, session TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL
) STRICT;
"""
Key = tuple[str, str]


class _Clock(FakeClock):
    """A clock that moves when it is told to, and once it is ``calm`` whenever somebody sleeps."""

    calm = False

    async def sleep(self, seconds: float) -> None:
        """Return once the clock was advanced so far."""
        if self.calm:
            self.advance(seconds)
            seconds = 0.0
        await super().sleep(seconds)


class _Refusing(Database):
    """A state file that takes no writes while it ``refuses``."""

    refuses = False

    @contextmanager
    def transaction(self, *, synced: bool = True) -> Iterator[Cursor]:
        """Run a transaction, or refuse it."""
        if self.refuses:
            raise StateUnusableError(self.path, "there is no room")
        with super().transaction(synced=synced) as cursor:
            yield cursor


@dataclass(slots=True)
class Story:
    """What happened so far, and what must hold of it; ``folder`` is on a disk or in memory."""

    folder: Path
    random: Random
    clock: _Clock = field(default_factory=_Clock)
    newest: dict[Key, int] = field(default_factory=dict)  # messages of each session
    carrier: dict[Key, str] = field(default_factory=dict)  # the job that must consider them
    excused: set[str] = field(default_factory=set)  # jobs that were killed or cannot work
    overtaken: set[str] = field(default_factory=set)  # jobs that failed once: others may pass
    active: dict[str, str] = field(default_factory=dict)  # project -> the job at work in it
    gates: dict[str, anyio.Event] = field(default_factory=dict)
    files: int = 0

    async def run(self) -> None:
        """Live through one story and check its end."""
        database = self._open()
        actions = iter(self.random.choices(_ACTIONS, k=_STEPS))
        while (after := await self._live(database, actions)) is not None:
            if after is not database:
                database.close()
            database = after
        await self._end(database)
        database.close()

    async def _live(self, database: _Refusing, actions: Iterator[str]) -> "_Refusing | None":
        """Live until the daemon ends; return the next one's state file, ``None`` at the end."""
        does = {
            "submit": self._submit,
            "let": self._let,
            "kill": self._kill,
            "wait": self._wait,
            "pause": self._pause,
            "resume": self._resume,
        }
        async with self._daemon(database) as service:
            for action in actions:
                if action == "crash":
                    return await to_thread.run_sync(self._copy, database)
                if action == "restart":
                    return database
                if action == "refuse":
                    database.refuses = not database.refuses
                elif action in ("submit", "let", "wait") or not database.refuses:
                    with suppress(StateUnusableError):
                        await does[action](service)
                for _ in range(self.random.randrange(12)):
                    await anyio.lowlevel.checkpoint()
        return None

    async def _submit(self, service: Jobs) -> None:
        session = self.random.randrange(SESSIONS)
        # Most sessions stay in their project.
        project = session % PROJECTS if self.random.random() < 0.8 else 0
        key = (f"/p{project}", f"s{session}")
        newest = self.newest.get(key, 0) + self.random.randrange(1, 4)
        answer = await service.submit("extract", *key, {"newest": newest})
        self.newest[key], self.carrier[key] = newest, answer.job

    async def _let(self, _: Jobs) -> None:
        if self.gates:
            self.gates.pop(self.random.choice(sorted(self.gates))).set()

    async def _kill(self, service: Jobs) -> None:
        rows = [job for job in service.list() if not job.over]
        if rows:
            job = self.random.choice(rows).id
            with self._calm():
                if await service.cancel(job):
                    self.excused.add(job)

    async def _wait(self, _: Jobs) -> None:
        self.clock.advance(self.random.choice((1.0, 5.0, 20.0, 400.0)))

    async def _pause(self, service: Jobs) -> None:
        with self._calm():
            await service.pause(now=self.random.random() < 0.5)

    @contextmanager
    def _calm(self) -> Iterator[None]:
        """Let what was refused try again in the block, as it does on a real clock."""
        self.clock.calm = True
        self.clock.advance(5.0)
        try:
            yield
        finally:
            self.clock.calm = False

    async def _resume(self, service: Jobs) -> None:
        await service.resume()

    @asynccontextmanager
    async def _daemon(self, database: Database) -> AsyncIterator[Jobs]:
        """Let jobs run over a state file as a daemon does, until it stops or dies."""

        async def runner(running: Running) -> dict[str, Any]:
            return await self._runner(database, running)

        service = Steered(
            JobTable(database), self.clock, Sink(), {"extract": runner}, on_unexpected=_unexpected
        )
        async with at_work(service):
            yield service
        self.active.clear()
        self.gates.clear()

    async def _runner(self, database: Database, running: Running) -> dict[str, Any]:
        job = running.job
        assert job.lane not in self.active, "two jobs in one project"
        self.active[job.lane] = job.id
        try:
            await to_thread.run_sync(self._in_turn, database, running)
            if not self.clock.calm:
                await self._trouble(job.id)
            try:
                await to_thread.run_sync(self._commit, database, running)
            except StateUnusableError:
                self.overtaken.add(job.id)
                raise
            return {"turns": 1}
        finally:
            self.gates.pop(job.id, None)
            del self.active[job.lane]

    async def _trouble(self, job: str) -> None:
        if self.random.random() < 0.6:
            gate = self.gates[job] = anyio.Event()
            await gate.wait()
        fault = self.random.randrange(8)
        if fault == 0:
            self.excused.add(job)
            raise NeverError
        if fault in {1, 2}:
            self.overtaken.add(job)
            raise LaterError if fault == 1 else ModelDownError(self.random.randrange(100))

    def _in_turn(self, database: Database, running: Running) -> None:
        """See that no older job of the project waits which never failed."""
        job = running.job
        older = [row.id for row in JobTable(database).list(limit=1000) if _before(row, job)]
        assert set(older) <= self.overtaken, "an older job still waits"

    def _commit(self, database: Database, running: Running) -> None:
        """Consider what is new, and end the job, in one transaction."""
        key = (running.job.lane, running.job.session)
        with database.transaction() as cursor:
            cursor.execute(
                "SELECT max(last) FROM considered WHERE project = ? AND session = ?", key
            )
            last = cursor.fetchone()[0] or 0
            if running.job.request["newest"] > last:
                cursor.execute(
                    "INSERT INTO considered VALUES (?, ?, ?, ?)",
                    (*key, last + 1, running.job.request["newest"]),
                )
            jobs.job_completed(running.job.id, {}, self.clock.now())(cursor, None)

    async def _end(self, database: _Refusing) -> None:
        """Let everything that was accepted come to its end, and check what became of it."""
        database.refuses = False
        self.clock.calm = True
        async with self._daemon(database) as service:
            await service.resume()
            for parked in service.list(limit=1000, parked=True):
                key = (parked.directory, parked.session)
                answer = await service.submit("extract", *key, {"newest": self.newest[key]})
                self.carrier[key] = answer.job
            with anyio.fail_after(60):
                for job in service.list(limit=1000):
                    await service.wait(job.id)
            ended = {job.id: job.state for job in service.list(limit=1000)}
        rows = database.read("SELECT * FROM considered ORDER BY rowid")
        done = dict.fromkeys(self.newest, 0)
        for row in rows:
            key = (row["project"], row["session"])
            assert row["first"] == done[key] + 1, "a message was considered twice or passed over"
            done[key] = row["last"]
        for key, carrying in self.carrier.items():
            if carrying not in self.excused:
                assert ended[carrying] is JobState.COMPLETED
                assert done[key] == self.newest[key], "an accepted request was lost"

    def _open(self) -> _Refusing:
        self.files += 1
        path = str(self.folder / f"{self.files}.db")
        return _Refusing(open_database(path, [*SCHEMAS, _SCHEMA]).file)

    def _copy(self, database: Database) -> _Refusing:
        """Return the state file as a crash at this instant leaves it."""
        self.files += 1
        path = str(self.folder / f"{self.files}.db")
        with database.file.lock:
            for tail in ("", "-wal"):
                shutil.copyfile(database.path + tail, path + tail)
        return _Refusing(open_database(path, [*SCHEMAS, _SCHEMA]).file)


_ACTIONS = (
    *("submit",) * 8,
    *("let",) * 6,
    *("wait",) * 3,
    *("kill", "pause", "resume", "resume", "restart", "crash", "refuse", "refuse"),
)


def _before(row: Job, job: Job) -> bool:
    same = row.lane == job.lane and row.state is JobState.QUEUED
    return same and int(row.id[1:]) < int(job.id[1:])


def _unexpected(error: BaseException) -> str:
    if not isinstance(error, StateUnusableError):
        raise error
    return "e1"
