"""A journal is input too: whatever its rows and bodies hold, memd answers and does no harm."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.base.errors import MemdError
from memd.base.values import Plan
from memd.state.history import Filter
from memd.state.proposals import ProposalTable
from memd.state.retention import Retention
from memd.store.history import Past, Range
from tests.store.bench import Bench, open_bench, topic

ROWS = 5  # of every table; the sets are c1 to c5
PATHS = ("../outside.md", "/etc/passwd", "a/../../outside.md", "link/x.md", "a.md\0", "b.md", "")
COLUMNS = {
    "changes": "directory state at actor client session model reason origin effects conflicts"
    " decided proposal request id",
    "change_files": "path before after before_mtime_ns mode after_mtime_ns temp conflict change",
    "blobs": "hash body",
}
CELLS = st.one_of(
    st.sampled_from(
        [*PATHS, "applied", "recorded", "proposed", "conflict", "0" * 64, "c1", b"\xff", "[1]"]
    ),
    st.sampled_from([-1, 0, 2**62, 1e308, -1e308, float("inf"), None, '{"kind": 3}']),
    st.binary(max_size=8),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
BLOWS = st.lists(
    st.one_of(
        *(
            st.tuples(st.just(table), st.sampled_from(columns.split()), st.integers(0, ROWS), CELLS)
            for table, columns in COLUMNS.items()
        )
    ),
    min_size=1,
    max_size=6,
)


def story(bench: Bench) -> None:
    """Make five changes of two memories."""
    for number in range(4):
        bench.write("a.md", topic("a", str(number)))
    bench.write("b.md", topic("b"))


def strike(path: Path, blows: list[tuple[str, str, int, object]]) -> None:
    """Overwrite cells of the state file, as anything might."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for table, column, number, cell in blows:
            chosen = f"SELECT rowid FROM {table} LIMIT 1 OFFSET {number}"  # noqa: S608 - words of this test
            where = f"rowid = ({chosen})" if table != "change_files" else f"change = {number}"
            with suppress(sqlite3.Error):
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (cell,))  # noqa: S608


def questions(past: Past, directory: str, at: float) -> list[Callable[[], object]]:
    """Return everything that can be asked."""
    ids = [f"c{number}" for number in range(1, ROWS + 2)]
    requested: list[Callable[[], object]] = [
        lambda: past.changes(Filter(), limit=50),
        lambda: past.changes(Filter(directory, "a.md", since=0.0), limit=50, before="c4"),
        lambda: past.compare(directory, "a.md", "c1", None),
        lambda: past.compare(directory, "a.md", None, at - 2),
        lambda: past.writers(directory, "a.md"),
        lambda: past.version(directory, "a.md", at),
    ]
    for change in ids:
        requested.append(partial(past.diff, directory, change))
        requested.append(partial(past.version, directory, "a.md", change))
    return requested


def ways_back(past: Past, directory: str, at: float) -> list[Callable[[], Plan]]:
    """Return every way to take something back."""
    return [
        lambda: past.undo(directory, "c4"),
        lambda: past.undo(directory, Range("c2", "c3")),
        lambda: past.undo(directory, at - 3),
        lambda: past.undo(directory, 0.0),
        lambda: past.restore(directory, "a.md"),
        lambda: past.restore(directory, "a.md", "c2"),
        lambda: past.restore(directory, "b.md", "c5"),
    ]


def endure(root: Path, blows: list[tuple[str, str, int, object]]) -> None:
    """Ask everything of a damaged journal and carry everything out; see that nothing is harmed."""
    outside = root / "outside.md"
    outside.write_text("mine\n")
    with open_bench(root) as bench:
        (bench.path / "link").symlink_to(root)
        story(bench)
        strike(root / "state.db", blows)
        past = Past(bench.journal, lambda _, path: bench.tree().get(path))
        for question in questions(past, bench.directory, bench.at):
            with suppress(MemdError):
                question()
        for way in ways_back(past, bench.directory, bench.at):
            with suppress(MemdError):
                bench.commit(way())
        with suppress(MemdError):
            ProposalTable(bench.database).of_directory(bench.directory, decided=True)
            ProposalTable(bench.database).refusals(bench.directory, 9)
        with suppress(MemdError):
            Retention(bench.database, 1).batch()
        names = {path for path in bench.topics() if "/" not in path and not path.startswith(".")}
        assert names <= {"a.md", "b.md"}
        bodies = {topic("a", str(number)) for number in range(4)} | {topic("b")}
        assert {bench.topics()[name] for name in names} <= bodies
    assert outside.read_text() == "mine\n"
    kept = {file.name.split("-")[0].split(".damaged")[0] for file in root.iterdir()}
    assert kept <= {"memory", "outside.md", "state.db"}


@settings(max_examples=30, deadline=None)
@given(blows=BLOWS)
def test_a_hostile_journal_does_no_harm(
    tmp_path_factory: pytest.TempPathFactory, blows: list[tuple[str, str, int, object]]
) -> None:
    """History, diff, undo and restore answer or raise an error of memd's; nothing outside moves."""
    endure(tmp_path_factory.mktemp("hostile"), blows)


@pytest.mark.soak
@settings(max_examples=1000, deadline=None)
@given(blows=BLOWS)
def test_no_journal_is_hostile_enough(
    tmp_path_factory: pytest.TempPathFactory, blows: list[tuple[str, str, int, object]]
) -> None:
    """A thousand damaged journals do no harm."""
    root = tmp_path_factory.mktemp("hostile")
    endure(root, blows)
    shutil.rmtree(root)
