"""What the last day cost, once more, in a file outside the state directory.

A state file that is lost, damaged or elsewhere must not begin the day's caps anew. The file is a
second witness and no more: where it cannot be read or written, the books alone count.
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

_BYTES = 4096
_NOTHING: Mapping[str, Any] = dict.fromkeys(KINDS, astuple(Sum()))
_MOST = 2**53  # of tokens; more is no number of memd's


class DaySpent(Struct, frozen=True):
    """What was used on a day (ISO 8601) by kind of work; ``day`` is "" where nothing is known."""

    day: str = ""
    kinds: Mapping[str, Sum] = field(default_factory=dict)


class Tally:
    """The tally file at a path. Methods block and raise nothing."""

    def __init__(self, path: str) -> None:
        self._path = path

    def read(self) -> DaySpent:
        """Return the day's usage in the file, an empty one if it is missing or damaged."""
        try:
            with open(self._path, "rb") as file:
                result = read_object(file.read(_BYTES))
            kinds = _NOTHING | result["kinds"]  # an earlier memd knew fewer kinds
            return DaySpent(_text(result["day"]), {k: _sum(kinds[k]) for k in KINDS})
        except (OSError, ValueError, KeyError, TypeError):
            return DaySpent()

    def write(self, spent: DaySpent) -> None:
        """Replace what the file says."""
        kinds = {kind: astuple(spent.kinds.get(kind, Sum())) for kind in KINDS}
        temporary = f"{self._path}.new"
        with suppress(OSError):
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            # The file is a witness of the day: the one before stays until this one is whole.
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "w") as file:
                json.dump({"day": spent.day, "kinds": kinds}, file)
            os.replace(temporary, self._path)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _sum(value: Any) -> Sum:
    *counts, money = value
    if not all(type(count) is int and 0 <= count <= _MOST for count in counts):
        raise TypeError
    if not isinstance(money, int | float) or not 0 <= money < math.inf:
        raise TypeError
    requests, read, written, cached, created = counts
    return Sum(requests, read, written, cached, created, float(money))
