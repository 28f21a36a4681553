"""What leaves the history for good: the oldest changes when it is too large, and purged texts.

Live files are never changed: they belong to people. Rules of this file
- History is deleted in the order of its numbers, while the state file has more bytes than it may.
- A body goes when no change, no row and no team's base names it.
- A purge empties the bodies of a path or a pattern. A change that is open keeps its own, since it
  may have to be undone. Afterwards the file is rewritten, so that no page of it holds what went.
"""

import json
import os
import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from glob import escape, glob
from typing import Any

from msgspec import Struct

from memd.base import limits, regex
from memd.base.errors import Invalid, MemdError
from memd.base.text import decode, sha256
from memd.state import docs, proposals, teams
from memd.state.database import PUT_ASIDE, Cursor, Database
from memd.state.search import WordSearch
from memd.store.check import no_memory
from memd.store.directory import Directory
from memd.store.log import ChangeLog
from memd.store.sync import Rows

_CHANGES_AT_ONCE = 50
_LEAST_CHARACTERS = 4  # of a pattern: a shorter one stands in nearly every text
# Each table is read once, since an index would cost every change more than it saves here.
_NAMED = """
WITH chosen (id) AS (SELECT value FROM json_each(?1))
SELECT before AS id FROM change_file WHERE before IN chosen
UNION SELECT after FROM change_file WHERE after IN chosen
UNION SELECT id FROM body WHERE id IN chosen AND lower(hex(hash)) IN
    (SELECT hash FROM file UNION SELECT hash FROM team_bodies)
"""


class Pattern:
    """A text to search for, ignoring upper and lower case, or a regular expression.

    Raises Invalid for one that would match nearly everything.
    """

    def __init__(self, text: str, *, is_regex: bool = False) -> None:
        if len(text.strip()) < _LEAST_CHARACTERS:
            raise refused(f"the pattern has fewer than {_LEAST_CHARACTERS} characters")
        # The plain text, and the text as JSON and as YAML write it within quotes.
        forms = dict.fromkeys((text, json.dumps(text)[1:-1], text.replace("'", "''")))
        any_form = "|".join(re.escape(form) for form in forms)
        self._regex: Any = (
            regex.foreign(text, ignore_case=True) if is_regex else regex.own(f"(?i){any_form}")
        )
        if self._regex.search("") is not None:
            raise refused("the pattern matches the empty text")

    def is_in(self, body: bytes) -> bool:
        """Say whether the pattern matches in the bytes of a file."""
        return self._regex.search(decode(body)) is not None

    def is_in_text(self, text: str) -> bool:
        """Say whether the pattern matches in a text."""
        return self.is_in(text.encode("utf-8", "replace"))

    def cleaned(self, text: str) -> str:
        """Return a text with "[purged]" for each match."""
        encodable = text.encode("utf-8", "replace").decode("utf-8")
        return str(self._regex.sub("[purged]", encodable)) if self.is_in_text(text) else text


class PurgeRequest(Struct, frozen=True):
    """What is to be purged: all versions of one file, or what has a pattern."""

    directory: str
    path: str = ""
    pattern: Pattern | None = None


class PurgedText(Struct, frozen=True):
    """A text that went, by its SHA-256, with its files and the ids of its changes."""

    hash: str
    paths: tuple[str, ...]
    changes: tuple[str, ...]


class Purged(Struct, frozen=True):
    """What was removed, or with ``dry_run`` would be.

    ``files`` are state files that were put aside; they cannot be searched, so all of them go.
    ``live`` are files of the memory directories that still have the text in their body or name;
    replaced ones (hidden, ``.tmp``) go by themselves once nobody has them open.
    """

    dry_run: bool
    bodies: tuple[PurgedText, ...]
    files: tuple[str, ...]
    live: tuple[str, ...]


def purge_request(
    directory: str, path: str, pattern: str, *, is_regex: bool = False
) -> PurgeRequest:
    """Return the request to purge a path or a pattern; the other is "". Raises Invalid."""
    if bool(path) == bool(pattern):
        raise refused("give exactly one of path and pattern")
    compiled = Pattern(pattern, is_regex=is_regex) if pattern else None
    return PurgeRequest(directory, path, compiled)


