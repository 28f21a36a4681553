"""Unicode's normal forms in time that grows with the text alone. Pure.

The standard library sorts each run of combining marks by insertion: 64 kB of them take three
seconds, during which no other thread runs. So a text is brought into its normal form piece by
piece; a letter whose marks begin the next piece keeps them apart, which no real text notices.
"""

import unicodedata

_PIECE = 256  # characters; a piece of nothing but marks takes 0.2 ms


def normal(text: str) -> str:
    """Return a text in the normal form NFKC."""
    if text.isascii():
        return text
    pieces = (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
    return "".join(unicodedata.normalize("NFKC", piece) for piece in pieces)
