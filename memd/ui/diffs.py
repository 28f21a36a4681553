"""A unified diff as rows for a page. Pure."""

import re

from msgspec import Struct

ROWS = 600  # of one file's diff before "show all"
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_SIGNS = {"+": "added", "-": "removed", " ": "same"}


class DiffLine(Struct, frozen=True):
    """A line of a diff, numbered in both files; ``kind`` is added, removed, same or note."""

    kind: str
    text: str
    before: int = 0
    after: int = 0


def lines(diff: str) -> list[DiffLine]:
    """Return the lines of a unified diff without its header, numbered in both files."""
    result: list[DiffLine] = []
    before = after = 0
    in_hunk = False
    for text in diff.removesuffix("\n").split("\n") if diff else ():
        hunk = _HUNK.match(text)
        if hunk:
            before, after = int(hunk[1]), int(hunk[2])
            if in_hunk:  # lines between two hunks are left out
                result.append(DiffLine("note", "…"))
            in_hunk = True
        elif not in_hunk:
            if not text.startswith(("--- ", "+++ ")):  # a note in the place of a diff
                result.append(DiffLine("note", text))
        elif kind := _SIGNS.get(text[:1]):
            in_before, in_after = kind != "added", kind != "removed"
            numbers = (before if in_before else 0, after if in_after else 0)
            result.append(DiffLine(kind, text[1:], *numbers))
            before, after = before + in_before, after + in_after
        else:  # "\ No newline at end of file"
            result.append(DiffLine("note", text.removeprefix("\\ ")))
    return result
