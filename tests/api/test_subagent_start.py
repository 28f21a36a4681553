"""hook: a sub-agent's start brings its memory, where the settings say so."""

from pathlib import Path
from typing import Any

import pytest

from memd.core import limits
from memd.text import quoting
from tests.api.caller import Caller
from tests.api.test_hooks import hook

pytestmark = pytest.mark.anyio
MEMORY = '[agents.memory]\nreviewer = "project"\nbroken = "local"\n'


async def started(caller: Caller, agent: str, number: int = 1) -> str:
    """Return what the start of a sub-agent brings."""
    about: dict[str, Any] = {"agent_id": f"a{number}", "agent_type": agent, "prompt_id": "p"}
    answer = await hook(caller, "SubagentStart", **about)
    if answer is None:
        return ""
    assert answer["hookSpecificOutput"]["hookEventName"] == "SubagentStart"
    return str(answer["hookSpecificOutput"]["additionalContext"])


def configure(caller: Caller, text: str = MEMORY) -> None:
    """Write the settings."""
    config = Path(caller.home.places.config)
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(text)


async def test_a_sub_agent_gets_its_memory_where_the_settings_name_a_scope(caller: Caller) -> None:
    """Each start brings it, also a second under one prompt; others get nothing."""
    await caller.write(agent="reviewer", scope="project")
    await caller.write("own.md")
    assert await started(caller, "reviewer") == ""
    configure(caller)
    for number in (1, 2):
        brought = await started(caller, "reviewer", number)
        assert brought.startswith("<memd-context>")
        assert "feedback_tests.md" in brought
        assert "own.md" not in brought
    assert await started(caller, "explorer") == ""
    assert await started(caller, "") == ""


@pytest.mark.parametrize("where", ["project", "below", "user"])
async def test_nothing_is_added_where_the_client_loads_a_memory(caller: Caller, where: str) -> None:
    """A definition with a memory of its own, the project's or the person's, is enough."""
    configure(caller)
    below = Path(caller.cwd, "src")
    Path(caller.cwd, ".git").mkdir(exist_ok=True)
    folder = {
        "project": Path(caller.cwd, ".claude/agents"),
        "below": below / ".claude/agents",
        "user": Path(caller.home.path, ".claude/agents"),
    }[where]
    folder.mkdir(parents=True)
    below.mkdir(exist_ok=True)
    about = {"agent_id": "a", "agent_type": "reviewer", "cwd": str(below)}
    definition = folder / "any-name.md"
    definition.write_text("---\nname: reviewer\ndescription: d\n---\nmemory: user\n")
    assert await hook(caller, "SubagentStart", **about) is not None
    definition.write_text("---\nname: other\nmemory: user\n---\n")
    assert await hook(caller, "SubagentStart", **about) is not None
    definition.write_text('---\nname: "reviewer"\nmemory: user\n---\n')
    assert await hook(caller, "SubagentStart", **about) is None


async def test_a_long_index_stays_within_the_bound_and_in_its_quote(caller: Caller) -> None:
    """What is brought has at most 9,500 characters, and a quote that was cut is closed."""
    configure(caller)
    place = Path(caller.cwd, ".claude/agent-memory/reviewer")
    place.mkdir(parents=True)
    lines = (f"- [m{number}](m{number}.md) — {'界' * 30}\n" for number in range(180))
    (place / "MEMORY.md").write_text("".join(lines))
    brought = await started(caller, "reviewer")
    assert quoting.units(brought) <= limits.HOOK_CHARACTERS
    assert (brought.count("<memory_index>"), brought.count("</memory_index>")) == (1, 1)
    assert "for the whole index" in brought.rpartition("</memory_index>")[2]


async def test_a_memory_that_cannot_be_there_stops_no_sub_agent(caller: Caller) -> None:
    """A link in the memory's way brings nothing, and memory that is off neither."""
    configure(caller)
    Path(caller.cwd, ".claude").mkdir()
    Path(caller.cwd, ".claude/agent-memory-local").symlink_to("/")
    assert await started(caller, "broken") == ""
    configure(caller, f"enabled = false\n{MEMORY}")
    assert await started(caller, "reviewer") == ""
