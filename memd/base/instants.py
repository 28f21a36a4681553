"""Read points in time as people and programs write them: ISO 8601, seconds, "2 hours ago".

A date or a day without a time is its beginning. A time without a zone is one of the zone that the
caller names, ``None`` being this machine's.
"""

import re
from datetime import UTC, datetime, time, timedelta, tzinfo

from memd.base.errors import Invalid

_LATEST_SECONDS = 253_402_214_400.0  # since 1970: the last day of the year 9999
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,9})?")
_AGO = re.compile(r"(\d{1,6}|an?) ?([a-z]+)(?: ago)?")
_UNIT_SECONDS = {
    word: seconds
    for words, seconds in (
        ("s sec secs second seconds", 1),
        ("m min mins minute minutes", 60),
        ("h hour hours", 60 * 60),
        ("d day days", 24 * 60 * 60),
        ("w week weeks", 7 * 24 * 60 * 60),
    )
    for word in words.split()
}
_DAYS_AGO = {"today": 0, "yesterday": 1}


def no_time(name: str, text: str) -> Invalid:
    """Return the error that a parameter is no time."""
    return Invalid(
        f"{name}: {text[:40]!r} is no time",
        hint="times are ISO 8601, such as 2026-11-21T10:00:00Z, or seconds since 1970",
        name=name,
    )


def written(text: str, zone: tzinfo | None = UTC) -> float | None:
    """Return the seconds since 1970 of an ISO 8601 time or a number, ``None`` for neither."""
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return _if_possible(float(text))
    try:
        result = datetime.fromisoformat(text)
        if result.tzinfo is None and zone is not None:
            result = result.replace(tzinfo=zone)
        return _if_possible(result.timestamp())
    except (ValueError, OverflowError, OSError):
        return None


def spoken(text: str, now: float, zone: tzinfo | None = None) -> float | None:
    """Return the seconds since 1970 of a time as a person writes it, ``None`` for no time.

    The text is one that ``written`` reads, or now, or today or yesterday (the beginning of that
    day), or a distance back such as ``2 hours ago``, ``3d`` or ``a week ago``.
    """
    words = " ".join(text.lower().split())
    if words == "now":
        return now
    if words in _DAYS_AGO:
        day = datetime.fromtimestamp(now, zone).date() - timedelta(days=_DAYS_AGO[words])
        return datetime.combine(day, time(), zone).timestamp()
    match = _AGO.fullmatch(words)
    if match is not None and match[2] in _UNIT_SECONDS:
        count = int(match[1]) if match[1].isdecimal() else 1  # "a week ago"
        return _if_possible(now - count * _UNIT_SECONDS[match[2]])
    return written(text, zone)


def _if_possible(seconds: float) -> float | None:
    """Return a time in seconds since 1970, ``None`` if no calendar has it."""
    return seconds if 0 <= seconds <= _LATEST_SECONDS else None
