"""The door to SQLite."""

import os
import sqlite3
from pathlib import Path

import pytest

from memd.state.database import StateTooNewError, StateUnusableError, open_database

SCHEMA = "CREATE TABLE IF NOT EXISTS things (name TEXT);"


def test_a_transaction_is_all_or_nothing(tmp_path: Path) -> None:
    """What a block wrote is there afterwards, or, if it raised, nothing of it."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    with database.transaction() as cursor:
        cursor.execute("INSERT INTO things VALUES ('kept')")
    with pytest.raises(StateUnusableError), database.transaction() as cursor:
        cursor.executemany("INSERT INTO things VALUES (?)", [("lost",), (object(),)])
    assert [row["name"] for row in database.read("SELECT name FROM things")] == ["kept"]
    database.close()


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
        assert database.repaired == f"{path}.damaged-{number}"
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
    assert database.repaired is not None
    database.close()


def test_a_newer_format_is_left_alone(tmp_path: Path) -> None:
    """A file of a newer memd is refused and not touched."""
    connection = sqlite3.connect(tmp_path / "state.db")
    connection.execute("PRAGMA user_version=99")
    connection.close()
    with pytest.raises(StateTooNewError) as caught:
        open_database(str(tmp_path / "state.db"), [SCHEMA])
    assert caught.value.facts["version"] == 99


def test_what_cannot_be_opened_says_so(tmp_path: Path) -> None:
    """A path that is a directory or lies nowhere is a typed error."""
    for path in (tmp_path, tmp_path / "no" / "state.db"):
        with pytest.raises(StateUnusableError):
            open_database(str(path), [SCHEMA])


def test_a_failing_statement_is_a_typed_error(tmp_path: Path) -> None:
    """SQLite's own errors reach callers as one class that may be retried."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    with pytest.raises(StateUnusableError), database.transaction() as cursor:
        cursor.execute("INSERT INTO nothing VALUES (1)")
    with pytest.raises(StateUnusableError):
        database.read("SELECT * FROM nothing")
    with database.transaction() as cursor:
        cursor.execute("INSERT INTO things VALUES ('after')")
    database.close()
