"""A unified diff of two texts within bounds, as a person looks at it. Pure."""

import difflib
import io
from itertools import islice

from memd.store.names import printable

CHARACTERS = 200_000
_LINES = 2000
_COMPARED_BYTES = 256 * 1024  # of each side: four memories of the largest size
_COMPARED_LINES = 5000
_CUT = "… the diff is longer\n"


def unified(
    path: str, before: bytes | None, after: bytes | None, characters: int = CHARACTERS
) -> str:
    """Return how a file differs, cut at 2,000 lines or so many characters; ``None`` is no file.

    What is not UTF-8 is shown with U+FFFD.
    """
    if before == after:
        return ""
    name = printable(path)
    old_name, new_name = (
        "/dev/null" if text is None else f"{side}/{name}"
        for side, text in (("a", before), ("b", after))
    )
    old, new = _lines(before), _lines(after)
    sizes = f"{len(before or b'')} bytes before, {len(after or b'')} after"
    if old is None or new is None:
        return f"--- {old_name}\n+++ {new_name}\ntoo large to be compared: {sizes}\n"
    if old == new and (before is None) == (after is None):
        return f"--- {old_name}\n+++ {new_name}\nthey differ in bytes that are no text\n"
    shown: list[str] = []
    room = characters
    lines = difflib.unified_diff(old, new, old_name, new_name)
    for line in islice(lines, _LINES):
        whole = line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        room -= len(whole)
        if room < 0:
            return "".join((*shown, _CUT))
        shown.append(whole)
    if next(lines, None) is not None:
        shown.append(_CUT)
    return "".join(shown)


def _lines(content: bytes | None) -> list[str] | None:
    """Return the lines of a text with their ends, ``None`` where comparing would take too long."""
    raw = content or b""
    if len(raw) > _COMPARED_BYTES or raw.count(b"\n") > _COMPARED_LINES:
        return None
    # Only a line feed ends a line: what else Python splits at is a part of a person's text.
    return io.StringIO(raw.decode(errors="replace"), newline="\n").readlines()
