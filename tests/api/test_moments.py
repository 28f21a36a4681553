"""Times and versions as parameters."""

import pytest

from memd.api.moments import moment, seconds
from memd.core.instants import NotATimeError


def test_times_are_texts_or_numbers() -> None:
    """ISO 8601 without a zone is UTC; a number is seconds; nothing is nothing."""
    assert seconds("since", "1970-01-01 00:01") == seconds("since", 60.0) == 60.0
    assert seconds("since", 1_772_539_200.25) == 1_772_539_200.25
    assert seconds("since", None) is None


@pytest.mark.parametrize("value", ["", "today", "c12", -1.0, 1e300, float("nan")])
def test_what_is_no_time_is_named(value: str | float) -> None:
    """An error says which parameter it was."""
    with pytest.raises(NotATimeError) as caught:
        seconds("since", value)
    assert caught.value.facts == {"name": "since"}


def test_a_version_is_a_change_or_a_time() -> None:
    """What looks like the id of a change is one."""
    assert moment("at", "c12") == "c12"
    assert moment("at", "60") == 60.0
    assert moment("at", None) is None
    with pytest.raises(NotATimeError):
        moment("at", "c")
