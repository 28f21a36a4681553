"""Taking changes back without naming one: each undo goes one step further back."""

import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.net.kit import Home, Project
from tests.net.wire import Json, RpcError

FRIDAYS = "---\nname: fridays\ndescription: no deploys on Fridays\ntype: feedback\n---\n\nNever.\n"


def _write(project: Project, path: str, body: str) -> str:
    """Write a memory; return the change's id."""
    return str(project.write(path, body)["change"])


def _undone(project: Project, **members: Json) -> str:
    """Take the newest change back, or what ``members`` name; return which it was."""
    result = project.call("memory.undo", **members)
    assert result["conflicts"] == []
    return str(result["undone"])


def _nothing_is_left(project: Project) -> None:
    """Check that there is no change to take back, and that the error says so."""
    before = project.tree()
    for dry_run in (True, False):
        with pytest.raises(RpcError, match="nothing is left to undo") as caught:
            project.call("memory.undo", dry_run=dry_run)
        assert (caught.value.code, caught.value.kind) == (1001, "not_found")
        assert caught.value.data["retryable"] is False
    assert project.tree() == before


def test_each_undo_goes_one_step_further_back(project: Project) -> None:
    """Two undos in a row do not cancel each other, and the last of all is an error."""
    trees, changes = [project.tree()], []
    for path, body in (("a.md", "One."), ("a.md", "Two."), ("b.md", "Three."), ("a.md", "Four.")):
        changes.append(_write(project, path, body))
        trees.append(project.tree())
    changes.append(project.call("memory.delete", path="b.md")["change"])
    for change, tree in zip(reversed(changes), reversed(trees), strict=True):
        assert _undone(project) == change
        assert project.tree() == tree
    _nothing_is_left(project)


def test_nothing_was_ever_changed(project: Project) -> None:
    """A project without a change has nothing to undo, whatever other projects have."""
    _write(project, "a.md", "Somewhere else.")
    _nothing_is_left(project.home.project())
    assert project.tree()


def test_an_undo_is_undone_by_its_id(project: Project) -> None:
    """A change whose undo is undone is no longer undone: the next undo takes it back again."""
    _write(project, "a.md", "One.")
    second = _write(project, "a.md", "Two.")
    redone = project.tree()
    undo = project.call("memory.undo")["change"]
    for _ in range(2):
        assert _undone(project, change=undo) == undo
        assert project.tree() == redone
        undo = project.call("memory.undo")
        assert undo["undone"] == second
        undo = undo["change"]
    redo = project.call("memory.undo", change=undo)["change"]
    assert _undone(project, change=redo) == redo  # so the second change is undone once more
    assert "One." in project.read("a.md")
    assert _undone(project) == "c" + str(int(second[1:]) - 1)


def test_what_was_undone_by_its_id_is_passed_over(project: Project) -> None:
    """An undo without a name takes the newest change that is still in force."""
    first, second, third = (_write(project, f"{name}.md", "Text.") for name in "abc")
    assert _undone(project, change=second) == second
    assert _undone(project) == third
    fourth = _write(project, "d.md", "Text.")
    assert _undone(project) == fourth
    assert _undone(project) == first
    _nothing_is_left(project)


def test_a_range_counts_for_each_of_its_changes(project: Project) -> None:
    """After the undo of a range, or of all since a time, the changes before and after are left."""
    changes = [_write(project, f"{name}.md", "Text.") for name in "abcde"]
    result = project.call("memory.undo", **{"from": changes[1], "to": changes[3]})
    assert result["undone"] == f"{changes[1]} to {changes[3]}"
    assert _undone(project) == changes[4]
    assert _undone(project) == changes[0]
    _nothing_is_left(project)
    project.call("memory.undo", change=result["change"])  # b, c and d are there again
    assert _undone(project) == changes[3]
    assert _undone(project, as_of=0) != ""
    assert project.tree() == {}
    _nothing_is_left(project)


def test_the_same_text_twice_is_no_circle(project: Project) -> None:
    """A memory that was deleted and written anew to the byte is taken back three times."""
    content = FRIDAYS.replace("type: feedback\n", "type: feedback\norigin: user\n")
    trees = [project.tree()]
    for _ in range(2):
        project.call("memory.write", path="a.md", content=content)
        trees.append(project.tree())
        project.call("memory.delete", path="a.md")
        trees.append(project.tree())
    for tree in reversed(trees[:-1]):
        project.call("memory.undo")
        assert project.tree() == tree
    _nothing_is_left(project)


