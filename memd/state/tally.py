"""Store what models cost today in a second file, outside the state directory.

If the state file is lost, damaged or moved, the day's spending caps must not start at zero. This
file is only a second record: if it cannot be read or written, only the state file counts.
"""

import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct, field
from msgspec.structs import astuple

from memd.core.text import read_object
from memd.state.caps import KINDS, Sum

_MOST_BYTES = 4096  # of the file; memd's own are shorter
_NO_USAGE: Mapping[str, Any] = dict.fromkeys(KINDS, astuple(Sum()))
_MOST_TOKENS = 2**53  # a larger number is not from memd


class DaySpent(Struct, frozen=True):
    """The usage of one day (ISO 8601) by kind of work; ``day`` is "" if nothing is known."""

    day: str = ""
    kinds: Mapping[str, Sum] = field(default_factory=dict)


class Tally:
    """The second record of a day's usage, in one file. Methods block and raise no errors."""

    def __init__(self, path: str) -> None:
        self._path = path

    def read(self) -> DaySpent:
        """Return the day's usage in the file, an empty one if it is missing or damaged."""
        try:
            with open(self._path, "rb") as file:
                result = read_object(file.read(_MOST_BYTES))
            kinds = _NO_USAGE | result["kinds"]  # an earlier memd knew fewer kinds
            sums = {kind: _read_sum(kinds[kind]) for kind in KINDS}
            return DaySpent(_read_text(result["day"]), sums)
        except (OSError, ValueError, KeyError, TypeError):
            return DaySpent()

    def write(self, spent: DaySpent) -> None:
        """Replace the file's content by this usage; errors of the disk are ignored."""
        kinds = {kind: astuple(spent.kinds.get(kind, Sum())) for kind in KINDS}
        temporary = f"{self._path}.new"
        with suppress(OSError):
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            # Written beside and renamed, so that a crash leaves the old file or the new one.
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "w") as file:
                json.dump({"day": spent.day, "kinds": kinds}, file)
            os.replace(temporary, self._path)


def _read_text(value: Any) -> str:
    """Return a value that is a text; raise TypeError for any other."""
    if not isinstance(value, str):
        raise TypeError
    return value


def _read_sum(value: Any) -> Sum:
    """Return the usage in a list of numbers; raise TypeError or ValueError if it is invalid."""
    *counts, money = value
    if not all(type(count) is int and 0 <= count <= _MOST_TOKENS for count in counts):
        raise TypeError
    if not isinstance(money, int | float) or not 0 <= money < math.inf:
        raise TypeError
    requests, input_, output, cache_read, cache_created = counts
    return Sum(requests, input_, output, cache_read, cache_created, float(money))
