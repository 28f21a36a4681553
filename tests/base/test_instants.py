"""Moments as programs and people write them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base.instants import no_time, spoken, written

NOW = datetime(2026, 11, 21, 10, 30, tzinfo=UTC).timestamp()
EAST = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-11-21T10:00:00Z", "2026-11-21T10:00:00+00:00"),
        ("2026-11-21 10:00", "2026-11-21T10:00:00+02:00"),
        ("2026-11-21T10:00:00.250-05:00", "2026-11-21T10:00:00.250-05:00"),
        ("2026-11-21", "2026-11-21T00:00:00+02:00"),
        (" 1795257000.5 ", "2026-11-21T10:30:00.500+00:00"),
    ],
)
def test_programs_write_iso_or_seconds(text: str, wanted: str) -> None:
    """A zone that is written wins; without one it is the caller's."""
    assert written(text, EAST) == datetime.fromisoformat(wanted).timestamp()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("now", NOW),
        ("Today", NOW - 12.5 * 3600),
        ("yesterday", NOW - 36.5 * 3600),
        ("2 hours  ago", NOW - 7200),
        ("a week ago", NOW - 7 * 86400),
        ("an hour ago", NOW - 3600),
        ("90s", NOW - 90),
        ("3d", NOW - 3 * 86400),
        ("15 mins ago", NOW - 900),
        ("2026-11-21 10:00", NOW - 9000),
        ("3 fortnights ago", None),
        ("5ms", None),
        ("5 ss", None),
        ("999999 weeks ago", None),
    ],
)
def test_people_say_when(text: str, wanted: float | None) -> None:
    """Days begin at midnight where the person is; distances count back from now."""
    assert spoken(text, NOW, EAST) == wanted


@given(st.text(max_size=30))
def test_no_text_is_too_much(text: str) -> None:
    """Whatever is written, the answer is a time with an ISO form or none."""
    results = spoken(text, NOW, UTC)
    assert results is None or datetime.fromtimestamp(results, UTC).year <= 9999


def test_the_error_names_the_parameter() -> None:
    """A caller reads which parameter it was, and what times look like."""
    error = no_time("since", "x" * 99)
    assert error.sentence == f"since: {'x' * 40!r} is no time"
    assert "ISO 8601" in error.hint
