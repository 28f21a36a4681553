"""What the last day cost, beside the books."""

import os
from pathlib import Path

import pytest

from memd.state.caps import Sum
from memd.state.tally import DaySpent, Tally

DAY = DaySpent("2026-03-05", {"recall": Sum(1, 2, 3, 4, 5, 0.25), "extract": Sum(), "dream": Sum()})


def test_what_was_told_is_read_again(tmp_path: Path) -> None:
    """The file holds the day and its sums, is the user's alone, and replaces the one before."""
    path = tmp_path / "memd" / "spent.json"
    tally = Tally(str(path))
    assert tally.read() == DaySpent()
    tally.write(DaySpent("2026-03-04"))
    tally.write(DAY)
    assert tally.read() == DAY
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert os.listdir(path.parent) == ["spent.json"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 4000,
        '{"day": 1, "kinds": {"recall": [], "extract": [], "dream": []}}',
        '{"day": "x", "kinds": {"recall": [1, 2]}}',
        '{"day": "x", "kinds": {"recall": [1,1,1,1,-1,0], "extract": [], "dream": []}}',
        '{"day": "x", "kinds": {"recall": [1,1,1,1,1,NaN], "extract": [], "dream": []}}',
        '{"day": "x", "kinds": {"recall": [1,1,1,1,1,"1"], "extract": [], "dream": []}}',
        '{"day": "x", "kinds": {"recall": null}}',
    ],
)
def test_a_damaged_file_says_nothing(tmp_path: Path, text: str) -> None:
    """What memd did not write is no witness."""
    (tmp_path / "t").write_text(text)
    assert Tally(str(tmp_path / "t")).read() == DaySpent()


def test_a_place_that_cannot_be_written_is_left_alone(tmp_path: Path) -> None:
    """Nothing is raised where there is no place for the file."""
    (tmp_path / "file").touch()
    tally = Tally(str(tmp_path / "file" / "spent.json"))
    tally.write(DAY)
    assert tally.read() == DaySpent()
