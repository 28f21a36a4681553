"""The instruction files of a project, resolved again only when something has changed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from memd.core.values import Project
from memd.instructions.reading import InstructionReader, InstructionRequest
from memd.projects.projects import ClientFolders
from memd.state.database import open_database
from memd.state.tables import SCHEMAS, Approvals
from tests.instructions.trees import InstructionTree, make_tree


@dataclass
class Desk:
    """A tree and a reader of it."""

    tree: InstructionTree
    approvals: Approvals
    excludes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.reader = InstructionReader(self.approvals, self.folders, self.tree.disk)

    def folders(self, project: Project, _environment: object) -> ClientFolders:
        """Return where the tree's clients look."""
        home, repo = str(self.tree.home), str(self.tree.repo)
        assert project.root == repo
        return ClientFolders(repo, home, f"{home}/.claude", "/nowhere", self.excludes)

    def request(self, *touched: str) -> Any:
        """Return a request about the tree's project."""
        repo = str(self.tree.repo)
        project = Project(repo, repo, "/m", "default", "/t", enabled=True)
        return InstructionRequest(project, {}, touched)

    def loaded(self, *touched: str) -> list[str]:
        """Return the names of the files that are loaded, relative to the project."""
        reading = self.reader.read(self.request(*touched))
        names = (Path(file.path) for file in reading.text.files if file.loaded)
        return [str(name.relative_to(self.tree.repo)) for name in names]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Make an empty tree and a state file."""
    database = open_database(str(tmp_path / "state.db"), SCHEMAS)
    yield Desk(make_tree(tmp_path / "tree"), Approvals(database))
    database.close()


def test_nothing_is_resolved_twice(desk: Desk) -> None:
    """As long as no file, folder or link that was looked at changes, the reading is the same."""
    desk.tree.write("CLAUDE.md", "@docs/a.md\n@docs/none.md\n")
    desk.tree.write("docs/a.md", "A")
    desk.tree.write(".claude/rules/r.md", "R")
    first = desk.reader.read(desk.request())
    assert desk.reader.read(desk.request()) is first
    for change in (
        lambda: desk.tree.write("docs/a.md", "B"),
        lambda: desk.tree.write("docs/none.md", "now there"),
        lambda: desk.tree.write("CLAUDE.local.md", "new"),
        lambda: desk.tree.write(".claude/rules/deep/s.md", "S"),
        (desk.tree.repo / "docs/a.md").unlink,
    ):
        before = desk.reader.read(desk.request())
        change()
        after = desk.reader.read(desk.request())
        assert after is not before
        assert after.text.text != before.text.text
        assert desk.reader.read(desk.request()) is after


def test_what_nobody_reads_resolves_nothing_anew(desk: Desk) -> None:
    """Another file of the project is not looked at."""
    desk.tree.write("CLAUDE.md", "A")
    first = desk.reader.read(desk.request())
    desk.tree.write("src/main.py", "x")
    assert desk.reader.read(desk.request()) is first


def test_what_links_lead_to_is_asked_for_again(desk: Desk) -> None:
    """A link that leads elsewhere, a file behind one, and a folder that becomes one are noticed."""
    for name in ("one", "two"):
        desk.tree.write(f"{name}/a.md", name)
        desk.tree.write(f"{name}/rules/r.md", f"rule {name}")
    (desk.tree.repo / "linked").symlink_to("one")
    (desk.tree.repo / ".claude").mkdir()
    (desk.tree.repo / ".claude/rules").symlink_to("../one/rules")
    desk.tree.write("CLAUDE.md", "@linked/a.md\n@two/a.md\n")

    def relink(name: str, target: str) -> None:
        (desk.tree.repo / name).unlink()
        (desk.tree.repo / name).symlink_to(target)

    for change in (
        lambda: desk.tree.write("one/a.md", "ONE"),
        lambda: desk.tree.write("one/rules/s.md", "more"),
        lambda: relink(".claude/rules", "../two/rules"),
        lambda: relink("linked", "nowhere"),
        lambda: (desk.tree.repo / "two").rename(desk.tree.repo / "three"),
        lambda: (desk.tree.repo / "two").symlink_to("three"),
    ):
        before = desk.reader.read(desk.request())
        assert desk.reader.read(desk.request()) is before
        change()
        assert desk.reader.read(desk.request()).text.text != before.text.text


def test_each_question_has_its_own_answer(desk: Desk) -> None:
    """Touched files, excludes and the user's decision are parts of the question."""
    outside = desk.tree.home / "outside.md"
    desk.tree.write(str(outside), "O")
    desk.tree.write("CLAUDE.md", f"@{outside}\n")
    desk.tree.write("AGENTS.md", "G")
    desk.tree.write(".claude/rules/ts.md", "---\npaths: src/*.ts\n---\nTS")
    assert desk.loaded() == ["CLAUDE.md"]
    assert desk.loaded("src/a.ts") == ["CLAUDE.md", ".claude/rules/ts.md"]
    assert desk.loaded(str(desk.tree.repo / "src/a.ts"))[1:] == [".claude/rules/ts.md"]
    assert desk.loaded("../a.ts", "./src/../b.ts", "\0", "x" * 5000) == ["CLAUDE.md"]
    desk.excludes = ("**/CLAUDE.md",)
    assert desk.loaded() == ["AGENTS.md"]
    desk.excludes = ()
    desk.approvals.decide(str(desk.tree.repo), allowed=True)
    allowed = desk.reader.read(desk.request())
    assert [file.path for file in allowed.resolution.files if file.loaded][1:] == [str(outside)]
    assert desk.reader.read(desk.request(), external=False).resolution.external == (str(outside),)
    desk.approvals.decide(str(desk.tree.repo), allowed=False)
    assert desk.loaded() == ["CLAUDE.md"]


def test_a_state_file_that_cannot_be_read_allows_nothing(desk: Desk, tmp_path: Path) -> None:
    """Files are read all the same."""
    desk.tree.write("CLAUDE.md", "A")
    database = open_database(str(tmp_path / "other.db"), SCHEMAS)
    database.close()
    (tmp_path / "other.db").unlink()
    (tmp_path / "other.db").mkdir()
    broken = replace(desk, approvals=Approvals(database))
    assert broken.loaded() == ["CLAUDE.md"]
    assert broken.reader.decision(broken.request().project) is None


def test_a_folder_whose_name_cannot_be_told_is_a_problem(desk: Desk) -> None:
    """Nothing of it is sent, and nothing breaks."""
    request = desk.request()
    project = structs.replace(request.project, cwd=f"{desk.tree.repo}/\udcff")
    reading = desk.reader.read(structs.replace(request, project=project))
    assert reading.text.text == ""
    assert reading.text.problems == ("the path of the working directory is not UTF-8",)
