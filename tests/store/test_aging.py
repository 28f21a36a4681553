"""What is asked of the history comes from one instant: retention waits for the answer."""

import threading
from pathlib import Path
from typing import Any

import pytest

from memd.base.values import Draft, Plan, Tree
from memd.state.database import Database
from memd.state.journal import Journal
from memd.state.retention import Retention
from tests.store.bench import BY, topic
from tests.store.home import Home, state


class Pruning:
    """Retention of everything, which begins while somebody is at the history."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._thread = threading.Thread(target=self._prune)
        self.left = -1

    def begin(self, *_: Any) -> Plan:
        """Begin, and note how many changes there are a moment later; return a plan of nothing."""
        self._thread.start()
        self._thread.join(0.1)
        self.left = len(self._database.read("SELECT 1 FROM changes"))
        return _nothing

    def end(self) -> int:
        """Return how many changes are left once it is done."""
        self._thread.join()
        return len(self._database.read("SELECT 1 FROM changes"))

    def _prune(self) -> None:
        retention = Retention(self._database, 0)
        while retention.batch().more:
            pass


def _nothing(_: Tree) -> Draft:
    return Draft(())


@pytest.mark.anyio
@pytest.mark.parametrize("door", ["a question", "an undo"])
async def test_nothing_is_forgotten_while_somebody_asks(tmp_path: Path, door: str) -> None:
    """A question and a change made from the history each see all of it or nothing."""
    with state(tmp_path) as database:
        home = Home(tmp_path, database)
        for text in ("one", "two"):
            await home.write("a.md", topic("a", text))
        pruning = Pruning(database)
        if door == "a question":
            await home.store.consult(pruning.begin)
        else:
            await home.store.take_back(home.directory, pruning.begin, BY)
        assert (pruning.left, pruning.end()) == (2, 0)


def test_who_asks_waits_for_a_batch_alone(tmp_path: Path) -> None:
    """What comes while retention is at it is answered afterwards; who asks may ask once more."""
    with state(tmp_path) as database:
        lock, journal, answers = database.file.pruning, Journal(database), list[str]()
        thread = threading.Thread(target=lambda: answers.append(journal.without_pruning(str)))
        with lock.alone():
            thread.start()
            thread.join(0.1)
            assert answers == []
        thread.join()
        assert journal.without_pruning(lambda: [*answers, journal.without_pruning(str)]) == ["", ""]
