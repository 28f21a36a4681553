"""Find ``@path`` in a text where Gemini CLI sees it. Pure.

Rules of this file
- A path begins with a letter, a dot or a slash, behind white space, and ends with the next; what
  stands between equal runs of backticks is code, over any number of lines
  (tests/instructions/test_imports.py::test_where_a_path_counts).
- The work grows with the text (tests/instructions/test_imports.py::test_work_is_linear).
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

_IMPORT = re.compile(r"(?<![^ \t\n\r])@([./A-Za-z][^ \t\n\r]*)")
_TICKS = re.compile(r"`+")


def imports(text: str) -> Iterator[re.Match[str]]:
    """Yield the mentions of files in a text, each with the path as its first group."""
    spans = tuple(code_spans(text)) if "@" in text and "`" in text else ()
    starts = [start for start, _ in spans]
    for match in _IMPORT.finditer(text):
        before = bisect_right(starts, match.start()) - 1
        if before < 0 or match.start() >= spans[before][1]:
            yield match


def code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where code begins and ends.

    A run of backticks opens with as many as come again: in a later run, or in its own second half.
    """
    runs = [match.span() for match in _TICKS.finditer(text)]
    longest = _longest_after(runs)
    number, at = 0, 0
    while number < len(runs):
        start, end = max(runs[number][0], at), runs[number][1]
        own = (end - start) // 2
        length = min(end - start, max(longest[number], own))
        if not length:
            number += 1
            continue
        if length <= own:
            close = start + length
        else:
            number = next(
                later
                for later in range(number + 1, len(runs))
                if runs[later][1] - runs[later][0] >= length
            )
            close = runs[number][0]
        at = close + length
        yield start, at


def _longest_after(runs: Sequence[tuple[int, int]]) -> list[int]:
    """Return for each run how long the longest of the later ones is."""
    result = [0] * len(runs)
    for number in range(len(runs) - 2, -1, -1):
        start, end = runs[number + 1]
        result[number] = max(result[number + 1], end - start)
    return result
