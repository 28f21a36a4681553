"""What a person may want to mend in the instruction files of a project."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from memd.instructions import check
from memd.instructions.check import IssueKind
from memd.instructions.loading import MISSING
from memd.instructions.values import TOUCHED_FILES, InstructionFile, Resolution, View
from tests.instructions.trees import InstructionTree, make_tree


@pytest.fixture
def tree(tmp_path: Path) -> InstructionTree:
    """Make an empty tree."""
    return make_tree(tmp_path)


def union(texts: dict[str, str], *more: InstructionFile) -> Resolution:
    """Return a resolution that loads these texts."""
    files = (InstructionFile(path, "project", "project") for path in texts)
    return Resolution((*files, *more), texts)


def cycles(texts: dict[str, str]) -> list[tuple[str, str]]:
    """Return file and target of each include that leads back."""
    issues = check.file_issues(union(texts), "/h")
    return [
        (issue.path, issue.text.split()[1].rstrip(","))
        for issue in issues
        if issue.kind is IssueKind.CYCLE
    ]


def test_an_include_that_leads_nowhere_is_named() -> None:
    """With the file that has it; one that is refused for another reason is not dead."""
    dead = InstructionFile(
        "/p/none.md", "include", "project", 1, "/p/a.md", loaded=False, why_not=MISSING
    )
    other = InstructionFile(
        "/p/x.png", "include", "project", 1, "/p/a.md", loaded=False, why_not="no text"
    )
    (issue,) = check.file_issues(union({"/p/a.md": ""}, dead, other), "/h")
    assert (issue.kind, issue.path) == (IssueKind.DEAD_INCLUDE, "/p/a.md")
    assert issue.text == "includes /p/none.md: there is no such file"


def test_includes_that_lead_back_are_named() -> None:
    """Each circle once, at the include that closes it; two ways to one file are no circle."""
    assert cycles({"/p/a.md": "@b.md @c.md", "/p/b.md": "@c.md", "/p/c.md": "x"}) == []
    assert cycles({"/p/a.md": "@./a.md"}) == [("/p/a.md", "/p/a.md")]
    assert cycles({"/p/a.md": "@b.md", "/p/b.md": "@c.md", "/p/c.md": "@/p/a.md"}) == [
        ("/p/c.md", "/p/a.md")
    ]
    assert cycles({"/p/a.md": "`@a.md`", "/h/u.md": "@~/u.md"}) == [("/h/u.md", "/h/u.md")]
    bomb = {f"/p/{n}.md": " ".join(f"@{m}.md" for m in range(200)) for n in range(200)}
    assert len(cycles(bomb)) == 20


def test_rules_that_no_file_fulfils_are_named(tree: InstructionTree) -> None:
    """Files of hidden folders and of packages do not count, a rule of the user is never named."""
    for name, glob in (("ts", "**/*.ts"), ("py", "src/**/*.py"), ("deep", "*.md")):
        tree.write(f".claude/rules/{name}.md", f"---\npaths: '{glob}'\n---\nx")
    tree.write(str(tree.home / ".claude/rules/u.md"), "---\npaths: '*.rs'\n---\nx")
    for name in ("src/a/b.py", "node_modules/x.ts", ".git/x.ts", "README.txt"):
        tree.write(name)
    touches = []

    def touch(files: Sequence[str]) -> Resolution:
        touches.append(len(files))
        return tree.resolve(tree.request(touched=files)).resolution

    project = tree.resolve().resolution
    issues = list(check.unmatched_rules(project, str(tree.repo), tree.disk, touch))
    assert [Path(issue.path).stem for issue in issues] == ["deep", "ts"]
    assert issues[1].text == "never loads: no file of the project matches **/*.ts"
    assert touches == [2]


def test_a_large_project_is_looked_at_in_part(tree: InstructionTree) -> None:
    """Files are touched in portions, the nearest first, and what was not looked at is said."""
    tree.write(".claude/rules/ts.md", "---\npaths: '**/*.ts'\n---\nx")
    for number in range(600):
        tree.write(f"src/{number:04}.py")
    sizes = []

    def touch(files: Sequence[str]) -> Resolution:
        sizes.append(len(files))
        return Resolution()

    project = tree.resolve().resolution
    (issue,) = check.unmatched_rules(project, str(tree.repo), tree.disk, touch, 502)
    assert issue.text == "never loads: none of the first 500 files matches **/*.ts"
    assert (max(sizes), sum(sizes)) == (TOUCHED_FILES, 500)


def views(**texts: str) -> Iterator[str]:
    """Yield what contradicts where each view loads one file with this text."""
    resolutions = {View(name): union({f"/p/{name}.md": text}) for name, text in texts.items()}
    for issue in check.contradictions(resolutions):
        assert issue.kind is IssueKind.CONTRADICTION
        yield issue.text


def test_sentences_that_cannot_both_hold_are_named() -> None:
    """Where two assistants are told otherwise about one thing, and nobody is told both."""
    (text,) = views(claude="Use pnpm to install packages.", codex="Use npm to install packages.")
    assert text.startswith(
        "says `Use pnpm to install packages.`, but /p/codex.md says `Use npm to install packages.`"
    )
    (text,) = views(claude="- Never commit generated files.", gemini="- Commit generated files.")
    assert "denies" in text
    (text,) = views(
        codex="Lines have up to 80 characters.", cursor="Lines have up to 100 characters."
    )
    assert "a fact differs" in text
    same = "Use pnpm to install packages. Tests live in tests/."
    assert list(views(claude=same, codex=f"{same} Be brief.")) == []
    assert list(views(claude="Use pnpm.", codex="The database listens on port 5432.")) == []


def test_what_one_assistant_loads_contradicts_nothing() -> None:
    """The later file counts more there, and may say otherwise on purpose."""
    texts = {"/p/a.md": "Use pnpm to install packages.", "/p/b.md": "Use npm to install packages."}
    assert list(check.contradictions({View.CLAUDE: union(texts)})) == []


def test_many_files_cost_a_bounded_number_of_comparisons() -> None:
    """However much is alike, few are named."""
    many = {
        f"/p/{n}.md": "\n\n".join(f"Use tool {m} for job {n}." for m in range(40))
        for n in range(60)
    }
    resolutions = {View.CLAUDE: union(many), View.CODEX: union({"/c.md": "Use tool 41 for job 3."})}
    assert len(list(check.contradictions(resolutions))) <= 20


def test_memories_that_repeat_a_file_are_named() -> None:
    """With the file that says the same."""
    covered = {"Use pnpm.": "/p/CLAUDE.md"}
    memories = [("a.md", "Use pnpm."), ("b.md", "Use port 80.")]
    (issue,) = check.repeated_memories(memories, lambda text: covered.get(text, ""))
    assert (issue.kind, issue.path) == (IssueKind.REPEATED_MEMORY, "a.md")
    assert issue.text == "says what /p/CLAUDE.md says"
