"""Compare what was used today with the caps on spending. Pure.

A cap limits a day; a share of it limits one kind of work. The most that a request may cost is
counted before it is sent, so a cap is only exceeded if the server counts more than expected.
"""

import operator
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import astuple

from memd.core.settings import SpendSettings

KINDS = ("recall", "extract", "dream", "notes", "compact", "progress")
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
    """Return the name of the first setting whose cap ``more`` would exceed, or "".

    ``used`` is today's usage by kind. ``by_runs`` says that a program answers, so that the number
    of its runs is limited too.
    """
    after = used.get(kind, Sum()) + more  # usage of this kind with ``more``
    total = sum(used.values(), Sum()) + more
    runs = 0
    if by_runs:  # a program never answers prompts, so their requests are no runs
        runs = total.requests - used.get(_PROMPTS, Sum()).requests
    caps = _caps(kind, after, total, settings, runs)
    return next((name for name, is_exceeded in caps if is_exceeded), "")


def _caps(
    kind: str, after: Sum, total: Sum, settings: SpendSettings, runs: int
) -> Iterator[tuple[str, bool]]:
    """Yield the name of each setting, and whether the usage after the request exceeds its cap.

    ``after`` is the usage of the kind, ``total`` that of all kinds, ``runs`` how often a program
    ran.
    """
    share, requests = {
        "recall": (settings.recall_share, settings.recall_requests_per_day),
        "extract": (settings.extract_share, settings.extract_requests_per_day),
        "dream": (settings.dream_share, settings.dream_requests_per_day),
        "notes": (settings.notes_share, settings.notes_requests_per_day),
        "compact": (settings.compact_share, settings.compact_requests_per_day),
        "progress": (settings.progress_share, settings.progress_requests_per_day),
    }[kind]
    yield "spend.dollars_per_day", total.dollars > settings.dollars_per_day
    yield "spend.tokens_per_day", total.tokens > settings.tokens_per_day
    exceeds_share = (
        after.dollars > share * settings.dollars_per_day
        or after.tokens > share * settings.tokens_per_day
        or (runs != 0 and after.requests > share * settings.runs_per_day)
    )
    yield f"spend.{kind}_share", exceeds_share
    yield "spend.runs_per_day", runs > settings.runs_per_day
    yield f"spend.{kind}_requests_per_day", after.requests > requests
