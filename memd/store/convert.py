"""Carry a state file of the format before over, once; this file goes with the next release.

History, cursors, open suggestions, the team's bases and what a person decided are carried over.
Jobs, what sessions were given, proposals and mail begin anew. Memories and settings are not
touched. The old file stays beside the new one until a purge removes it; the folders of caches that
the version before kept there, which have words of memories, go.
"""

import json
import os
import shutil
import sqlite3
import zlib
from collections.abc import Sequence
from contextlib import closing, suppress

from memd.base import limits
from memd.base.text import read_json, sha256
from memd.state.database import FORMAT
from memd.store import memory
from memd.store.log import CONFLICT, DEPTH, DONE
from memd.store.packing import pack
from memd.store.sync import header_of
from memd.store.words import words_of

OLD_FORMAT = 3
SENTENCE = (
    "the state file has a new format: history, cursors, suggestions, rules, approvals and the bases"
    " of teams were carried over; jobs, what sessions were given, proposals, agents, messages and"
    " what was spent begin anew (nothing is to be done)"
)
_STATES = {"applied": DONE, "conflict": CONFLICT}
_CACHES = ("headers", "index")  # folders beside the old file


def convert(path: str, schemas: Sequence[str]) -> str:
    """Replace a state file of the old format by one of this one; return a sentence, or "".

    A file of another format is left alone. Killed at any time, it leaves the old file or the new
    one. Raises sqlite3.Error and OSError.
    """
    if not os.path.exists(path) or not os.path.getsize(path):
        return ""
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        if old.execute("PRAGMA user_version").fetchone()[0] != OLD_FORMAT:
            return ""
        old.row_factory = sqlite3.Row
        old.text_factory = lambda raw: raw.decode("utf-8", "replace")
        old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        new_path = f"{path}.converting"
        with suppress(FileNotFoundError):
            os.unlink(new_path)
        os.close(os.open(new_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        with closing(sqlite3.connect(new_path, isolation_level=None)) as new:
            new.execute("PRAGMA auto_vacuum=INCREMENTAL")
            new.execute(f"PRAGMA user_version={FORMAT}")
            for schema in schemas:
                new.executescript(schema)
            new.execute("BEGIN")
            _copy(old, new)
            new.execute("COMMIT")
    old_path = f"{path}.format-{OLD_FORMAT}"
    with suppress(FileNotFoundError):
        os.unlink(old_path)
    os.link(path, old_path)
    for name in _CACHES:
        shutil.rmtree(os.path.join(os.path.dirname(path), name), ignore_errors=True)
    os.replace(new_path, path)
    for ending in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.unlink(path + ending)
    return SENTENCE


def _copy(old: sqlite3.Connection, new: sqlite3.Connection) -> None:
    """Copy what is carried over."""
    directories = _copy_directories(old, new)
    _copy_changes(old, new, directories)
    for row in old.execute("SELECT * FROM cursors").fetchall():
        value = {name: row[name] for name in ("session", "source", "position", "marker")}
        _put(new, "ExtractionCursor", row["directory"], row["session"], value)
    newest = 0
    for row in old.execute("SELECT * FROM suggestions ORDER BY number").fetchall():
        newest = row["number"]
        shown = [each for each in (row["offered_first"], row["offered_second"]) if each]
        facts = {"id": f"s{newest}", "offered": shown, "filed": row["filed"]}
        if row["state"] == "open":
            names = ("text", "session", "at", "origin", "type", "reason")
            facts |= {name: row[name] for name in names}
        # What a person dismissed is carried over too, so that it does not come back.
        value = facts | {"state": row["state"]}
        _put(new, "StoredSuggestion", row["directory"], row["hash"], value)
    _put(new, "LastNumber", "", "StoredSuggestion", {"number": newest})
    for row in old.execute("SELECT * FROM team_rows").fetchall():
        _put(new, row["kind"], row["directory"], row["key"], read_json(row["value"]))
    # What a person decided, and which root owns a directory.
    for row in old.execute("SELECT * FROM roots").fetchall():
        _put(new, "OwnerRoot", row["directory"], "", {"root": row["root"]})
    for row in old.execute("SELECT * FROM approvals").fetchall():
        _put(new, "Approval", row["root"], "", {"allowed": bool(row["allowed"])})
    newest = 0
    for row in old.execute("SELECT * FROM rules ORDER BY number").fetchall():
        value = dict(row) | {"enabled": bool(row["enabled"])}
        _put(new, "StoredRule", row["directory"], row["path"], value)
        newest = row["number"]
    _put(new, "LastNumber", "", "StoredRule", {"number": newest})
    for row in old.execute("SELECT hash, directory FROM team_bodies").fetchall():
        body = _body(old, row["hash"])
        packed = None if body is None else zlib.compress(body)
        new.execute(
            "INSERT OR REPLACE INTO team_bodies VALUES (?, ?, ?)",
            (row["hash"], row["directory"], packed),
        )


def _put(new: sqlite3.Connection, kind: str, place: str, key: str, value: object) -> None:
    """Store a document in the new file (``state/docs.py``)."""
    new.execute(
        "INSERT OR REPLACE INTO docs (kind, place, key, value) VALUES (?, ?, ?, ?)",
        (kind, place, key, json.dumps(value)),
    )


def _copy_directories(old: sqlite3.Connection, new: sqlite3.Connection) -> dict[str, int]:
    """Copy the directories and what their files said last; return their ids by path."""
    rows = old.execute(
        "SELECT directory FROM changes UNION SELECT directory FROM shadow_directories"
    )
    ids = {}
    for row in rows.fetchall():
        cursor = new.execute("INSERT INTO directory (path) VALUES (?)", (row["directory"],))
        ids[row["directory"]] = int(cursor.lastrowid or 0)
    for row in old.execute("SELECT * FROM shadows").fetchall():
        if row["directory"] not in ids:
            continue
        # No stamp: the first look reads the file, and sees what others changed since.
        body = _body(old, row["hash"])
        _save_body(old, new, row["hash"])
        text, mtime_ns = body or b"", row["mtime_ns"] or 0
        parsed = memory.parse(text, row["path"])
        header = header_of(row["path"], parsed, row["hash"], mtime_ns, len(text))
        new.execute(
            "INSERT OR REPLACE INTO file (directory, path, hash, stamp, mtime_ns, mode, size, name,"
            " description, type, origin, damaged, words, heading)"
            " VALUES (?,?,?,'',?,?,?,?,?,?,?,?,?,?)",
            (
                *(ids[row["directory"]], row["path"], row["hash"], mtime_ns, row["mode"] or 0o600),
                *(len(text), header.name, header.description, header.type, header.origin),
                *(header.damaged, *words_of(header, parsed)),
            ),
        )
    return ids


def _copy_changes(
    old: sqlite3.Connection, new: sqlite3.Connection, directories: dict[str, int]
) -> None:
    """Copy the changes that were made or refused, with their texts."""
    for row in old.execute("SELECT * FROM changes ORDER BY id").fetchall():
        state = _STATES.get(row["state"])
        if state is None or row["directory"] not in directories:
            continue
        facts = read_json(row["conflicts"])
        more = facts if isinstance(facts, dict) else {"conflicts": facts or []}
        for effect in read_json(row["effects"]) or ():
            if isinstance(effect, dict) and effect.get("kind") == "undid":
                pair = [effect.get("first", 0), effect.get("last", 0)]
                more.setdefault("undid", []).append(pair)
            if isinstance(effect, dict) and effect.get("kind") == "cursor":
                more["transcript"] = effect.get("source", "")
                more["message"] = effect.get("message") or effect.get("marker", "")
        new.execute(
            "INSERT INTO change VALUES (?,?,?,?,?,?,?,?,?,?,'',?)",
            (
                *(row["id"], directories[row["directory"]], state, row["at"], row["actor"]),
                *(row["client"], row["session"], row["model"], row["reason"], row["origin"]),
                json.dumps(more),
            ),
        )
        files = old.execute(
            "SELECT * FROM change_files WHERE change = ? ORDER BY number", (row["id"],)
        )
        for file in files.fetchall():
            before = _save_body(old, new, file["before"])
            ids = (before, _save_body(old, new, file["after"], file["before"], before))
            new.execute(
                "INSERT INTO change_file VALUES (?,?,?,?,?,?,?,?,?)",
                (
                    *(row["id"], file["number"], file["path"], *ids, file["before_mtime_ns"]),
                    *(file["mode"], file["after_mtime_ns"], file["conflict"]),
                ),
            )
        if row["request"]:
            new.execute(
                "INSERT OR REPLACE INTO request (directory, client, request, change, result)"
                " VALUES (?,?,?,?,'{}')",
                (directories[row["directory"]], row["client"], row["request"], row["id"]),
            )


def _body(old: sqlite3.Connection, text_hash: str) -> bytes | None:
    """Return a text of the old file, b"" if it was purged, ``None`` if it has none that fits."""
    row = old.execute("SELECT body FROM blobs WHERE hash = ?", (text_hash,)).fetchone()
    if row is None or not isinstance(row["body"], bytes):
        return None
    if not row["body"]:
        return b""
    with suppress(zlib.error):
        body = zlib.decompressobj().decompress(row["body"], limits.READ_BYTES + 1)
        return body if sha256(body) == text_hash else None
    return None


def _save_body(
    old: sqlite3.Connection,
    new: sqlite3.Connection,
    text_hash: str | None,
    base_hash: str | None = None,
    base_id: int | None = None,
) -> int | None:
    """Store a text in the new file, packed against the one before; return its row's id."""
    try:
        key = bytes.fromhex(text_hash or "")
    except ValueError:  # damaged
        return None
    if not key or text_hash is None:
        return None
    row = new.execute("SELECT id FROM body WHERE hash = ?", (key,)).fetchone()
    if row is not None:
        return int(row[0])
    body = _body(old, text_hash)
    is_purged = body == b"" and text_hash != sha256(b"")
    packed, depth, against = None if body is None else b"" if is_purged else pack(body), 0, None
    base = _body(old, base_hash) if base_hash and base_id is not None else None
    if body and base and packed is not None:
        rows = new.execute(
            "SELECT depth FROM body WHERE id = ? AND length(text) > 0", (base_id,)
        ).fetchone()
        short = pack(body, base)
        if rows is not None and rows[0] < DEPTH and len(short) < len(packed):
            packed, depth, against = short, rows[0] + 1, base_id
    cursor = new.execute(
        "INSERT INTO body (hash, base, depth, text) VALUES (?, ?, ?, ?)",
        (key, against, depth, packed),
    )
    return int(cursor.lastrowid or 0)
