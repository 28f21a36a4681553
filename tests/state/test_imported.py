"""What the state file remembers of imports: originals of files, and past changes."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.core.imports import Original, PastChange, PastFile, imported, past_of
from memd.core.text import sha256
from memd.core.values import Actor, Change, FileChange, Imported, Provenance
from memd.state.ages import Bound
from memd.state.database import Database, open_database
from memd.state.journal import Journal
from memd.state.purge import Purge
from memd.state.records import ChangeRecord, PlannedChange, Step
from memd.state.retention import Pruned, Retention
from memd.state.tables import SCHEMAS, ImportTable

BODIES = {sha256(text): text for text in (b"one", b"two", b"three")}
ONE, TWO, THREE = BODIES
BY = Provenance(Actor.CLIENT)
MUCH = 2**40
PAST = (
    PastChange(1.0, "client", reason="first", files=(PastFile("a.md", None, ONE),)),
    PastChange(2.5, "dream", files=(PastFile("a.md", ONE, TWO), PastFile("b.md", THREE, None))),
)


def write(database: Database, steps: Iterable[Step], *files: Original) -> ChangeRecord:
    """Journal a set of an import and mark it applied."""
    journal = Journal(database)
    intent = PlannedChange("/m", 5.0, BY, "", "0123abcd", tuple(steps), BODIES, (imported(files),))
    return journal.mark_applied(journal.record(intent), 5.0)


def prune(database: Database, before: float = MUCH, most: int = MUCH) -> Pruned:
    """Prune until there is no more to do."""
    retention, total = Retention(database, Bound(before, MUCH), most), Pruned(more=True)
    while total.more:
        total += retention.batch()
    return total


def test_an_original_becomes_true_with_its_change_set(database: Database, tmp_path: Path) -> None:
    """What was not known before the set is the hash that the set left; a link names the same."""
    table = ImportTable(database)
    first = Original("a.md", ONE, origin="user", kind="memd")
    table.record("/m", [first], BODIES, 4.0)
    assert (table.of_directory("/m"), table.body(ONE)) == ({}, b"one")
    write(database, [Step("a.md", None, TWO)], first, Original("MEMORY.md", THREE))
    known = Original("a.md", ONE, TWO, "user", "memd")
    assert table.of_directory("/m") == {("a.md", TWO): known}
    assert database.read("SELECT count(*) FROM imported_files")[0][0] == 1
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    table.record(str(tmp_path / "link"), [known], {}, 4.0)
    assert table.of_directory(str(tmp_path / "real")) == {("a.md", TWO): known}


def test_an_older_original_stays_until_the_file_changes(database: Database) -> None:
    """A file may have one original for each text that imports wrote there."""
    table = ImportTable(database)
    one, two = Original("a.md", ONE, TWO), Original("a.md", TWO, THREE)
    table.record("/m", [one], {}, 1.0)
    table.record("/m", [two, two], {}, 2.0)
    assert table.of_directory("/m") == {("a.md", TWO): one, ("a.md", THREE): two}


def test_past_changes_are_kept_once(database: Database) -> None:
    """The same history twice is there once; equal changes of one history are all there."""
    table = ImportTable(database)
    history = (*PAST, PAST[0])
    assert table.add_past("/m", history, BODIES.items(), 9.0) == 3
    assert table.add_past("/m", history, BODIES.items(), 9.0) == 0
    assert (table.past("/m"), table.past("/other")) == (history, ())
    assert [table.body(key) for key in BODIES] == [b"one", b"two", b"three"]


def test_a_change_of_the_journal_is_told_as_archives_tell_it() -> None:
    """All that a change says goes into its line, but for its number and directory."""
    by = Provenance(Actor.DREAM, "c", "s", "m", "r", "o")
    files = (FileChange("a.md", "updated", ONE, TWO),)
    told = PastChange(3.0, "dream", "c", "s", "m", "r", "o", (PastFile("a.md", ONE, TWO),))
    assert past_of(Change("c7", 3.0, "/m", by, files)) == told


def test_retention_leaves_what_a_file_came_from(database: Database) -> None:
    """An old original goes with its text once its file is another one, and not before."""
    table = ImportTable(database)
    original = Original("a.md", ONE, TWO)
    table.record("/m", [Original("a.md", THREE)], BODIES, 4.0)
    write(database, [Step("a.md", None, TWO)], original)
    prune(database)
    assert table.of_directory("/m") == {("a.md", TWO): original}
    assert [table.body(key) for key in BODIES] == [b"one", b"two", None]
    write(database, [Step("a.md", TWO, THREE)])
    prune(database, before=5.0)
    assert table.body(ONE) == b"one"
    prune(database)
    assert (table.of_directory("/m"), table.body(ONE)) == ({}, None)


def test_past_changes_are_as_old_as_their_import(database: Database) -> None:
    """They go with their bodies by the time of the import, and first where there is too much."""
    table = ImportTable(database)
    write(database, [Step("a.md", None, ONE)])
    table.add_past("/m", PAST, BODIES.items(), 9.0)
    assert prune(database, before=3.0).changes == 0
    assert prune(database, before=0.0, most=1).changes == 3
    assert (table.past("/m"), table.body(TWO)) == ((), None)
    table.add_past("/m", PAST, BODIES.items(), 9.0)
    prune(database)
    assert (table.past("/m"), table.body(TWO), table.body(ONE)) == ((), None, b"one")


def test_a_purge_takes_what_imports_brought(tmp_path: Path) -> None:
    """Originals and past texts of a file are purged with it, and a secret in what rows say."""
    database = open_database(str(tmp_path / "state.db"), SCHEMAS)
    table, purge = ImportTable(database), Purge(database)
    table.record("/m", [Original("a.md", ONE, TWO)], BODIES, 4.0)
    secret = PastChange(1.0, "client", reason="said sesame", files=PAST[1].files)
    table.add_past("/m", [secret], (), 4.0)
    assert purge.hashes_of_path("/m", "a.md") == {ONE, TWO}
    assert purge.hashes_of_path("/m", "b.md") == {THREE}
    assert purge.hashes_of_bodies(lambda body: body == b"one") == {ONE}
    assert [(item.paths, item.changes) for item in purge.removable_texts([ONE])] == [
        (("a.md",), ())
    ]
    purge.remove([ONE], lambda text: text.replace("sesame", "[x]"))
    assert [table.body(key) for key in BODIES] == [None, b"two", b"three"]
    assert table.past("/m")[0].reason == "said [x]"
    assert table.of_directory("/m") == {("a.md", TWO): Original("a.md", ONE, TWO)}
    database.close()


@pytest.mark.parametrize("value", [b"", b"{}", b"\xff", b"[" * 9999, b'{"at": 1}', b"null"])
def test_a_damaged_row_does_nothing(database: Database, value: bytes) -> None:
    """A row that memd did not write is as if it were not there, and the others are read."""
    table = ImportTable(database)
    table.add_past("/m", PAST, BODIES.items(), 9.0)
    database.write("UPDATE past_changes SET value = ? WHERE number = 1", (value,))
    assert table.past("/m") == PAST[1:]
    table.record("/m", [Original("a.md", ONE, TWO), Original("b.md", TWO, ONE)], {}, 1.0)
    database.write("UPDATE imported_files SET origin = ? WHERE path = 'b.md'", (value,))
    assert table.of_directory("/m") == {("a.md", TWO): Original("a.md", ONE, TWO)}


@settings(max_examples=15)
@given(st.text(max_size=20) | st.sampled_from(["[" * 9999, '["a"]', '[{"path": "a.md"}]', "[1]"]))
def test_a_damaged_effect_does_nothing(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """An effect whose list is none remembers nothing."""
    database = open_database(str(tmp_path_factory.mktemp("s") / "state.db"), SCHEMAS)
    effect = Imported(text)
    Journal(database).record_effects(PlannedChange("/m", 1.0, BY, "", "", (), {}, (effect,)))
    assert ImportTable(database).of_directory("/m") == {}
    database.close()
