"""Whether a request may still be paid for."""

import pytest

from memd.base.settings import SpendSettings
from memd.state.spend import Sum, exceeded_cap

SETTINGS = SpendSettings(dollars_per_day=1.0, requests_per_day=10)


@pytest.mark.parametrize(
    ("used", "more", "cap"),
    [
        ({"recall": Sum(4, dollars=0.5), "dream": Sum(5, dollars=0.4)}, Sum(1, dollars=0.1), ""),
        ({"dream": Sum(1, dollars=0.9)}, Sum(1, dollars=0.2), "spend.dollars_per_day"),
        ({"recall": Sum(4), "dream": Sum(6)}, Sum(1), "spend.requests_per_day"),
    ],
)
def test_each_cap_holds_for_all_kinds(used: dict[str, Sum], more: Sum, cap: str) -> None:
    """Money and requests of all kinds together stop a request, whatever its own kind."""
    assert {exceeded_cap(kind, used, more, SETTINGS) for kind in ("recall", "notes")} == {cap}


@pytest.mark.parametrize(
    ("used", "cap"),
    [
        ({"extract": Sum(17), "dream": Sum(12), "recall": Sum(900)}, ""),
        ({"extract": Sum(17), "dream": Sum(13)}, "spend.runs_per_day"),
    ],
)
def test_the_runs_of_a_program_have_a_cap_of_their_own(used: dict[str, Sum], cap: str) -> None:
    """What prompts asked another model is no run, and prompts go on."""
    assert exceeded_cap("extract", used, Sum(1), SpendSettings(), by_runs=True) == cap
    assert exceeded_cap("extract", used, Sum(1), SpendSettings()) == ""
    assert exceeded_cap("recall", used, Sum(1), SpendSettings(), by_runs=True) == ""
