"""Find ``@path`` in a text where Gemini CLI sees it. Pure.

Rules of this file
- A path begins with a letter, a dot or a slash behind white space, and ends at white space. Text
  between equal runs of backticks is code, over any number of lines
  (tests/instructions/test_imports.py::test_where_a_path_counts).
- The work is linear (tests/instructions/test_imports.py::test_work_is_linear).
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
        spans_before = bisect_right(starts, match.start())
        end_of_last = spans[spans_before - 1][1] if spans_before else 0
        if match.start() >= end_of_last:
            yield match


def code_spans(text: str) -> Iterator[tuple[int, int]]:
    r"""Yield the start and end of each code span, as ``(`+)[\s\S]*?\1`` finds them.

    This expression is not used itself, since its time grows with the square of a text of backticks.
    It takes as many backticks of a run as it finds again: in a later run, or else in the second
    half of the same run. So three backticks before a word and two behind it give a span with two on
    each side, and four in a row give one of two and two.
    """
    runs = [match.span() for match in _TICKS.finditer(text)]
    longest_after = _longest_after(runs)
    number, span_end = 0, 0
    while number < len(runs):
        start, end = max(runs[number][0], span_end), runs[number][1]
        half = (end - start) // 2
        length = min(end - start, max(longest_after[number], half))  # of the backticks on a side
        if not length:
            number += 1
            continue
        if length <= half:
            closing = start + length
        else:
            number += 1
            while runs[number][1] - runs[number][0] < length:
                number += 1
            closing = runs[number][0]
        span_end = closing + length
        yield start, span_end


def _longest_after(runs: Sequence[tuple[int, int]]) -> list[int]:
    """Return for each run the length of the longest later run, 0 if there is none."""
    result = [0] * len(runs)
    for number in range(len(runs) - 2, -1, -1):
        start, end = runs[number + 1]
        result[number] = max(result[number + 1], end - start)
    return result
