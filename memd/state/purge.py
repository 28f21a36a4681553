"""Delete texts from the state file for good: bodies of the journal, and texts in other rows.

Rules of this file
- A purged body keeps its row, but empty: the hash still names the version, and readers learn that
  it was purged. If the same text is written again, it is stored again.
- A change set that is recorded and not ended keeps its bodies: recovery after a crash needs them.
- Every text column of every table is searched, also of tables that are added later, except those in
  ``_COLUMNS_WITHOUT_TEXT``: hashes, states, and paths of existing directories and files.
- Afterwards the file is rewritten, so that no page or log of it holds what was removed.
"""

from collections.abc import Callable, Collection, Iterator

from msgspec import Struct

from memd.base.text import sha256
from memd.state.blobs import unpacked
from memd.state.database import Cursor, Database
from memd.state.proposed import IS_PROPOSAL, NAME
from memd.state.teams import TeamTable

_PAGE = 100  # bodies read at once
_PURGED_BODY = b""
# Names of columns that have no text of a person.
_COLUMNS_WITHOUT_TEXT = frozenset(
    {"action", "actor", "before", "after", "day", "digest", "directory"}
    | {
        "fingerprint",
        "hash",
        "kind",
        "lane",
        "place",
        "phase",
        "prior_ns",
        "state",
        "taken_ns",
        "temp",
    }
)
_LIVE_PATHS = ("shadows", "path")  # names of existing files, which only their owner may change


class PurgedText(Struct, frozen=True):
    """A text in the history, named by its SHA-256."""

    hash: str
    paths: tuple[str, ...]  # of the files that had it
    changes: tuple[str, ...]  # ids of the change sets and proposals that have it


class LiveFile(Struct, frozen=True):
    """A file of a memory directory as memd last saw it."""

    directory: str
    path: str
    hash: str
    stored: bool  # the journal has its text


