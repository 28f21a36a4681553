"""hook: what a context gets that was compacted."""

from pathlib import Path

import pytest

from memd.core import limits
from memd.projects.project import slug
from memd.text.quoting import units
from tests.api.caller import Caller
from tests.api.conversations import Conversation
from tests.api.test_hooks import WORDS, hook

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("client_loads", [True, False])
async def test_notes_share_one_request_with_the_next_prompt(
    caller: Caller, *, client_loads: bool
) -> None:
    """What is brought at the compaction and with that prompt is within the client's bound."""
    claude = Path(caller.home.path) / ".claude"
    talk = Conversation(claude / "projects" / slug(caller.cwd) / "s.jsonl")
    for number in range(40):
        await caller.write(f"m{number}.md", name=f"memory-{number}", description="界" * 90)
        talk.person(f"Part {number}: {'now the next table of the shelf ' * 12}")
        talk.reply("It is done. " * 20, calls=2)
    await caller.write(body="Never mock the database. " + "It hides what breaks. " * 150)
    if not client_loads:
        (claude / "settings.json").write_text('{"autoMemoryEnabled": false}')
        config = Path(caller.home.places.config)
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text("[claude_code]\nbring_memory = true\n")
    where = {"transcript_path": str(talk.path)}
    assert await hook(caller, "PreCompact", trigger="manual", **where) is None
    started = await hook(caller, "SessionStart", source="compact", **where)
    asked = await hook(caller, "UserPromptSubmit", prompt=WORDS, prompt_id="p1", **where)
    notes, memories = (each["hookSpecificOutput"]["additionalContext"] for each in (started, asked))
    assert notes.count("# Current State") == 1
    assert "[What was cut is in " in notes
    assert ("# Memory\n" in notes) != client_loads
    assert "Never mock" in memories
    assert units(notes) + units(memories) <= limits.HOOK_CHARACTERS
