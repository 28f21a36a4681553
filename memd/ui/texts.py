"""Values as a page shows them: texts that are only texts, sizes, times, addresses. Pure.

Rules of this file
- Nothing of a memory is markup: the templates escape every value, and ``visible`` runs over every
  text first, so that no template can forget it. A text that the browser must send back unchanged
  goes through ``e`` there, which escapes and leaves hidden characters alone.
- A link leads to a page of ours, with values that are encoded; none is made from a text.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from memd.base.instants import written
from memd.base.text import one_line
from memd.text.invisible import spelled_out

TEXT_CHARACTERS = 6_000  # of a text that a page shows before "show all"
TEXT_LINES = 150  # of such a text, too
LINE_CHARACTERS = 300  # of a name, a description, a reason
_UNITS = (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024))
_MINUTE = 60
_SPANS = (("day", 86_400), ("hour", 3600), ("minute", _MINUTE))


class CutText(Struct, frozen=True):
    """A text cut for display; ``left`` is the number of characters that are not shown."""

    text: str
    left: int = 0


class Instant(Struct, frozen=True):
    """A time for machines (``iso``) and for people, ``day`` and ``clock`` in their zone."""

    iso: str
    day: str
    clock: str
    ago: str

    def __str__(self) -> str:
        """Return the time in full."""
        return f"{self.day} {self.clock}"


def visible(value: Any) -> Any:
    """Return a value for a template, with the hidden characters of a text spelled out."""
    return spelled_out(value) if type(value) is str else value


def cut(text: str, *, whole: bool = False) -> CutText:
    """Return the beginning of a long text, or with ``whole`` all of it."""
    if whole:
        return CutText(text)
    lines = text.splitlines(keepends=True)
    start = "".join(lines[:TEXT_LINES])[:TEXT_CHARACTERS]
    return CutText(start, len(text) - len(start))


def line(text: object, most: int = LINE_CHARACTERS) -> str:
    """Return a text on one line of at most ``most`` characters."""
    return one_line(str(text or ""), most)


def size(count: int) -> str:
    """Return a number of bytes for people."""
    for unit, factor in _UNITS:
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} B"


def span(seconds: float) -> str:
    """Return a duration in its largest unit."""
    for unit, factor in _SPANS:
        if seconds >= factor:
            count = int(seconds // factor)
            return f"{count} {unit}{'s' * (count != 1)}"
    return "less than a minute"


def instant(value: object, now: float, zone: tzinfo | None = None) -> Instant | None:
    """Return the time of an ISO 8601 text or of seconds; ``None`` for any other value."""
    seconds = written(str(value)) if isinstance(value, str | int | float) else None
    if seconds is None:
        return None
    at = datetime.fromtimestamp(seconds, UTC)
    local = at.astimezone(zone)
    distance = span(abs(now - seconds))
    ago = f"in {distance}" if now < seconds else f"{distance} ago"
    if abs(now - seconds) < _MINUTE:
        ago = "just now"
    return Instant(at.isoformat(), f"{local:%Y-%m-%d}", f"{local:%H:%M}", ago)


def url(page: str, params: Mapping[str, Any] | None = None, **more: Any) -> str:
    """Return the relative address of a page; parameters that are empty are left out."""
    params = {**(params or {}), **more}
    pairs = [(name, str(value)) for name, value in params.items() if value not in (None, "", False)]
    return f"{page}?{urlencode(pairs, errors='replace')}" if pairs else page
