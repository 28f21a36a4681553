"""Whether a request may still be paid for: caps against what was used today. Pure.

A cap holds for the day, a share of it for one kind of work. What a request may cost at most is
counted before it is sent, so that a cap is not passed but by what a server counts otherwise.
"""

import operator
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass

from memd.core.settings import SpendSettings

KINDS = ("recall", "extract", "dream", "notes", "compact", "progress")
_PROMPTS = "recall"  # no program answers these: a person waits


@dataclass(frozen=True, slots=True)
class Sum:
    """What was used: requests, tokens of each sort, and US dollars."""

    requests: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_created: int = 0
    dollars: float = 0.0

    @property
    def tokens(self) -> int:
        """All tokens, the cached ones too."""
        return self.input + self.output + self.cache_read + self.cache_created

    def __add__(self, other: "Sum") -> "Sum":
        """Return both together."""
        return Sum(*map(operator.add, astuple(self), astuple(other)))


def reached(
    kind: str, used: Mapping[str, Sum], more: Sum, settings: SpendSettings, *, by_runs: bool = False
) -> str:
    """Return the name of the first option that has no room for ``more``; empty when all have.

    ``used`` is what was used today by kind. ``by_runs``: a program answers, whose runs count.
    """
    after, total = used.get(kind, Sum()) + more, sum(used.values(), Sum()) + more
    runs = total.requests - used.get(_PROMPTS, Sum()).requests if by_runs else 0
    caps = _caps(kind, after, total, settings, runs)
    return next((name for name, full in caps if full), "")


def _caps(
    kind: str, after: Sum, total: Sum, settings: SpendSettings, runs: int
) -> Iterator[tuple[str, bool]]:
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
    yield (
        f"spend.{kind}_share",
        (
            after.dollars > share * settings.dollars_per_day
            or after.tokens > share * settings.tokens_per_day
            or (bool(runs) and after.requests > share * settings.runs_per_day)
        ),
    )
    yield "spend.runs_per_day", runs > settings.runs_per_day
    yield f"spend.{kind}_requests_per_day", after.requests > requests
