"""Whole dreams that die: killed, or refused a system call, at every one of them.

Usage: ``dreaming.py <folder> <how> <prior> <stride>``. ``how`` is ``kill``, an error's name (the
kernel refuses a call with it, ``ENOSPC`` also all later calls of that name) or ``double`` (a kill,
and one at every call of the start that follows); ``prior`` says ``yes`` where there was a lock file
before; only every ``stride``-th point of the dream is tried. One process imports everything once
and forks a child per death. The child stops, ``strace`` takes hold of it and then fails or kills
its k-th call of a name; the dream's work is done by one thread, and strace counts by thread.
Prints ``{"tried": …, "double": …, "before": …, "after": …, "bad": […]}``.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import anyio
import psutil
from anyio import to_thread

from memd.agent.runs import Runs
from memd.base.errors import MemdError
from memd.base.names import is_temporary
from memd.base.settings import Settings
from memd.base.values import MemoryType, Project
from memd.daemon.app import SCHEMAS
from memd.dream.lock import lock_rows
from memd.dream.service import Dreams
from memd.state.database import open_database
from memd.state.docs import Docs
from memd.state.jobs import Job, JobState, JobTable
from memd.state.proposals import ProposalTable
from memd.store import lock
from memd.store.log import ChangeLog
from memd.store.memory import new as new_memory
from memd.store.store import Store
from tests.crash.cases import restore
from tests.crash.kill import CHANGING, Point
from tests.dream.bench import NoModel
from tests.stores import store_in
from tests.support.clock import FakeClock

NOW = 1_772_450_000.0  # 2026-03-02, a Monday
PRIOR_NS = 1_772_000_000_123_456_789
OLD_NS = 1_771_000_000_000_000_000
FACT = (
    "Deploys go out on the second day after the weekly review, and the on-call engineer of that "
    "week watches the dashboards for an hour before anybody else merges to the main branch."
)
MEMORIES = {
    "a.md": (FACT, MemoryType.REFERENCE),
    "b.md": (FACT, MemoryType.REFERENCE),
    "p.md": ("The freeze starts Thursday.", MemoryType.PROJECT),
    "c.md": ("The cache is flushed by hand.", MemoryType.REFERENCE),
}
INDEX = "# Mine\n- [A](a.md) — x\n- [B](b.md) — y\n- [Gone](gone.md) — z\n- [C](c.md) — c\n"
_LOG_LINE = re.compile(r"^(\d+) +(\w+)\((.*)$")
# Calls that change nothing and yet may be refused.
_LOOKING = ("flock",)


@dataclass(frozen=True)
class World:
    """What a daemon composes of a dream's parts, in one folder."""

    root: Path
    store: Store
    dreams: Dreams
    jobs: JobTable
    docs: Docs
    log: ChangeLog
    clock: FakeClock

    def project(self) -> Project:
        """Return the one project."""
        memory, repo = str(self.root / "memory"), str(self.root / "repo")
        return Project(repo, repo, memory, "test", str(self.root / "projects"), enabled=True)

    async def dream(self, job: Job) -> None:
        """Do a queued job as the daemon does."""
        await to_thread.run_sync(self.jobs.start, job.id, NOW)
        report = await self.dreams.run(self.project(), Settings(), job=job.id)
        end = partial(self.jobs.finish, job.id, JobState.COMPLETED, NOW, result=report.facts())
        await to_thread.run_sync(end)


@asynccontextmanager
async def opened(root: Path) -> AsyncIterator[tuple[World, tuple[Job, ...]]]:
    """Start as the daemon does, first putting right what was left; yields the waiting jobs."""
    database = await to_thread.run_sync(open_database, str(root / "state.db"), SCHEMAS)
    clock = FakeClock(NOW)
    store = store_in(database, clock)
    rows = JobTable(database, os.getpid())
    dreaming = Dreams(
        store, database, ProposalTable(database), clock, models=NoModel(), runs=Runs(Docs(database))
    )
    try:
        await store.recover()
        await dreaming.recover()
        await to_thread.run_sync(rows.take_up, NOW)
        waiting = tuple(job for job in await to_thread.run_sync(rows.list) if not job.over)
        yield (
            World(root, store, dreaming, rows, Docs(database), ChangeLog(database), clock),
            waiting,
        )
    finally:
        await to_thread.run_sync(database.close)


async def dream(root: Path) -> str:
    """Start, and do the job that waits."""
    async with opened(root) as (world, waiting):
        for job in waiting:
            await world.dream(job)
    return "acknowledged"


