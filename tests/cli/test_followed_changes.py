"""memctl log -f."""

import json
import os
import signal
from contextlib import ExitStack
from typing import Any

import pytest
from anyio import to_thread

from tests.cli.driver import Following, following, memctl
from tests.cli.home import Home
from tests.support import daemon
from tests.support.scripted_daemon import ScriptedDaemon, SentProgress


def write(home: Home, *names: str) -> None:
    """Write a memory of each name, as an editor does."""
    with daemon.client(daemon.Home(home.path, home.environ, home.places), "editor") as client:
        for name in names:
            facts = {"name": name, "description": "d", "type": "project", "body": "b"}
            client.call("memory.write", {"cwd": home.cwd, "path": f"{name}.md", **facts})


def touched(changes: Following, count: int) -> list[str]:
    """Return the first file of each of the next changes that are printed."""
    return [json.loads(line)["files"][0]["path"] for line in changes.lines(count)]


@pytest.mark.anyio
async def test_changes_are_followed_over_a_restart(home: Home) -> None:
    """Each change is printed once and in order, also those of the time in between."""
    serving = daemon.Home(home.path, home.environ, home.places)
    pipe = os.pipe()
    with ExitStack() as stack:

        async def next_of(count: int) -> list[str]:
            return await to_thread.run_sync(touched, changes, count)

        async with daemon.daemon_here(serving):
            await to_thread.run_sync(write, home, "a", "b", "c")
            command = ("log", "-f", "--json", "--limit", "2", "--client", "editor")
            changes = stack.enter_context(following(home, *command, pipe=pipe))
            assert await next_of(2) == ["b.md", "c.md"]
            await to_thread.run_sync(write, home, "d", "e")
            assert await next_of(2) == ["d.md", "e.md"]
        async with daemon.daemon_here(serving):
            await to_thread.run_sync(write, home, "f", "g")
            assert await next_of(2) == ["f.md", "g.md"]
            assert changes.ended(signal.SIGINT) == 130


def change(number: int) -> dict[str, Any]:
    """Return a change as the history has it."""
    files = [{"path": "a.md", "action": "created"}]
    facts = {"actor": "client", "client": "editor", "reason": "\x1b[2Jwhy", "directory": "/m"}
    return {"id": f"c{number}", "at": "2026-03-03T10:00:00Z", **facts, "files": files}


def test_a_change_is_a_line_as_in_the_list(home: Home) -> None:
    """Filters reach the daemon, texts steer no terminal, and a closed pipe is no failure."""
    pages = iter([[change(1)], [change(2), change(1)]])
    told: dict[str, Any] = {
        "memory.history": lambda _: {"changes": next(pages, [change(2), change(1)])},
        "memory.list": {"memories": []},
        "subscribe": SentProgress({}, (("memory.changed", {}),)),
    }
    with (
        ScriptedDaemon(home.places.socket, told) as scripted,
        following(home, "log", "a.md", "--follow", "--actor", "client") as changes,
    ):
        first, second = (line.split() for line in changes.lines(2))
        assert (first[0], second[0], len(first[1]), len(first[2])) == ("c1", "c2", 10, 8)
        assert first[3:] == ["\\x1b[2Jwhy:", "created", "a.md", "editor"]
        asked = scripted.params("memory.history")
        assert (asked["path"], asked["actor"]) == ("a.md", "client")
        changes.output.close()
        assert changes.ended() == 0


def test_more_than_a_page_is_caught_up_with(home: Home) -> None:
    """However much happened since the last look, nothing is left out or told twice."""
    numbers = [list(range(1, 4)), list(range(1, 260))]

    def history(params: dict[str, Any]) -> Any:
        known = numbers[0] if len(numbers) == 2 else numbers[-1]
        if "before" not in params and len(numbers) == 2:
            numbers.pop(0)
        before = int(params.get("before", "c1000")[1:])
        newest = [number for number in reversed(known) if number < before]
        return {"changes": [change(number) for number in newest[: params["limit"]]]}

    told = {"memory.history": history, "subscribe": SentProgress({}, (("memory.changed", {}),))}
    with (
        ScriptedDaemon(home.places.socket, told),
        following(home, "log", "-f", "--json", "--limit", "2") as changes,
    ):
        shown = [json.loads(line)["id"] for line in changes.lines(258)]
        assert shown == [f"c{number}" for number in range(2, 260)]


def test_what_was_is_not_followed(home: Home) -> None:
    """Going back and going on are two things, and nobody is started to be followed."""
    assert memctl(home, "log", "-f", "--before", "c3").status == 2
    assert memctl(home, "log", "-f").status == 69
