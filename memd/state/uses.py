"""SQL statements that count uses of memories, to run in other modules' transactions.

A memory is *surfaced* when it is shown with a prompt, *read* when an assistant opens it, and *acted
on* when a session changes it after it was surfaced or read.

Rules of this file
- Surfacing is counted with the ledger's marks (``state/ledger.py``), unsynced like all uses: a
  power cut may lose the latest ones. Changes are counted in the journal's transactions.
- A row follows a renamed file, also if the two halves of the rename are noticed separately. It
  stays when the file is removed, and is used again when the file comes back.
"""

from collections.abc import Iterable, Iterator

from memd.core.names import in_catalogue
from memd.core.values import Actor, Provenance
from memd.state.counted import DAYS, REFUSED_DAYS
from memd.state.database import Cursor
from memd.state.records import Step
from memd.state.renames import renamed_paths

SCHEMA = """
CREATE TABLE IF NOT EXISTS usage (
    directory TEXT NOT NULL,
    path TEXT NOT NULL,
    surfaced INTEGER NOT NULL DEFAULT 0,
    sessions INTEGER NOT NULL DEFAULT 0,
    read INTEGER NOT NULL DEFAULT 0,
    acted INTEGER NOT NULL DEFAULT 0,
    last_surfaced REAL,
    last_read REAL,
    last_acted REAL,
    since REAL NOT NULL,
    at REAL NOT NULL,
    counted INTEGER NOT NULL,
    gone INTEGER,
    PRIMARY KEY (directory, path)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS uses (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    session TEXT NOT NULL,
    directory TEXT NOT NULL,
    path TEXT NOT NULL,
    at REAL NOT NULL,
    counted INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS uses_of_memory ON uses (directory, path, session);
CREATE TABLE IF NOT EXISTS usage_days (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    days INTEGER NOT NULL,
    date INTEGER NOT NULL,
    steady REAL NOT NULL,
    before REAL NOT NULL
) STRICT;
"""
UNUSED_DAYS = 90
_MOST_USES = 200_000  # single uses in the table
_RENAME_SECONDS = 600.0  # at most, between noticing the two halves of a rename
_ACTORS_WITH_SESSION = (Actor.CLIENT, Actor.ASSISTANT, Actor.EXTRACT)
# SQL: whether the memory was surfaced to this session before.
_WAS_SURFACED = """
EXISTS (SELECT 1 FROM uses WHERE directory = ?1 AND path = ?2 AND session = ?3
    AND kind = 'surfaced')
"""


def _count(kind: str, new_session: str = "?3 IS NULL") -> tuple[str, str]:
    """Return two statements that count one use; their values are (directory, path, session, at).

    ``new_session`` is SQL for 1 if the session is counted as one more of the memory. The default is
    0, since no session is NULL; it names ``?3`` because a gap in the numbers is an error.
    """
    return (
        f"""
INSERT INTO usage (directory, path, {kind}, sessions, last_{kind}, since, at, counted)
VALUES (?1, ?2, 1, {new_session}, ?4, ?4, ?4, {DAYS}) ON CONFLICT DO UPDATE SET
    {kind} = {kind} + 1, sessions = sessions + excluded.sessions, last_{kind} = ?4, at = ?4,
    counted = excluded.counted
""",  # noqa: S608 - our own words
        f"""
INSERT INTO uses (kind, directory, path, session, at, counted)
VALUES ('{kind}', ?1, ?2, ?3, ?4, {DAYS})
""",  # noqa: S608 - our own words
    )


def _statements(script: str) -> tuple[str, ...]:
    """Return the statements of an SQL script, which ends each with a semicolon."""
    return tuple(part.strip() for part in script.split(";") if part.strip())


