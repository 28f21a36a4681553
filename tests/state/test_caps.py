"""Whether a request may still be paid for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.core.settings import SpendSettings
from memd.state.caps import Sum, exceeded_cap

SETTINGS = SpendSettings(
    dollars_per_day=1.0, tokens_per_day=1000, recall_share=0.5, recall_requests_per_day=10
)


@pytest.mark.parametrize(
    ("of_kind", "others", "more", "cap"),
    [
        (Sum(), Sum(), Sum(1, dollars=0.5), ""),
        (Sum(), Sum(dollars=0.9), Sum(1, dollars=0.2), "spend.dollars_per_day"),
        (Sum(), Sum(input=900), Sum(1, output=101), "spend.tokens_per_day"),
        (Sum(dollars=0.4), Sum(), Sum(1, dollars=0.2), "spend.recall_share"),
        (Sum(cache_read=400), Sum(), Sum(1, input=101), "spend.recall_share"),
        (Sum(10), Sum(), Sum(1), "spend.recall_requests_per_day"),
    ],
)
def test_each_cap_says_its_name(of_kind: Sum, others: Sum, more: Sum, cap: str) -> None:
    """Money, tokens, the kind's share of both, and its requests stop a request in that order."""
    assert exceeded_cap("recall", {"recall": of_kind, "dream": others}, more, SETTINGS) == cap


SUMS = st.builds(
    Sum,
    st.integers(0, 20),
    st.integers(0, 600),
    st.integers(0, 600),
    st.integers(0, 600),
    st.integers(0, 600),
    st.floats(0, 1),
)


@given(SUMS, SUMS, SUMS)
def test_what_is_let_through_stays_under_every_cap(of_kind: Sum, others: Sum, more: Sum) -> None:
    """After a request that was let through, no sum is above its cap."""
    total = of_kind + others
    if exceeded_cap("recall", {"recall": of_kind, "dream": others}, more, SETTINGS) == "":
        assert (total + more).dollars <= SETTINGS.dollars_per_day
        assert (total + more).tokens <= SETTINGS.tokens_per_day
        assert (of_kind + more).dollars <= SETTINGS.dollars_per_day * SETTINGS.recall_share
        assert (of_kind + more).requests <= SETTINGS.recall_requests_per_day


@pytest.mark.parametrize(
    ("used", "cap"),
    [
        ({"extract": Sum(17), "dream": Sum(12), "recall": Sum(900)}, ""),
        ({"extract": Sum(18)}, "spend.extract_share"),
        ({"extract": Sum(17), "dream": Sum(13)}, "spend.runs_per_day"),
    ],
)
def test_the_runs_of_a_program_have_a_cap_of_their_own(used: dict[str, Sum], cap: str) -> None:
    """Of 30 runs a day learning has its share; what prompts asked another model does not count."""
    assert exceeded_cap("extract", used, Sum(1), SpendSettings(), by_runs=True) == cap
    assert exceeded_cap("extract", used, Sum(1), SpendSettings()) == ""


def test_lines_of_progress_have_a_twentieth_of_the_day() -> None:
    """Their share is 0.05 of the day's money, and their requests are bounded."""
    settings = SpendSettings()
    assert exceeded_cap("progress", {}, Sum(1, dollars=0.05), settings) == ""
    assert exceeded_cap("progress", {}, Sum(1, dollars=0.051), settings) == "spend.progress_share"
    many = {"progress": Sum(settings.progress_requests_per_day)}
    assert exceeded_cap("progress", many, Sum(1), settings) == "spend.progress_requests_per_day"
