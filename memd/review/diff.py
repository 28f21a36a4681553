"""A unified diff of two texts within bounds, as a person looks at it. Pure."""

from itertools import islice

from memd.core.names import printable
from memd.text import unified

CHARACTERS = 200_000
_LINES = 2000
_COMPARED_BYTES = 256 * 1024  # of each side: four memories of the largest size
_COMPARED_LINES = 5000
_CUT = "… the diff is longer\n"


def bounded(
    path: str, before: bytes | None, after: bytes | None, characters: int = CHARACTERS
) -> str:
    """Return how a file differs, cut at 2,000 lines or so many characters; ``None`` is no file.

    What is not UTF-8 is shown with U+FFFD.
    """
    if before == after:
        return ""
    name = printable(path)
    head = "--- {}\n+++ {}\n".format(*unified.names(name, before, after))
    if _too_large(before) or _too_large(after):
        sizes = f"{len(before or b'')} bytes before, {len(after or b'')} after"
        return f"{head}too large to be compared: {sizes}\n"
    old, new = _lines(before), _lines(after)
    if old == new:
        return f"{head}they differ in bytes that are no text\n"
    shown: list[str] = []
    room = characters
    found = unified.diff(name, old, new)
    for line in islice(found, _LINES):
        room -= len(line)
        if room < 0:
            return "".join((*shown, _CUT))
        shown.append(line)
    if next(found, None) is not None:
        shown.append(_CUT)
    return "".join(shown)


def _too_large(content: bytes | None) -> bool:
    """Whether comparing would take too long."""
    raw = content or b""
    return len(raw) > _COMPARED_BYTES or raw.count(b"\n") > _COMPARED_LINES


def _lines(content: bytes | None) -> list[str] | None:
    return None if content is None else unified.lines(content.decode(errors="replace"))
