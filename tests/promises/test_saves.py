"""A person saves a memory at the very moment at which memd writes it: no save is lost."""

import os
import random
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio import to_thread

from memd.base.text import sha256
from memd.base.values import Actor, Draft, FileEdit, Provenance, Tree
from memd.daemon.app import SCHEMAS
from memd.daemon.clock import SystemClock
from memd.state.database import open_database
from memd.store.log import ChangeLog
from tests.store.bench import topic
from tests.stores import store_in

pytestmark = pytest.mark.anyio
BY = Provenance(Actor.CLIENT, client="test")
MEMORY = "/dev/shm"
SPREAD = 12_000  # steps of an empty loop, about as long as a commit


class Person:
    """A thread that saves one memory once per round: by rename, or by emptying it first."""

    def __init__(self, file: Path, rounds: int, seed: int) -> None:
        self.file = file
        self.saved: list[bytes] = []
        self._chance = random.Random(seed)  # noqa: S311 - it spreads saves over time
        self._go = threading.Semaphore(0)
        self._done = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, args=(rounds,), daemon=True)
        self._thread.start()

    def begin(self) -> None:
        """Begin the save of this round, in a while."""
        self._go.release()

    def end(self) -> None:
        """Wait until it is done."""
        assert self._done.acquire(timeout=60)

    def _run(self, rounds: int) -> None:
        for number in range(rounds):
            self._go.acquire()
            for _ in range(self._chance.randrange(SPREAD)):
                pass
            body = topic("a", f"person {number}")
            if number % 2:
                temp = self.file.with_suffix(".new")
                temp.write_bytes(body)
                os.replace(temp, self.file)
            else:
                self.file.write_bytes(body)
            self.saved.append(body)
            self._done.release()


class Round:
    """memd's plan of one round; the person's save begins when the plan first runs.

    The look before the commit is over then: what a person overwrites unseen is no loss of memd's.
    """

    def __init__(self, person: Person, body: bytes) -> None:
        self._person = person
        self._body = body
        self._began = False

    def __call__(self, _tree: Tree) -> Draft:
        """Return memd's text."""
        if not self._began:
            self._person.begin()
        self._began = True
        return Draft((FileEdit("a.md", self._body),))


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """Make a folder in memory where the system has that: 20,000 rounds wait for no disk then."""
    if not os.access(MEMORY, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="memd-", dir=MEMORY) as path:
        yield Path(path)


@pytest.fixture
def log(root: Path) -> Iterator[ChangeLog]:
    """Open a log."""
    database = open_database(str(root / "state.db"), SCHEMAS)
    yield ChangeLog(database)
    database.close()


async def race(root: Path, log: ChangeLog, rounds: int) -> tuple[int, int]:
    """Let a person and memd save the same memory; return how many saves of each are lost."""
    store = store_in(log.database, SystemClock())
    directory = root / "memory"
    directory.mkdir()
    person = Person(directory / "a.md", rounds, seed=6)
    ours: list[bytes] = []
    for number in range(rounds):
        body = topic("a", f"memd {number}")
        await store.commit(str(directory), Round(person, body), BY)
        ours.append(body)
        person.end()
    await to_thread.run_sync(store.history, str(directory))
    # A save into a file that memd had just replaced is there until the next look takes it in.
    there = {file.read_bytes() for file in directory.iterdir()}

    def lost(bodies: list[bytes]) -> int:
        return sum(body not in there and log.body(sha256(body)) is None for body in bodies)

    return lost(person.saved), lost(ours)


async def test_a_persons_save_is_not_lost_to_a_commit(root: Path, log: ChangeLog) -> None:
    """Whichever comes first, the text of both is in the directory or in the history."""
    assert await race(root, log, 300) == (0, 0)


@pytest.mark.soak
async def test_no_save_of_twenty_thousand_is_lost(root: Path, log: ChangeLog) -> None:
    """20,000 saves, each racing a commit, are all there afterwards."""
    rounds = 20_000
    lost = await race(root, log, rounds)
    figures = f"{rounds} saves against {rounds} commits: lost {lost[0]} and {lost[1]}"
    print(figures)  # noqa: T201 - the figures of the proof
    assert lost == (0, 0)
