"""A working directory that lies very deep."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.instructions.values import View
from tests.instructions.trees import InstructionTree, make_tree


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[InstructionTree]:
    """Make a project with a thousand folders in each other, which pytest could not remove."""
    made = make_tree(tmp_path)
    folder = made.repo
    for _ in range(1000):
        folder /= "d"
        folder.mkdir()
    yield made
    subprocess.run(["rm", "-rf", made.repo / "d"], check=True)


def test_a_thousand_folders_cost_little(tree: InstructionTree) -> None:
    """No view resolves the links of each of a thousand folders for each name that is not there."""
    tree.write(".git/HEAD", "ref: refs/heads/main\n")
    deep = "/".join(["d"] * 1000)
    tree.write("CLAUDE.md", "one\n")
    tree.write(f"{deep}/GEMINI.md", "two\n")
    begun = time.process_time()
    view = tree.resolve(tree.request(deep), View.UNION)
    assert time.process_time() - begun < 10  # it was 100
    assert view.loaded == ["CLAUDE.md", f"{deep}/GEMINI.md"]
