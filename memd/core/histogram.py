"""How long things took, counted between fixed bounds.

A daemon that runs for a year keeps one small list for each method, and two readings of it tell what
happened in between.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

# Seconds, from a hello to a request that waits for a model. The last count is for what took longer.
BOUNDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1),
    *(0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
OTHER = "other"  # the label of whatever is not in a table of memd


class Histogram:
    """How many values were at most each bound and above the one before, and their sum."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(BOUNDS, value)] += 1
        self.sum += value


def quantile(counts: Sequence[int], share: float, bounds: Sequence[float] = BOUNDS) -> float | None:
    """Return about the value below which a share of all values lies; ``None`` where there is none.

    Between two bounds values count as evenly spread; what is above the last one is at least that.
    """
    wanted = sum(counts) * share
    if not wanted:
        return None
    low = 0.0
    for count, high in zip(counts, bounds, strict=False):
        if count and wanted <= count:
            return low + (high - low) * wanted / count
        wanted -= count
        low = high
    return low


class RequestTimes:
    """How long each method took to answer, and how often it failed, by the kind of the error.

    Methods are those of the table, and ``OTHER``; whoever counts sees to that.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, Histogram] = {}
        self.errors: Counter[tuple[str, str]] = Counter()

    def add(self, method: str, seconds: float, error: str = "") -> None:
        """Count one request; ``error`` is the kind of its error, "" where it has none."""
        histogram = self.seconds.get(method)
        if histogram is None:
            histogram = self.seconds[method] = Histogram()
        histogram.observe(seconds)
        if error:
            self.errors[method, error] += 1


class CacheHits:
    """How often a cache was asked and had the answer. Threads that count at once may lose one."""

    __slots__ = ("hits", "lookups")

    def __init__(self) -> None:
        self.hits = self.lookups = 0

    def add(self, *, hit: bool) -> None:
        """Count one lookup."""
        self.lookups += 1
        self.hits += hit
