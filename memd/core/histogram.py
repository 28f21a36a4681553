"""Durations, counted between fixed bounds.

A daemon that runs for a year has one small list for each method, and the difference of two readings
of it is what happened in between.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

# Seconds, from a hello to a request that waits for a model. The last count is of longer ones.
BOUNDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1),
    *(0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
OTHER = "other"  # the label of a method that memd does not have


class Histogram:
    """How many values were at most each bound and above the one before, and their sum."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)  # the last one is of values above all bounds
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(BOUNDS, value)] += 1
        self.sum += value


def quantile(counts: Sequence[int], share: float, bounds: Sequence[float] = BOUNDS) -> float | None:
    """Return an estimate of the value below which a share of all values lies.

    Values between two bounds are taken as evenly spread; for values above the last bound that bound
    is returned. ``None`` where no value was counted.
    """
    remaining = sum(counts) * share  # values below the quantile that are not passed yet
    if not remaining:
        return None
    low = 0.0
    for count, high in zip(counts, bounds, strict=False):  # the last count has no bound
        if count and remaining <= count:
            return low + (high - low) * remaining / count
        remaining -= count
        low = high
    return low


class RequestTimes:
    """How long each method took to answer, and how often it failed, by the kind of the error.

    The caller passes only memd's own methods and ``OTHER``, so the number of entries is bounded.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, Histogram] = {}  # by method
        self.errors: Counter[tuple[str, str]] = Counter()  # by method and kind of error

    def add(self, method: str, seconds: float, error: str = "") -> None:
        """Count one request; ``error`` is the kind of its error, "" where it has none."""
        histogram = self.seconds.get(method)
        if histogram is None:
            histogram = self.seconds[method] = Histogram()
        histogram.observe(seconds)
        if error:
            self.errors[method, error] += 1


class CacheHits:
    """Counts of a cache's lookups and hits. Threads that count at the same time may lose one."""

    __slots__ = ("hits", "lookups")

    def __init__(self) -> None:
        self.hits = self.lookups = 0

    def add(self, *, hit: bool) -> None:
        """Count one lookup."""
        self.lookups += 1
        self.hits += hit
