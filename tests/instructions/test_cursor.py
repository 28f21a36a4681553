"""What Cursor loads, as its maker documents it."""

import os
from pathlib import Path

import pytest

from memd.instructions.loading import EXTERNAL
from memd.instructions.values import GLOBS, LISTED_FILES, View
from tests.instructions.trees import InstructionTree, Seen, make_tree

RULES = ".cursor/rules"


@pytest.fixture
def tree(tmp_path: Path) -> InstructionTree:
    """Make a project with an empty repository."""
    made = make_tree(tmp_path)
    made.write(".git/HEAD", "ref: refs/heads/main\n")
    return made


def seen(tree: InstructionTree, cwd: str = "", *touched: str) -> Seen:
    """Return the view of a folder."""
    return tree.resolve(tree.request(cwd, touched), View.CURSOR)


def test_files_load_from_the_root_down_and_below_when_touched(tree: InstructionTree) -> None:
    """Each folder has its AGENTS.md and then its rules; one below counts with a file in it."""
    always = "---\nalwaysApply: true\n---\nText.\n"
    names = ["AGENTS.md", f"{RULES}/b.mdc", f"{RULES}/a/c.mdc", "a/AGENTS.md", f"a/{RULES}/d.mdc"]
    for name in ("../AGENTS.md", *names, "a/b/AGENTS.md", "c/AGENTS.md", f"{RULES}/note.md"):
        tree.write(name, always)
    assert seen(tree).loaded == names[:3]
    assert seen(tree, "a").loaded == names
    assert seen(tree, "", "a/b/x.py", "nowhere/x", "../x").loaded == [*names, "a/b/AGENTS.md"]
    assert seen(tree, "a", "../c/x.py").loaded == [*names, "c/AGENTS.md"]


@pytest.mark.parametrize(
    ("head", "fits", "why_not"),
    [
        ("alwaysApply: true", ("",), ""),
        ("alwaysApply: true\nglobs: nope/*", ("",), ""),
        ("globs: *.ts", ("a.ts", "n/a.ts"), "globs"),
        ("globs: src/**/*.ts, docs/*", ("src/n/a.ts", "docs/x"), "globs"),
        ("globs:\n  - src/*.ts\n  - '*.md'\nalwaysApply: false", ("src/a.ts", "n/x.md"), "globs"),
        ('globs: ["src/*.ts"]\ndescription: when', ("src/a.ts",), "globs"),
        ("globs: **/*.{ts,tsx}", ("n/a.tsx",), "globs"),
        ("globs: **", ("anything",), "globs"),
        ("description: when: it is needed\nglobs:\nalwaysApply: false", (), "description"),
        ("globs:\nalwaysApply: false", (), "a person"),
        ("alwaysApply: yes please", (), "a person"),
        ("", (), "person names it"),
        ("[", (), "cannot be read"),
        ("globs: " + "x" * 501, (), "none of its globs"),
    ],
)
def test_when_a_rule_loads(
    tree: InstructionTree, head: str, fits: tuple[str, ...], why_not: str
) -> None:
    """Always, with a file that fits, or not by itself, which is said."""
    tree.write(f"{RULES}/r.mdc", f"---\n{head}\n---\nText.\n" if head else "Text.\n")
    view = seen(tree)
    assert (view.loaded == [f"{RULES}/r.mdc"]) == (fits == ("",))
    assert why_not in view.refused.get(f"{RULES}/r.mdc", "")
    for path in fits:
        assert seen(tree, "", path or "x").loaded == [f"{RULES}/r.mdc"]
    assert seen(tree, "", "other/none.zz").loaded == view.loaded or "**" in head
    assert bool(view.resolution.problems) == (why_not in ("cannot be read", "none of its globs"))


def test_globs_are_relative_to_the_folder_of_the_rules(tree: InstructionTree) -> None:
    """A rule below matches what lies beside its ``.cursor``, and its text has no head."""
    tree.write(f"a/{RULES}/r.mdc", "---\nglobs: src/*.ts\n---\nText.\n")
    assert seen(tree, "a", "../src/x.ts").loaded == []
    view = seen(tree, "", "a/src/x.ts")
    assert list(view.resolution.texts.values()) == ["Text.\n"]
    assert [file.condition for file in view.resolution.files] == [("src/*.ts",)]


def test_hostile_files_are_refused(tree: InstructionTree) -> None:
    """Links out of the project, FIFOs, large files and circles of folders load nothing."""
    always = "---\nalwaysApply: true\n---\nText.\n"
    tree.write("../outside/r.mdc", always)
    tree.write("../../home/.ssh/config", always)
    tree.write(f"{RULES}/large.mdc", always + "x" * 1024 * 1024)
    tree.write(f"{RULES}/empty.mdc", "---\nalwaysApply: true\n---\n \n")
    folder = tree.repo / RULES
    os.mkfifo(folder / "fifo.mdc")
    (folder / "out").symlink_to("../../../outside")
    (folder / "one.mdc").symlink_to("../../../outside/r.mdc")
    (folder / "key.mdc").symlink_to(tree.home / ".ssh" / "config")
    (folder / "circle").symlink_to(".")
    (tree.repo / "AGENTS.md").symlink_to("../outside/r.mdc")
    view = seen(tree)
    assert view.loaded == []
    assert view.refused["AGENTS.md"] == EXTERNAL
    assert len(view.refused) == 5
    assert any("leads out" in problem for problem in view.resolution.problems)


def test_many_rules_and_folders_are_bounded(tree: InstructionTree) -> None:
    """Of a thousand folders with three rules each as many are listed as a view lists."""
    for number in range(1000):
        for name in "abc":
            tree.write(f"{RULES}/{number}/{name}.mdc", "---\nglobs: '*.ts'\n---\nText.\n")
    view = seen(tree, "", "x.ts")
    assert len(view.resolution.files) == LISTED_FILES
    assert len(view.loaded) == GLOBS
    assert view.resolution.problems
