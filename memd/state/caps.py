"""Whether a request may still be paid for: caps against what was used today. Pure.

A cap holds for the day, a share of it for one kind of work. What a request may cost at most is
counted before it is sent, so that a cap is not passed but by what a server counts otherwise.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from memd.core.settings import SpendSettings

KINDS = ("recall", "extract", "dream")


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
        return Sum(
            self.requests + other.requests,
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_created + other.cache_created,
            self.dollars + other.dollars,
        )


def reached(kind: str, of_kind: Sum, of_all: Sum, more: Sum, settings: SpendSettings) -> str:
    """Return the name of the first option that has no room for ``more``; empty when all have.

    ``of_kind`` and ``of_all`` are what was used today for this kind and for everything.
    """
    after, total = of_kind + more, of_all + more
    return next((name for name, full in _caps(kind, after, total, settings) if full), "")


def _caps(kind: str, after: Sum, total: Sum, settings: SpendSettings) -> Iterator[tuple[str, bool]]:
    share = {
        "recall": settings.recall_share,
        "extract": settings.extract_share,
        "dream": settings.dream_share,
    }[kind]
    requests = {
        "recall": settings.recall_requests_per_day,
        "extract": settings.extract_requests_per_day,
        "dream": settings.dream_requests_per_day,
    }[kind]
    yield "spend.dollars_per_day", total.dollars > settings.dollars_per_day
    yield "spend.tokens_per_day", total.tokens > settings.tokens_per_day
    yield (
        f"spend.{kind}_share",
        (
            after.dollars > share * settings.dollars_per_day
            or after.tokens > share * settings.tokens_per_day
        ),
    )
    yield f"spend.{kind}_requests_per_day", after.requests > requests
