"""What Codex CLI loads beyond the tree of marked files: its configuration and hostile trees."""

import os
from pathlib import Path

import pytest

from memd.instructions.codex import PROJECT_BYTES
from memd.instructions.loading import EXTERNAL
from memd.instructions.values import View
from tests.instructions.trees import InstructionTree, Seen, make_tree

CONFIG = "../../home/.codex/config.toml"
USER = "../../home/.codex/AGENTS.md"


@pytest.fixture
def tree(tmp_path: Path) -> InstructionTree:
    """Make a project with an empty repository."""
    made = make_tree(tmp_path)
    made.write(".git/HEAD", "ref: refs/heads/main\n")
    return made


def seen(tree: InstructionTree, cwd: str = "") -> Seen:
    """Return the view of a folder."""
    return tree.resolve(tree.request(cwd), View.CODEX)


def test_the_others_of_a_folder_have_a_reason(tree: InstructionTree) -> None:
    """One file stands for a folder, and those behind it are named."""
    tree.write(CONFIG, 'project_doc_fallback_filenames = ["CLAUDE.md"]\n')
    for name in ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md", "a/AGENTS.md", "a/CLAUDE.md"):
        tree.write(name)
    tree.write("b/AGENTS.override.md", "")
    tree.write("b/AGENTS.md")
    assert seen(tree, "a").loaded == ["AGENTS.override.md", "a/AGENTS.md"]
    assert list(seen(tree, "a").refused) == ["AGENTS.md", "CLAUDE.md", "a/CLAUDE.md"]
    view = seen(tree, "b")
    assert view.loaded == ["AGENTS.override.md"]
    assert view.refused["b/AGENTS.override.md"] == "it is empty"
    assert "in its place" in view.refused["b/AGENTS.md"]


@pytest.mark.parametrize(
    ("limit", "first", "second"),
    [
        (100, "abcdefgh", "  é\n"),
        (12, "abcdefgh", "  é"),
        (11, "abcdefgh", None),
        (9, "abcdefgh", None),
        (8, "abcdefgh", None),
        (3, "abc", None),
        (0, None, None),
    ],
)
def test_what_does_not_fit_is_cut(
    tree: InstructionTree, limit: int, first: str | None, second: str | None
) -> None:
    """The limit counts bytes of the project's files, and not the user's; what is cut is named."""
    tree.write(CONFIG, f"project_doc_max_bytes = {limit}\n")
    tree.write(USER, "u" * 100)
    tree.write("AGENTS.md", "abcdefgh")
    tree.write("a/AGENTS.md", "  é\n")
    resolution = seen(tree, "a").resolution
    texts = [resolution.texts.get(str(tree.repo / name)) for name in ("AGENTS.md", "a/AGENTS.md")]
    assert texts == [first, second]
    assert len(resolution.texts[str(tree.home / ".codex" / "AGENTS.md")]) == 100
    assert len(resolution.files) == 3
    assert bool(resolution.problems) == (limit in (12, 3))


def test_the_usual_limit_is_32_kib(tree: InstructionTree) -> None:
    """A file that is longer is cut after so many bytes."""
    tree.write("AGENTS.md", "x" * (PROJECT_BYTES + 1))
    assert [file.chars for file in seen(tree).resolution.files] == [PROJECT_BYTES]


@pytest.mark.parametrize(
    "config",
    [
        "project_doc_max_bytes = -1",
        "project_doc_max_bytes = true",
        'project_doc_max_bytes = "9"',
        'project_doc_fallback_filenames = "X.md"',
        "project_doc_fallback_filenames = [1]",
        "project_root_markers = 5",
        "= broken",
        "x = " + "[" * 100_000,
        "\ufffd\0",
        f"project_doc_max_bytes = {'1' * 5000}",
    ],
)
def test_a_configuration_that_cannot_be_read_is_named(tree: InstructionTree, config: str) -> None:
    """The usual values count then, and a problem names the file."""
    tree.write(CONFIG, config)
    tree.write("AGENTS.md")
    view = seen(tree)
    assert view.loaded == ["AGENTS.md"]
    assert ["config.toml" in problem for problem in view.resolution.problems] == [True]


def test_the_root_is_the_nearest_folder_with_a_marker(tree: InstructionTree) -> None:
    """A ``.git`` below counts more than one above, and the configuration may name others."""
    for name in ("../AGENTS.md", "AGENTS.md", "a/AGENTS.md", "a/b/AGENTS.md"):
        tree.write(name)
    tree.write("a/.git", "gitdir: elsewhere\n")
    assert seen(tree, "a/b").loaded == ["a/AGENTS.md", "a/b/AGENTS.md"]
    tree.write("../.top")
    tree.write(CONFIG, 'project_root_markers = [".top"]\n')
    assert len(seen(tree, "a/b").loaded) == 4
    tree.write(CONFIG, "project_root_markers = []\n")
    assert seen(tree, "a/b").loaded == ["a/b/AGENTS.md"]


def test_hostile_files_are_refused(tree: InstructionTree) -> None:
    """Links out of the project, FIFOs, folders and large files are no instructions."""
    tree.write("../secret.md", "secret")
    tree.write("../../home/.ssh/config", "Host *")
    for number, target in enumerate(("../../secret.md", "../../../home/.ssh/config")):
        (tree.repo / str(number)).mkdir()
        (tree.repo / str(number) / "AGENTS.md").symlink_to(target)
    (tree.repo / "2").mkdir()
    os.mkfifo(tree.repo / "2" / "AGENTS.md")
    tree.write("3/AGENTS.md", b"x" * (1024 * 1024 + 1))
    tree.write("4/AGENTS.md/x")
    reasons = [seen(tree, str(number)) for number in range(5)]
    assert not any(view.loaded for view in reasons)
    assert list(reasons[0].refused.values()) == [EXTERNAL]
    assert all(len(view.refused) == 1 for view in reasons)


def test_many_folders_are_looked_at(tree: InstructionTree) -> None:
    """A working directory two hundred folders deep has the files of all of them."""
    deep = "/".join(["d"] * 200)
    tree.write("AGENTS.md")
    tree.write(f"{deep}/AGENTS.md")
    assert seen(tree, deep).loaded == ["AGENTS.md", f"{deep}/AGENTS.md"]
