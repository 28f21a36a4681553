"""The model port's values."""

from memd.model.port import Usage


def test_usage_adds_up() -> None:
    """The usage of a run is the sum of its replies, member by member."""
    assert Usage(1, 2, 3, 4) + Usage(10, 20, 30, 40) == Usage(11, 22, 33, 44)