async def start(root: Path) -> str:
    """Only start."""
    async with opened(root):
        return ""


def prepare(root: Path, *, prior: bool) -> None:
    """Make memories, their index, a lock file if wanted, and a job."""
    memory = root / "memory"
    memory.mkdir(parents=True)
    stamp = "2026-03-02T10:00:00Z"
    for name, (body, kind) in MEMORIES.items():
        content = new_memory("a-name", "How deploys go", kind, body, session="s", modified=stamp)
        (memory / name).write_bytes(content)
        os.utime(memory / name, ns=(OLD_NS, OLD_NS))
    (memory / "MEMORY.md").write_text(INDEX)
    if prior:
        (memory / lock.LOCK).touch()
        os.utime(memory / lock.LOCK, ns=(PRIOR_NS, PRIOR_NS))
    database = open_database(str(root / "state.db"), SCHEMAS)
    JobTable(database).add("dream", str(memory), "", {}, NOW)
    database.close()


def inspect(root: Path) -> list[Any]:
    """Return what must be before or after: texts, times of topics, the time of the lock."""
    memory = root / "memory"
    texts = {path.name: path.read_text() for path in sorted(memory.glob("*.md"))}
    times = {name: (memory / name).stat().st_mtime_ns for name in texts if name != "MEMORY.md"}
    with suppress(FileNotFoundError):
        return [texts, times, (memory / lock.LOCK).stat().st_mtime_ns]
    return [texts, times, None]


async def decision(root: Path, before: Any, after: Any, *, said: bool) -> tuple[bool, str]:
    """Start anew and judge what is there, do the job again if it waits, judge again.

    Returns whether all was done before that, and what is wrong.
    """
    async with opened(root) as (world, waiting):
        results = inspect(root)
        done = results == after
        names = {name for name in os.listdir(root / "memory") if not is_temporary(name)}
        left = names - {lock.LOCK, lock.GUARD, *results[0]}  # a later look removes temporary files
        path = root / "memory" / lock.LOCK
        ended = world.jobs.list()[0]
        checks = {
            "neither before nor after": results not in (before, after),
            "acknowledged and lost": said and not done,
            "a holder is named": path.exists() and path.read_bytes() != b"",
            "a row stays": lock_rows(world.docs) != (),
            "a set is open": world.log.open_changes() != (),
            "something is left over": left != set(),
            "the job does not wait": not done and [job.id for job in waiting] != ["j1"],
            "the job waits": done and waiting != (),
            "the job has no result": done and "change" not in (ended.result or {}),
        }
        for job in waiting:
            await world.dream(job)
        checks["done again it did not end in after"] = inspect(root) != after
        ended = world.jobs.list()[0]
        checks["the job did not end"] = ended.state is not JobState.COMPLETED
        checks["it was done twice"] = (
            len(await to_thread.run_sync(world.store.history, str(root / "memory"))) != 1
        )
    return done, "; ".join(words for words, wrong in checks.items() if wrong)


