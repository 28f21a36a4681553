"""Functions on texts: cutting, hashing, times and ages. Pure."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

from memd.base import limits

SAID = "**Said:**"  # the beginning of a body's line that quotes the person
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY_NS = 24 * 60 * 60 * 1_000_000_000


def sha256(content: bytes) -> str:
    """Return the SHA-256 of some bytes in hex."""
    return hashlib.sha256(content).hexdigest()


def decode(content: bytes) -> str:
    """Return the text of a file's bytes: UTF-8 without its BOM; a foreign byte becomes U+FFFD."""
    return content.decode("utf-8-sig", errors="replace")


def read_json(text: object) -> Any:
    """Return the value of a JSON text, ``None`` for anything that is not JSON."""
    try:
        return json.loads(text) if isinstance(text, str | bytes) else None
    except (ValueError, RecursionError):
        return None


def read_object(text: object) -> dict[str, Any]:
    """Return the members of a JSON object, an empty dict for anything else."""
    value = read_json(text)
    return value if isinstance(value, dict) else {}


def cut_bytes(text: str, limit: int) -> str:
    """Return the longest start of a text whose UTF-8 form has at most ``limit`` bytes."""
    encoded = text.encode("utf-8", errors="replace")
    if len(encoded) <= limit:
        return text
    return encoded[:limit].decode("utf-8", errors="ignore")


def one_line(text: str, limit: int) -> str:
    """Return a text on one line, runs of white space folded, at most ``limit`` characters."""
    folded = " ".join(text.split())
    return folded if len(folded) <= limit else folded[: limit - 1].rstrip() + "…"


def iso_time(seconds: float) -> str:
    """Return a time as ISO 8601 in UTC with milliseconds, as Claude Code stamps it."""
    stamp = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return stamp.replace("+00:00", "Z")


def said_line(quotation: str, at: float = 0.0) -> str:
    """Return the line of a memory's body that quotes the person; ``at`` (seconds) adds the day.

    The day has its weekday in English, from which "on Friday" can be counted: Thu 2026-11-26.
    """
    moment = datetime.fromtimestamp(at, UTC)
    day = f" ({_WEEKDAYS[moment.weekday()]} {moment:%Y-%m-%d})" if at else ""
    return f'{SAID} "{quotation}"{day}'


def age_days(mtime_ns: int, now: float) -> int:
    """Return the whole days since a file was written; never negative."""
    return max(0, (int(now * 1_000_000_000) - mtime_ns) // _DAY_NS)


def age(mtime_ns: int, now: float) -> str:
    """Return ``today``, ``yesterday`` or ``N days ago``."""
    days = age_days(mtime_ns, now)
    if days == 0:
        return "today"
    return "yesterday" if days == 1 else f"{days} days ago"


def stale_notice(mtime_ns: int, now: float) -> str | None:
    """Return the notice that is shown with an older memory, or ``None`` for a recent one."""
    days = age_days(mtime_ns, now)
    if days < limits.STALE_DAYS:
        return None
    return (
        f"This memory is {days} days old. It records what was seen then, not how things are now; "
        "what it says about code or about file:line places may no longer hold. "
        "Check against the current state before asserting it."
    )
