"""A unified diff of two texts, as a person looks at it. Pure."""

import difflib
import io
from collections.abc import Iterator, Sequence


def lines(text: str) -> list[str]:
    """Return the lines of a text with their ends.

    Only a line feed ends one: what else Python splits at is a part of a person's text.
    """
    return io.StringIO(text, newline="\n").readlines()


def names(path: str, before: object, after: object) -> tuple[str, str]:
    """Return what the two versions of a file are called; ``None`` is no file."""
    old, new = before is not None, after is not None
    return f"a/{path}" if old else "/dev/null", f"b/{path}" if new else "/dev/null"


def diff(path: str, before: Sequence[str] | None, after: Sequence[str] | None) -> Iterator[str]:
    """Yield the diff of two versions of a file line by line, each with its end.

    Very different texts of many lines take long: seconds for some ten thousand.
    """
    old, new = names(path, before, after)
    for line in difflib.unified_diff(before or (), after or (), old, new):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