_SURFACED = _count("surfaced", f"NOT {_WAS_SURFACED}")
READ, ACTED = _count("read"), _count("acted")
# Values: (directory, path, session).
_NOT_SURFACED = _statements(f"""
DELETE FROM uses WHERE id = (
    SELECT max(id) FROM uses WHERE directory = ?1 AND path = ?2 AND session = ?3
    AND kind = 'surfaced');
UPDATE usage SET surfaced = max(0, surfaced - 1), sessions = max(0, sessions - NOT {_WAS_SURFACED}),
    last_surfaced = (SELECT max(at) FROM uses WHERE directory = ?1 AND path = ?2
    AND kind = 'surfaced')
WHERE (directory, path) = (?1, ?2)
""")  # noqa: S608 - our own words
# Whether the memory was surfaced to the session, or the session has read it.
_IS_KNOWN_TO_SESSION = """
SELECT 1 FROM uses WHERE directory = ?1 AND path = ?2 AND session = ?3
AND kind IN ('surfaced', 'read') LIMIT 1
"""
# Values: (directory, path, at).
BEGIN = f"""
INSERT INTO usage (directory, path, since, at, counted) VALUES (?1, ?2, ?3, ?3, {DAYS})
ON CONFLICT DO UPDATE SET gone = NULL, at = ?3, counted = {DAYS}
"""  # noqa: S608 - our own words
_CHANGED = f"UPDATE usage SET at = ?3, counted = {DAYS} WHERE (directory, path) = (?1, ?2)"  # noqa: S608
GONE = f"UPDATE usage SET gone = {DAYS} WHERE (directory, path) = (?1, ?2)"  # noqa: S608
# Values: (directory, hash, at, path). Finds the other half of a rename that was noticed earlier: a
# new file with the bytes of the removed one, not used yet, or a removed file with the bytes of the
# new one. A file that changed again since then is not the other half.
_OTHER_HALF = f"""
SELECT f.path FROM change_files f JOIN changes c ON c.id = f.change
JOIN usage u ON (u.directory, u.path) = (c.directory, f.path)
WHERE c.directory = ?1 AND c.state = 'applied' AND abs(c.at - ?3) <= {_RENAME_SECONDS}
    AND f.path <> ?4 AND NOT f.conflict AND {{}} AND NOT EXISTS (
        SELECT 1 FROM change_files l JOIN changes k ON k.id = l.change
        WHERE k.directory = ?1 AND k.state = 'applied' AND l.path = f.path AND l.change > f.change)
    ORDER BY f.change DESC LIMIT 1
"""  # noqa: S608 - our own words
_NEW_HALF = _OTHER_HALF.format(
    "f.after = ?2 AND f.before IS NULL AND u.gone IS NULL AND u.surfaced + u.read + u.acted = 0"
)
_REMOVED_HALF = _OTHER_HALF.format("f.before = ?2 AND f.after IS NULL AND u.gone IS NOT NULL")
PRUNE = _statements(f"""
DELETE FROM usage WHERE gone < {DAYS} - {UNUSED_DAYS};
DELETE FROM uses WHERE counted < {DAYS} - CASE kind WHEN 'kept' THEN {REFUSED_DAYS}
    ELSE {UNUSED_DAYS} END;
DELETE FROM uses WHERE id <= (SELECT max(id) FROM uses) - {_MOST_USES} AND kind <> 'kept';
DELETE FROM usage WHERE (directory, path) IN (
    SELECT directory, path FROM usage
    ORDER BY gone IS NOT NULL, counted DESC, at DESC LIMIT -1 OFFSET {{}})
""")  # noqa: S608 - our own words
Statement = tuple[str, tuple[object, ...]]


def count_surfaced(
    memories: Iterable[tuple[str, str]], session: str, at: float
) -> Iterator[Statement]:
    """Return the statements that count memories (directory, path) as surfaced to a session."""
    rows = [(*memory, session, at) for memory in memories]
    return ((query, values) for query in _SURFACED for values in rows)


def uncount_surfaced(directory: str, path: str, session: str) -> tuple[Statement, ...]:
    """Return the statements that undo the last count of a memory as surfaced to a session."""
    return tuple((query, (directory, path, session)) for query in _NOT_SURFACED)


def follow_steps(
    cursor: Cursor, directory: str, by: Provenance, steps: Iterable[Step], at: float
) -> None:
    """Update the rows after files changed, were renamed or removed, inside the transaction."""
    memory_steps = [step for step in steps if in_catalogue(step.path) and not step.conflict]
    count_acted(cursor, directory, by, memory_steps, at)
    renames = renamed_paths(memory_steps)  # the new path by the old one
    for step in memory_steps:
        is_in_rename = step.path in renames or step.path in renames.values()
        if not is_in_rename:
            renames |= _find_other_half(cursor, directory, step, at)
    for old, new in renames.items():
        # REPLACE, since an earlier memory may have left a row at the new path.
        for table in ("usage", "uses"):
            cursor.execute(
                f"UPDATE OR REPLACE {table} SET path = ?3 WHERE directory = ?1 AND path = ?2",  # noqa: S608 - our own names
                (directory, old, new),
            )
    for step in memory_steps:
        if step.path in renames:
            continue
        if step.after is None:
            cursor.execute(GONE, (directory, step.path))
        else:
            is_new = step.before is None
            cursor.execute(BEGIN if is_new else _CHANGED, (directory, step.path, at))


def _find_other_half(cursor: Cursor, directory: str, step: Step, at: float) -> dict[str, str]:
    """Return old and new path of a rename whose other half was noticed earlier, or ``{}``."""
    if (step.before is None) == (step.after is None):  # it neither creates nor removes a file
        return {}
    is_removed = step.after is None
    query = _NEW_HALF if is_removed else _REMOVED_HALF
    cursor.execute(query, (directory, step.before or step.after, at, step.path))
    row = cursor.fetchone()
    if row is None:
        return {}
    return {step.path: row["path"]} if is_removed else {row["path"]: step.path}


def count_acted(
    cursor: Cursor, directory: str, by: Provenance, steps: Iterable[Step], at: float
) -> None:
    """Count the memories that a session changed after they were surfaced to it or read by it."""
    if not by.session or by.actor not in _ACTORS_WITH_SESSION:
        return
    for step in steps:
        if step.before is None:  # no session can know a new memory
            continue
        memory_and_session = (directory, step.path, by.session)
        if cursor.execute(_IS_KNOWN_TO_SESSION, memory_and_session).fetchone():
            for query in ACTED:
                cursor.execute(query, (*memory_and_session, at))
