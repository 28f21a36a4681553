"""The door to SQLite."""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memd.state.database import (
    Database,
    StateUnusableError,
    open_database,
)
from tests.support.faults import Countdown, FaultyDatabase

SCHEMA = "CREATE TABLE IF NOT EXISTS things (name TEXT);"


def test_the_file_is_private_from_the_start(tmp_path: Path) -> None:
    """The state file has mode 0600 under any umask."""
    old = os.umask(0)
    try:
        open_database(str(tmp_path / "state.db"), [SCHEMA]).close()
    finally:
        os.umask(old)
    assert (tmp_path / "state.db").stat().st_mode & 0o777 == 0o600


def test_a_damaged_file_is_put_aside(tmp_path: Path) -> None:
    """A file that is no database costs history only: it is kept beside, a new one begins."""
    path = tmp_path / "state.db"
    for number in (1, 2):
        path.write_bytes(b"this is not a database " * 100)
        database = open_database(str(path), [SCHEMA])
        assert f"{path}.damaged-{number}" in database.file.notes[0]
        assert database.read("SELECT * FROM things") == []
        database.close()
    assert (tmp_path / "state.db.damaged-2").read_bytes().startswith(b"this is not")


def test_a_torn_page_is_found_at_the_start(tmp_path: Path) -> None:
    """A database whose pages were overwritten is put aside with its log."""
    path = tmp_path / "state.db"
    database = open_database(str(path), [SCHEMA])
    with database.transaction() as cursor:
        cursor.executemany("INSERT INTO things VALUES (?)", [("x" * 500,) for _ in range(200)])
    database.close()
    with open(path, "r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * 4096 * 4)
    (tmp_path / "state.db-wal").write_bytes(b"")
    database = open_database(str(path), [SCHEMA])
    assert database.file.notes
    database.close()


@pytest.mark.parametrize("version", [0, 2, 99])
def test_a_file_of_another_format_is_put_aside(tmp_path: Path, version: int) -> None:
    """A file of another program, an older or a later memd is kept whole beside a new one."""
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (text)")
        connection.execute(f"PRAGMA user_version={version}")
    database = open_database(str(path), [SCHEMA])
    assert database.read("SELECT * FROM things") == []
    assert f"{path}.other-1" in database.file.notes[0]
    with closing(sqlite3.connect(tmp_path / "state.db.other-1")) as kept:
        assert kept.execute("SELECT * FROM other").fetchall() == []
    database.close()


def test_what_cannot_be_opened_says_so(tmp_path: Path) -> None:
    """A path that is a directory or lies nowhere is a typed error."""
    for path in (tmp_path, tmp_path / "no" / "state.db"):
        with pytest.raises(StateUnusableError):
            open_database(str(path), [SCHEMA])


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Database]:
    """Open a state file of many pages."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    with database.transaction() as cursor:
        cursor.executemany("INSERT INTO things VALUES (?)", [("x" * 500,) for _ in range(2000)])
    yield database
    database.close()


def insert(database: Database) -> None:
    """Run one small transaction."""
    with database.transaction() as cursor:
        cursor.execute("INSERT INTO things VALUES ('new')")


def count(database: Database) -> int:
    """Return how many rows there are."""
    return int(database.read("SELECT count(*) AS n FROM things")[0]["n"])


def until_it_works(database: Database, tries: int = 4) -> int:
    """Write and read everything until that works; return how often it failed first."""
    for failed in range(tries):
        try:
            insert(database)
            count(database)
        except StateUnusableError:
            continue
        return failed
    return tries


def test_a_removed_file_is_begun_anew(filled: Database) -> None:
    """Of a deleted file queries read on, and the next transaction has a new one, and says so."""
    reported: list[str] = []
    filled.file.tell = reported.append
    os.unlink(filled.path)
    assert (count(filled), reported) == (2000, [])
    insert(filled)
    assert count(filled) == 1
    assert os.path.exists(filled.path)
    assert reported == list(filled.file.notes)
    assert "removed or replaced" in reported[0]
    again = open_database(filled.path, [SCHEMA])
    assert (count(again), again.file.notes) == (1, [])
    again.close()


def test_a_removed_folder_is_told_until_it_is_back(filled: Database, tmp_path: Path) -> None:
    """Without its folder the file cannot be begun anew; once there is one, it is."""
    os.rename(tmp_path, f"{tmp_path}-away")
    with pytest.raises(StateUnusableError):
        insert(filled)
    tmp_path.mkdir()
    insert(filled)
    assert count(filled) == 1


def test_a_removed_log_loses_nothing(filled: Database) -> None:
    """Where only SQLite's log was deleted, its content is written back at once."""
    os.unlink(f"{filled.path}-wal")
    insert(filled)
    assert count(filled) == 2001
    assert "log of the state file" in filled.file.notes[0]
    again = open_database(filled.path, [SCHEMA])
    assert count(again) == 2001
    again.close()


