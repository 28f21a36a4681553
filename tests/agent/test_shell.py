"""What the commands share."""

import pytest

from memd.agent import shell


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0"),
        (1023, "1023"),
        (1024, "1.0K"),
        (1536, "1.5K"),
        (5 << 20, "5.0M"),
        (1 << 60, "1024.0P"),
    ],
)
def test_sizes_are_short(size: int, shown: str) -> None:
    """A size has its unit from a thousand bytes on."""
    assert shell.human(size) == shown


def test_times_are_utc_and_never_fail() -> None:
    """A file's time is shown in UTC; an impossible one is the nearest possible."""
    assert shell.when(1_760_000_000 * 10**9) == "2025-10-09 08:53"
    assert shell.exactly(0) == "1970-01-01 00:00:00 +0000"
    assert shell.when(-5) == "1970-01-01 00:00"
    assert shell.when(10**30) == "9999-12-31 23:59"
