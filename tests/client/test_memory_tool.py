"""The SDK's memory tool on memd, side by side with the SDK's own on a folder."""

import multiprocessing
import os
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from anthropic.tools import BetaLocalFilesystemMemoryTool, ToolError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.client.memory_tool import AsyncMemoryTool, MemoryTool
from tests.client.inserter import insert_many
from tests.soak.figures import FIGURE
from tests.support.daemon import Home, client, daemon_process, throw_away_home

Command = dict[str, Any]
Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    """Run a real daemon for all tests of this file."""
    with throw_away_home() as made, daemon_process(made):
        yield made


class Pair:
    """The same commands through memd and through the SDK's own tool."""

    def __init__(self, home: Home, folder: Path, project: str) -> None:
        self.memd = MemoryTool(home.project(project), environ=home.environ)
        self.sdk = BetaLocalFilesystemMemoryTool(str(folder / project))

    def both(self, command: Command) -> tuple[str, str]:
        """Return both answers; an error begins with ``!``."""
        return _answer(self.memd, command), _answer(self.sdk, command)


def _answer(tool: MemoryTool | BetaLocalFilesystemMemoryTool, command: Command) -> str:
    try:
        return str(tool.call(dict(command)))
    except (ToolError, OSError) as error:
        return f"!{error}"


def create(path: str, text: str) -> Command:
    """Return the command that makes a file."""
    return {"command": "create", "path": f"/memories/{path}", "file_text": text}


def view(path: str, *lines: int) -> Command:
    """Return the command that shows a file or a folder."""
    results = {"command": "view", "path": f"/memories/{path}".rstrip("/")}
    return results | ({"view_range": list(lines)} if lines else {})


def replace(path: str, old: str, new: str) -> Command:
    """Return the command that replaces a text."""
    named = {"command": "str_replace", "path": f"/memories/{path}"}
    return named | {"old_str": old, "new_str": new}


def insert(path: str, line: int, text: str) -> Command:
    """Return the command that inserts a text."""
    named = {"command": "insert", "path": f"/memories/{path}"}
    return named | {"insert_line": line, "insert_text": text}


def delete(path: str) -> Command:
    """Return the command that deletes."""
    return {"command": "delete", "path": f"/memories/{path}".rstrip("/")}


def rename(old: str, new: str) -> Command:
    """Return the command that renames."""
    paths = {"old_path": f"/memories/{old}".rstrip("/"), "new_path": f"/memories/{new}"}
    return {"command": "rename", **paths}


TABLE: tuple[Command, ...] = (
    create("a.md", "# Title\n\none\ntwo\ntwo again\n"),
    create("a.md", "again"),
    view("a.md"),
    view("a.md", 2, 3),
    view("a.md", 3, -1),
    view("a.md", 9, 12),
    view("a.md", 0, 1),
    view("none.md"),
    replace("a.md", "one", "1\n1b"),
    replace("a.md", "two", "2"),
    replace("a.md", "zero", "0"),
    replace("none.md", "a", "b"),
    insert("a.md", 0, "first\n"),
    insert("a.md", 99, "late"),
    insert("a.md", -1, "early"),
    insert("none.md", 0, "x"),
    insert("a.md", 7, "last\n\n"),
    view("a.md"),
    create("b/c.md", "no line end"),
    view("b/c.md"),
    insert("b/c.md", 1, "now with one"),
    view("b/c.md"),
    create("empty.md", ""),
    view("empty.md"),
    insert("empty.md", 0, "filled"),
    view("empty.md"),
    create("crlf.md", "one\r\ntwo\r\n"),
    insert("crlf.md", 1, "between"),
    view("crlf.md"),
    create("head.md", "---\nname: no\n---\n\nodd head\n"),
    view("head.md"),
    replace("head.md", "---\nname: no\n---\n\n", ""),
    view("head.md"),
    insert("b", 0, "a folder"),
    replace("b", "x", "y"),
    rename("a.md", "b/d.md"),
    rename("a.md", "e.md"),
    rename("b/c.md", "b/d.md"),
    view("a.md"),
    view("b/d.md"),
    rename("b", "z"),
    view("z/d.md"),
    delete("none.md"),
    delete("z/d.md"),
    view("z/d.md"),
    delete("z"),
    view("z/c.md"),
    delete(""),
    rename("", "x.md"),
    {"command": "view", "path": "/etc/passwd"},
    {"command": "view", "path": "/memories/../a.md"},
)


def test_answers_are_those_of_the_sdk(home: Home, tmp_path: Path) -> None:
    """Each command of a long table is answered as the SDK's own tool answers it."""
    pair = Pair(home, tmp_path, "table")
    for command in TABLE:
        ours, theirs = pair.both(command)
        if ".." in str(command):
            assert (ours[0], theirs[0]) == ("!", "!")
        else:
            assert ours == theirs, command


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("notes.txt", ".md"),
        ("progress.xml", ".md"),
        ("..%2f..%2fx.md", "starts with a dot"),
        ("a b.md", "letters"),
        ("MEMORY.md/x.md", "kept by memd"),
    ],
)
def test_names_that_memd_has_not_are_refused_in_words(home: Home, path: str, word: str) -> None:
    """A name that the rule refuses is a tool error that says which names are possible."""
    tool = MemoryTool(home.project("names"), environ=home.environ)
    with pytest.raises(ToolError, match=word):
        tool.call(create(path, "text"))


