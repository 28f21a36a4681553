"""state.db may be lost, damaged or foreign, and memd may die: no memory is lost (1.9, 1.10)."""

import json
import os
import signal
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import count

import pytest

from tests.net.kit import Home, Project, until
from tests.net.wire import RpcError


def paths(project: Project) -> list[str]:
    """Return the path of each memory that memd knows."""
    return sorted(memory["path"] for memory in project.call("memory.list")["memories"])


def lose(home: Home) -> None:
    """Remove the database, as a person may."""
    for file in home.state.glob("state.db*"):
        file.unlink()


def works(project: Project) -> None:
    """Check that memories are as before and that writes, search, history and undo go on."""
    assert paths(project) == ["a.md"]
    assert project.call("memory.search", query="zebra broker port")["hits"]
    change = project.write("b.md", "more")["change"]
    assert project.call("memory.history")["changes"][0]["id"] == change
    project.call("memory.undo", change=change)
    assert set(project.tree()) == {"a.md", "MEMORY.md"}


def begun(own: Home) -> Project:
    """Return a project with one memory, and end the daemon."""
    project = own.start().project()
    project.write("a.md", "The zebra broker listens on port 9911.")
    assert own.stop() == 0
    return project


@pytest.mark.full
def test_a_restart_keeps_all(own: Home) -> None:
    """Memories, history and undo are the same after memd has ended and begun again."""
    project = begun(own)
    tree = project.tree()
    own.start()
    assert project.tree() == tree
    assert [change["actor"] for change in project.call("memory.history")["changes"]] == ["client"]
    works(project)


@pytest.mark.full
def test_a_lost_state_costs_no_memory(own: Home) -> None:
    """Without state.db the memories are there, unchanged, and all goes on."""
    project = begun(own)
    tree = project.tree()
    lose(own)
    own.start()
    assert project.tree() == tree
    works(project)


@pytest.mark.full
def test_a_damaged_state_is_renamed(own: Home) -> None:
    """A damaged state.db is kept beside a new one, and status says so."""
    project = begun(own)
    lose(own)
    (own.state / "state.db").write_bytes(b"garbage" * 1000)
    own.start()
    assert any(file.read_bytes() == b"garbage" * 1000 for file in own.state.glob("state.db.*"))
    assert "state.db." in json.dumps(own.call("status"))
    works(project)


@pytest.mark.full
@pytest.mark.parametrize("version", [0, 77])
def test_a_foreign_state_is_renamed(own: Home, version: int) -> None:
    """A database of another program or of a later memd is kept beside a new one."""
    project = begun(own)
    lose(own)
    with closing(sqlite3.connect(own.state / "state.db")) as database:
        database.execute("create table other (text)")
        database.execute(f"pragma user_version = {version}")
        database.commit()
    own.start()
    assert list(own.state.glob("state.db.*"))
    works(project)


def test_an_acknowledged_write_survives_a_kill(own: Home) -> None:
    """After kill -9 an acknowledged write is there, whole and once; its retry does nothing."""
    project = own.start().project()
    words = "The zebra broker listens on port 9911."
    answer = project.write("a.md", words, request_id="r")
    own.stop(signal.SIGKILL)
    own.start()
    assert project.write("a.md", words, request_id="r") == answer
    assert project.call("memory.read", path="a.md")["hash"] == answer["hash"]
    assert project.read().count("(a.md)") == 1
    works(project)


@pytest.mark.full
def test_what_others_did_while_memd_was_away_is_noticed(own: Home) -> None:
    """Edits and removals made without memd are external changes with the text before."""
    project = begun(own)
    before = project.read("a.md")
    project.put("a.md", "damaged")
    own.start()

    def newest() -> dict[str, str]:
        change: dict[str, str] = project.call("memory.history")["changes"][0]
        return change

    until(lambda: newest()["actor"] == "external", "the edit is a change")
    project.call("memory.undo", change=newest()["id"])
    assert project.read("a.md") == before


@pytest.mark.full
def test_kills_among_writers_lose_nothing(own: Home) -> None:
    """Ten times four writers with the daemon killed among them: what was acknowledged is kept."""
    project = own.start().project()
    acknowledged: set[str] = set()
    wanted = [20]  # how many are to be acknowledged before each kill

    def writer(name: str) -> None:
        with suppress(OSError, RpcError, ValueError), own.connect() as client:
            for number in count():
                given = {"name": f"{name}-{number}", "description": "d e", "type": "project"}
                path = f"{name}_{number}.md"
                client.call("memory.write", cwd=project.cwd, path=path, body="text", **given)
                acknowledged.add(path)

    for number in range(10):
        with ThreadPoolExecutor(4) as pool:
            for who in range(4):
                pool.submit(writer, f"r{number}w{who}")
            until(lambda: len(acknowledged) >= wanted[-1], "writes are acknowledged")
            wanted.append(len(acknowledged) + 20)
            assert own.process is not None
            own.process.kill()
            own.process.wait()
        own.start()
    kept = paths(project)
    assert acknowledged <= set(kept)
    index = project.read()
    assert [index.count(f"({path})") for path in kept] == [1] * len(kept)
    until(lambda: not list(project.memory.glob(".memd-*")), "no temporary file is left")


Spoil = Callable[[Home], object]
SPOILT: dict[str, Spoil] = {
    "blobs": lambda home: spoil(home, b"\x78\x9c", 40),
    "emptied": lambda home: (home.state / "state.db").write_bytes(b""),
    "cut": lambda home: os.truncate(home.state / "state.db", 20_000),
}


def spoil(home: Home, mark: bytes, most: int) -> None:
    """Turn bytes of the database after each occurrence of a mark."""
    file = home.state / "state.db"
    content = bytearray(file.read_bytes())
    at = content.find(mark)
    while at >= 0 and most:
        content[at + 4] ^= 0xFF
        at, most = content.find(mark, at + 1), most - 1
    file.write_bytes(content)


@pytest.mark.full
@pytest.mark.parametrize("kind", SPOILT)
def test_a_torn_state_costs_no_memory(own: Home, kind: str) -> None:
    """However the database was torn, the memories are there, and clients read sentences."""
    project = begun(own)
    SPOILT[kind](own)
    own.start()
    for change in project.call("memory.history")["changes"]:
        with suppress(RpcError):
            project.call("memory.diff", change=change["id"])
    works(project)
