"""The bodies of the journal: each once, under its SHA-256, compressed.

What comes out is hashed again: a journal is a file that anything may have damaged, so a body that
does not match is no body. One that was purged is empty, and its hash stays.
"""

import zlib
from collections.abc import Iterable, Mapping

from memd.core import limits
from memd.core.text import sha256
from memd.state.database import Cursor, Database

SCHEMA = "CREATE TABLE IF NOT EXISTS blobs (hash TEXT PRIMARY KEY, body BLOB NOT NULL);"


def packed(body: bytes) -> bytes:
    """Return a body as its row holds it: a large one is packed quickly, not tightly."""
    # An index of a megabyte takes 8 ms so, instead of 37, and is a sixth larger.
    return zlib.compress(body, 1 if len(body) > limits.MEMORY_BYTES else 6)


def unpacked(body: object) -> bytes:
    """Return a body as it was, empty where it cannot be unpacked."""
    try:
        unpack = zlib.decompressobj()
        return unpack.decompress(body, limits.READ_BYTES + 1) if isinstance(body, bytes) else b""
    except zlib.error:
        return b""


def read(database: Database, key: str) -> bytes | None:
    """Return the body with this hash, or ``None`` when there is none that matches."""
    rows = database.read("SELECT body FROM blobs WHERE hash = ? AND length(body) > 0", (key,))
    body = unpacked(rows[0]["body"]) if rows else None
    return body if body is not None and sha256(body) == key else None


def save(cursor: Cursor, bodies: Mapping[str, bytes]) -> None:
    """Keep bodies by their hashes inside the caller's transaction."""
    for key, body in bodies.items():
        # Most are there, and packing takes time.
        cursor.execute("SELECT 1 FROM blobs WHERE hash = ? AND length(body) > 0", (key,))
        if cursor.fetchone() is None:
            save_packed(cursor, [(key, packed(body))])


def save_packed(cursor: Cursor, bodies: Iterable[tuple[str, bytes]]) -> None:
    """Keep packed bodies by their hashes; one that was purged is kept anew."""
    cursor.executemany(
        "INSERT INTO blobs (hash, body) VALUES (?, ?) ON CONFLICT (hash)"
        " DO UPDATE SET body = excluded.body WHERE length(blobs.body) = 0",
        bodies,
    )
