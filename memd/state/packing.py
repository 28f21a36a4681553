"""How bodies are packed for the journal: zlib, and quickly where a body is large.

A body above the size of a memory is an index. Most changes of one add a line at its end, so what
the last one was packed to is kept, and only what stands behind it is packed anew. The result is a
zlib stream like any other.
"""

import zlib
from dataclasses import dataclass
from typing import Any

from memd.core import limits

_LEVEL = 6
_FAST = 1  # a sixth larger, and 8 ms for a megabyte instead of 37


@dataclass(frozen=True, slots=True)
class _Begun:
    """A body, what it was packed to so far, and the packer that could go on; it is only copied."""

    body: bytes
    packed: bytes
    packer: Any


_LAST: list[_Begun] = []  # at most one: whoever replaces it does so at once, in any thread


def packed(body: bytes) -> bytes:
    """Return a body as the journal's blobs hold it."""
    if len(body) <= limits.MEMORY_BYTES:
        return zlib.compress(body, _LEVEL)
    last = next((begun for begun in tuple(_LAST) if body.startswith(begun.body)), None)
    begun = last or _Begun(b"", b"", zlib.compressobj(_FAST))
    packer = begun.packer.copy()
    start = begun.packed + packer.compress(body[len(begun.body) :])
    _LAST[:] = [_Begun(body, start, packer)]
    return bytes(start + packer.copy().flush())
