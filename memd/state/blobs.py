"""The bodies of files in the journal, stored once each by SHA-256, compressed.

A body that is read is hashed again, because the state file may be damaged; one that does not match
counts as missing. A purged body is stored as empty bytes, so that its hash stays known.
"""

import zlib
from collections.abc import Iterable, Mapping

from memd.base import limits
from memd.base.text import sha256
from memd.state.database import Cursor, Database

_TABLE_SIZE = 5  # zlib's memLevel, from 1 to 9; 8 is the default
SCHEMA = "CREATE TABLE IF NOT EXISTS blobs (hash TEXT PRIMARY KEY, body BLOB NOT NULL);"


def packed(body: bytes) -> bytes:
    """Return a body compressed for its row; large bodies are compressed fast instead of well."""
    if len(body) > limits.MEMORY_BYTES:
        # An index of a megabyte takes 8 ms instead of 37, and the result is a sixth larger.
        return zlib.compress(body, 1)
    # With tables for small bodies a memory of 1,100 bytes takes 50 us instead of 108, and no more
    # bytes; a first look at 10,000 memories spent a sixth of its time in these tables.
    packer = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS, _TABLE_SIZE)
    return packer.compress(body) + packer.flush()


def unpacked(body: object) -> bytes:
    """Return an uncompressed body, or ``b""`` if it cannot be decompressed.

    At most one byte more than a file may have (``limits.READ_BYTES``) is returned.
    """
    if not isinstance(body, bytes):  # the state file may be damaged
        return b""
    try:
        return zlib.decompressobj().decompress(body, limits.READ_BYTES + 1)
    except zlib.error:
        return b""


def read(database: Database, body_hash: str) -> bytes | None:
    """Return the body with this hash, or ``None`` if it is missing, purged or damaged."""
    rows = database.read("SELECT body FROM blobs WHERE hash = ? AND length(body) > 0", (body_hash,))
    body = unpacked(rows[0]["body"]) if rows else None
    return body if body is not None and sha256(body) == body_hash else None


def save(cursor: Cursor, bodies: Mapping[str, bytes]) -> None:
    """Store the bodies, given by hash, inside the caller's transaction."""
    for body_hash, body in bodies.items():
        # Most are stored already, and compressing takes time.
        cursor.execute("SELECT 1 FROM blobs WHERE hash = ? AND length(body) > 0", (body_hash,))
        if cursor.fetchone() is None:
            save_packed(cursor, [(body_hash, packed(body))])


def save_packed(cursor: Cursor, bodies: Iterable[tuple[str, bytes]]) -> None:
    """Store compressed bodies with their hashes; a purged one is filled again."""
    cursor.executemany(
        "INSERT INTO blobs (hash, body) VALUES (?, ?) ON CONFLICT (hash)"
        " DO UPDATE SET body = excluded.body WHERE length(blobs.body) = 0",
        bodies,
    )
