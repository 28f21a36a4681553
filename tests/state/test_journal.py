"""The journal of change sets."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.core import limits
from memd.core.text import sha256
from memd.core.values import Actor, CommitResult, CursorMove, Provenance
from memd.state import cursors, journal
from memd.state.database import Database, open_database
from memd.state.journal import Journal
from memd.state.records import CONFLICT, PlannedChange, Step
from tests.changes import history

BY = Provenance(Actor.CLIENT, "editor", "s1", "model", "why", "user")
OLD, NEW = sha256(b"old"), sha256(b"new")
UPDATE = Step("a.md", OLD, NEW, before_mtime_ns=5, mode=0o640, after_mtime_ns=7)
INDEX = Step("MEMORY.md", None, NEW)


def intent(
    *steps: Step, directory: str = "/m", request: str = "", at: float = 1.0
) -> PlannedChange:
    """Return a set about to be recorded."""
    return PlannedChange(
        directory,
        at,
        BY,
        request,
        "0123abcd",
        steps,
        {OLD: b"old", NEW: b"new"},
        (CursorMove("s1", "t", 3, "m"),),
        ("left.md",),
    )


def test_files_left_alone_are_no_part_of_what_happened(database: Database) -> None:
    """A file that a set could not touch is not told as changed, and not found by its path."""
    book = Journal(database)
    done = book.mark_applied(book.record(intent(UPDATE, INDEX)), 9.0, ["a.md"])
    assert done.result().files == ()
    assert [step.conflict for step in done.steps] == [True, False]
    assert history(book, "/m", path="a.md") == ()
    assert len(history(book, "/m", path="MEMORY.md")) == 1


def test_a_conflict_is_kept_and_never_done(database: Database) -> None:
    """A set that was refused can be looked at, and is neither pending nor history."""
    book = Journal(database)
    record = book.record_conflict(intent(UPDATE, request="r1"))
    assert record.state == CONFLICT
    assert (book.pending(), history(book, "/m"), book.change("/m", record.id)) == ((), (), None)
    assert book.change("/m", record.id, refused=True) == record
    assert book.blob(NEW) == b"new"
    assert book.earlier_result("/m", "editor", "r1") is None
    assert cursors.Cursors(database).get("/m", "s1") is None


def test_a_set_whose_record_was_lost_marks_no_other(database: Database) -> None:
    """Where the state file was begun anew meanwhile, its number belongs to nobody else's set."""
    book = Journal(database)
    lost = book.record(intent(UPDATE, request="r1"))
    with database.transaction() as cursor:
        for table in ("change_files", "changes", "sqlite_sequence"):
            cursor.execute(f"DELETE FROM {table}")  # noqa: S608 - one of three words
    other = book.record(intent(UPDATE, directory="/other"))
    assert other.number == lost.number
    book.mark_applied(lost, 2.0)
    assert [record.directory for record in book.pending()] == ["/other"]
    answer = book.earlier_result("/m", BY.client, "r1")
    assert answer == CommitResult(None, repeated=True, conflicts=("left.md",))


def test_effects_without_files_leave_no_change(database: Database) -> None:
    """A cursor may move, and a request be answered, although nothing had to be written."""
    book = Journal(database)
    book.record_effects(intent(request="r2"))
    assert cursors.Cursors(database).get("/m", "s1") == CursorMove("s1", "t", 3, "m")
    answer = book.earlier_result("/m", "editor", "r2")
    assert answer == CommitResult(None, repeated=True, conflicts=("left.md",))
    assert history(book, "/m") == ()
    book.record_effects(PlannedChange("/m", 1.0, BY, "", "0123abcd", (), {}))
    assert database.read("SELECT count(*) AS n FROM requests")[0]["n"] == 1


def test_a_body_that_does_not_match_is_no_body(database: Database) -> None:
    """Damaged, foreign and oversized bodies are not given out."""
    book = Journal(database)
    bomb = zlib.compress(b"\0" * (limits.READ_BYTES + 2))
    rows = [("torn", b"xx"), ("text", "text"), ("wrong", zlib.compress(b"x")), ("bomb", bomb)]
    with database.transaction() as cursor:
        cursor.executemany("INSERT INTO blobs (hash, body) VALUES (?, ?)", rows)
    assert [book.blob(key) for key in ("none", "torn", "text", "wrong", "bomb")] == [None] * 5


def test_hostile_rows_are_read_without_harm(database: Database) -> None:
    """Rows of other types than memd writes become steps that nobody will carry out."""
    book = Journal(database)
    book.record(intent(UPDATE))
    with database.transaction() as cursor:
        cursor.execute("UPDATE changes SET actor = 'king', effects = 'x', conflicts = '{}'")
        cursor.execute("UPDATE change_files SET path = ?, mode = 'rw'", (b"\xff",))
    (record,) = book.pending()
    assert (record.by.actor, record.effects, record.conflicts) == (Actor.EXTERNAL, (), ())
    assert record.steps == (Step("b'\\xff'", None, None, conflict=True),)


@given(st.binary(max_size=2000))
def test_bodies_come_back_as_they_went_in(
    tmp_path_factory: pytest.TempPathFactory, body: bytes
) -> None:
    """Whatever bytes a file has, the journal returns exactly these."""
    path = tmp_path_factory.mktemp("journal") / "state.db"
    database = open_database(str(path), [journal.SCHEMA])
    book = Journal(database)
    key = sha256(body)
    book.record(
        PlannedChange("/m", 1.0, BY, "", "0123abcd", (Step("a.md", None, key),), {key: body})
    )
    assert book.blob(key) == body
    database.close()