def refused(why: str) -> Invalid:
    """Return the error of a purge that does not name what goes, or names nearly everything."""
    return Invalid(f"nothing was purged: {why}", why=why)


def purge(rows: Rows, request: PurgeRequest, *, dry_run: bool) -> Purged:
    """Remove the requested texts; with ``dry_run`` only return what would be removed. Blocks.

    Raises NotFound for a path that never was a memory, Storage, and OSError.
    """
    log, pattern = rows.log, request.pattern
    if pattern is not None:
        ids = log.bodies(pattern.is_in)
    else:
        ids = _bodies_of_path(log, request.directory, request.path)
    needed = log.database.read(
        "SELECT before, after FROM change_file WHERE change IN"
        " (SELECT id FROM change WHERE state = 'open')"
    )
    ids = ids.difference(number for row in needed for number in row)
    bodies = _described(log, ids)
    live = _live_paths(rows, ids, pattern)
    live += _replaced_paths(log, {body.hash for body in bodies}, pattern)
    files = []
    for ending in PUT_ASIDE:
        files += sorted(glob(escape(log.database.path) + ending))
    if not dry_run:
        for path in files:
            os.unlink(path)
        with log.database.transaction() as cursor:
            log.empty_bodies(cursor, ids)
            hashes = [body.hash for body in bodies]
            teams.forget_bodies(cursor, hashes, pattern.is_in if pattern else None)
            if pattern is not None:
                proposals.forget(cursor, pattern.is_in)
                docs.clean(cursor, pattern.cleaned)
                _clean(cursor, log.database, pattern.cleaned)
        WordSearch(log.database).forget()
        log.database.compact()
        rows.forget()
    return Purged(dry_run, bodies, tuple(files), live)


def prune(log: ChangeLog, most_bytes: int) -> tuple[int, int]:
    """Delete a batch of the oldest changes while the file is too large; return what went.

    The result is how many changes and bodies; (0, 0) means that nothing is left to do. Blocks.
    """
    database = log.database
    if used_bytes(database) <= most_bytes:
        return 0, 0
    numbers = [
        row["id"]
        for row in database.read(
            "SELECT id FROM change WHERE state <> 'open' ORDER BY id LIMIT ?", (_CHANGES_AT_ONCE,)
        )
    ]
    with database.transaction() as cursor:
        bodies = delete_changes(log, cursor, numbers)
    return len(numbers), bodies


def delete_changes(log: ChangeLog, cursor: Cursor, numbers: Sequence[int]) -> int:
    """Delete changes and the bodies that only they name; return how many bodies went."""
    ids: set[int] = set()
    for number in numbers:
        cursor.execute("SELECT before, after FROM change_file WHERE change = ?", (number,))
        ids.update(value for row in cursor.fetchall() for value in row if value is not None)
        cursor.execute("DELETE FROM change_file WHERE change = ?", (number,))
        cursor.execute("DELETE FROM change WHERE id = ?", (number,))
    unnamed = _unnamed(cursor, ids)
    log.delete_bodies(cursor, unnamed)
    return len(unnamed)


def keep_newest(database: Database) -> None:
    """Delete the oldest marks of sessions and days of spending, so that each stay bounded."""
    with database.transaction(synced=False) as cursor:
        cursor.execute(
            "DELETE FROM given_session WHERE id IN (SELECT id FROM given_session"
            " ORDER BY turn DESC, id DESC LIMIT -1 OFFSET 1000)"
        )
        cursor.execute("DELETE FROM given WHERE session NOT IN (SELECT id FROM given_session)")
        cursor.execute("DELETE FROM given_path WHERE id NOT IN (SELECT path FROM given)")
        cursor.execute(
            "DELETE FROM spend WHERE day IN (SELECT DISTINCT day FROM spend"
            " ORDER BY day DESC LIMIT -1 OFFSET 400)"
        )


