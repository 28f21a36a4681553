"""Large results that Claude Code's hook has memd store."""

from pathlib import Path
from typing import Any

import pytest

from memd.api.dialects import longest_text, with_text
from memd.context.preview import stored_preview
from tests.api.caller import Caller
from tests.api.test_spending import configure

pytestmark = pytest.mark.anyio
ON = "[context]\nhook_spill = true\n"
PAGE = "".join(f"line {number} of a page\n" for number in range(3_000))
BLOCKS = [{"type": "text", "text": "short"}, {"type": "text", "text": PAGE}]


async def used(
    caller: Caller, response: Any, tool: str = "WebFetch", client: str = "claude-code", **more: Any
) -> Any:
    """Send what the hook sends of a tool that was used."""
    payload: dict[str, Any] = {"session_id": "s", "cwd": caller.cwd, "tool_name": tool}
    payload |= {"tool_use_id": "toolu_1", "tool_response": response, **more}
    asked = {"client": client, "event": "PostToolUse", "payload": payload}
    return await caller.plain("hook", **asked, deadline_ms=20_000)


@pytest.mark.parametrize(
    ("tool", "response"),
    [
        ("WebFetch", {"bytes": 9, "code": 200, "result": PAGE}),
        ("Grep", {"mode": "content", "filenames": [], "content": PAGE}),
        ("mcp__x__page", BLOCKS),
        ("mcp__x__page", PAGE),
    ],
)
async def test_a_large_result_is_stored(caller: Caller, tool: str, response: Any) -> None:
    """The answer has the tool's own shape with the text's beginning; the file has the whole."""
    configure(caller, f"{ON}[context.limits]\nmcp__x__page = 50000\n")
    answer = await used(caller, response, tool)
    output = answer["hookSpecificOutput"]
    assert output["hookEventName"] == "PostToolUse"
    new = longest_text(output["updatedToolOutput"])
    path = new.partition("whole at: ")[2].partition("\n")[0]
    assert Path(path).read_text() == PAGE
    assert path.endswith("/s/tool-results/toolu_1.txt")
    assert output["updatedToolOutput"] == with_text(response, PAGE, stored_preview(PAGE, path))
    assert await used(caller, response, tool) == answer


@pytest.mark.parametrize(
    ("config", "given"),
    [
        ("", {}),
        ("[context]\nhook_spill = true\nspill = false\n", {}),
        (f"{ON}[context.limits]\nWebFetch = 100000\n", {}),
        (ON, {"client": "codex"}),
        (ON, {"tool": "Bash"}),
        (ON, {"tool": "Read"}),
        (ON, {"tool": "Write"}),
        (ON, {"agent_id": "a"}),
        (ON, {"session_id": "../s"}),
        (ON, {"response": None}),
        (ON, {"response": [{"type": "image", "source": {"data": PAGE}}]}),
        (ON, {"response": [7, {"a": {"b": [None, True, PAGE[:100]]}}]}),
    ],
)
async def test_other_results_stay(caller: Caller, config: str, given: dict[str, Any]) -> None:
    """Without the setting, below the limit, and for whoever may not read files, nothing is said."""
    configure(caller, config)
    assert await used(caller, **({"response": {"result": PAGE}} | given)) is None
    assert list(Path(caller.home.path).rglob("tool-results")) == []


async def test_a_disk_that_fails_costs_nothing(caller: Caller) -> None:
    """A result that cannot be stored stays as it is."""
    configure(caller, ON)
    path = await caller.folder()
    (path.parent / "s").parent.mkdir(parents=True, exist_ok=True)
    (path.parent / "s").write_text("a file where the session has its folder")
    assert await used(caller, {"result": PAGE}) is None
