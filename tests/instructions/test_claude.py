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


def test_a_file_is_listed_once(tree: InstructionTree) -> None:
    """A file that is met by its place, by includes and by links is listed and loaded once."""
    tree.write("CLAUDE.md", "@docs/a.md @docs/../docs/a.md @docs/link.md @CLAUDE.md")
    tree.write("docs/a.md", "@a.md @../CLAUDE.md @../.claude/rules/r.md")
    tree.write(".claude/rules/r.md")
    (tree.repo / "docs/link.md").symlink_to("a.md")
    (tree.repo / "CLAUDE.local.md").symlink_to("docs/a.md")
    seen = tree.resolve()
    assert seen.loaded == ["CLAUDE.md", "docs/a.md", ".claude/rules/r.md"]
    assert seen.refused == {}


def test_what_was_refused_loads_where_it_may(tree: InstructionTree) -> None:
    """A file too deep below one file, or with an unmet condition, loads when another names it."""
    for number in range(7):
        tree.write(f"{number}.md", f"@{number + 1}.md")
    tree.write("CLAUDE.md", "@1.md")
    assert tree.resolve().refused == {"5.md": "it is included more than 4 files deep"}
    tree.write(".claude/rules/typed.md", "---\npaths: src/**\n---\nText.")
    tree.write("CLAUDE.local.md", "@5.md @.claude/rules/typed.md @gone.md @photo.png @dir")
    tree.write("photo.png")
    (tree.repo / "dir").mkdir()
    seen = tree.resolve()
    assert seen.loaded[-4:] == ["CLAUDE.local.md", "5.md", "6.md", ".claude/rules/typed.md"]
    assert seen.refused == {
        "7.md": "there is no such file",
        "gone.md": "there is no such file",
        "photo.png": "its name is not one of a text",
        "dir": "it is no regular file",
    }


def test_conditions_are_met_by_touched_files(tree: InstructionTree) -> None:
    """A rule with a condition loads with the first file that fits it, and is listed until then."""
    tree.write(".claude/rules/ts.md", "---\npaths:\n  - src/*.ts\n  - lib/\n---\nText. @../../x.md")
    tree.write("x.md")
    tree.write("src/CLAUDE.md")
    tree.write("src/.claude/rules/own.md", "---\npaths: '*.ts'\n---\nText.")
    before = tree.resolve()
    assert before.loaded == ["x.md"]
    assert before.refused == {".claude/rules/ts.md": "no file that was touched matches its paths"}
    assert before.resolution.files[0].condition == ("src/*.ts", "lib/")
    seen = tree.resolve(tree.request(touched=["README.md", "src/a.ts", "../b.ts"]))
    assert seen.loaded == [
        "x.md",
        "src/CLAUDE.md",
        "src/.claude/rules/own.md",
        ".claude/rules/ts.md",
    ]
    assert seen.resolution.texts[str(tree.repo / ".claude/rules/ts.md")] == "Text. @../../x.md"


def test_broken_conditions_load_and_are_named(tree: InstructionTree) -> None:
    """A rule whose paths cannot be read, or are of no use, always loads with a problem."""
    for name, paths in {"a": "", "b": "\n  - **/*.ts", "c": "a: [", "d": "'[z-a]'"}.items():
        tree.write(f".claude/rules/{name}.md", f"---\npaths: {paths}\n---\nText.")
    seen = tree.resolve()
    assert len(seen.loaded) == 3
    assert list(seen.refused) == [".claude/rules/c.md"]
    problems = " ".join(seen.resolution.problems)
    assert all(f"/{name}.md: its" in problems for name in "abd")


def test_excludes_drop_all_but_the_machine_s_files(tree: InstructionTree) -> None:
    """An excluded file is listed with that reason; a glob that is none is named."""
    tree.write("../../managed/CLAUDE.md")
    tree.write("CLAUDE.md", "@docs/a.md")
    tree.write("docs/a.md")
    tree.write("sub/CLAUDE.md")
    seen = tree.resolve(
        tree.request("sub", exclude=["**/repo/CLAUDE.md", "**/managed/**", "[z-a]"])
    )
    assert seen.loaded == ["../../managed/CLAUDE.md", "sub/CLAUDE.md"]
    assert seen.refused == {"CLAUDE.md": "it is excluded by claudeMdExcludes"}
    assert "[z-a]" in seen.resolution.problems[0]


def test_files_from_outside_wait_for_a_yes(tree: InstructionTree) -> None:
    """What a project includes from outside is listed until it is allowed; a user's own is not."""
    tree.write("../note.md", "@deeper.md")
    tree.write("../deeper.md")
    tree.write("CLAUDE.md", "@../note.md @../gone.md")
    tree.write("sub/CLAUDE.md", "@../../late.md")
    tree.write("../late.md")
    tree.write("../../home/.claude/CLAUDE.md", "@~/own.md")
    tree.write("../../home/own.md")
    seen = tree.resolve()
    assert seen.loaded == ["../../home/.claude/CLAUDE.md", "../../home/own.md", "CLAUDE.md"]
    assert seen.resolution.external == (str(tree.top / "outer/note.md"),)
    allowed = tree.resolve(tree.request(touched=["sub/x.ts"], external=True))
    assert allowed.loaded[3:] == ["../note.md", "../deeper.md", "sub/CLAUDE.md"]
    assert allowed.resolution.external == (str(tree.top / "outer/late.md"),)


def test_an_agents_file_stands_in_for_a_claude_file(tree: InstructionTree) -> None:
    """AGENTS.md loads where no CLAUDE.md with a text does, and says which of the two it is."""
    tree.write("AGENTS.md")
    tree.write("sub/AGENTS.md")
    tree.write("CLAUDE.md", "<!-- nothing -->\n")
    touched = tree.request(touched=["sub/x.ts"])
    assert tree.resolve(touched).loaded == ["AGENTS.md", "sub/AGENTS.md"]
    tree.write("CLAUDE.md")
    seen = tree.resolve(touched)
    assert seen.loaded == ["CLAUDE.md"]
    assert set(seen.refused) == {"AGENTS.md", "sub/AGENTS.md"}


def test_long_files_load_and_are_named(tree: InstructionTree) -> None:
    """A file of more than 40,000 characters is loaded whole and is a problem."""
    tree.write("CLAUDE.md", "x" * 40_001)
    seen = tree.resolve()
    assert seen.loaded == ["CLAUDE.md"]
    assert "has 40,001 characters" in seen.resolution.problems[0]


def test_includes_that_lead_nowhere_or_in_a_circle_are_named(tree: InstructionTree) -> None:
    """The problem names the file whose text is to be mended."""
    tree.write("CLAUDE.md", "@a.md @gone.md")
    tree.write("a.md", "@b.md")
    tree.write("b.md", "@a.md @CLAUDE.md @b.md")
    tree.write("CLAUDE.local.md", "@b.md")
    repo = tree.repo
    assert tree.resolve().resolution.problems == (
        f"{repo}/b.md: includes {repo}/a.md, which leads back to it",
        f"{repo}/b.md: includes {repo}/CLAUDE.md, which leads back to it",
        f"{repo}/b.md: includes {repo}/b.md, which leads back to it",
        f"{repo}/CLAUDE.md: includes {repo}/gone.md: there is no such file",
    )