def test_one_memory_gets_its_last_version_back(project: Project) -> None:
    """With a path the text before the last change returns, also of a memory that was deleted."""
    _write(project, "a.md", "One.")
    second = _write(project, "a.md", "Two.")
    _write(project, "b.md", "Other.")
    project.call("memory.undo", path="a.md")
    assert "One." in project.read("a.md")
    project.call("memory.undo", path="a.md", change=second)
    assert "Two." in project.read("a.md")
    before = project.read("a.md")
    project.call("memory.delete", path="a.md")
    assert project.call("memory.undo", path="a.md", dry_run=True)["files"]
    project.call("memory.undo", path="a.md")
    assert project.read("a.md") == before
    assert project.read().count("(a.md)") == 1
    for wrong in ({"as_of": 0}, {"from": second}):
        with pytest.raises(RpcError) as caught:
            project.call("memory.undo", path="a.md", **wrong)
        assert caught.value.code == -32602


def test_what_is_as_before_is_passed_over(project: Project) -> None:
    """A change whose text a restored version has replaced already takes no undo."""
    first = _write(project, "a.md", "One.")
    _write(project, "a.md", "Two.")
    project.call("memory.undo", path="a.md", change=first)
    assert "One." in project.read("a.md")
    assert _undone(project) == first
    assert project.tree() == {}
    _nothing_is_left(project)


def test_a_change_of_another_program_is_taken_back_like_any(project: Project) -> None:
    """An edit, a new file and a removal that memd has not been asked about yet come first."""
    change = _write(project, "a.md", "One.")
    before = project.tree()
    text = project.read("a.md")
    for path, new in (("a.md", text.replace("One.", "One, edited.")), ("fridays.md", FRIDAYS)):
        project.put(path, new)
        assert _undone(project) > change
        assert project.read("a.md") == text
        assert "fridays.md" not in project.tree()
    (project.memory / "a.md").unlink()
    project.call("memory.undo")
    assert project.tree() == before
    assert _undone(project) == change


def test_newer_edits_stay_or_are_a_conflict(project: Project) -> None:
    """An undo keeps what somebody wrote since; where it cannot, it says so each time."""
    lines = "\n\n".join(f"Line {number}." for number in range(6))
    _write(project, "a.md", lines)
    change = _write(project, "a.md", lines.replace("Line 0.", "Line zero."))
    project.put("a.md", project.read("a.md").replace("Line 5.", "Line five."))
    project.call("memory.list")
    edit = project.call("memory.undo")["change"]
    project.call("memory.undo", change=edit)  # the edit is there again
    result = project.call("memory.undo", change=change)
    assert (result["merged"], result["conflicts"]) == (["a.md"], [])
    assert "Line 0." in project.read("a.md")
    assert "Line five." in project.read("a.md")

    other = project.home.project()
    first = _write(other, "b.md", "One.")
    for body in ("Two.", "Three."):
        newest = _write(other, "b.md", body)
    other.call("memory.undo", path="b.md", change=first)
    for _ in range(2):
        result = other.call("memory.undo")
        assert (result["change"], result["conflicts"]) == (None, ["b.md"])
        assert result["undone"] == newest
    assert "One." in other.read("b.md")


def test_a_rehearsal_makes_the_same_choice(project: Project) -> None:
    """A dry run names the change and the files that the undo then takes back; it does nothing."""
    changes = [_write(project, f"{name}.md", "Text.") for name in "ab"]
    for change in reversed(changes):
        before = project.tree()
        rehearsed = [project.call("memory.undo", dry_run=True) for _ in range(2)]
        assert project.tree() == before
        done = project.call("memory.undo")
        for result in rehearsed:
            assert result["change"] is None
            assert (result["undone"], result["files"]) == (change, done["files"])


def test_undos_at_the_same_time_take_different_changes(project: Project) -> None:
    """Five clients that undo at once take five changes back, each of them once."""
    changes = {_write(project, f"{name}.md", "Text.") for name in "abcdef"}
    with ThreadPoolExecutor(5) as pool:
        taken = {result.result() for result in [pool.submit(_undone, project) for _ in range(5)]}
    assert len(taken) == 5
    assert taken < changes
    assert {_undone(project)} == changes - taken