def in_child(work: Callable[[], Coroutine[Any, Any, Any]], *strace: str) -> tuple[int, Any]:
    """Do work in a child, held by strace if wanted; return its status and what it returned."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        if strace:
            os.kill(os.getpid(), signal.SIGSTOP)
        try:
            answer = anyio.run(work)
        except MemdError as error:
            answer = f"failed {error.kind}"
        os.writev(writer, [json.dumps(answer).encode()])  # none of the calls that are refused
        os._exit(0)
    os.close(writer)
    tracer = _hold(child, strace) if strace else None
    with open(reader, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    if tracer is not None:
        tracer.communicate(timeout=60)
    return os.waitstatus_to_exitcode(status), json.loads(said) if said else None


def _hold(child: int, strace: tuple[str, ...]) -> "subprocess.Popen[bytes]":
    """Take hold of a stopped child and let it go on."""
    os.waitpid(child, os.WUNTRACED)
    command = ["strace", "-f", "-p", str(child), *strace]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert tracer.stderr is not None
    assert b"attached" in tracer.stderr.readline()
    os.kill(child, signal.SIGCONT)
    return tracer


def points(
    log: Path, work: Callable[[], Coroutine[Any, Any, Any]], *, looking: bool
) -> list[Point]:
    """Do work to its end and return its calls that change something; with ``looking`` all."""
    names = (*CHANGING, *(_LOOKING if looking else ()))
    status, _ = in_child(work, "-e", f"trace={','.join(names)}", "-o", str(log))
    assert status == 0
    seen: dict[str, Counter[str]] = {}
    results = []
    for line in log.read_text(errors="replace").splitlines():
        match = _LOG_LINE.match(line)
        if match is None:
            continue
        thread = seen.setdefault(match[1], Counter())
        thread[match[2]] += 1
        if match[2] != "openat" or "O_CREAT" in match[3] or (looking and lock.LOCK in match[3]):
            results.append((match[1], Point(match[2], thread[match[2]])))
    log.unlink()
    worker = results[0][0]
    calls = {point.call for _, point in results}
    shared = [thread for thread, counts in seen.items() if thread != worker and calls & set(counts)]
    assert shared == [], "a count would not say whose call it is"
    return [point for _, point in results]


@dataclass
class Sweep:
    """Deaths of the same dream, and how many of them were followed by before and by after."""

    folder: Path
    prior: bool
    tried: int = 0
    double: int = 0
    before: int = 0
    after: int = 0

    def __post_init__(self) -> None:
        self.root, self.template = self.folder / "root", self.folder / "template"
        self.half, self.log = self.folder / "half", self.folder / "trace"
        self.bad: list[Any] = []
        prepare(self.root, prior=self.prior)
        shutil.copytree(self.root, self.template)
        self.begin = inspect(self.root)
        assert in_child(partial(dream, self.root)) == (0, "acknowledged")
        self.end = inspect(self.root)
        assert set(self.begin[0]) - set(self.end[0]) == {"b.md"}
        assert (self.begin[2], self.end[2]) == (PRIOR_NS if self.prior else None, int(NOW) * 10**9)

    def every(self, *, looking: bool = False) -> list[Point]:
        """Return the points of the dream."""
        restore(self.template, self.root)
        return points(self.log, partial(dream, self.root), looking=looking)

    def die(self, point: Point, fault: str, work: Callable[[Path], Any] = dream) -> Any:
        """Do the work where one call kills or fails it; return what it said."""
        ever = "+" if "ENOSPC" in fault else ""  # a disk stays full
        inject = f"inject={point.call}:{fault}:when={point.number}{ever}"
        strace = ("-e", f"trace={point.call}", "-e", inject, "-o", os.devnull)
        status, said = in_child(partial(work, self.root), *strace)
        expected = -signal.SIGKILL if "SIGKILL" in fault else 0
        if status != expected:
            self.bad.append([point, f"it ended with {status}, {said}"])
        return said

    def judge(self, where: object, *, said: bool) -> None:
        """Start anew, count the state that is found and note what is wrong."""
        work = partial(decision, self.root, self.begin, self.end, said=said)
        _, answer = in_child(work)
        done, wrong = answer if isinstance(answer, list) else (False, f"no start: {answer}")
        self.before += not done
        self.after += done
        if wrong:
            self.bad.append([where, wrong])

    def single(self, fault: str, stride: int, *, looking: bool) -> None:
        """Die once, at each point."""
        for point in self.every(looking=looking)[::stride]:
            restore(self.template, self.root)
            said = self.die(point, fault)
            self.tried += 1
            self.judge(point, said=said == "acknowledged")

    def twice(self, stride: int) -> None:
        """Die at a point, and then at each point of the start that follows."""
        for point in self.every()[::stride]:
            restore(self.template, self.root)
            self.die(point, "signal=SIGKILL")
            self.tried += 1
            restore(self.root, self.half)
            for second in points(self.log, partial(start, self.root), looking=False):
                restore(self.half, self.root)
                self.die(second, "signal=SIGKILL", start)
                self.double += 1
                self.judge([point, second], said=False)


def main() -> None:
    """Do what the arguments say."""
    psutil.Process()  # used before the forks, as the loop is, so that no child imports it
    anyio.run(anyio.sleep, 0)
    folder, how, prior, stride = sys.argv[1:]
    sweep = Sweep(Path(folder), prior == "yes")
    if how == "double":
        sweep.twice(int(stride))
    else:
        fault = "signal=SIGKILL" if how == "kill" else f"error={how}"
        sweep.single(fault, int(stride), looking=how != "kill")
    answer = {name: getattr(sweep, name) for name in ("tried", "double", "before", "after", "bad")}
    print(json.dumps(answer, default=str))  # noqa: T201 - its answer


if __name__ == "__main__":
    main()
