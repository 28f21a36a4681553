"""One quiet line that tells a person what was learnt from conversations."""

from pathlib import Path
from typing import Any

import pytest

from memd.api.dialects import saved_line
from tests.api import transcripts
from tests.api.caller import Caller
from tests.api.test_spending import configure

pytestmark = pytest.mark.anyio
PROMPTS = {"claude-code": "UserPromptSubmit", "codex": "UserPromptSubmit", "gemini": "BeforeAgent"}
RULES = ("always use tabs in Makefiles", "never deploy on a Friday")


async def hook(caller: Caller, event: str, client: str = "claude-code", **members: Any) -> Any:
    """Send one event and return the line that comes with its answer, "" for none."""
    payload = {"session_id": "s", "cwd": caller.cwd, "prompt": "ok then", **members}
    asked = {"client": client, "event": event, "payload": payload}
    answer = await caller.plain("hook", **asked, deadline_ms=20_000)
    return (answer or {}).get("systemMessage", "")


async def learn(caller: Caller, rule: str) -> str:
    """Learn a rule from a conversation of its own and return the memory's path."""
    path = Path(caller.home.path) / "t" / f"{len(rule)}.jsonl"
    written = transcripts.write(path, transcripts.user(f"From now on, {rule}."))
    done = await caller.call("extract", session_id=rule, transcript_path=written, wait=True)
    (saved,) = done["saved"]
    return str(saved)


async def test_it_comes_once_with_the_next_prompt_or_session(caller: Caller) -> None:
    """The first event that can tell it does; the end of a turn never does."""
    for rule, event in zip(RULES, ("UserPromptSubmit", "SessionStart"), strict=True):
        path = await learn(caller, rule)
        assert await hook(caller, "Stop") == ""
        line = await hook(caller, event)
        assert (path in line, "\n" in line) == (True, False)
        assert await hook(caller, event, session_id="other") == ""
        caller.clock.advance(1)


async def test_another_project_hears_nothing_of_it(caller: Caller) -> None:
    """What was saved is told where it was saved."""
    await learn(caller, RULES[0])
    other = caller.home.project("other")
    assert await hook(caller, "UserPromptSubmit", cwd=other) == ""


@pytest.mark.parametrize(("client", "told"), [("claude-code", 1), ("codex", 0), ("gemini", 1)])
async def test_a_client_that_would_show_a_warning_is_not_told(
    caller: Caller, client: str, told: int
) -> None:
    """Codex shows such a line as a warning at every turn."""
    await learn(caller, RULES[0])
    assert bool(await hook(caller, PROMPTS[client], client)) == told


async def test_the_setting_switches_it(caller: Caller) -> None:
    """Without ``extract.notify`` nothing is told."""
    configure(caller, "[extract]\nnotify = false\n")
    await learn(caller, RULES[0])
    assert await hook(caller, "UserPromptSubmit") == ""


@pytest.mark.parametrize(
    ("results", "line"),
    [
        ([], ""),
        ([{}, {"saved": [], "updated": []}, {"status": "skipped"}], ""),
        (
            [{"saved": ["a.md"], "updated": ["b.md"]}, {"saved": ["a.md"]}],
            "memd saved a.md, b.md (",
        ),
        ([{"saved": [f"{n}.md" for n in range(5)]}], "memd saved 0.md, 1.md, 2.md and 2 more ("),
        ([{"saved": ["a\nb\x1b[0m.md"]}], "memd saved a\\nb\\x1b[0m.md ("),
    ],
)
def test_the_line_is_short_and_safe_to_show(results: list[dict[str, Any]], line: str) -> None:
    """A few names, each once, with nothing in them that a terminal would act on."""
    assert saved_line(results).startswith(line)
    assert bool(saved_line(results)) == bool(line)
