"""A database that fails in the middle: a request leaves all or nothing, and the next one works."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from memd.server.errors import StorageBusyError, StorageUnavailableError
from memd.server.schema import prepare
from memd.server.sqlite import SQLite
from memd.server.storage import Storage, open_storage
from memd.server.values import Role
from tests.server.desk import REMOTE, Desk, entry, new_id


class FailingSQLite(SQLite):
    """A database whose n-th statement from now on fails; 0 lets all through."""

    failing = 0

    def words(self, sql: str) -> str:
        """Count a statement."""
        self.failing -= 1
        if self.failing == 0:
            raise sqlite3.OperationalError
        return super().words(sql)


def state(desk: Desk) -> list[object]:
    """Return all that the storage holds."""
    storage, number = desk.storage, desk.repository.id
    return [
        desk.fresh(),
        desk.live(),
        [storage.history(number, key, maintainer=True) for key in ("a.md", "b.md", "c.md")],
        storage.members(),
        storage.tokens(),
    ]


REQUESTS: dict[str, Callable[[Desk, str], object]] = {
    "put": lambda desk, number: desk.put(
        "anna", entry("a.md", "new", base=1), entry("c.md"), number=number
    ),
    "remove": lambda desk, number: desk.remove("anna", "a.md", 1, number=number),
    "purge": lambda desk, _: desk.storage.purge(desk.repository.id, "a.md", now=desk.now),
    "join": lambda desk, _: desk.join("ben"),
    "go": lambda desk, _: desk.storage.remove_member("anna", now=desk.now),
    "renew": lambda desk, _: desk.storage.renew(),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_failure_at_any_statement_changes_nothing(name: str, tmp_path: Path) -> None:
    """Whichever statement fails, nothing is changed, or all; then the same request goes through."""
    driver = FailingSQLite(str(tmp_path / "team.db"))
    prepare(driver)
    with closing(Storage(driver)) as storage:
        desk = Desk(storage, storage.add_repository(REMOTE))
        desk.join("anna", Role.MAINTAINER)
        desk.put("anna", entry("a.md"), entry("b.md"))
        desk.remove("anna", "b.md", 1)
        request, number, count = REQUESTS[name], new_id(), 0
        while True:
            count += 1
            before = state(desk)
            driver.failing = count
            try:
                request(desk, number)
            except StorageUnavailableError:
                driver.failing = 0
                after = state(desk)
                assert after == before or name == "join"  # of two steps
                assert desk.damage() == []
                continue
            break
        driver.failing = 0
        assert count > 3
        assert state(desk) != before
        assert desk.damage() == []


def test_a_commit_waits_for_the_disk(tmp_path: Path) -> None:
    """Each connection to SQLite syncs its log at every commit."""
    with (
        closing(open_storage(str(tmp_path / "team.db"))) as storage,
        storage.driver.connection() as connection,
    ):
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_a_writer_that_hangs_keeps_nobody_for_ever(tmp_path: Path) -> None:
    """While another process holds the database for writing, reads go on and writes are told so."""
    path = str(tmp_path / "team.db")
    with closing(open_storage(path)) as storage, closing(sqlite3.connect(path)) as other:
        desk = Desk(storage, storage.add_repository(REMOTE))
        desk.join("anna")
        with storage.driver.connection() as connection:
            connection.execute("PRAGMA busy_timeout=50")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageBusyError) as error:
            desk.put("anna", entry("a.md"))
        assert error.value.retryable
        assert desk.live() == {}
        other.rollback()
        desk.put("anna", entry("a.md"))


@pytest.mark.parametrize("path", ["", "folder", "folder/file/team.db"])
def test_a_place_that_cannot_be_used_is_told(path: str, tmp_path: Path) -> None:
    """A database that cannot be opened is a failure with a cause, which no member sees."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    with pytest.raises(StorageUnavailableError) as error:
        open_storage(str(tmp_path / path))
    assert error.value.cause
    assert str(tmp_path) not in error.value.sentence
