"""Large results that Claude Code's hook has memd store."""

from pathlib import Path
from typing import Any

import pytest

from tests.api.caller import Caller
from tests.api.test_spending import configure

pytestmark = pytest.mark.anyio
ON = "[context]\nhook_spill = true\n"
PAGE = "".join(f"line {number} of a page\n" for number in range(3_000))


async def used(
    caller: Caller, response: Any, tool: str = "WebFetch", client: str = "claude-code", **more: Any
) -> Any:
    """Send what the hook sends of a tool that was used."""
    payload: dict[str, Any] = {"session_id": "s", "cwd": caller.cwd, "tool_name": tool}
    payload |= {"tool_use_id": "toolu_1", "tool_response": response, **more}
    asked = {"client": client, "event": "PostToolUse", "payload": payload}
    return await caller.plain("hook", **asked, deadline_ms=20_000)


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