class Purge:
    """Finds and deletes texts in the state file. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def hashes_of_change(self, number: int) -> frozenset[str]:
        """Return the hashes of all texts before and after a change set."""
        return self._hashes("change = ?", (number,))

    def hashes_of_path(self, directory: str, path: str) -> frozenset[str]:
        """Return the hashes of all versions of a file, the current one included."""
        condition = "path = ? AND change IN (SELECT id FROM changes WHERE directory = ?)"
        rows = self._database.read(
            "SELECT hash FROM shadows WHERE directory = ? AND path = ?", (directory, path)
        )
        live = {row["hash"] for row in rows}
        return (
            self._hashes(condition, (path, directory))
            | live
            | TeamTable(self._database).hashes(directory, path)
        )

    def hashes_of_bodies(self, holds: Callable[[bytes], bool]) -> frozenset[str]:
        """Return the hashes of the bodies for which ``holds`` returns true."""
        return frozenset(body_hash for body_hash, body in self._bodies() if holds(body))

    def removable_texts(self, hashes: Collection[str]) -> tuple[PurgedText, ...]:
        """Return those of the texts that are stored and not needed by an unfinished change set."""
        # A recorded change set is not applied to the files yet, so it is unfinished.
        needed = self._hashes("change IN (SELECT id FROM changes WHERE state = 'recorded')")
        result = []
        for body_hash in sorted(set(hashes) - needed):
            # An empty body is that of a text which was purged before.
            query = "SELECT 1 FROM blobs WHERE hash = ? AND length(body) > 0"
            if not self._database.read(query, (body_hash,)):
                continue
            # Where the text occurs: the file's path, and the change or proposal as people see it.
            rows = self._database.read(
                f"SELECT CASE WHEN {IS_PROPOSAL} THEN {NAME} ELSE 'c' || id END AS name, path,"  # noqa: S608 - fixed words
                " change FROM change_files JOIN changes ON id = change"
                " WHERE before = ?1 OR after = ?1 ORDER BY change",
                (body_hash,),
            )
            paths = tuple(sorted({str(row["path"]) for row in rows}))
            names = dict.fromkeys(str(row["name"]) for row in rows if row["name"])
            result.append(PurgedText(body_hash, paths, tuple(names)))
        return tuple(result)

    def files(self) -> tuple[LiveFile, ...]:
        """Return all files of all memory directories as memd last saw them."""
        rows = self._database.read(
            "SELECT directory, path, hash, EXISTS (SELECT 1 FROM blobs WHERE length(body) > 0"
            " AND blobs.hash = shadows.hash) AS kept FROM shadows ORDER BY directory, path"
        )
        return tuple(
            LiveFile(row["directory"], row["path"], row["hash"], bool(row["kept"])) for row in rows
        )

    def running_jobs(self) -> int:
        """Return the number of jobs that have not ended; they may still write what they read."""
        query = "SELECT count(*) AS found FROM jobs WHERE state IN ('queued', 'running')"
        return int(self._database.read(query)[0]["found"])

    def rows_to_clean(self, clean_text: Callable[[str], str]) -> dict[str, int]:
        """Return by table how many rows have a text that ``clean_text`` would change."""
        result: dict[str, int] = {}
        for table, columns in self._text_columns().items():
            names = ", ".join(columns)
            rows = self._database.read(f"SELECT {names} FROM {table}")  # noqa: S608 - our own names
            count = sum(
                any(isinstance(value, str) and clean_text(value) != value for value in row)
                for row in rows
            )
            if count:
                result[table] = count
        return result

    def remove(
        self, hashes: Collection[str], clean_text: Callable[[str], str] = lambda text: text
    ) -> None:
        """Empty the bodies with these hashes, clean all texts, and rewrite the file.

        ``clean_text`` returns a text without what is to be removed. The changes are one durable
        transaction.
        """
        tables = self._text_columns()
        with self._database.transaction() as cursor:
            cursor.executemany(
                "UPDATE blobs SET body = ? WHERE hash = ?",
                [(_PURGED_BODY, body_hash) for body_hash in hashes],
            )
            self._store_path_hashes(cursor, clean_text)
            for table, columns in tables.items():
                _clean_table(cursor, table, columns, clean_text)
        # Deleted text stays in free pages and in the log until both are rewritten.
        self._database.compact()

    def _store_path_hashes(self, cursor: Cursor, clean_text: Callable[[str], str]) -> None:
        """Store the hashes of paths that are about to be cleaned, so that they stay known.

        An index line to a path that memd knew may be removed; one to an unknown path stays.
        """
        rows = self._database.read(
            "SELECT DISTINCT c.directory, f.path FROM change_files f JOIN changes c"  # noqa: S608 - fixed words
            f" ON c.id = f.change WHERE typeof(f.path) = 'text' AND NOT ({IS_PROPOSAL})"
        )
        cursor.executemany(
            "INSERT OR IGNORE INTO purged_paths VALUES (?, ?)",
            [
                (directory, sha256(path.encode(errors="replace")))
                for directory, path in rows
                if clean_text(path) != path
            ],
        )

    def _hashes(self, condition: str, values: tuple[object, ...] = ()) -> frozenset[str]:
        """Return the hashes of the texts before and after, of files that meet an SQL condition."""
        rows = self._database.read(
            f"SELECT before, after FROM change_files WHERE {condition}",  # noqa: S608 - fixed words
            values,
        )
        # The state file may be damaged, and there is no hash where there was no file.
        return frozenset(value for row in rows for value in row if isinstance(value, str))

    def _bodies(self) -> Iterator[tuple[str, bytes]]:
        """Yield hash and text of each stored body, reading a page at a time."""
        query = "SELECT hash, body FROM blobs WHERE hash > ? ORDER BY hash LIMIT ?"
        last_hash = ""
        while rows := self._database.read(query, (last_hash, _PAGE)):
            last_hash = rows[-1]["hash"]
            for row in rows:
                if row["body"]:
                    yield row["hash"], unpacked(row["body"])

    def _text_columns(self) -> dict[str, tuple[str, ...]]:
        """Return by table the text columns that have a person's text."""
        tables = self._database.read(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        )
        result: dict[str, tuple[str, ...]] = {}
        # From the schema, so that tables which are added later are searched too.
        for table in [row["name"] for row in tables]:
            rows = self._database.read(f"PRAGMA table_info({table})")
            text_columns = [row["name"] for row in rows if row["type"] == "TEXT"]
            columns = tuple(
                name
                for name in text_columns
                if name not in _COLUMNS_WITHOUT_TEXT and (table, name) != _LIVE_PATHS
            )
            if columns:
                result[table] = columns
        return result


def _clean_table(
    cursor: Cursor, table: str, columns: tuple[str, ...], clean_text: Callable[[str], str]
) -> None:
    """Replace the texts in some columns of a table by ``clean_text(text)``.

    Of two rows with the same key afterwards, one is left.
    """
    cursor.connection.create_function(
        "cleaned", 1, lambda value: clean_text(value) if isinstance(value, str) else value
    )
    for column in columns:
        cursor.execute(
            f"UPDATE OR REPLACE {table} SET {column} = cleaned({column})"  # noqa: S608 - our own names
            f" WHERE {column} <> cleaned({column})"
        )
