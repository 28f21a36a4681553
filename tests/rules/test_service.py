"""Rules of a store: their number, and what a call of a tool costs."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from memd.base.errors import Invalid
from memd.base.values import MemoryFile
from memd.daemon.app import SCHEMAS
from memd.rules.service import ToolRules
from memd.rules.stored import StoredRule, switch_on
from memd.rules.values import RULES, PlannedCall, RuleAnswer
from memd.state.database import Database, open_database
from memd.state.docs import Docs
from memd.store.read import MemoryReader
from memd.store.store import Store
from tests.stores import store_in
from tests.support.calls import call_about, callers_in
from tests.support.clock import FakeClock

pytestmark = pytest.mark.anyio
HEAD = "---\nname: r{0}\ndescription: rule {0}\ntype: feedback\ncheck: c{0} x\n---\n\nNo.\n"


class CountingReader:
    """A store's reader that counts the memories it is asked to read."""

    def __init__(self, reader: MemoryReader) -> None:
        self._reader = reader
        self.reads = 0

    def read_many(self, directory: str, paths: Sequence[str]) -> tuple[MemoryFile, ...]:
        """Read, and count it."""
        self.reads += len(paths)
        return self._reader.read_many(directory, paths)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)


class CountingStore:
    """A real store whose reader counts."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.reading = CountingReader(store.reading)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Open a state file."""
    opened = open_database(str(tmp_path / "state.db"), SCHEMAS)
    yield opened
    opened.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a memory directory with one memory more than there may be rules."""
    made = tmp_path / "memory"
    made.mkdir()
    for number in range(RULES + 1):
        (made / f"r{number}.md").write_text(HEAD.format(number))
    return made


def call(words: str) -> PlannedCall:
    """Return a call of a shell."""
    return PlannedCall("Bash", {"command": words}, "/p")


async def test_a_project_has_a_bounded_number_of_rules(folder: Path, database: Database) -> None:
    """The two hundred and first is refused; one that is on may be switched on again."""
    clock, table = FakeClock(), Docs(database)
    rules = ToolRules(
        store_in(database, clock), table, clock, callers_in(folder.parent, database, clock)
    )
    await rules.add(call_about(folder), cwd=str(folder), path="r0.md", answer="ask")
    for number in range(1, RULES):
        rule = StoredRule(0, str(folder), f"r{number}.md", "0" * 64, "ask", enabled=True, at=1.0)
        switch_on(table, rule)
    assert (await rules.counts()).changed == RULES - 1
    with pytest.raises(Invalid):
        await rules.add(call_about(folder), cwd=str(folder), path=f"r{RULES}.md", answer="ask")
    added = await rules.add(call_about(folder), cwd=str(folder), path="r7.md", answer="deny")
    assert (added.rule.state, added.change) == ("on", None)
    assert (await rules.answer(lambda: [str(folder)], call("c7 x"), 20.0)).answer == "deny"


async def test_a_call_reads_no_memory_that_did_not_change(folder: Path, database: Database) -> None:
    """Rules are read once, and again when their own memory changes, and never for another one."""
    clock = FakeClock()
    store = CountingStore(store_in(database, clock))
    rules = ToolRules(store, Docs(database), clock, callers_in(folder.parent, database, clock))  # type: ignore[arg-type]
    for number in range(3):
        await rules.add(call_about(folder), cwd=str(folder), path=f"r{number}.md", answer="ask")
    before = store.reading.reads

    def where() -> list[str]:
        return [str(folder)]

    for _ in range(20):
        assert (await rules.answer(where, call("c1 x"), 20.0)).words.endswith("rule 1")
        assert await rules.answer(where, call("c9 x"), 20.0) == RuleAnswer()
    assert store.reading.reads == before
    (folder / "r9.md").write_text("another")
    await rules.answer(where, call("c1 x"), 20.0)
    assert store.reading.reads == before
    (folder / "r1.md").write_text(HEAD.format(1).replace("rule 1", "rule one"))
    assert await rules.answer(where, call("c1 x"), 20.0) == RuleAnswer()
    assert store.reading.reads == before + 3


async def test_what_cannot_be_read_in_its_time_says_nothing(
    folder: Path, database: Database
) -> None:
    """No time, a state file that is closed, and a directory that is none are no errors."""
    clock = FakeClock()
    rules = ToolRules(
        store_in(database, clock), Docs(database), clock, callers_in(folder.parent, database, clock)
    )
    await rules.add(call_about(folder), cwd=str(folder), path="r1.md", answer="deny")
    assert await rules.answer(lambda: [str(folder)], call("c1 x"), 0.0) == RuleAnswer()
    assert (await rules.answer(lambda: ["/gone", str(folder)], call("c1 x"), 20.0)).answer == "deny"
    assert await rules.answer(lambda: ["relative"], call("c1 x"), 20.0) == RuleAnswer()
    database.close()
    # A disk that takes no count switches no rule off.
    assert (await rules.answer(lambda: [str(folder)], call("c1 x"), 20.0)).answer == "deny"
