"""Read, Grep and Glob."""

from pathlib import Path
from typing import Any

import pytest

from tests.agent.home import NOW, Home, call, never


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home."""
    home = Home(tmp_path)
    (home.memory / "n.md").write_text("".join(f"l{n}\n" for n in range(1, 6)), encoding="utf-8")
    (home.memory / "empty.md").touch()
    (home.project / "long.txt").write_text("x\n" * 2500, encoding="utf-8")
    return home


def test_reading_numbers_lines(home: Home) -> None:
    """Lines have their numbers; offset and limit choose, and what follows is told."""
    with home.workspace() as workspace:
        assert call(workspace, "Read", file_path="n.md").text.split("\n")[0] == "     1\tl1"
        part = call(workspace, "Read", file_path="n.md", offset=2, limit=2).text
        assert part == "     2\tl2\n     3\tl3\n[… there is more; read on with offset]"
        assert (
            call(workspace, "Read", file_path="n.md", offset=9).text
            == "(it has fewer than 9 lines)"
        )
        assert call(workspace, "Read", file_path="empty.md").text == "(the file is empty)"
        long = call(workspace, "Read", file_path=f"{home.project}/long.txt").text
        assert long.endswith("read on with offset]")
        last = call(workspace, "Read", file_path=f"{home.project}/long.txt", offset=2500).text
        assert last == "  2500\tx"
        assert call(workspace, "Read", file_path="sub").fault == "failed"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"pattern": "beta"}, "a.md\nsub/b.md"),
        ({"pattern": "BETA", "-i": True, "output_mode": "count"}, "a.md:1\nsub/b.md:1"),
        ({"pattern": "l[24]", "output_mode": "content"}, "n.md:2:l2\nn.md:4:l4"),
        ({"pattern": "l2", "output_mode": "content", "-n": False}, "n.md:l2"),
        ({"pattern": "l[15]", "output_mode": "content", "-A": 1, "-B": 1},
         "n.md:1:l1\nn.md-2-l2\n--\nn.md-4-l4\nn.md:5:l5"),
        ({"pattern": "l1", "output_mode": "content", "context": 1}, "n.md:1:l1\nn.md-2-l2"),
        ({"pattern": "beta", "glob": "b*.md"}, "sub/b.md"),
        ({"pattern": "beta", "glob": "sub/**"}, "sub/b.md"),
        ({"pattern": "beta", "type": "md"}, "a.md\nsub/b.md"),
        ({"pattern": "beta", "type": "py"}, "(nothing found)"),
        ({"pattern": "beta", "type": "rb"}, "(nothing found)"),
        ({"pattern": "l", "path": "n.md", "output_mode": "content", "head_limit": 1}, "n.md:1:l1"),
        ({"pattern": "l", "path": "n.md", "output_mode": "content", "offset": 4}, "n.md:5:l5"),
        ({"pattern": "beta", "path": "sub"}, "sub/b.md"),
        ({"pattern": "absent", "output_mode": "count"}, "(nothing found)"),
    ],
)  # fmt: skip
def test_searching(home: Home, given: dict[str, Any], text: str) -> None:
    """The search shows what its options say, with names that can be read."""
    with home.workspace() as workspace:
        assert workspace.call("Grep", given, NOW, never).text == text
