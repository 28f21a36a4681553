"""A project or a home that was moved can have its history again."""

import shutil

import pytest

from tests.net.kit import Home, Project, until
from tests.net.wire import RpcError


def moved(project: Project, *, change: bool = False) -> Project:
    """Move a project's memories to another project, as a moved folder has them; return it."""
    new = project.home.project()
    new.folder.mkdir(parents=True)
    if change:
        (project.memory / "b.md").write_text("Changed on the way.\n")
    shutil.move(project.memory, new.memory)
    return new


def test_a_moved_directory_gets_its_history_back(project: Project) -> None:
    """``memctl log`` names the old path, ``doctor --fix`` takes over, and undo works again."""
    project.write("a.md", "one")
    ids = [project.write("a.md", "two")["change"], project.write("b.md", "b")["change"]]
    new = moved(project)
    said = new.memctl("log")
    assert str(project.memory) in said.stderr
    assert "doctor --fix" in said.stderr
    assert "history: mended" in new.memctl("doctor", "--fix").stderr
    listed = new.call("memory.history")
    assert [change["id"] for change in listed["changes"]][:2] == ids[::-1]
    assert listed["former"] == ""
    new.call("memory.undo", change=ids[0])
    assert new.tree()["a.md"].endswith("one\n")
    assert project.call("memory.history")["changes"] == []


def test_the_new_directory_keeps_what_it_did_meanwhile(project: Project) -> None:
    """Changes made at the new path before the history was taken over follow those before them."""
    first = project.write("a.md", "one")["change"]
    new = moved(project)
    later = new.write("a.md", "two")["change"]
    assert new.call("memory.take_over")["former"] == str(project.memory)
    assert [change["id"] for change in new.call("memory.history")["changes"]] == [later, first]


def test_a_removal_that_was_seen_is_no_change_of_the_moved_files(own: Home) -> None:
    """A start between the move and the new path's first use makes no difference."""
    own.start()
    project = own.project()
    first = project.write("a.md", "one")["change"]
    own.stop()
    new = moved(project)
    own.start()

    def newest() -> str:
        return str(project.call("memory.history")["changes"][0]["files"][0]["action"])

    until(lambda: newest() == "deleted", "the start has seen the removal")
    new.call("memory.list")
    assert new.call("memory.take_over")["changes"] == 1
    assert [change["id"] for change in new.call("memory.history")["changes"]] == [first]


@pytest.mark.parametrize("case", ["copied", "other texts", "nothing"])
def test_no_other_history_is_taken(project: Project, case: str) -> None:
    """A path that is still there, other texts and an empty project have no history to take."""
    project.write("a.md", "one")
    project.write("b.md", "b")
    if case == "copied":
        new = project.home.project()
        shutil.copytree(project.memory, new.memory)
    elif case == "other texts":
        new = moved(project, change=True)
    else:
        new = project.home.project()
    assert new.call("memory.history")["former"] == ""
    with pytest.raises(RpcError, match="no history of another path"):
        new.call("memory.take_over")