def used_bytes(database: Database) -> int:
    """Return the bytes of the pages of the state file that are in use."""
    pages, free, size = (
        database.read(f"PRAGMA {name}")[0][0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _unnamed(cursor: Cursor, ids: Collection[int]) -> frozenset[int]:
    """Return those of the bodies that nothing names."""
    cursor.execute(_NAMED, (json.dumps(sorted(ids)),))
    return frozenset(ids).difference(row["id"] for row in cursor.fetchall())


def _bodies_of_path(log: ChangeLog, directory: str, path: str) -> frozenset[int]:
    """Return the ids of all texts of a file, the current one included. Raises NotFound."""
    rows = log.database.read(
        "SELECT f.before, f.after FROM change_file f JOIN change c ON c.id = f.change"
        " JOIN directory d ON d.id = c.directory WHERE d.path = :directory AND f.path = :path"
        " UNION ALL SELECT b.id, NULL FROM file f JOIN directory d ON d.id = f.directory"
        " JOIN body b ON lower(hex(b.hash)) = f.hash WHERE d.path = :directory AND f.path = :path",
        {"directory": directory, "path": path},
    )
    if not rows:
        raise no_memory(path)
    return frozenset(number for row in rows for number in row if number is not None)


def _described(log: ChangeLog, ids: Collection[int]) -> tuple[PurgedText, ...]:
    """Return the texts that are stored among some bodies, with their files and changes."""
    described = []
    for number in sorted(ids):
        rows = log.database.read(
            "SELECT hash FROM body WHERE id = ? AND length(text) > 0", (number,)
        )
        if rows:
            places = log.database.read(
                "SELECT path, change FROM change_file WHERE ? IN (before, after) ORDER BY change",
                (number,),
            )
            paths = tuple(sorted({row["path"] for row in places}))
            changes = tuple(dict.fromkeys(f"c{row['change']}" for row in places))
            described.append(PurgedText(rows[0]["hash"].hex(), paths, changes))
    return tuple(described)


def _live_paths(rows: Rows, ids: Collection[int], pattern: Pattern | None) -> tuple[str, ...]:
    """Return the absolute paths of live files that still have the text in their body or name."""
    files = rows.log.database.read(
        "SELECT d.path AS directory, f.path, b.id FROM file f JOIN directory d"
        " ON d.id = f.directory LEFT JOIN body b ON lower(hex(b.hash)) = f.hash ORDER BY 1, 2"
    )
    return tuple(
        f"{row['directory']}/{row['path']}"
        for row in files
        if row["id"] in ids
        or (pattern is not None and pattern.is_in_text(f"{row['directory']}/{row['path']}"))
    )


def _replaced_paths(
    log: ChangeLog, hashes: Collection[str], pattern: Pattern | None
) -> tuple[str, ...]:
    """Return the absolute paths of replaced files that still have the text; a look removes them."""
    paths = []
    for directory in log.directories():
        with suppress(MemdError, OSError), Directory(directory) as opened:
            temporaries: list[str] = []
            for _ in opened.walk(temporaries=temporaries):
                pass
            for path in temporaries:
                content, _ = opened.read(path, limits.READ_BYTES) or (b"", None)
                if sha256(content) in hashes or (pattern is not None and pattern.is_in(content)):
                    paths.append(f"{directory}/{path}")
    return tuple(paths)


def _clean(cursor: Cursor, database: Database, clean: Callable[[str], str]) -> None:
    """Take a pattern out of what else has words of people: names, reasons and results."""
    for table, columns in _TEXTS.items():
        key = "change, number" if table == "change_file" else "rowid"
        places = "(?, ?)" if table == "change_file" else "(?)"
        for column in columns:
            rows = database.read(f"SELECT {column}, {key} FROM {table}")  # noqa: S608 - fixed words
            changed = [
                (cleaned, *row[1:])
                for row in rows
                if isinstance(row[0], str) and (cleaned := clean(row[0])) != row[0]
            ]
            query = f"UPDATE OR REPLACE {table} SET {column} = ? WHERE ({key}) = {places}"  # noqa: S608 - fixed words
            cursor.executemany(query, changed)


# Tables with texts of people beside the bodies.
_TEXTS = {
    "change": ("client", "session", "model", "reason", "more"),
    "change_file": ("path",),
    "request": ("client", "request", "result"),
    "jobs": ("session", "request", "result", "error"),
    "given_session": ("name",),
    "given_path": ("path",),
}
