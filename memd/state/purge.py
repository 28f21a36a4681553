"""Taking text out of the state file for good: bodies of the journal, and what other rows say.

Rules of this file
- A purged body keeps its row, empty: its hash goes on naming the version that there was, and
  whoever asks learns that it was purged. The same text written again is kept again.
- A set that is recorded and not ended keeps its bodies: a crash would need them.
- Every column of text of every table is looked at, those of later tables too, but for the columns
  that ``_FIXED`` names: hashes, states, and the paths of directories and files that are there.
- What was removed stands in no page and no log of the file afterwards: it is packed anew.
"""

from collections.abc import Callable, Collection, Iterator

from msgspec import Struct

from memd.core.text import sha256
from memd.state.blobs import unpacked
from memd.state.database import Cursor, Database
from memd.state.imported import ImportTable
from memd.state.proposed import IS_PROPOSAL, NAME
from memd.state.teams import TeamTable

_PAGE = 100  # bodies read at once
_EMPTY = b""
_FIXED = frozenset(
    {"action", "actor", "before", "after", "day", "digest", "directory", "exported"}
    | {
        "fingerprint",
        "hash",
        "kind",
        "lane",
        "live",
        "phase",
        "prior_ns",
        "root",
        "state",
        "taken_ns",
        "temp",
    }
)
_LIVE = ("shadows", "path")  # names of files that are there: only their owner changes them


class PurgedText(Struct, frozen=True):
    """A text of the history: its SHA-256, its files, its changes and proposals."""

    hash: str
    paths: tuple[str, ...]
    changes: tuple[str, ...]


class LiveFile(Struct, frozen=True):
    """A file of a directory, as memd last saw it; ``stored`` when the journal has its body."""

    directory: str
    path: str
    hash: str
    stored: bool


