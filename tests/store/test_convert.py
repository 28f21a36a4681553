"""What a state file of the format before becomes."""

import os
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

from memd.base.text import sha256
from memd.extract.cursors import ExtractionCursor
from memd.state.database import open_database
from memd.state.docs import Docs
from memd.store.convert import OLD_FORMAT, SENTENCE, convert
from tests.store.bench import SCHEMAS, Bench, topic

OLD, NEW = topic("ports", "5432"), topic("ports", "5433")
# The tables that are carried over, as that version made them.
SCHEMA = f"""
PRAGMA user_version={OLD_FORMAT};
CREATE TABLE changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT, directory TEXT, state TEXT, at REAL, actor TEXT,
    client TEXT, session TEXT, model TEXT, reason TEXT, origin TEXT, request TEXT, effects TEXT,
    conflicts TEXT, decided REAL
);
CREATE TABLE change_files (
    change INTEGER, number INTEGER, path TEXT, before TEXT, after TEXT, before_mtime_ns INTEGER,
    mode INTEGER, after_mtime_ns INTEGER, temp TEXT, conflict INTEGER
);
CREATE TABLE blobs (hash TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE shadows (
    directory TEXT, path TEXT, hash TEXT, fingerprint TEXT, mtime_ns INTEGER, mode INTEGER
);
CREATE TABLE shadow_directories (directory TEXT PRIMARY KEY, at REAL NOT NULL);
CREATE TABLE cursors (directory TEXT, session TEXT, source TEXT, position INTEGER, marker TEXT);
CREATE TABLE suggestions (
    number INTEGER PRIMARY KEY, directory TEXT, hash TEXT, state TEXT, filed REAL, session TEXT,
    text TEXT, at REAL, origin TEXT, type TEXT, reason TEXT, offered_first TEXT, offered_second TEXT
);
CREATE TABLE team_rows (directory TEXT, kind TEXT, key TEXT, value TEXT);
CREATE TABLE team_bodies (hash TEXT, directory TEXT);
CREATE TABLE roots (directory TEXT PRIMARY KEY, root TEXT);
CREATE TABLE approvals (root TEXT PRIMARY KEY, allowed INTEGER);
CREATE TABLE rules (
    number INTEGER PRIMARY KEY, directory TEXT, path TEXT, digest TEXT, answer TEXT,
    enabled INTEGER, at REAL, answered INTEGER, last_at REAL
);
"""


def old_state(path: Path, directory: str) -> None:
    """Write a state file of the format before: a change of one file, and a cursor."""
    with closing(sqlite3.connect(path)) as old, old:
        old.executescript(SCHEMA)
        for body in (OLD, NEW):
            old.execute("INSERT INTO blobs VALUES (?, ?)", (sha256(body), zlib.compress(body)))
        old.execute(
            "INSERT INTO changes VALUES"
            " (7, ?, 'applied', 1.0, 'client', 'test', 's', '', 'why', '', 'r1', '[]', '[]', NULL)",
            (directory,),
        )
        old.execute(
            "INSERT INTO change_files VALUES (7, 0, 'ports.md', ?, ?, 1, 384, NULL, '', 0)",
            (sha256(OLD), sha256(NEW)),
        )
        old.execute(
            "INSERT INTO shadows VALUES (?, 'ports.md', ?, '', 1, 384)", (directory, sha256(NEW))
        )
        old.execute("INSERT INTO cursors VALUES (?, 's', 'talk.jsonl', 40, 'm')", (directory,))


def test_what_the_format_before_knew_is_carried_over(tmp_path: Path) -> None:
    """History, texts and cursors are there, the old file stays, and its caches of words go."""
    directory = tmp_path / "memory"
    directory.mkdir()
    (directory / "ports.md").write_bytes(NEW)
    path = tmp_path / "state.db"
    old_state(path, os.path.realpath(directory))
    for name in ("headers", "index"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "words").write_text("ports")
    database = open_database(str(path), SCHEMAS, convert=convert)
    bench = Bench(tmp_path, database)
    assert SENTENCE in database.file.notes
    assert bench.look() == []
    record = bench.log.record(7)
    assert record is not None
    (step,) = record.steps
    assert (bench.log.body(step.before), bench.log.body(step.after)) == (OLD, NEW)
    cursor = Docs(database).get(ExtractionCursor, bench.directory, "s")
    assert cursor == ExtractionCursor("s", "talk.jsonl", 40, "m")
    database.close()
    names = sorted(os.listdir(tmp_path))
    assert names == ["memory", "state.db", f"state.db.format-{OLD_FORMAT}"]
    with closing(sqlite3.connect(tmp_path / names[-1])) as kept:
        assert kept.execute("SELECT count(*) FROM changes").fetchone() == (1,)
