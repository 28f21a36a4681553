"""A state file of an older version opens, and nothing of it is lost."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.client.aio import AsyncClient
from memd.core.values import Actor, Provenance
from memd.daemon.app import SCHEMAS
from memd.review.accepting import ProposalDecidedError
from memd.state.ages import Bound
from memd.state.database import Cursor, Database, StateUnusableError, open_database
from memd.state.migration import migrate
from memd.state.proposals import Proposal, ProposalTable
from memd.state.proposed import ProposedEdit
from memd.state.retention import Retention
from tests.review.bench import NOW, Bench, accepted, topic
from tests.support.daemon import daemon_here, throw_away_home
from tests.undoing import undo

pytestmark = pytest.mark.anyio

INDEX = """# Mine
- [A](a.md)
- [B](b.md)
- [a-name](d.md) — About it
- [a-name](c.md) — About it
"""
HERE = Path(__file__).parent
VERSIONS = pytest.mark.parametrize("version", [1, 2])


def old_topic(body: str) -> bytes:
    """Return a small memory as version 1 wrote it, without a mark of whose words it holds."""
    return topic(body).replace(b"  origin: assistant\n", b"")


def landed(folder: Path, database: Path | None = None, version: int = 1) -> Path:
    """Lay a state file that an older memd wrote into a folder, and the memories it tells of."""
    memory = folder / "memory"
    memory.mkdir(mode=0o700)
    database = database or folder / "state.db"
    dump = (HERE / f"landed_version_{version}.sql").read_text().replace("@MEMORY@", str(memory))
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(dump.replace("@OTHER@", str(folder / "other")))
    for name, text in {"a": "We ship on Mondays.", "b": "We ship on Mondays, Ana says."}.items():
        (memory / f"{name}.md").write_bytes(old_topic(text))
    (memory / "c.md").write_bytes(old_topic("C"))
    (memory / "d.md").write_bytes(old_topic("Two."))
    (memory / "MEMORY.md").write_text(INDEX)
    return database


def opened(path: Path) -> Database:
    """Open a state file as the daemon does."""
    return open_database(str(path), SCHEMAS, migrate=migrate)


def tables(path: Path) -> dict[str, list[str]]:
    """Return the columns of all tables."""
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {
            name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
            for (name,) in names.fetchall()
        }


@VERSIONS
def test_an_old_file_has_the_tables_of_a_new_one(tmp_path: Path, version: int) -> None:
    """Tables and columns are those of a file that was begun today, with its version."""
    old = landed(tmp_path, version=version)
    for path in (old, tmp_path / "new.db"):
        opened(path).close()
    assert tables(old) == tables(tmp_path / "new.db")
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)


@VERSIONS
async def test_proposals_of_an_old_file_are_what_they_were(tmp_path: Path, version: int) -> None:
    """All are listed under their names with what they say, decided or not."""
    database = opened(landed(tmp_path, version=version))
    bench = Bench(tmp_path, database)
    table = bench.table
    results = {each.id: each for each in table.of_directory(bench.directory, decided=True)}
    states = {name: each.state for name, each in results.items()}
    assert states == {
        "p1": "open", "p2": "open", "p3": "rejected", "p4": "open", "p6": "open", "p7": "open",
    }  # fmt: skip
    assert bench.states("p1") == {"a.md": "open", "b.md": "rejected", "c.md": "accepted"}
    first = results["p1"]
    assert (first.job, first.engine, first.said) == ("j1", "fixed", "I tidied up.")
    assert (first.problems, first.reason) == (("too much at once",), "I need both")
    assert first.edits is not None
    assert (first.edits[0].reason, first.edits[1].merged_into) == ("it says both", "a.md")
    assert first.edits[0].before == old_topic("We ship on Mondays.")
    last = (results["p2"].edits or ())[2]
    assert last == ProposedEdit("e.md", b"caf\xe9\r\n", mtime_ns=7_000_000_000)
    assert (results["p4"].edits, results["p6"].engine) == (None, "large")
    assert table.waiting_in(str(tmp_path / "other")) == 1
    refusals = [(each.paths, each.reason) for each in table.refusals(bench.directory, 9)]
    assert sorted(refusals) == [(("a.md",), "never"), (("b.md",), "I need both")]
    fresh = Proposal("", bench.directory, NOW, edits=(bench.edit("n.md", topic("N")),))
    name = table.propose(fresh, Provenance(Actor.DREAM))
    assert int(name[1:]) > 7
    database.close()


@VERSIONS
async def test_proposals_of_an_old_file_can_be_decided(tmp_path: Path, version: int) -> None:
    """They are shown with their diffs, accepted as one change, undone and rejected."""
    database = opened(landed(tmp_path, version=version))
    bench = Bench(tmp_path, database)
    views = {view.id: view for view in await bench.reviews.review(bench.directory)}
    assert "+We ship on Mondays (Ana).\n" in views["p1"].files[0].diff
    assert views["p4"].files == ()
    with pytest.raises(ProposalDecidedError):
        await bench.reviews.accept(bench.directory, "p1", ["b.md"])
    before = bench.files()
    done = await bench.reviews.accept(bench.directory, "p2")
    assert (done.state, done.left) == ("accepted", ())
    assert bench.files()["e.md"] == b"caf\xe9\r\n"
    await undo(bench.store, bench.directory, str(done.change), Provenance(Actor.UNDO))
    assert {name: text for name, text in bench.files().items() if name in before} == before
    assert (await bench.reviews.accept(bench.directory, "p1")).state == "partly"
    assert bench.files()["a.md"] == accepted("We ship on Mondays (Ana).")
    for name in ("p4", "p6"):
        assert (await bench.reviews.reject(bench.directory, name, reason="no")).state == "rejected"
    assert ("n.md", "") in bench.table.refused_edits(bench.directory)
    database.close()


@VERSIONS
async def test_history_of_an_old_file_stays(tmp_path: Path, version: int) -> None:
    """What a crash left is completed with its decision, and old changes are undone."""
    database = opened(landed(tmp_path, version=version))
    bench = Bench(tmp_path, database)
    assert len(await bench.store.recover()) == 1
    assert bench.files()["m.md"] == old_topic("M")
    assert bench.proposal("p7").state == "accepted"
    changes = await bench.store.history(bench.directory, path="d.md")
    assert [change.id for change in changes] == ["c2", "c1"]
    await undo(bench.store, bench.directory, "c2", Provenance(Actor.UNDO))
    assert bench.files()["d.md"] == old_topic("One.")
    Retention(database, Bound(NOW + 9999, 3), 2**40).batch()
    left = await bench.store.history(bench.directory)
    assert {"c1", "c2", "c3"}.isdisjoint(change.id for change in left)
    database.close()


@VERSIONS
async def test_a_daemon_goes_on_with_an_old_file(tmp_path: Path, version: int) -> None:
    """It completes what was recorded, and its status counts the proposals that are open."""
    with throw_away_home() as home:
        Path(home.places.state_dir).mkdir(parents=True)
        landed(tmp_path, Path(home.places.database), version)
        async with daemon_here(home), AsyncClient(home.places.socket, name="t") as client:
            status = await client.call("status")
    assert status["proposals"] == {str(tmp_path / "memory"): 4, str(tmp_path / "other"): 1}
    assert any("was completed after an interruption" in note for note in status["notes"])


class Failing:
    """A cursor of which one call fails."""

    def __init__(self, cursor: sqlite3.Cursor, number: int) -> None:
        self._cursor = cursor
        self._left = number

    def execute(self, *words: object) -> object:
        """Pass a statement on, or fail."""
        self._left -= 1
        if self._left == 0:
            raise sqlite3.OperationalError
        return self._cursor.execute(*words)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> object:
        return getattr(self._cursor, name)


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    """Whichever statement fails, the file is of version 1 as before, and opens later."""
    path = landed(tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        before = list(connection.iterdump())
    for number in range(1, 500):

        def attempt(cursor: Cursor, number: int = number) -> None:
            migrate(cast("Cursor", Failing(cursor, number)))

        try:
            open_database(str(path), SCHEMAS, migrate=attempt).close()
        except StateUnusableError:
            with closing(sqlite3.connect(path)) as connection:
                assert list(connection.iterdump()) == before
        else:
            break
    assert 20 < number < 499
    assert tables(path)["changes"][-2:] == ["decided", "proposal"]


CELLS = st.one_of(
    st.sampled_from(
        ["", "{", "[" * 100_000, '{"edits": [{"path": "\\ud800"}]}', "x\0y", "accepted"]
    ),
    st.sampled_from([b"\xff", '{"edits": {}}', '{"edits": [], "problems": [3, "\\ud800"]}']),
    st.text(max_size=8),
)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["proposals.directory", "proposals.job", "proposals.content"])
    | st.sampled_from(["proposal_states.state", "proposal_states.reason", "refusals.path"])
    | st.sampled_from(["refusals.reason", "proposals.at", "proposal_states.decided"]),
    CELLS | st.floats(),
)
def test_no_old_row_keeps_a_file_from_opening(
    tmp_path_factory: pytest.TempPathFactory, place: str, cell: object
) -> None:
    """Whatever stands in an old row, the file opens, and each proposal is one or goes."""
    folder = tmp_path_factory.mktemp("old")
    path = landed(folder)
    table, column = place.split(".")
    with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.Error):
        value = "CAST(? AS TEXT)" if isinstance(cell, bytes) else "?"
        connection.execute(f"UPDATE {table} SET {column} = {value}", (cell,))  # noqa: S608
        connection.commit()
    database = opened(path)
    results = ProposalTable(database).of_directory(str(folder / "memory"), decided=True)
    assert len(results) <= 6
    database.close()
