"""A state file of another format: copied before it changes, left alone when it is newer."""

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from memd import __version__
from memd.state.changes import check_version, forget_copies, migrate
from memd.state.database import (
    Cursor,
    Database,
    StateTooNewError,
    StateUnusableError,
    open_database,
)
from memd.state.errors import StateNotMigratedError
from memd.state.formats import FORMAT, copies
from memd.state.tables import SCHEMAS
from tests.state.test_migration import VERSIONS, landed, opened


def dump(path: Path) -> list[str]:
    """Return all that a state file holds."""
    with closing(sqlite3.connect(path)) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()
        return [f"{version}", *connection.iterdump()]


def names(folder: Path) -> set[str]:
    """Return the state files of a folder."""
    return {name for name in os.listdir(folder) if name.startswith("state.db")}


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of the state files of a folder; an index of SQLite's may come and go."""
    return {name: (folder / name).read_bytes() for name in names(folder) - {"state.db-shm"}}


@VERSIONS
def test_the_file_as_it_was_is_kept_and_told(tmp_path: Path, version: int) -> None:
    """A copy has all that the file had, is private, and its path is in the note."""
    path = landed(tmp_path, version=version)
    before = dump(path)
    database = opened(path)
    copy = tmp_path / f"state.db.format-{version}"
    (note,) = database.file.notes
    assert f"from format {version} to {FORMAT}" in note
    assert str(copy) in note
    database.close()
    assert names(tmp_path) == {"state.db", copy.name}
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert dump(copy) == before
    assert opened(path).file.notes == []  # the next start has nothing to do


def test_two_copies_are_kept(tmp_path: Path) -> None:
    """Of three formats the oldest copy goes; one of the same format is replaced."""
    path = landed(tmp_path, version=2)
    for number in (0, 1, 2):
        (tmp_path / f"state.db.format-{number}").write_bytes(b"older")
    opened(path).close()
    assert [number for number, _ in copies(str(path))] == [2, 1]
    assert (tmp_path / "state.db.format-2").read_bytes() != b"older"


def test_copies_go_by_their_age(tmp_path: Path) -> None:
    """Only copies from before a time are removed."""
    path = tmp_path / "state.db"
    for number, at in ((1, 1000), (2, 3000)):
        copy = tmp_path / f"state.db.format-{number}"
        copy.touch()
        os.utime(copy, (at, at))
    forget_copies(str(path), 0.0)
    forget_copies(str(path), 2000.0)
    assert names(tmp_path) == {"state.db.format-2"}


def _unknown_row(_: Cursor) -> None:
    raise KeyError("a row nobody thought of")  # noqa: TRY003, EM101 - as a bug would


def _twice(cursor: Cursor) -> None:
    cursor.execute("CREATE TABLE half (one INTEGER PRIMARY KEY)")
    for _ in range(2):
        cursor.execute("INSERT INTO half VALUES (1)")


def _no_column(cursor: Cursor) -> None:
    cursor.execute("SELECT nothing FROM changes")


@pytest.mark.parametrize("fails", [_unknown_row, _twice, _no_column])
def test_what_fails_leaves_the_file_as_it_was(
    tmp_path: Path, fails: Callable[[Cursor], None]
) -> None:
    """The error says what to do, the same file is not tried twice, and another one is opened."""
    path = landed(tmp_path)
    before, tries = dump(path), [0]

    def counted(cursor: Cursor) -> None:
        tries[0] += 1
        fails(cursor)

    database = open_database(str(path), SCHEMAS, migrate=counted, later=True)
    assert f"cannot be brought from format 1 to {FORMAT}" in database.file.notes[0]
    for _ in range(3):
        with pytest.raises(StateNotMigratedError) as caught:
            database.read("SELECT 1")
    assert "go back to the older memd" in caught.value.hint
    assert (tries[0], caught.value.exit_status) == (1, 78)
    assert dump(path) == before
    assert names(tmp_path) == {"state.db", "state.db.format-1"}
    path.rename(tmp_path / "aside")
    assert database.read("SELECT 1")
    database.close()
    assert opened(tmp_path / "aside").read("SELECT 1")  # the memd that can, still can


def test_a_full_disk_is_tried_again(tmp_path: Path) -> None:
    """Where the disk refuses the change of format, the next use does it."""
    path = landed(tmp_path)
    refusing = [True]

    def full(cursor: Cursor) -> None:
        if refusing:
            refusing.clear()
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        migrate(cursor)

    database = open_database(str(path), SCHEMAS, migrate=full, later=True)
    assert "disk is full" in database.file.notes[0]
    assert database.read("SELECT count(*) FROM changes")[0][0] > 0
    database.close()


def test_no_room_for_the_copy_changes_nothing(tmp_path: Path) -> None:
    """Without a copy there is no new format; nothing half is left."""
    path = landed(tmp_path)
    before = dump(path)
    (tmp_path / "state.db.format-1").mkdir()  # nothing can be renamed to it
    with pytest.raises(StateUnusableError):
        opened(path)
    assert dump(path) == before
    assert names(tmp_path) == {"state.db", "state.db.format-1"}


@pytest.fixture(name="newer")
def _newer(tmp_path: Path) -> Path:
    """Return a folder with a newer memd's state file, its last commits still in the log."""
    made, folder = tmp_path / "made", tmp_path / "newer"
    folder.mkdir()
    made.mkdir()
    path = made / "state.db"
    opened(path).close()
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("UPDATE written_by SET version = '99.1'")
        writer.execute(f"PRAGMA user_version={FORMAT + 6}")
        writer.commit()
        for name in ("state.db", "state.db-wal"):
            shutil.copy(made / name, folder)
    return folder


@pytest.mark.parametrize("copied", [True, False])
def test_a_newer_file_is_only_looked_at(newer: Path, *, copied: bool) -> None:
    """Both programs and the copy are named, and not a byte of file or log changes."""
    path = newer / "state.db"
    if copied:
        (newer / f"state.db.format-{FORMAT + 1}").touch()  # this one is of no use
        (newer / f"state.db.format-{FORMAT}").touch()
    before = contents(newer)
    looks: tuple[Callable[[], object], ...] = (
        lambda: opened(path),
        lambda: check_version(str(path)),
    )
    for look in looks:
        with pytest.raises(StateTooNewError) as caught:
            look()
        assert contents(newer) == before
    sentence, copy = caught.value.sentence, f"{path}.format-{FORMAT}"
    assert f"was written by memd 99.1 (format {FORMAT + 6})" in sentence
    assert f"this is memd {__version__}, which knows format {FORMAT}" in sentence
    assert (copy in sentence, "move the file away" in sentence) == (copied, not copied)
    assert caught.value.exit_status == 78


def test_any_other_file_may_be_looked_at(tmp_path: Path) -> None:
    """None, one of this format and an older one are fine; one that is no state file is told."""
    path = tmp_path / "state.db"
    check_version(str(path))
    assert names(tmp_path) == set()
    Database(open_database(str(path), SCHEMAS).file).close()
    check_version(str(path))
    path.write_bytes(b"junk" * 1000)
    with pytest.raises(StateUnusableError):
        check_version(str(path))
