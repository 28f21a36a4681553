"""Words as numbers of 32 bits, the same in every process, and lists of them as bytes. Pure.

Two words that share a number count as the same, which in a hundred thousand memories happens to
about one pair.
"""

from array import array
from collections.abc import Iterable
from zlib import crc32

KEY_BYTES = 4

_KEPT = 50_000  # about 6 MB; the words of most directories

_packed: dict[str, bytes] = {}


def key(word: str) -> int:
    """Return the number of a word, of 32 bits and the same in every process."""
    return crc32(word.encode())


def pack(found: Iterable[str]) -> bytes:
    """Return the numbers of words, one after the other, as this machine writes them."""
    return b"".join(map(_pack, found))


def keys(packed: bytes) -> "array[int]":
    """Return the numbers that ``pack`` has written."""
    return array("I", packed)


def pack_key(number: int) -> bytes:
    """Return one number as ``pack`` writes it."""
    return array("I", (number,)).tobytes()


def _pack(word: str) -> bytes:
    packed = _packed.get(word)
    if packed is None:
        if len(_packed) >= _KEPT:
            _packed.clear()
        packed = _packed[word] = pack_key(key(word))
    return packed
