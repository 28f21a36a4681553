"""Values as a page shows them: texts that are only texts, diffs, sizes, times, addresses. Pure.

Rules of this file
- Nothing of a memory is markup that acts. The templates escape every value, and ``visible`` runs
  over every text first, so that no template can forget it. A text that the browser must send back
  unchanged goes through ``e`` there, which escapes and leaves hidden characters alone.
- ``markdown`` makes paragraphs, headings, lists, tables, emphasis and code. HTML, links and
  pictures stay the characters that they are.
- A link leads to a page of ours, with values that are encoded; none is made from a text.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any
from urllib.parse import urlencode

from markdown_it import MarkdownIt
from msgspec import Struct

from memd.base.instants import written
from memd.base.text import one_line
from memd.text.invisible import spelled_out

TEXT_CHARACTERS = 6_000  # of a text that a page shows before "show all"
TEXT_LINES = 150  # of such a text, too
LINE_CHARACTERS = 300  # of a name, a description, a reason
DIFF_LINES = 300  # of one file's diff before "show all"
_UNITS = (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024))
_SPANS = (("day", 86_400), ("hour", 3600), ("minute", 60))
_KINDS = {"+": "added", "-": "removed", " ": "same"}
_ACTING = ["link", "image", "autolink", "html_inline", "html_block", "reference", "entity"]
_MARKDOWN = (
    MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table").disable(_ACTING)
)


class CutText(Struct, frozen=True):
    """A text cut for display; ``left`` is the number of characters that are not shown."""

    text: str
    left: int = 0

    @property
    def html(self) -> str:
        """The text as Markdown, rendered."""
        return markdown(self.text)


class ShownDiff(Struct, frozen=True):
    """One file's diff: its lines with what each is (added, removed, same or note).

    ``left`` is the number of lines that are not shown.
    """

    path: str
    lines: Sequence[tuple[str, str]]
    left: int


class Instant(Struct, frozen=True):
    """A time for machines (``iso``) and for people, in their zone and as a distance."""

    iso: str
    shown: str
    ago: str


def visible(value: Any) -> Any:
    """Return a value for a template, with the hidden characters of a text spelled out."""
    return spelled_out(value) if type(value) is str else value


def markdown(text: str) -> str:
    """Return Markdown as HTML without anything that acts, hidden characters spelled out."""
    tokens = _MARKDOWN.parse(spelled_out(text))
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = "h3"  # below the heading of its section, whatever the text counts
        token.attrs.pop("style", None)  # a table's: nothing is inline
    html: str = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    return html


def cut(text: str, *, whole: bool = False) -> CutText:
    """Return the beginning of a long text, or with ``whole`` all of it."""
    if whole:
        return CutText(text)
    lines = text.splitlines(keepends=True)
    start = "".join(lines[:TEXT_LINES])[:TEXT_CHARACTERS]
    return CutText(start, len(text) - len(start))


def diff_lines(diff: str) -> list[tuple[str, str]]:
    """Return the lines of a unified diff without its header, each with its kind."""
    rows: list[tuple[str, str]] = []
    in_hunk = False
    for line in diff.removesuffix("\n").split("\n") if diff else ():
        if line.startswith("@@ "):
            if in_hunk:  # lines between two hunks are left out
                rows.append(("note", "…"))
            in_hunk = True
        elif in_hunk and line[:1] in _KINDS:
            rows.append((_KINDS[line[:1]], line[1:]))
        elif in_hunk or not line.startswith(("--- ", "+++ ")):
            rows.append(("note", line.removeprefix("\\ ")))
    return rows


def shown_diff(file: Mapping[str, Any], *, whole: bool = False) -> ShownDiff:
    """Return a file's diff, the first ``DIFF_LINES`` of it unless ``whole``."""
    rows = diff_lines(file["diff"])
    shown = rows if whole else rows[:DIFF_LINES]
    return ShownDiff(file["path"], shown, len(rows) - len(shown))


def line(text: object, most: int = LINE_CHARACTERS) -> str:
    """Return a text on one line of at most ``most`` characters."""
    return one_line(str(text or ""), most)


def counted(count: float, name: str, names: str = "") -> str:
    """Return a number with its noun, ``names`` being the plural where it is not ``name`` + s."""
    return f"{count:,} {name if count == 1 else names or name + 's'}"


def size(count: int) -> str:
    """Return a number of bytes for people."""
    for unit, factor in _UNITS:
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return counted(count, "byte")


def span(seconds: float) -> str:
    """Return a duration in its largest unit."""
    for unit, factor in _SPANS:
        if seconds >= factor:
            return counted(int(seconds // factor), unit)
    return "less than a minute"


def instant(value: object, now: float, zone: tzinfo | None = None) -> Instant | None:
    """Return the time of an ISO 8601 text or of seconds; ``None`` for any other value."""
    seconds = written(str(value)) if isinstance(value, str | int | float) else None
    if seconds is None:
        return None
    at = datetime.fromtimestamp(seconds, UTC)
    distance = span(abs(now - seconds))
    ago = f"in {distance}" if now < seconds else f"{distance} ago"
    return Instant(at.isoformat(), f"{at.astimezone(zone):%Y-%m-%d %H:%M}", ago)


def url(page: str, params: Mapping[str, Any] | None = None, **more: Any) -> str:
    """Return the relative address of a page; parameters that are empty are left out."""
    params = {**(params or {}), **more}
    pairs = [(name, str(value)) for name, value in params.items() if value not in (None, "", False)]
    return f"{page}?{urlencode(pairs, errors='replace')}" if pairs else page
