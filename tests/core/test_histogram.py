"""Histograms of durations."""

from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.core.histogram import BOUNDS, Histogram, RequestTimes, quantile

SECONDS = st.lists(st.floats(0, 200), min_size=1, max_size=50)


@given(SECONDS, st.floats(0.01, 1.0))
def test_a_quantile_lies_where_the_value_was_counted(values: list[float], share: float) -> None:
    """It is off by no more than the width between two bounds, whatever was observed."""
    histogram = Histogram()
    for value in values:
        histogram.observe(value)
    assert sum(histogram.counts) == len(values)
    assert histogram.sum == pytest.approx(sum(values))
    found = quantile(histogram.counts, share)
    exact = sorted(values)[min(len(values) - 1, max(0, -int(-share * len(values) // 1) - 1))]
    assert found is not None
    place = bisect_left(BOUNDS, exact)
    low = BOUNDS[place - 1] if place else 0.0
    high = BOUNDS[place] if place < len(BOUNDS) else BOUNDS[-1]
    assert low <= found <= high


def test_a_bound_belongs_to_what_lies_below_it() -> None:
    """A value that is a bound is counted there, and one above all of them at the end."""
    histogram = Histogram()
    for value in (0.0, BOUNDS[0], BOUNDS[-1], BOUNDS[-1] + 1):
        histogram.observe(value)
    assert (histogram.counts[0], histogram.counts[-2:]) == (2, [1, 1])
    assert quantile([0] * len(histogram.counts), 0.5) is None


def test_errors_are_counted_beside_times() -> None:
    """Each request has its time, and one that failed the kind of its error."""
    times = RequestTimes()
    times.add("status", 0.5)
    times.add("status", 0.5, "busy")
    assert sum(times.seconds["status"].counts) == 2
    assert dict(times.errors) == {("status", "busy"): 1}
