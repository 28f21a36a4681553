"""What the last day cost, beside the books."""

from pathlib import Path

import pytest

from memd.state.caps import Sum
from memd.state.tally import DaySpent, Tally

DAY = DaySpent("2026-03-05", {"recall": Sum(1, 2, 3, 4, 5, 0.25), "extract": Sum(), "dream": Sum()})


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


def test_a_file_of_an_earlier_memd_counts(tmp_path: Path) -> None:
    """A kind of work that it does not know has cost nothing, and the others what it says."""
    (tmp_path / "t").write_text('{"day": "2026-03-05", "kinds": {"extract": [1,2,3,4,5,0.25]}}')
    spent = Tally(str(tmp_path / "t")).read()
    assert spent.day == "2026-03-05"
    assert spent.kinds["extract"] == Sum(1, 2, 3, 4, 5, 0.25)
    assert spent.kinds["notes"] == Sum()
