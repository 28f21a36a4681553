"""What Claude Code loads, in its order."""

from pathlib import Path

import pytest

from tests.instructions.trees import InstructionTree, make_tree


@pytest.fixture
def tree(tmp_path: Path) -> InstructionTree:
    """Make an empty tree."""
    return make_tree(tmp_path)


def test_files_load_from_the_machine_to_the_working_directory(tree: InstructionTree) -> None:
    """The machine's file comes first, the user's next, the project's from the top down."""
    names = [
        "../../managed/CLAUDE.md",
        "../../home/.claude/CLAUDE.md",
        "../../home/.claude/rules/a.md",
        "../CLAUDE.md",
        "../CLAUDE.local.md",
        "CLAUDE.md",
        ".claude/CLAUDE.md",
        ".claude/rules/b.md",
        ".claude/rules/a/a.md",
        "CLAUDE.local.md",
        "sub/CLAUDE.md",
    ]
    for name in names:
        tree.write(name, f"{name}\n")
    assert tree.resolve(tree.request("sub")).loaded == names
    assert tree.resolve().loaded == names[:-1]