def test_a_repeated_request_is_done_once(home: Home, project: Project) -> None:
    """An undo that is sent again under its id answers as before and takes back nothing more."""
    changes = [_write(project, f"{name}.md", "Text.") for name in "ab"]
    client = home.connect(name="repeating")
    answers = [client.call("memory.undo", cwd=project.cwd, request_id="undo-1") for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[0]["undone"] == changes[1]
    assert set(project.tree()) == {"MEMORY.md", "a.md"}


@pytest.mark.full
def test_a_long_history_is_walked_to_its_end(project: Project) -> None:
    """Sixty changes are taken back one by one, over several pages of the history."""
    changes = [_write(project, "a.md", f"Version {number}.") for number in range(60)]
    assert [_undone(project) for _ in changes] == changes[::-1]
    _nothing_is_left(project)


def test_an_import_and_what_was_learnt_are_changes(project: Project) -> None:
    """One undo takes back all that an import brought."""
    first = _write(project, "a.md", "Text.")
    source = project.path / "source"
    source.mkdir()
    for name in ("fridays.md", "mondays.md"):
        (source / name).write_text(FRIDAYS.replace("fridays", name[:-3]))
    project.call("import", source=str(source), accept=True)
    assert len(project.tree()) == 4
    project.call("memory.undo")
    assert set(project.tree()) == {"MEMORY.md", "a.md"}
    assert _undone(project) == first


def test_several_names_are_refused(project: Project) -> None:
    """A change, a range and a time exclude each other, and a range needs its beginning."""
    change = _write(project, "a.md", "Text.")
    wrong: list[dict[str, Any]] = [
        {"change": change, "as_of": 0},
        {"change": change, "from": change},
        {"to": change},
        {"from": change, "as_of": 0},
    ]
    for members in wrong:
        with pytest.raises(RpcError) as caught:
            project.call("memory.undo", **members)
        assert caught.value.code == -32602
    with pytest.raises(RpcError) as caught:
        project.call("memory.undo", change="")
    assert caught.value.code == 1001
    assert set(project.tree()) == {"MEMORY.md", "a.md"}


@pytest.mark.full
def test_a_killed_daemon_knows_what_was_undone(own: Home) -> None:
    """After SIGKILL and a new start the next undo goes on where the last one stopped."""
    project = own.start().project()
    changes = [_write(project, f"{name}.md", "Text.") for name in "abc"]
    assert _undone(project) == changes[2]
    own.stop(signal.SIGKILL)
    own.start()
    assert _undone(project) == changes[1]
    assert _undone(project) == changes[0]
    _nothing_is_left(project)


def test_memctl_undo_twice(project: Project) -> None:
    """The command says which change it takes back, and how to take that back."""
    first, second = _write(project, "a.md", "One."), _write(project, "a.md", "Two.")
    rehearsed = project.memctl("undo", "--dry-run")
    assert f"would take back {second}" in rehearsed.stderr
    assert rehearsed.stdout == "would be updated a.md\n"
    done = project.memctl("undo")
    assert done.returncode == 0, done.stderr
    assert f"takes back {second}" in done.stderr
    assert done.stdout.startswith("updated a.md\nundo the undo with: memctl undo c")
    assert "One." in project.read("a.md")
    last = project.json("undo")
    assert last["undone"] == first
    assert project.tree() == {}
    none = project.memctl("undo")
    assert (none.returncode, none.stdout) == (1, "")
    assert "nothing is left to undo" in none.stderr
    for undo in (last["change"], done.stdout.split()[-1]):
        assert project.memctl("undo", undo).returncode == 0
    assert "Two." in project.read("a.md")
    log = project.json("log")["changes"]
    assert [change["reason"] for change in log[2:4]] == [f"undo of {first}", f"undo of {second}"]


def test_what_was_purged_is_passed_over(project: Project) -> None:
    """A purged change, which nothing brings back, does not keep the ones before it."""
    first, _ = _write(project, "a.md", "One."), _write(project, "b.md", "Two.")
    assert project.memctl("rm", "--purge", "b.md", "--yes").returncode == 0
    assert _undone(project) == first
    _nothing_is_left(project)


@pytest.mark.full
def test_memctl_undo_after_a_removal(project: Project) -> None:
    """The first thing after rm -rf of a memory directory is an undo: all of it is back."""
    _write(project, "a.md", "One.")
    _write(project, "a.md", "Two.")
    before = project.tree()
    for path in project.memory.iterdir():
        path.unlink(missing_ok=True)
    project.memory.rmdir()
    done = project.memctl("undo")
    assert done.returncode == 0, done.stderr
    assert project.tree() == before


@pytest.mark.full
def test_the_tool_of_mcp_takes_the_newest_back(project: Project) -> None:
    """The tool undo needs no id, and says which change it took back."""
    first, second = _write(project, "a.md", "One."), _write(project, "a.md", "Two.")
    mcp = project.mcp()
    try:
        mcp.initialize()
        for change in (second, first):
            result = mcp.tool("undo")
            assert result["structuredContent"]["undone"] == change
            assert change in result["content"][0]["text"]
        refused = mcp.tool("undo")
        assert refused["isError"]
        assert "nothing is left to undo" in refused["content"][0]["text"]
    finally:
        mcp.close()
    assert project.tree() == {}


def test_an_edit_beside_a_write_is_a_change_of_its_own(project: Project) -> None:
    """A text that a person changes just before memd writes another file is taken back as theirs."""
    _write(project, "a.md", "One.")
    _write(project, "b.md", "Two.")
    before = project.tree()
    edited = project.memory / "b.md"
    edited.write_bytes(edited.read_bytes().replace(b"Two.", b"Six."))
    written = _write(project, "a.md", "Three.")
    undone = {_undone(project), _undone(project)}
    assert written in undone
    assert project.tree() == before
