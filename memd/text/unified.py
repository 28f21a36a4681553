"""A unified diff of two texts, as a person looks at it. Pure."""

import difflib
import io
from collections.abc import Iterator, Sequence
from itertools import islice

CHARACTERS = 200_000  # of a diff, unless the caller says another number
_MOST_LINES = 2000  # of a diff
_COMPARED_BYTES = 256 * 1024  # of each side: four memories of the largest size
_COMPARED_LINES = 5000
_CUT = "… the diff is longer\n"


def lines(text: str) -> list[str]:
    """Return the lines of a text with their ends.

    Only a line feed ends one: what else Python splits at is a part of a person's text.
    """
    return io.StringIO(text, newline="\n").readlines()


def names(path: str, before: object, after: object) -> tuple[str, str]:
    """Return the names of a file's two versions for a diff's head; ``None`` means no file."""
    old_name = "/dev/null" if before is None else f"a/{path}"
    new_name = "/dev/null" if after is None else f"b/{path}"
    return old_name, new_name


def diff(path: str, before: Sequence[str] | None, after: Sequence[str] | None) -> Iterator[str]:
    """Yield the diff of two versions of a file line by line, each with its end.

    Very different texts of many lines take long: seconds for some ten thousand.
    """
    old, new = names(path, before, after)
    for line in difflib.unified_diff(before or (), after or (), old, new):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def bounded(
    path: str, before: bytes | None, after: bytes | None, characters: int = CHARACTERS
) -> str:
    """Return the diff of a file, cut at 2,000 lines or ``characters``; ``None`` is no file.

    ``path`` is printed as it is. What is not UTF-8 is shown with U+FFFD.
    """
    if before == after:
        return ""
    head = "--- {}\n+++ {}\n".format(*names(path, before, after))
    if _too_large(before) or _too_large(after):
        sizes = f"{len(before or b'')} bytes before, {len(after or b'')} after"
        return f"{head}too large to be compared: {sizes}\n"
    old, new = _lines_of(before), _lines_of(after)
    if old == new:
        return f"{head}they differ in bytes that are no text\n"
    shown: list[str] = []
    characters_left = characters
    diff_lines = diff(path, old, new)
    for line in islice(diff_lines, _MOST_LINES):
        characters_left -= len(line)
        if characters_left < 0:
            return "".join((*shown, _CUT))
        shown.append(line)
    if next(diff_lines, None) is not None:
        shown.append(_CUT)
    return "".join(shown)


def _too_large(content: bytes | None) -> bool:
    """Return whether comparing a version of a file would take too long."""
    raw = content or b""
    return len(raw) > _COMPARED_BYTES or raw.count(b"\n") > _COMPARED_LINES


def _lines_of(content: bytes | None) -> list[str] | None:
    """Return the lines of a file's text, ``None`` for no file."""
    return None if content is None else lines(content.decode(errors="replace"))
