"""What Gemini CLI loads beyond the tree of marked files: settings, bounds and hostile trees."""

import json
import os
import time
from pathlib import Path

import pytest

from memd.instructions.gemini import IMPORTS
from memd.instructions.loading import EXTERNAL
from memd.instructions.values import View
from tests.instructions.trees import InstructionTree, Seen, make_tree

SETTINGS = "../../home/.gemini/settings.json"


@pytest.fixture
def tree(tmp_path: Path) -> InstructionTree:
    """Make a project with an empty repository."""
    made = make_tree(tmp_path)
    made.write(".git/HEAD", "ref: refs/heads/main\n")
    return made


def seen(tree: InstructionTree, cwd: str = "", *touched: str, external: bool = False) -> Seen:
    """Return the view of a folder."""
    return tree.resolve(tree.request(cwd, touched, external=external), View.GEMINI)


def test_an_import_stands_in_the_text_that_names_it(tree: InstructionTree) -> None:
    """The including file has the whole text, and the import is listed without one of its own."""
    tree.write("GEMINI.md", "before\n@a.md\nafter\n")
    tree.write("a.md", "inner")
    resolution = seen(tree).resolution
    top, inner = resolution.files
    assert resolution.texts[top.path] == (
        "before\n<!-- Imported from: a.md -->\ninner\n<!-- End of import from: a.md -->\nafter\n"
    )
    assert (resolution.texts[inner.path], inner.chars, inner.included_by) == ("", 0, top.path)


def test_what_is_not_imported_has_a_reason(tree: InstructionTree) -> None:
    """Absent files, folders, those outside, addresses and those too deep are listed with it."""
    tree.write("../out.md")
    tree.write("folder/x.md")
    tree.write("GEMINI.md", "@absent @folder @../out.md @https://a.org/b @f1.md")
    for number in range(1, 7):
        tree.write(f"f{number}.md", f"{number} @f{number + 1}.md")
    view = seen(tree, external=True)
    assert view.loaded == ["GEMINI.md", *(f"f{number}.md" for number in range(1, 6))]
    assert sorted(view.refused) == ["../out.md", "absent", "f6.md", "folder", "https:/a.org/b"]
    assert all(view.refused.values())
    assert "5 files deep" in view.refused["f6.md"]


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ('{"context": {"fileName": "A.md"}}', ["A.md", "GEMINI.md"]),
        (
            '{"context": {"fileName": ["B.md", " A.md ", "B.md", ""]}}',
            ["A.md", "B.md", "GEMINI.md"],
        ),
        ('// x\n{"context": /* "y */ {"fileName": "in/C.md"}}', ["GEMINI.md", "in/C.md"]),
        ('{"context": {"fileName": ["../out.md", "/etc/hostname", ".."]}}', ["GEMINI.md"]),
        ('{"context": {"fileName": 5}}', ["GEMINI.md"]),
        ('{"context": {"fileName": ["A.md", 5]}}', ["GEMINI.md"]),
        (r'{"context": {"fileName": ["\udcff.md", "\ud800"]}}', ["GEMINI.md"]),
    ],
)
def test_names_of_settings_count(tree: InstructionTree, settings: str, names: list[str]) -> None:
    """The user's settings and those of the working directory name files, none outside of it."""
    for name in ("A.md", "B.md", "GEMINI.md", "in/C.md", "../GEMINI.md", "../out.md", "../.top"):
        tree.write(name)
    tree.write("\udcff.md")
    for place in (SETTINGS, ".gemini/settings.json"):
        path = tree.write(place, settings)
        assert seen(tree).loaded == names
        path.unlink()


@pytest.mark.parametrize("settings", ["{", "[]", "5", '{"context": 5}', "[" * 100_000, "\0"])
def test_settings_that_cannot_be_read_are_named(tree: InstructionTree, settings: str) -> None:
    """They count for nothing, and a problem names the file."""
    tree.write("GEMINI.md")
    tree.write(SETTINGS, settings)
    view = seen(tree)
    assert view.loaded == ["GEMINI.md"]
    assert [".gemini/settings.json" in problem for problem in view.resolution.problems] == [True]


@pytest.mark.parametrize(
    "settings", ["/*" * 500_000, '"\\' * 500_000, '"' * 900_000, "//" * 500_000]
)
def test_settings_are_read_in_linear_time(tree: InstructionTree, settings: str) -> None:
    """A megabyte of comments or texts without an end costs no more than its length."""
    tree.write(".gemini/settings.json", settings)
    begun = time.process_time()
    seen(tree)
    assert time.process_time() - begun < 2