class Purge:
    """Purges the state file. All methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_change(self, number: int) -> frozenset[str]:
        """Return the hashes of what a change set found and left."""
        return self._hashes("change = ?", (number,))

    def of_path(self, directory: str, path: str) -> frozenset[str]:
        """Return the hashes of all versions of a file, the one that is there among them."""
        condition = "path = ? AND change IN (SELECT id FROM changes WHERE directory = ?)"
        rows = self._database.read(
            "SELECT hash FROM shadows WHERE directory = ? AND path = ?", (directory, path)
        )
        live = {row["hash"] for row in rows}
        return (
            self._hashes(condition, (path, directory))
            | live
            | TeamTable(self._database).hashes(directory, path)
            | ImportTable(self._database).hashes(directory, path)
        )

    def holding(self, holds: Callable[[bytes], bool]) -> frozenset[str]:
        """Return the hashes of the bodies that hold something."""
        return frozenset(key for key, body in self._bodies() if holds(body))

    def removable(self, hashes: Collection[str]) -> tuple[PurgedText, ...]:
        """Return those of some bodies that are there and that no unfinished set needs."""
        waiting = self._hashes("change IN (SELECT id FROM changes WHERE state = 'recorded')")
        result = []
        for key in sorted(set(hashes) - waiting):
            rows = self._database.read(
                f"SELECT CASE WHEN {IS_PROPOSAL} THEN {NAME} ELSE 'c' || id END AS name, path,"  # noqa: S608 - fixed words
                " change FROM change_files JOIN changes ON id = change"
                " WHERE before = ?1 OR after = ?1"
                " UNION ALL SELECT '', path, 0 FROM imported_files WHERE exported = ?1"
                " UNION ALL SELECT '', path, 0 FROM past_bodies WHERE hash = ?1 ORDER BY change",
                (key,),
            )
            if self._database.read(
                "SELECT 1 FROM blobs WHERE hash = ? AND length(body) > 0", (key,)
            ):
                paths = tuple(sorted({str(row["path"]) for row in rows}))
                names = dict.fromkeys(str(row["name"]) for row in rows if row["name"])
                result.append(PurgedText(key, paths, tuple(names)))
        return tuple(result)

    def files(self) -> tuple[LiveFile, ...]:
        """Return all files of all memory directories as memd last saw them."""
        rows = self._database.read(
            "SELECT directory, path, hash, EXISTS (SELECT 1 FROM blobs WHERE length(body) > 0"
            " AND blobs.hash = shadows.hash) AS kept FROM shadows ORDER BY directory, path"
        )
        return tuple(LiveFile(r["directory"], r["path"], r["hash"], bool(r["kept"])) for r in rows)

    def running(self) -> int:
        """Return how many jobs have not ended: they may still write what they have read."""
        query = "SELECT count(*) AS found FROM jobs WHERE state IN ('queued', 'running')"
        return int(self._database.read(query)[0]["found"])

    def texts(self, cleaned: Callable[[str], str]) -> dict[str, int]:
        """Return how many rows of each table have a text that would be cleaned."""
        result: dict[str, int] = {}
        for table, columns in self._columns().items():
            names = ", ".join(columns)
            rows = self._database.read(f"SELECT {names} FROM {table}")  # noqa: S608 - our own names
            count = sum(
                any(isinstance(value, str) and cleaned(value) != value for value in row)
                for row in rows
            )
            if count:
                result[table] = count
        return result

    def remove(
        self, hashes: Collection[str], cleaned: Callable[[str], str] = lambda text: text
    ) -> None:
        """Empty bodies and clean texts in one durable transaction, then pack the file anew."""
        tables = self._columns()
        with self._database.transaction() as cursor:
            cursor.executemany(
                "UPDATE blobs SET body = ? WHERE hash = ?", [(_EMPTY, key) for key in hashes]
            )
            self._remember(cursor, cleaned)
            for table, columns in tables.items():
                _clean(cursor, table, columns, cleaned)
        self._database.compact()

    def _remember(self, cursor: Cursor, cleaned: Callable[[str], str]) -> None:
        """Keep by their hash which paths memd knew: a line of the index that names one may go."""
        rows = self._database.read(
            "SELECT DISTINCT c.directory, f.path FROM change_files f JOIN changes c"  # noqa: S608 - fixed words
            f" ON c.id = f.change WHERE typeof(f.path) = 'text' AND NOT ({IS_PROPOSAL})"
        )
        cursor.executemany(
            "INSERT OR IGNORE INTO purged_paths VALUES (?, ?)",
            [(r[0], sha256(r[1].encode(errors="replace"))) for r in rows if cleaned(r[1]) != r[1]],
        )

    def _hashes(self, condition: str, values: tuple[object, ...] = ()) -> frozenset[str]:
        """Return the hashes of the bodies that some changes replaced or wrote."""
        rows = self._database.read(
            f"SELECT before, after FROM change_files WHERE {condition}",  # noqa: S608 - fixed words
            values,
        )
        return frozenset(body for row in rows for body in row if isinstance(body, str))

    def _bodies(self) -> Iterator[tuple[str, bytes]]:
        last = ""
        while rows := self._database.read(
            "SELECT hash, body FROM blobs WHERE hash > ? ORDER BY hash LIMIT ?", (last, _PAGE)
        ):
            last = rows[-1]["hash"]
            for row in rows:
                if row["body"]:
                    yield row["hash"], unpacked(row["body"])

    def _columns(self) -> dict[str, tuple[str, ...]]:
        """Return the columns that may hold anybody's words, by table."""
        tables = self._database.read(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        )
        result: dict[str, tuple[str, ...]] = {}
        for table in [row["name"] for row in tables]:
            columns = tuple(
                column["name"]
                for column in self._database.read(f"PRAGMA table_info({table})")
                if column["type"] == "TEXT"
                and column["name"] not in _FIXED
                and (table, column["name"]) != _LIVE
            )
            if columns:
                result[table] = columns
        return result


def _clean(
    cursor: Cursor, table: str, columns: tuple[str, ...], cleaned: Callable[[str], str]
) -> None:
    """Clean the texts of one table. Two rows that become the same are one afterwards."""
    cursor.connection.create_function(
        "cleaned", 1, lambda value: cleaned(value) if isinstance(value, str) else value
    )
    for column in columns:
        cursor.execute(
            f"UPDATE OR REPLACE {table} SET {column} = cleaned({column})"  # noqa: S608 - our own names
            f" WHERE {column} <> cleaned({column})"
        )
