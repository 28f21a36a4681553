"""When: times and versions as parameters."""

import re

from memd.core.instants import NotATimeError, written
from memd.store.history import At

Time = str | float  # ISO 8601 or seconds since 1970
_CHANGE = re.compile(r"c[0-9]+")


def seconds(name: str, value: Time | None) -> float | None:
    """Return the seconds since 1970 of a parameter. Raises NotATimeError."""
    if value is None:
        return None
    found = written(value if isinstance(value, str) else f"{value:.3f}")
    if found is None:
        raise NotATimeError(name, str(value))
    return found


def moment(name: str, value: Time | None) -> At | None:
    """Return a parameter that is a change's id or a time. Raises NotATimeError."""
    if isinstance(value, str) and _CHANGE.fullmatch(value):
        return value
    return seconds(name, value)