@pytest.mark.parametrize("junk", [b"", b"\0", b"\xff", b"not a database"])
@pytest.mark.parametrize("start", [0, 4096])
def test_overwritten_pages_cost_history_only(filled: Database, junk: bytes, start: int) -> None:
    """Whatever is written over the open file, a few uses later all works again."""
    size = os.path.getsize(filled.path)
    with open(filled.path, "r+b") as file:
        file.seek(start)
        if junk:
            file.write((junk * size)[: size - start])
        else:
            file.truncate()
    with open(f"{filled.path}-wal", "r+b") as file:
        file.truncate()
    assert until_it_works(filled) <= 3
    insert(filled)


def test_pages_that_make_no_sense_are_put_aside_while_it_is_open(filled: Database) -> None:
    """What was not read before the damage fails once, typed; the next use has a new file."""
    connection = filled.file.connection()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("PRAGMA cache_size=5")
    with open(filled.path, "r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * 4096 * 200)
    with pytest.raises(StateUnusableError):
        filled.read("SELECT sum(length(name)) FROM things")
    insert(filled)
    assert count(filled) == 1
    assert filled.file.notes
    assert "no memory is lost" in filled.file.notes[0]


def test_what_is_called_damaged_twice_is_put_aside(filled: Database) -> None:
    """A file whose pages look sound and which SQLite cannot use all the same is not kept."""
    filled.file.damages = 2
    filled.file.close()
    insert(filled)
    assert filled.file.notes
    assert "no memory is lost" in filled.file.notes[0]
    assert count(filled) == 1


def test_a_full_medium_closes_nothing(filled: Database) -> None:
    """Where there is only no space each write is tried, and the first with space works."""
    countdown = Countdown(1, errno.ENOSPC, ever=True)
    faulty = FaultyDatabase(filled, countdown)
    for _ in range(3):
        with pytest.raises(StateUnusableError) as caught:
            insert(faulty)
        assert caught.value.code == 1012
    countdown.fail_at = 0
    insert(faulty)


def test_a_file_that_cannot_be_opened_just_now_is_not_put_aside(tmp_path: Path) -> None:
    """What is in the way is told, and once it is gone the file is used as it was."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    insert(database)
    database.file.close()
    (tmp_path / "state.db-wal").mkdir()
    with pytest.raises(StateUnusableError):
        insert(database)
    (tmp_path / "state.db-wal").rmdir()
    insert(database)
    assert (count(database), database.file.notes) == (2, [])
    database.close()


def test_a_fault_of_a_statement_is_not_the_disk_s(tmp_path: Path) -> None:
    """A wrong statement or a refused row is logged and no matter of the disk; the file goes on."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    logged: list[Exception] = []

    def log(error: Exception) -> str:
        logged.append(error)
        return f"e{len(logged)}"

    database.file.log_fault = log
    database.write("CREATE UNIQUE INDEX once ON things (name)")
    database.write("INSERT INTO things VALUES (?)", ("a",))
    for query, values in (
        ("INSERT INTO nothing VALUES (1)", ()),
        ("INSERT INTO things VALUES (?)", ("a",)),
        ("INSERT INTO things VALUES (?)", ()),
        ("INSERT INTO things VALUES (?)", (object(),)),
    ):
        for run in (database.read, database.write):
            with pytest.raises(StateUnusableError) as caught:
                run(query, values)
            error = caught.value
            assert (error.kind, error.retryable, error.of_disk) == ("internal", False, False)
            assert error.facts == {"error": f"e{len(logged)}"}
    assert len(logged) == 8
    assert [row["name"] for row in database.read("SELECT name FROM things")] == ["a"]
    database.close()
