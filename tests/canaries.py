"""Words planted wherever a person's text can be, for what must never show any of it."""

from pathlib import Path
from typing import Any, Protocol

CANARY = "canary"  # a part of everything that is planted
DESCRIPTION = "The canary sings at dawn"
SAID = "From now on, always feed the canary before a release."


class PlantingCaller(Protocol):
    """Calls a daemon's methods; errors are answers too."""

    async def any(self, method: str, **params: Any) -> Any:
        """Call a method and return its result, or nothing where it failed."""
        ...


def files(home: str, config: str) -> None:
    """Write settings with words of a person: some that count, some that are refused."""
    Path(config).parent.mkdir(parents=True, exist_ok=True)
    Path(config).write_text(
        'unknown_canary = "canary"\n[prompt]\ndisplay_name = "Canary notes"\n'
        'extra_guidelines = "Mind the canary."\n[recall]\nlimit = "canary"\n'
        '[messages]\npeers = ["canary-peer"]\n[model]\nenabled = false\nbase_url = "http://127.0.0.1:9/canary"\n'
        'api_key = "sk-canary-000000000000000000000000"\nrecall = "canary-model"\n'
    )
    Path(config).chmod(0o600)
    transcript = Path(home) / ".claude" / "projects" / "canary" / "s.jsonl"
    transcript.parent.mkdir(parents=True, exist_ok=True)
    transcript.write_text('{"type":"user","message":{"role":"user","content":"canary"}}\n')


async def plant(caller: PlantingCaller, cwd: str) -> None:
    """Leave a canary in everything that a daemon takes, also in what it refuses."""
    where = {"cwd": cwd}
    memory = {"name": "canary-name", "description": DESCRIPTION, "type": "feedback", "body": SAID}
    await caller.any("hello", client="canary-client", version="canary", environment={"X": "canary"})
    await caller.any("memory.write", **where, path="canary.md", **memory)
    await caller.any("memory.write", **where, path="../canary.md", **memory)
    await caller.any("memory.search", **where, query="canary dawn")
    await caller.any("memory.read", **where, path="missing_canary.md")
    await caller.any("load_prompt", **where, session_id="canary-session")
    await caller.any("prefetch", **where, session_id="canary-session", query="feed the canary")
    spoken = [{"role": "user", "content": SAID}]
    session = {"session_id": "canary-session"}
    await caller.any("extract", **where, **session, messages=spoken, wait=True)
    await caller.any("extract", **where, **session, transcript_path="/canary.jsonl")
    await caller.any("agent.register", **where, name="canary-agent")
    await caller.any("message.send", **where, to="canary-agent", body="Has the canary sung?")
    await caller.any(
        "notes.write", **where, **session, section="Worklog", content="fed", base_hash=""
    )
    await caller.any("no.such.canary", canary=1)
    await caller.any("hook", client="canary", event="canary", payload={"session_id": "canary"})
    payload = {"session_id": "canary-session", "cwd": cwd, "prompt": "feed the canary"}
    await caller.any("hook", client="claude-code", event="UserPromptSubmit", payload=payload)
    await caller.any("dream", **where, force=True, wait=True)
