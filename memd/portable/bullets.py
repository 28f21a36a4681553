"""Read memories from the lists that chats print: bullets, or lines ``[date] - text``. Pure."""

import re
from collections.abc import Iterator

from memd.portable.decoding import files, seconds_of, text
from memd.portable.memories import ReadingBuilder

# An indent, a bullet or number, a date in brackets, and a text; only the text must be there.
_LINE = (
    r"(?P<indent>[ \t]*)(?P<bullet>(?:[-*+\u2022\u2013]|[0-9]{1,4}[.)])[ \t]+)?"
    r"(?:\[(?P<day>[^\]\n]{1,40})\][ \t]*[-:\u2013\u2014]?[ \t]*)?(?P<text>\S.*)"
)
# What chats write if they know no day.
_UNKNOWN = r"(?:date )?(?:unknown|unavailable|not available|undated|no date|n/a)"
_YEAR = r"\b(?:19|20)[0-9]{2}\b"
_FENCE = ("```", "~~~")


def read(builder: ReadingBuilder) -> None:
    """Propose a memory for each entry of the lists in text files."""
    for name in files(builder, ".txt", ".md"):
        for number, day, lines in _entries(builder, name, text(builder.source, name)):
            builder.add("\n".join(lines), f"{name}:{number}", at=day or builder.changed_at(name))


def entry(line: str) -> tuple[int, float, str] | None:
    """Return indent, time and text of a line that begins a list entry, ``None`` for other lines.

    The indent is in characters. The time is in seconds since 1970, 0 if the line has no valid one.
    """
    match = re.fullmatch(_LINE, line)
    if match is None:
        return None
    day = (match["day"] or "").strip()
    is_unknown = re.fullmatch(_UNKNOWN, day.casefold())
    if not (match["bullet"] or is_unknown or re.search(_YEAR, day)):
        return None
    at = seconds_of(day)
    # A bracket that holds no date is part of the text.
    is_text = day and not at and not is_unknown
    start = match.start("day") - 1 if is_text else match.start("text")
    return len(match["indent"]), at, line[start:]


def _entries(
    builder: ReadingBuilder, name: str, content: str
) -> Iterator[tuple[int, float, list[str]]]:
    """Yield the line number, time and lines of each list entry, with the lines indented below it.

    Other lines are left out, with a reason.
    """
    start, indent, at, lines = 0, 0, 0.0, list[str]()  # of the entry that is being read
    for number, line in enumerate(content.split("\n"), 1):
        head = entry(line)
        is_indented = head[0] > indent if head else line.startswith((" ", "\t"))
        if lines and is_indented:
            lines.append(line)
            continue
        if not head and not line.strip():
            continue
        if lines:
            yield start, at, lines
        lines = []
        if head:
            start, (indent, at, text_of_line) = number, head
            lines = [text_of_line]
        elif not line.startswith(_FENCE):
            builder.leave_out(f"{name}:{number}", "it is no entry of a list")
    if lines:
        yield start, at, lines
