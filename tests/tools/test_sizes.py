"""The sizes of rooms."""

from pathlib import Path

import pytest

from tools import sizes
from tools.sizes import Size


def test_rooms_are_counted_with_all_that_lies_in_them(tmp_path: Path) -> None:
    """Lines, modules and classes count, also in folders of a room; what is no room does not."""
    (tmp_path / "jobs" / "inner").mkdir(parents=True)
    (tmp_path / "jobs" / "__init__.py").write_text('"""Jobs."""\n')
    (tmp_path / "jobs" / "inner" / "a.py").write_text("class A:\n    class B:\n        x = 1\n")
    (tmp_path / "notes").mkdir()
    (tmp_path / "__init__.py").touch()
    assert sizes.sizes(tmp_path) == (Size("jobs", 4, 2, 2),)
    assert sizes.table(tmp_path).splitlines()[2:] == [
        "| jobs | 4 | 900 | 2 | 2 |",
        "| all | 4 |  | 3 | 2 |",
    ]


def test_the_program_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Every room of the program has its plan."""
    assert sizes.main() == 0
    rooms = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:-1]]
    assert [room[0] for room in rooms if not room[2]] == []
