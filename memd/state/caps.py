"""Compare what was used today with the caps on spending. Pure.

A cap limits a day, for all kinds of work together. The most that a request may cost is counted
before it is sent, so a cap is only exceeded if the server counts more than expected.
"""

import operator
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import astuple

from memd.base.settings import SpendSettings

_PROMPTS = "recall"  # never answered by a program, since that is too slow for a waiting person


class Sum(Struct, frozen=True):
    """An amount of usage: requests, tokens of each sort, and US dollars."""

    requests: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_created: int = 0
    dollars: float = 0.0

    @property
    def tokens(self) -> int:
        """The number of all tokens, cached ones included."""
        return self.input + self.output + self.cache_read + self.cache_created

    def __add__(self, other: "Sum") -> "Sum":
        """Return the sum of both, field by field."""
        return Sum(*map(operator.add, astuple(self), astuple(other)))


def exceeded_cap(
    kind: str, used: Mapping[str, Sum], more: Sum, settings: SpendSettings, *, by_runs: bool = False
) -> str:
    """Return the name of the setting whose cap ``more`` would exceed, or "".

    ``used`` is today's usage by kind. ``by_runs`` says that a program answers, so that the number
    of its runs is limited too.
    """
    after = sum(used.values(), Sum()) + more
    if after.dollars > settings.dollars_per_day:
        return "spend.dollars_per_day"
    if after.requests > settings.requests_per_day:
        return "spend.requests_per_day"
    # A program never answers prompts, so their requests are no runs.
    runs = after.requests - used.get(_PROMPTS, Sum()).requests
    if by_runs and kind != _PROMPTS and runs > settings.runs_per_day:
        return "spend.runs_per_day"
    return ""
