"""Whatever becomes of a memory directory: reads say what is there, writes work where they can.

One table has the states that another program may leave a directory in, with what reading and
writing commands answer then. In each state every command is asked, and once the system allows
writes again, writes and undo work at once.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.net.kit import Home, Project, differs
from tests.net.wire import Json, RpcError

OTHER = "---\nname: herons\ndescription: where herons nest\ntype: project\n---\n\nNorth pond.\n"
READS: dict[str, dict[str, Json]] = {
    "memory.list": {},
    "memory.read": {"path": "a.md"},
    "memory.search": {"query": "rule"},
    "memory.why": {"path": "a.md"},
    "memory.history": {},
    "memory.diff": {},
    "load_prompt": {},
    "prefetch": {"session_id": "s", "query": "which rule is the first rule?"},
    "rule.list": {},
    "notes.list": {},
    "review.list": {},
    "dream.status": {},
    "doctor": {},
    "memory.tool": {"command": {"command": "view", "path": "/memories"}},
    "export": {"dest": ""},
}
TOLD = ("load_prompt", "prefetch", "doctor")  # these answer in any case and say what is wrong
# These say nothing of the files.
UNCONCERNED = ("memory.history", "memory.diff", "notes.list", "review.list", "dream.status")
NEW = {"name": "third", "description": "the third rule", "type": "project", "body": "Third."}
ADDED = ("--name", "third", "--description", "the third rule", "--type", "project", "--body", "x")
TOOL = {"command": "create", "path": "/memories/third.md", "file_text": OTHER}
WRITES: dict[str, dict[str, Json]] = {
    "memory.write": {"path": "third.md", **NEW},
    "memory.delete": {"path": "a.md"},
    "memory.undo": {"as_of": 0},
    "memory.undo of one": {"path": "a.md"},
    "memory.tool": {"command": TOOL},
    "import": {"source": "", "accept": True},
    "dream": {"force": True, "wait": True},
}


def _remove(path: Path) -> None:
    # Not ``rmtree``, which fails if memd removes a file of its own meanwhile.
    subprocess.run(["rm", "-rf", path], check=True)


def _remove_project(memory: Path) -> None:
    _remove(memory.parent)


def _empty(memory: Path) -> None:
    for path in memory.iterdir():
        path.unlink(missing_ok=True)


def _replace(memory: Path) -> None:
    _remove(memory)
    memory.mkdir()
    (memory / "herons.md").write_text(OTHER)


def _make_file(memory: Path) -> None:
    _remove(memory)
    memory.write_text("no directory")


def _make_parent_file(memory: Path) -> None:
    _remove(memory.parent)
    memory.parent.write_text("no directory")


def _make_fifo(memory: Path) -> None:
    _remove(memory)
    os.mkfifo(memory)


def _move(memory: Path) -> None:
    memory.rename(f"{memory}.moved")
    memory.symlink_to(f"{memory}.moved")


def _link(memory: Path) -> None:
    _remove(memory)
    other = Path(f"{memory}.other")
    other.mkdir()
    (other / "herons.md").write_text(OTHER)
    memory.symlink_to(other)


def _link_nowhere(memory: Path) -> None:
    _remove(memory)
    memory.symlink_to(f"{memory}.nowhere/below")


def _link_to_file(memory: Path) -> None:
    _remove(memory)
    Path(f"{memory}.file").write_text("no directory")
    memory.symlink_to(f"{memory}.file")


def _link_to_itself(memory: Path) -> None:
    _remove(memory)
    memory.symlink_to(memory)


def _forbid_writes(memory: Path) -> None:
    if os.getuid() != 0:
        memory.chmod(0o500)
    elif subprocess.run(["chattr", "+i", memory], check=False, capture_output=True).returncode:
        pytest.skip("chattr +i is not to be had here, and no mode forbids root anything")


def _remove_and_forbid(memory: Path) -> None:
    _remove(memory)
    _forbid_writes(memory.parent)


def _forbid_reads(memory: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("no mode forbids root anything")
    memory.chmod(0o000)


class Answer(NamedTuple):
    """What a method answered: its result or its error."""

    result: Any
    error: RpcError | None = None


class Before(NamedTuple):
    """Text and mtime of each file of a directory before it got into a state, and when that was."""

    files: dict[str, tuple[str, int]]
    at: float


class State(NamedTuple):
    """What another program makes of a memory directory, and what commands answer then."""

    make: Callable[[Path], None]
    memories: tuple[str, ...] = ()  # that reading commands find
    unreadable: str = ""  # what their error says, if they cannot read
    unwritable: str = ""  # what the error of writing commands says, if they cannot write


BOTH = ("a.md", "b.md")
NO_DIRECTORY = "Not a directory"
LOOP = "Too many levels of symbolic links"
DENIED = "Permission denied"
STATES = {
    "gone": State(_remove),
    "gone with its project": State(_remove_project),
    "empty": State(_empty),
    "replaced": State(_replace, ("herons.md",)),
    "a file": State(_make_file, (), NO_DIRECTORY, NO_DIRECTORY),
    "below a file": State(_make_parent_file, (), NO_DIRECTORY, NO_DIRECTORY),
    "a fifo": State(_make_fifo, (), NO_DIRECTORY, NO_DIRECTORY),
    "moved behind a link": State(_move, BOTH),
    "a link to another": State(_link, ("herons.md",)),
    "a link to nowhere": State(_link_nowhere),
    "a link to a file": State(_link_to_file, (), NO_DIRECTORY, NO_DIRECTORY),
    "a link to itself": State(_link_to_itself, (), LOOP, LOOP),
    "not writable": State(
        _forbid_writes, BOTH, "", DENIED if os.getuid() else "Operation not permitted"
    ),
    "gone and not to be made": State(
        _remove_and_forbid, (), "", DENIED if os.getuid() else "Operation not permitted"
    ),
    "not readable": State(_forbid_reads, (), DENIED, DENIED),
}
LINKS = ("moved behind a link", "a link to another", "a link to nowhere")
# Variants of other states.
RARE = ("gone with its project", "below a file", "a fifo", "a link to a file", "a link to itself")
in_each_state = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.full] if name in RARE else []) for name in STATES],
)


@contextmanager
def _in_state(project: Project, state: State) -> Iterator[Before]:
    """Put a project with two memories into a state; give what was before."""
    project.write("a.md", "The first rule.")
    project.write("b.md", "The second rule.")
    project.write("b.md", "The second rule, reworded.")  # memd still keeps the replaced file
    before = Before(_files(project), time.time())
    try:
        state.make(project.memory)
        yield before
    finally:
        _allow(project)


def _files(project: Project) -> dict[str, tuple[str, int]]:
    """Return text and mtime of each file of the memory directory."""
    times = {path: (project.memory / path).stat().st_mtime_ns for path in project.tree()}
    return {path: (text, times[path]) for path, text in project.tree().items()}


def _allow(project: Project) -> None:
    """Take away whatever keeps a directory from being made and written."""
    folders = [folder for folder in (project.folder, project.memory) if folder.exists()]
    for folder in folders:
        if os.getuid() == 0:
            subprocess.run(["chattr", "-i", folder], check=False, capture_output=True)
        elif folder.is_dir():
            folder.chmod(0o700)
    for path in (project.folder, project.memory):
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            path.unlink()


def _ask(project: Project, method: str, members: dict[str, Json]) -> Answer:
    """Ask a method; files that it reads or writes lie beside the project."""
    members = dict(members)
    if "dest" in members:
        members["dest"] = str(project.path / "exported")
    if "source" in members:
        (project.path / "source").mkdir(exist_ok=True)
        (project.path / "source/imported.md").write_text(OTHER)
        members["source"] = str(project.path / "source")
    try:
        return Answer(project.call(method.partition(" ")[0], **members))
    except RpcError as error:
        return Answer(None, error)


def _refused(error: RpcError, words: str) -> None:
    """Check that an error is one of the storage and says what is wrong."""
    assert error.code == 1012, error
    if error.kind == "lock_unusable":  # a dream's
        return
    assert error.data["retryable"] is True
    assert words in error.message, error


@in_each_state
def test_reads_say_what_is_there(project: Project, name: str) -> None:
    """Each reading command finds what a directory holds now, or says why nothing can be read."""
    state = STATES[name]
    with _in_state(project, state):
        for method, members in READS.items():
            result, error = _ask(project, method, members)
            if error is not None and state.unreadable:
                assert method not in {*TOLD, *UNCONCERNED}, error
                _refused(error, state.unreadable)
            elif error is not None:
                assert (error.kind, members) == ("not_found", {"path": "a.md"})
                assert "a.md" not in state.memories
            elif state.unreadable:
                assert method in {*TOLD, *UNCONCERNED}, (method, result)
                assert method in UNCONCERNED or state.unreadable in str(result), (method, result)
            elif method == "memory.list":
                assert {each["path"] for each in result["memories"]} == set(state.memories)
            elif method in {"memory.search", "prefetch"}:
                found = {str(each.get("path", each["name"])) for each in _hits(result)}
                assert found <= {*state.memories, *(path[:-3] for path in state.memories)}
            elif method == "memory.tool":
                assert all(path in result["text"] for path in state.memories), result


def _hits(result: Json) -> list[Json]:
    """Return the memories that a search or a prefetch found."""
    return list(result.get("hits", result.get("memories", ())))


@in_each_state
@pytest.mark.parametrize("method", WRITES)
def test_writes_work_or_say_what_is_wrong(project: Project, name: str, method: str) -> None:
    """Each writing command does its work in a state that allows it, else it names the cause."""
    state = STATES[name]
    members = dict(WRITES[method])
    if method == "memory.undo":
        members["as_of"] = time.time()
    with _in_state(project, state) as before:
        result, error = _ask(project, method, members)
        if error is None and method == "dream" and state.unwritable:
            assert result["change"] is None
        elif error is None:
            assert not state.unwritable or method == "memory.undo", result
            if method in {"memory.write", "memory.tool"}:
                assert (project.memory / "third.md").is_file()
                assert project.read().count("third.md") == 1
            elif method == "memory.undo of one":
                assert project.read("a.md") == before.files["a.md"][0]
        elif error.kind == "not_found":
            assert (method, "a.md" in state.memories) == ("memory.delete", False)
        elif error.kind == "version_not_found":  # a link leads to another directory's history
            assert method == "memory.undo of one"
            assert name in LINKS or "a.md" in state.memories
        else:
            assert state.unwritable, error
            _refused(error, state.unwritable)


@in_each_state
def test_writes_and_undo_work_as_soon_as_the_system_allows(project: Project, name: str) -> None:
    """A write, and an undo of all that another program did, are not refused for a moment more."""
    with _in_state(project, STATES[name]) as before:
        for _ in range(3):  # refusals in a row close nothing
            for method in ("memory.write", "memory.list"):
                _ask(project, method, {**READS, **WRITES}[method])
        _allow(project)
        project.write("fourth.md", "The fourth rule.")
        assert "The fourth rule." in project.read("fourth.md")
        undone = project.call("memory.undo", as_of=before.at)
        assert undone["conflicts"] == []
        assert _files(project) == before.files


@pytest.mark.parametrize("make", [_remove, _remove_project, _empty, _replace])
def test_undo_brings_everything_back_at_once(
    project: Project, make: Callable[[Path], None]
) -> None:
    """The first command after a removal is an undo, which brings back bytes and times."""
    with _in_state(project, State(make)) as before:
        rehearsed = project.call("memory.undo", dry_run=True)
        assert {file["path"] for file in rehearsed["files"]} >= {"a.md", "b.md"}
        undone = project.call("memory.undo")
        assert undone["files"] == rehearsed["files"]
        assert undone["conflicts"] == []
        assert _files(project) == before.files


def test_a_rehearsal_makes_no_directory(project: Project) -> None:
    """What a dry run of an undo looks at stays gone."""
    with _in_state(project, State(_remove)):
        assert project.call("memory.undo", as_of=time.time(), dry_run=True)["change"] is None
        assert project.call("memory.undo", path="a.md", dry_run=True)["files"]
        assert not project.memory.exists()


@pytest.mark.full
def test_memctl_goes_on_after_a_removal(project: Project) -> None:
    """After rm -rf of the directory memctl adds, lists and takes back as if nothing had been."""
    with _in_state(project, State(_remove)) as before:
        added = project.memctl("add", "third.md", *ADDED)
        assert added.returncode == 0, added.stderr
        assert [each["path"] for each in project.json("list")["memories"]] == ["third.md"]
        for _ in range(2):  # the addition, and then the removal
            assert project.memctl("undo").returncode == 0
        assert project.tree() == {path: text for path, (text, _) in before.files.items()}


@pytest.mark.full
def test_memctl_names_what_is_wrong(project: Project) -> None:
    """Where the directory is a file, each command says so in one sentence and fails."""
    with _in_state(project, STATES["a file"]):
        for arguments in (["list"], ["add", "third.md", *ADDED], ["search", "rule"]):
            done = project.memctl(*arguments)
            assert done.returncode not in {0, 2}
            assert f"{project.memory} cannot be used: Not a directory" in done.stderr
            assert "Traceback" not in done.stderr
        assert project.memctl("log").returncode == 0


@pytest.mark.full
def test_a_killed_daemon_finds_the_state_at_its_start(own: Home) -> None:
    """A daemon that starts where a directory is gone or a file answers as before, and recovers."""
    own.start()
    gone, file = own.project(), own.project()
    with _in_state(gone, STATES["gone"]), _in_state(file, STATES["a file"]):
        own.stop(signal.SIGKILL)
        own.start()
        assert gone.call("memory.list")["memories"] == []
        assert gone.call("memory.undo")["conflicts"] == []
        with pytest.raises(RpcError, match=NO_DIRECTORY):
            file.call("memory.list")
        _allow(file)
        assert file.call("memory.undo")["conflicts"] == []
        assert "The first rule." in gone.read("a.md")
        assert file.tree().keys() == gone.tree().keys() == {"MEMORY.md", *BOTH}


@differs("1.9", "memd looks for changes only under the directory's real path")
@pytest.mark.parametrize("name", LINKS)
def test_history_is_reached_through_a_link(project: Project, name: str) -> None:
    """Where a directory became a link, its history is listed and its changes can be undone."""
    with _in_state(project, STATES[name]):
        changes = project.call("memory.history")["changes"]
        assert [change["actor"] for change in changes][-3:] == ["client"] * 3
        restored = project.call("memory.undo", path="a.md", change=changes[-1]["id"])
        assert restored["conflicts"] == []
        assert "The first rule." in project.read("a.md")
