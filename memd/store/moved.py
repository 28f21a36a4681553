"""The history that a memory directory had at another path, before it or its project was moved.

Histories are kept by real path, so a moved directory begins a new one. The former one can be taken
over while nothing lies at its path and its last texts are those of this directory. Blocks.
"""

import os

from msgspec import Struct

from memd.base.names import INDEXES
from memd.base.values import Actor
from memd.state.database import Cursor
from memd.store.forget import delete_changes
from memd.store.log import ChangeLog, ChangeRecord


class FormerHistory(Struct, frozen=True):
    """The real path that a directory had before, and how many changes its history there has."""

    directory: str
    changes: int


def find_former(log: ChangeLog, directory: str) -> FormerHistory | None:
    """Return the history that a directory (a real path) can take over, the newest of several.

    Raises Storage.
    """
    gone = [each for each in log.directories() if not os.path.lexists(each)]
    here = _texts(log, directory) if gone else {}
    former: list[tuple[int, FormerHistory]] = []
    for other in gone if here else ():
        last = _removal(log, other)
        texts = {step.path: step.before for step in last.steps} if last else _texts(log, other)
        memories = {path: text for path, text in texts.items() if path not in INDEXES}
        same = sum(
            here.get(path) == text or _had(log, directory, path, text)
            for path, text in memories.items()
        )
        if 2 * same <= len(memories):
            continue
        records = log.select("d.path = ?", (other,), steps=False)
        numbers = [each.number for each in records if not last or each.number != last.number]
        if numbers:
            former.append((max(numbers), FormerHistory(other, len(numbers))))
    return max(former, key=lambda each: each[0])[1] if former else None


def take_over(log: ChangeLog, directory: str) -> FormerHistory | None:
    """Give a directory the history that ``find_former`` returns, which it returns too.

    That all files went from the former path is no change of them, so it is left out. Raises
    Storage.
    """
    former = find_former(log, directory)
    if former is None:
        return None
    last = _removal(log, former.directory)
    with log.database.transaction() as cursor:
        here, there = (log.directory_id(cursor, each) for each in (directory, former.directory))
        if last is not None:
            delete_changes(log, cursor, [last.number])
        _move(cursor, here, there)
    return former


def _move(cursor: Cursor, here: int, there: int) -> None:
    """Give all changes of one directory to another; nothing else of the first is left."""
    cursor.execute("UPDATE change SET directory = ? WHERE directory = ?", (here, there))
    cursor.execute("DELETE FROM request WHERE directory = ?", (there,))
    cursor.execute("DELETE FROM file WHERE directory = ?", (there,))
    cursor.execute("DELETE FROM directory WHERE id = ?", (there,))


def _texts(log: ChangeLog, directory: str) -> dict[str, str]:
    """Return the hashes of the files of a directory as memd saw them last, by path."""
    rows = log.database.read(
        "SELECT f.path, f.hash FROM file f JOIN directory d ON d.id = f.directory WHERE d.path = ?",
        (directory,),
    )
    return {row["path"]: row["hash"] for row in rows}


def _removal(log: ChangeLog, directory: str) -> ChangeRecord | None:
    """Return the last change of a directory if by it all files went without memd."""
    if _texts(log, directory):
        return None
    last = next(iter(log.select("d.path = ?", (directory,), limit=1)), None)
    if last is None or last.by.actor is not Actor.EXTERNAL:
        return None
    return last if all(step.after is None for step in last.steps) else None


def _had(log: ChangeLog, directory: str, path: str, text: str | None) -> bool:
    """Return whether a directory had a text at a path before a change of its history."""
    return text is not None and bool(
        log.database.read(
            "SELECT 1 FROM change_file f JOIN change c ON c.id = f.change"
            " JOIN directory d ON d.id = c.directory JOIN body b ON b.id = f.before"
            " WHERE d.path = ? AND f.path = ? AND b.hash = ? LIMIT 1",
            (directory, path, bytes.fromhex(text)),
        )
    )