def test_hostile_files_are_refused(tree: InstructionTree) -> None:
    """Links out, keys, FIFOs, large files and names with control characters have reasons."""
    home = tree.write("../../home/.ssh/id_ed25519", "key")
    tree.write("../secret.md", "secret")
    os.mkfifo(tree.repo / "fifo.md")
    tree.write("large.md", b"x" * (1024 * 1024 + 1))
    tree.write("control\x1b.md")
    (tree.repo / "key.md").symlink_to(home)
    (tree.repo / "out.md").symlink_to("../secret.md")
    (tree.repo / "sub").mkdir()
    (tree.repo / "sub" / "GEMINI.md").symlink_to(tree.write("../secrets.md", "secret"))
    tree.write("GEMINI.md", "@key.md @out.md @fifo.md @large.md @control\x1b.md @/dev/zero")
    view = seen(tree, "sub")
    assert view.loaded == ["GEMINI.md", "control\x1b.md"]
    assert len(view.refused) == 6
    assert view.refused["sub/GEMINI.md"] == EXTERNAL
    assert view.resolution.external == (str(tree.repo / "sub/GEMINI.md"),)
    assert not any("secret" in text or "key" in text.replace("key.md", "")
                   for text in view.resolution.texts.values())  # fmt: skip


def test_an_import_bomb_ends(tree: InstructionTree) -> None:
    """Files that all import each other are expanded up to a bound, which is a problem."""
    names = [f"f{number}.md" for number in range(40)]
    everything = " ".join(f"@{name}" for name in names)
    for name in ("GEMINI.md", *names):
        tree.write(name, everything)
    view = seen(tree)
    text = view.resolution.texts[str(tree.repo / "GEMINI.md")]
    assert text.count("<!-- Imported from") <= IMPORTS
    assert any("not expanded to its end" in problem for problem in view.resolution.problems)


def test_a_touched_file_brings_those_of_its_folders(tree: InstructionTree) -> None:
    """Each folder on the way to it is looked at once, and none for a file elsewhere."""
    for name in ("GEMINI.md", "a/GEMINI.md", "a/b/GEMINI.md", "c/GEMINI.md", "../d/GEMINI.md"):
        tree.write(name)
    touched = ("a/b/x.py", "a/y.py", "../d/z.py", "a/b/x.py", "nowhere/x.py")
    assert seen(tree, "", *touched).loaded == ["GEMINI.md", "a/GEMINI.md", "a/b/GEMINI.md"]


def test_many_folders_are_looked_at(tree: InstructionTree) -> None:
    """A working directory two hundred folders deep has the files of all of them."""
    deep = "/".join(["d"] * 200)
    tree.write("GEMINI.md")
    tree.write(f"{deep}/GEMINI.md")
    assert seen(tree, deep).loaded == ["GEMINI.md", f"{deep}/GEMINI.md"]


def test_the_settings_of_a_repository_reach_no_file_of_the_user(tree: InstructionTree) -> None:
    """None of its names leads out of a folder, into the user's, or into one above the project."""
    tree.write("../../home/secret.md", "secret")
    tree.write("../../home/.gemini/oauth.json", "secret")
    tree.write("../oauth.json", "secret")
    tree.write("../.top")
    tree.write("oauth.json")
    name = json.dumps(
        {"context": {"fileName": ["../secret.md", "x/../../secret.md", "oauth.json"]}}
    )
    tree.write(".gemini/settings.json", name)
    assert seen(tree).loaded == ["oauth.json"]
    tree.write(SETTINGS, '{"context": {"memoryBoundaryMarkers": [".top"]}}')
    assert seen(tree).loaded == ["oauth.json"]


def test_only_the_user_says_where_a_project_begins(tree: InstructionTree) -> None:
    """Markers count in the user's settings; a repository's, or a broken ``.git``, widen nothing."""
    for name in ("../GEMINI.md", "../.top", "../.git", "../secret.md"):
        tree.write(name)
    tree.write("GEMINI.md", "@../secret.md")
    settings = '{"context": {"memoryBoundaryMarkers": [".top"]}}'
    path = tree.write(".gemini/settings.json", settings)
    assert seen(tree).loaded == ["GEMINI.md"]
    path.unlink()
    os.rename(tree.repo / ".git", tree.repo / ".renamed")
    (tree.repo / ".git").symlink_to("nowhere")
    assert seen(tree).loaded == ["GEMINI.md"]
    tree.write(SETTINGS, settings)
    assert seen(tree).loaded == ["../GEMINI.md", "GEMINI.md", "../secret.md"]
