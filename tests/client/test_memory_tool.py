"""The SDK's memory tool on memd, side by side with the SDK's own on a folder."""

import multiprocessing
import os
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
    ("writers", "each"), [(3, 12), pytest.param(8, 100, marks=pytest.mark.soak)]
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