def test_everything_can_be_cleared_and_comes_back(home: Home) -> None:
    """Clearing deletes every memory; the history still has them."""
    tool = MemoryTool(home.project("cleared"), environ=home.environ)
    tool.call(create("a.md", "one"))
    tool.call(create("b/c.md", "two"))
    assert tool.clear_all_memory() == "All memory cleared"
    with client(home) as caller:
        cwd = {"cwd": home.project("cleared")}
        assert caller.call("memory.list", cwd)["memories"] == []
        newest = caller.call("memory.history", cwd)["changes"][0]
        caller.call("memory.undo", cwd | {"change": newest["id"]})
    assert "two" in str(tool.call(view("b/c.md")))


def test_the_asynchronous_tool_does_the_same(home: Home) -> None:
    """Asynchronous commands, many at once, are answered like the others."""
    tool = AsyncMemoryTool(home.project("async"), environ=home.environ)

    async def several() -> None:
        await tool.call(create("a.md", "start\n"))
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(tool.call, insert("a.md", 1, f"line {number}"))
        text = str(await tool.call(view("a.md")))
        assert sorted(line[-1] for line in text.splitlines() if "line " in line) == [
            *"01234567",
            ":",
        ]
        await tool.call(replace("a.md", "start", "begun"))
        await tool.call(rename("a.md", "b.md"))
        with pytest.raises(ToolError, match="does not exist"):
            await tool.call(delete("a.md"))
        assert await tool.clear_all_memory() == "All memory cleared"

    anyio.run(several)


def test_a_tool_starts_the_daemon_and_finds_it_again() -> None:
    """A tool starts a daemon where none runs, and goes on after that one was stopped."""
    with throw_away_home() as home:
        tool = MemoryTool(home.project(), environ=home.environ)
        tool.call(create("a.md", "one"))
        asynchronous = AsyncMemoryTool(home.project(), environ=home.environ)
        for _ in range(2):
            _end(home)
            tool.close()
            assert "one" in str(anyio.run(asynchronous.call, view("a.md")))
        _end(home)


def _end(home: Home) -> None:
    """Stop the daemon and wait until its process has gone: it may still write at its end."""
    with client(home) as caller:
        pid = caller.call("status")["pid"]
        caller.call("shutdown")
    while os.path.exists(f"/proc/{pid}/fd/0"):
        os.sched_yield()


def test_without_a_project_the_model_reads_why() -> None:
    """What memd refuses as a whole is a tool error too, for the SDK hands its text to the model."""
    with throw_away_home() as home, daemon_process(home):
        gone = f"{home.path}/gone"
        with pytest.raises(ToolError, match="project"):
            MemoryTool(gone, environ=home.environ).call(view(""))
        with pytest.raises(ToolError, match="project"):
            anyio.run(AsyncMemoryTool(gone, environ=home.environ).call, view(""))


PATHS = st.sampled_from(["a.md", "b.md", "f/a.md", "f/b.md"])
TEXTS = st.text("ab \n-#", max_size=12)
COMMANDS = st.one_of(
    st.builds(create, PATHS, TEXTS),
    st.builds(view, PATHS),
    st.builds(view, PATHS, st.integers(-1, 4), st.integers(-1, 6)),
    st.builds(replace, PATHS, TEXTS, TEXTS),
    st.builds(insert, PATHS, st.integers(-1, 5), TEXTS),
    st.builds(delete, PATHS),
    st.builds(rename, PATHS, PATHS),
)
_numbers = iter(range(1_000_000))


@given(st.lists(COMMANDS, min_size=4, max_size=12))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_sequence_ends_as_with_the_sdk(
    home: Home, tmp_path_factory: pytest.TempPathFactory, commands: list[Command]
) -> None:
    """Any sequence of commands on files has the answers of the SDK's own tool."""
    _same(home, tmp_path_factory, commands)


@pytest.mark.soak
@given(st.lists(COMMANDS, min_size=10, max_size=40))
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_long_sequence_ends_as_with_the_sdk(
    home: Home, tmp_path_factory: pytest.TempPathFactory, commands: list[Command]
) -> None:
    """The same with long sequences, at full number."""
    _same(home, tmp_path_factory, commands)


def _same(home: Home, folders: pytest.TempPathFactory, commands: list[Command]) -> None:
    pair = Pair(home, folders.mktemp("sdk"), f"p{os.getpid()}-{next(_numbers)}")
    for command in commands:
        ours, theirs = pair.both(command)
        assert ours == theirs, command
    pair.memd.close()


@pytest.mark.parametrize(
    ("writers", "each"), [(4, 25), pytest.param(8, 100, marks=pytest.mark.soak)]
)
def test_no_insert_of_several_processes_is_lost(
    home: Home, writers: int, each: int, record_property: Record
) -> None:
    """Processes that insert into one file at once keep every line of every one."""
    folder = home.project(f"together{writers}")
    tool = MemoryTool(folder, environ=home.environ)
    tool.call(create("a.md", "start\n"))
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=insert_many, args=(home.places.socket, folder, number, each))
        for number in range(writers)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    lines = str(tool.call(view("a.md"))).splitlines()[1:]
    kept = {line.split("\t")[1] for line in lines} - {"start", ""}
    figure = f"memory.tool: {writers} processes x {each} inserts into one file, {len(kept)} kept"
    record_property(FIGURE, figure)
    assert kept == {f"{writer}:{number}" for writer in range(writers) for number in range(each)}


def test_a_connection_that_is_closed_is_forgotten(home: Home) -> None:
    """A tool that connects again keeps nothing of its earlier connections."""
    tool = MemoryTool(home.project("again"), environ=home.environ)
    clients = []
    for _ in range(2):
        tool.call(view(""))
        clients.append(weakref.ref(tool._client.get(tool._target.connect)))
        tool.close()
    assert [each() for each in clients] == [None, None]
