"""Texts as few bytes: what one has in common with the text before it is not stored again. Pure."""

import zlib

from memd.base import limits

_DICTIONARY_BYTES = 32 * 1024  # that zlib can look back


def pack(text: bytes, base: bytes = b"") -> bytes:
    """Return a text as few bytes, from which ``unpack`` makes it again with the same ``base``.

    Two numbers say how many bytes of the base begin and end it; what lies between is compressed.
    """
    start = common(text, base)
    end = common(text[start:][::-1], base[start:][::-1])
    level = 1 if len(text) > limits.MEMORY_BYTES else 6
    dictionary = base[start : len(base) - end][-_DICTIONARY_BYTES:]
    packer = zlib.compressobj(level, zlib.DEFLATED, 15, 5, zdict=dictionary)
    middle = packer.compress(text[start : len(text) - end]) + packer.flush()
    return b"%d %d " % (start, end) + middle


def unpack(packed: bytes, base: bytes = b"") -> bytes | None:
    """Return the text that ``pack`` packed, ``None`` if the bytes are damaged."""
    try:
        first, second, middle = packed.split(b" ", 2)
        start, end = int(first), int(second)
        dictionary = base[start : len(base) - end][-_DICTIONARY_BYTES:]
        unpacker = zlib.decompressobj(15, zdict=dictionary)
        text = unpacker.decompress(middle, limits.READ_BYTES + 1)
    except (ValueError, zlib.error):
        return None
    return base[:start] + text + base[len(base) - end :]


def common(one: bytes, other: bytes) -> int:
    """Return how many bytes two texts have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
