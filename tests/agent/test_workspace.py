"""The copy-on-write view of a memory directory."""

from pathlib import Path

import pytest

from memd.agent import workspace as working
from memd.agent.proposal import Proposed
from memd.agent.refusals import NotReachableError
from memd.base.errors import MemdError
from tests.agent.home import Home, call, memory


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home."""
    return Home(tmp_path)


def test_nothing_on_disk_changes(home: Home) -> None:
    """Writes and edits are seen by later reads of the run, and by nobody else."""
    before = home.snapshot()
    with home.workspace() as workspace:
        call(workspace, "Read", file_path="a.md")
        edited = call(workspace, "Edit", file_path="a.md", old_string="beta", new_string="BETA")
        written = call(workspace, "Write", file_path=f"{home.memory}/x/n.md", content=memory("n"))
        assert (edited.fault, written.fault) == ("", "")
        assert "BETA" in call(workspace, "Read", file_path="a.md").text
        assert "x/n.md" in call(workspace, "Glob", pattern="**/*.md").text
        assert call(workspace, "Bash", command="grep -l BETA a.md").text == "a.md"
        assert workspace.touched == ("a.md", "x/n.md")
        paths = [(file.path, file.base is None) for file in workspace.proposal().files]
        assert paths == [("a.md", False), ("x/n.md", True)]
    assert home.snapshot() == before


def test_a_file_is_read_before_it_is_changed(home: Home) -> None:
    """Neither Edit nor Write touches a file that this run has not read."""
    with home.workspace() as workspace:
        for tool, more in (
            ("Edit", {"old_string": "beta", "new_string": "x"}),
            ("Write", {"content": memory("a")}),
        ):
            assert "read it first" in call(workspace, tool, file_path="a.md", **more).text
        call(workspace, "Bash", command="cat a.md")
        assert call(workspace, "Write", file_path="a.md", content=memory("a")).fault
        call(workspace, "Read", file_path="a.md", limit=1)
        assert not call(workspace, "Write", file_path="a.md", content=memory("a")).fault
        missing = call(workspace, "Edit", file_path="none.md", old_string="a", new_string="b")
        assert missing.fault == "failed"


def test_what_was_read_stays_what_it_was(home: Home) -> None:
    """A save by somebody else does not change what the run is based on."""
    with home.workspace() as workspace:
        call(workspace, "Read", file_path="a.md")
        (home.memory / "a.md").write_text(memory("a", "theirs"), encoding="utf-8")
        assert "beta" in call(workspace, "Read", file_path="a.md").text
        call(workspace, "Edit", file_path="a.md", old_string="beta", new_string="x")
        assert b"beta" in (workspace.proposal().files[0].base or b"")


def test_removals_are_only_for_runs_that_may(home: Home) -> None:
    """A memory is removed with its reason where that is allowed, and never the index."""
    gone = "removed: merged into sub/b.md"
    with home.workspace() as workspace:
        call(workspace, "Read", file_path="a.md")
        assert call(workspace, "Write", file_path="a.md", content=gone).fault == "denied"
    with home.workspace(removals=True) as workspace:
        for name in ("a.md", "MEMORY.md"):
            call(workspace, "Read", file_path=name)
        assert call(workspace, "Write", file_path="MEMORY.md", content=gone).fault == "denied"
        assert call(workspace, "Write", file_path="a.md", content=gone).fault == ""
        assert call(workspace, "Read", file_path="a.md").fault == "failed"
        assert call(workspace, "Edit", file_path="a.md", old_string="a", new_string="b").fault
        assert workspace.proposal().removed == (("a.md", "merged into sub/b.md"),)
        assert not call(workspace, "Write", file_path="a.md", content=memory("a", "back")).fault
        assert workspace.proposal().updated == ("a.md",)


def test_a_run_writes_so_much(home: Home) -> None:
    """Files and bytes of a run are bounded."""
    with home.workspace() as workspace:
        results = [
            call(workspace, "Write", file_path=f"f{n}.md", content=memory("f"))
            for n in range(working.FILES + 1)
        ]
        assert [bool(result.fault) for result in results].count(True) == 1
        assert "a run may write" in results[-1].text


def test_files_that_may_not_be_read_are_not_edited(home: Home) -> None:
    """Links, hard links, large and foreign files, and files that are no text, stay as they are."""
    (home.memory / "latin.md").write_bytes(memory("l").encode() + b"\xff")
    (home.memory / "huge.md").write_bytes(b"x" * (5 << 20))
    with home.workspace() as workspace:
        for name in ("link_out.md", "hard.md", "fifo.md", ".consolidate-lock", "sock.md"):
            assert call(workspace, "Read", file_path=name).fault == "denied"
            assert call(workspace, "Write", file_path=name, content=memory("x")).fault
        assert call(workspace, "Read", file_path="huge.md").fault == "failed"
        call(workspace, "Read", file_path="latin.md")
        edit = call(workspace, "Edit", file_path="latin.md", old_string="text", new_string="x")
        assert "UTF-8" in edit.text
        assert (
            call(workspace, "Write", file_path=f"{home.project}/x.md", content="x").fault
            == "denied"
        )
        assert call(workspace, "WebFetch", url="x").fault == "denied"
        with pytest.raises((MemdError, NotReachableError), match="several names"):
            workspace._read_memory("hard.md")


def test_a_check_may_refuse_a_change(home: Home) -> None:
    """What the check refuses is answered with its reason, not taken in, and known at the end."""

    def check(file: Proposed) -> str:
        if file.content is None:
            return "it stays"
        return "no proof" if b"trust me" in file.content else ""

    with home.workspace(check=check, removals=True) as workspace:

        def paths() -> list[str]:
            return [each.path for each in workspace.refused]

        refused = call(workspace, "Write", file_path="n.md", content=memory("n", body="trust me"))
        assert (refused.fault, refused.text) == ("denied", "n.md was not written: no proof.")
        assert paths() == ["n.md"]
        assert not call(workspace, "Write", file_path="n.md", content=memory("n")).fault
        assert paths() == []
        call(workspace, "Read", file_path="a.md")
        removal = call(workspace, "Write", file_path="a.md", content="removed: it is over")
        assert "it stays" in removal.text
        edit = {"old_string": "beta", "new_string": "trust me"}
        assert call(workspace, "Edit", file_path="a.md", **edit).fault == "denied"
        assert [each.path for each in workspace.proposal().files] == ["n.md"]
        assert paths() == ["a.md"]
