"""memory.list, read, write, delete and search over the socket."""

from pathlib import Path

import pytest

from tests.api.caller import Caller

pytestmark = pytest.mark.anyio


async def test_a_written_memory_is_listed_and_read(caller: Caller) -> None:
    """What was written is there with its hash, its type and its line in the index."""
    written = await caller.write()
    assert written["status"] == "created"
    listed = await caller.call("memory.list")
    (memory,) = listed["memories"]
    assert (memory["path"], memory["type"], memory["age"]) == (
        "feedback_tests.md",
        "feedback",
        "today",
    )
    assert listed["index"]["lines"] == 1
    read = await caller.call("memory.read", path="feedback_tests.md")
    assert read["hash"] == written["hash"]
    assert "Never mock the database" in read["content"]
    index = (await caller.folder() / "MEMORY.md").read_text()
    assert index == "- [test-policy](feedback_tests.md) — Integration tests hit a real database\n"


async def test_writing_again_updates_or_leaves(caller: Caller) -> None:
    """A changed part is an update with a new hash, the same parts are no change at all."""
    first = await caller.write()
    second = await caller.write(body="Never, ever.")
    assert (second["status"], second["hash"] == first["hash"]) == ("updated", False)
    third = await caller.write(body="Never, ever.")
    assert (third["status"], third["change"], third["hash"]) == ("unchanged", None, second["hash"])


async def test_a_request_id_makes_a_retry_harmless(caller: Caller) -> None:
    """The same request once more is answered with the first outcome and writes nothing."""
    first = await caller.write(request_id="r1")
    again = await caller.write(request_id="r1")
    assert again["hash"] == first["hash"]
    assert len((await caller.call("memory.history"))["changes"]) == 1


async def test_an_id_with_other_parameters_is_another_request(caller: Caller) -> None:
    """A reused id never answers one request with the outcome of another."""
    await caller.write("a.md", request_id="1")
    other = await caller.write("b.md", request_id="1")
    assert (other["status"], other["path"]) == ("created", "b.md")
    changed = await caller.write("a.md", request_id="1", body="newer")
    assert changed["status"] == "updated"
    await caller.call("memory.delete", path="a.md", request_id="1")
    assert (await caller.refused("memory.read", path="a.md")).code == 1001


async def test_content_and_parts_are_not_mixed(caller: Caller) -> None:
    """A write with both is refused instead of dropping one."""
    error = await caller.refused("memory.write", path="a.md", content="x", body="y")
    assert error.code == -32602


async def test_a_stale_base_is_a_conflict(caller: Caller) -> None:
    """Who writes against a hash that is no longer there hears it, and nothing changes."""
    written = await caller.write()
    await caller.write(body="newer")
    error = await caller.refused(
        "memory.write", path="feedback_tests.md", body="mine", base_hash=written["hash"]
    )
    assert (error.code, error.data["kind"]) == (1002, "conflict")
    assert "newer" in (await caller.call("memory.read", path="feedback_tests.md"))["content"]


async def test_what_may_not_be_written_is_refused_in_words(caller: Caller) -> None:
    """Names, types, missing parts, secrets and scopes have errors of their own."""
    codes = {}
    token = "ghp_" + "16C7e42F292c6912" + "E7710c838347Ae178B4a"
    for label, params in {
        "name": {"path": "../evil.md"},
        "index": {"path": "MEMORY.md"},
        "log": {"path": "logs/2026/01/x.md"},
        "type": {"path": "a.md", "type": "idea"},
        "secret": {"path": "a.md", "body": f"the token is {token}"},
        "scope": {"path": "a.md", "scope": "team"},
        "size": {"path": "a.md", "body": "x" * 70_000},
    }.items():
        error = await caller.refused("memory.write", **({**_PARTS, **params}))
        assert token not in str(error.data) + str(error)
        codes[label] = error.code
    assert codes == {
        "name": 1006,
        "index": 1006,
        "log": 1006,
        "type": -32602,
        "secret": 1003,
        "scope": 1013,
        "size": 1011,
    }
    assert not (await caller.call("memory.list"))["memories"]


_PARTS = {"name": "a", "description": "d", "type": "user", "body": "b"}


async def test_a_deleted_memory_leaves_the_index(caller: Caller) -> None:
    """Deleting takes file and line away, and once more says that it is not there."""
    await caller.write()
    deleted = await caller.call("memory.delete", path="feedback_tests.md")
    assert deleted["change"]
    listed = await caller.call("memory.list")
    assert (listed["memories"], listed["index"]["lines"]) == ([], 0)
    assert (await caller.refused("memory.delete", path="feedback_tests.md")).code == 1001
    assert (await caller.refused("memory.read", path="feedback_tests.md")).code == 1001


async def test_search_finds_words_and_lists_by_scope(caller: Caller) -> None:
    """A search brings hits with a snippet; a listing can be asked for one scope."""
    await caller.write()
    hits = (await caller.call("memory.search", query="mocking databases"))["hits"]
    assert hits[0]["path"] == "feedback_tests.md"
    assert (await caller.call("memory.list", scope="team"))["memories"] == []
    assert len((await caller.call("memory.list", scope="private"))["memories"]) == 1


async def test_nothing_is_written_while_memory_is_off(caller: Caller) -> None:
    """A project that switched memory off refuses writes and says why."""
    with open(f"{caller.cwd}/.memd.toml", "w", encoding="utf-8") as file:
        file.write("enabled = false\n")
    error = await caller.refused("memory.write", path="a.md", **_PARTS)
    assert error.code == 1010


async def test_the_home_is_no_project(caller: Caller) -> None:
    """A working directory that is the home itself gets a clear answer."""
    error = await caller.refused("memory.list", cwd=caller.home.path)
    assert error.code == 1009


async def test_a_command_answers_with_text_and_change(caller: Caller) -> None:
    """An edit names its change; what cannot be done is a text marked as an error."""
    create = {"command": "create", "path": "/memories/a.md", "file_text": "one"}
    made = await caller.call("memory.tool", command=create, request_id="1", session_id="s")
    assert (made["is_error"], made["text"]) == (
        False,
        "File created successfully at: /memories/a.md",
    )
    (change,) = (await caller.call("memory.history"))["changes"]
    assert (change["id"], change["reason"], change["origin"], change["session"]) == (
        made["change"],
        "memory.tool",
        "assistant",
        "s",
    )
    again = await caller.call("memory.tool", command=create, request_id="1", session_id="s")
    assert again == made
    refused = await caller.call("memory.tool", command=create)
    assert refused == {
        "text": "File /memories/a.md already exists",
        "is_error": True,
        "change": None,
    }


async def test_what_is_switched_off_is_shown_and_not_edited(caller: Caller) -> None:
    """While memory is off the tool's view still answers and an edit is an error of the call."""
    view = {"command": "view", "path": "/memories"}
    assert "0B\t/memories" in (await caller.call("memory.tool", command=view))["text"]
    (Path(caller.cwd) / ".memd.toml").write_text("enabled = false\n")
    error = await caller.refused(
        "memory.tool", command={"command": "delete", "path": "/memories/a"}
    )
    assert error.kind == "memory_off"
    assert "0B" in (await caller.call("memory.tool", command=view))["text"]
