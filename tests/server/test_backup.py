"""Backups, restores, a move to another database, and the check of a storage."""

import os
import stat
from contextlib import closing
from pathlib import Path

import pytest

from memd.server import backup
from memd.server.errors import (
    EntriesChangedError,
    MarkGoneError,
    NotEmptyError,
    NotThereError,
    StorageFormatError,
    StorageUnavailableError,
    UnauthorisedError,
)
from memd.server.schema import TABLES
from memd.server.storage import open_storage
from memd.server.values import Role
from tests.server.desk import Desk, entry, memory, open_desk


def fill(desk: Desk) -> None:
    """Write entries, some replaced and removed, more than are copied at a time."""
    desk.join("anna", Role.MAINTAINER)
    for folder in range(2):
        desk.put("anna", *(entry(f"{folder}/{number}.md", f"{number}") for number in range(70)))
    desk.put("anna", entry("0/0.md", "new", base=1))
    desk.remove("anna", "0/1.md", 1)


def everything(desk: Desk) -> list[object]:
    """Return all that a storage holds but for what a restore makes anew."""
    storage, number = desk.storage, desk.repository.id
    return [
        desk.live(),
        [storage.history(number, key, maintainer=True) for key in ("0/0.md", "0/1.md", "1/3.md")],
        storage.members(),
        storage.tokens(),
        [each for each in storage.audit(limit=1000) if each.act != "restore"],
    ]


def test_a_restore_is_of_another_epoch(desk: Desk, tmp_path: Path) -> None:
    """A backup brings everything back, under an epoch and revisions that nobody was told of."""
    fill(desk)
    code = desk.storage.invite("ben", {}, now=desk.now)
    path = str(tmp_path / "backup.db")
    backup.backup(desk.storage.driver, path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert os.listdir(tmp_path).count("backup.db.part") == 0
    before = everything(desk)
    mark = desk.fresh().mark
    desk.put("anna", entry("late.md", "lost"))
    with closing(open_storage(str(tmp_path / "new.db"))) as storage:
        backup.restore(path, storage.driver, now=desk.now)
        [repository] = storage.all_repositories()
        restored = Desk(storage, repository, desk.now, desk.sessions)
        assert everything(restored) == before
        assert repository.id == desk.repository.id
        assert repository.epoch != desk.repository.epoch
        with pytest.raises(MarkGoneError):
            storage.page(repository.id, mark)
        with pytest.raises(EntriesChangedError):
            restored.put("anna", entry("late.md", "newer", base=5))
        written = restored.put("anna", entry("late.md", "offered again"))
        assert written["revision"] > desk.revision() + 1000
        with pytest.raises(UnauthorisedError):
            storage.join(code, "laptop", now=desk.now)
        assert storage.audit(limit=3)[1].act == "restore"
        assert backup.check(storage.driver) == ()


def test_a_move_changes_nothing(desk: Desk, tmp_path: Path) -> None:
    """A copy in another database is the same to the last mark, and numbers go on behind it."""
    with open_desk(str(tmp_path / "first.db")) as first:
        fill(first)
        before = everything(first)
        with pytest.raises(NotEmptyError):
            backup.migrate(first.storage.driver, desk.storage.driver)
        with desk.storage.driver.writing() as transaction:
            for table in TABLES:
                transaction.run(f"DELETE FROM {table.name}")  # noqa: S608 - our own names
        backup.migrate(first.storage.driver, desk.storage.driver)
        moved = Desk(desk.storage, first.repository, first.now, first.sessions)
        assert everything(moved) == before
        assert moved.storage.all_repositories() == first.storage.all_repositories()
        moved.join("ben")
        moved.put("ben", entry("b.md"))
        assert len({token.number for token in moved.storage.tokens()}) == 2
        assert backup.check(moved.storage.driver) == ()


def test_a_backup_replaces_nothing(desk: Desk, tmp_path: Path) -> None:
    """A backup is written to a new file; what a broken one left is no obstacle."""
    path = tmp_path / "backup.db"
    path.write_text("mine")
    (tmp_path / "backup.db.part").write_text("half")
    with pytest.raises(NotEmptyError):
        backup.backup(desk.storage.driver, str(path))
    assert path.read_text() == "mine"
    assert sorted(each.name for each in tmp_path.glob("backup.db*")) == ["backup.db"]


def test_what_is_no_backup_is_refused(desk: Desk, tmp_path: Path) -> None:
    """A file that is missing, none of ours or of another format restores nothing."""
    text, other = tmp_path / "text.db", str(tmp_path / "other.db")
    text.write_text("no database " * 100)
    with closing(open_storage(other)) as storage, storage.driver.writing() as transaction:
        transaction.run("UPDATE format SET version = 99")
    empty = tmp_path / "empty.db"
    empty.touch()
    for path, error in (
        (str(tmp_path / "missing.db"), NotThereError),
        (str(text), StorageFormatError),
        (other, StorageFormatError),
        (str(empty), StorageUnavailableError),
    ):
        with pytest.raises(error):
            backup.restore(path, desk.storage.driver, now=desk.now)
    with pytest.raises(StorageFormatError):
        open_storage(other)
    assert not (tmp_path / "missing.db").exists()


def test_a_restore_needs_an_empty_storage(desk: Desk, tmp_path: Path) -> None:
    """A storage that holds something is not restored into."""
    path = str(tmp_path / "backup.db")
    backup.backup(desk.storage.driver, path)
    with pytest.raises(NotEmptyError):
        backup.restore(path, desk.storage.driver, now=desk.now)
    assert desk.storage.all_repositories() == (desk.repository,)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("UPDATE versions SET content = ? WHERE key = '0/0.md'", "not what was accepted"),
        ("UPDATE versions SET revision = 99, hash = hash || ? WHERE key = '1/3.md'", "no such"),
        ("UPDATE versions SET content = NULL WHERE member <> ?", "no content"),
        ("UPDATE versions SET key = '../x', reason = ? WHERE key = '1/3.md'", "key is none"),
        ("DELETE FROM versions WHERE key = '1/3.md' AND member <> ?", "as counted"),
    ],
)
def test_the_check_finds_damage(desk: Desk, damage: str, words: str) -> None:
    """What is not as it was accepted is named by key and revision, without its text."""
    fill(desk)
    assert backup.check(desk.storage.driver) == ()
    with desk.storage.driver.writing() as transaction:
        transaction.run(damage, memory("CANARY") if "content = ?" in damage else "CANARY")
    problems = backup.check(desk.storage.driver)
    assert any(words in each for each in problems)
    assert "CANARY" not in repr(problems)
