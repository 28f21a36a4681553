"""memory.tool over the socket."""

from pathlib import Path

import pytest

from tests.api.caller import Caller

pytestmark = pytest.mark.anyio


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
