"""What learning from a program's conversation costs: the server's cache of it serves memd too."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from memd.client.context import Keeper
from tests.client.agents import MODEL, blocking
from tests.net.kit import until
from tests.support.daemon import Home, client, daemon_process, throw_away_home
from tests.support.messages import messages_server, text
from tests.support.messages import tools as calling
from tests.support.prompt_cache import PromptCache
from tests.support.steps import ReceivedMessage, ScriptedReply

WORDS = (
    "the parser reads each record once and keeps what it needs of it before the next one comes; "
    "a test with a real database showed that the second pass had never found anything new; "
)
MARK = {"cache_control": {"type": "ephemeral"}}
SYSTEM = [{"type": "text", "text": "You help with a parser. " * 40, **MARK}]
TOOLS = [
    {"name": name, "description": f"{name} a file.", "input_schema": {"type": "object"}}
    for name in ("Read", "Edit")
]
Usages = list[Mapping[str, int]]


@pytest.mark.full
@pytest.mark.parametrize(
    ("turns", "size"), [(40, 50), pytest.param(200, 8, marks=pytest.mark.soak)]
)
def test_learning_reads_the_cache(turns: int, size: int) -> None:
    """Of the input of extraction and notes 95 % comes from the cache of the program's requests."""
    cache = PromptCache(lambda: 0.0)
    asked: dict[str, Usages] = {"program": [], "extract": [], "notes": []}

    def script(request: ReceivedMessage) -> ScriptedReply:
        notes = re.search(r"# Current State\n(_.*_)", request.last_text)
        path = re.search(r"/\S+/summary\.md", request.last_text)
        who = "notes" if notes and path else "extract"
        reply = text(f"Nothing new: {WORDS}")
        if request.key == "program":
            who = "program"
        elif notes and path:
            line = {"old_string": notes[1], "new_string": f"{notes[1]}\n{len(asked['notes'])}"}
            reply = calling(("Edit", {"file_path": path[0], **line}))
        usage = cache.usage(request.json)
        asked[who].append(usage)
        return replace(reply, usage={**usage, "output_tokens": 50})

    with throw_away_home() as home, messages_server(script) as server:
        configure(home, server.url)
        with daemon_process(home):
            converse(home, server.url, turns, size)
    assert len(asked["program"]) == turns
    assert len(asked["extract"]) > turns * 0.9
    assert len(asked["notes"]) > 5
    shares = {who: share(usages) for who, usages in asked.items()}
    print(shares, {who: len(usages) for who, usages in asked.items()})  # noqa: T201 - the proof's figures
    assert share([*asked["extract"], *asked["notes"]]) >= 0.95


def configure(home: Home, url: str) -> None:
    """Let a home's daemon ask a model at an address."""
    config = Path(home.places.config)
    config.parent.mkdir(parents=True, exist_ok=True)
    model = f'[model]\nbase_url = "{url}"\napi_key = "memd"\n'
    config.write_text(f"{model}[spend]\ndollars_per_day = 500.0\n[dream]\nauto = false\n")
    config.chmod(0o600)


def converse(home: Home, url: str, turns: int, size: int) -> None:
    """Have a conversation of a program; memd learns from each turn before the next one."""
    keeper = Keeper(home.project(), "s", socket=home.places.socket, seconds=10)
    said: list[dict[str, Any]] = []
    with client(home) as door, blocking(url, keeper) as unkeyed:
        api = unkeyed.with_options(api_key="program")
        fixed: Any = {"model": MODEL, "max_tokens": 100, "system": SYSTEM, "tools": TOOLS}
        for turn in range(turns):
            prompt = {"type": "text", "text": f"Question {turn}: {WORDS * size}"}
            newest = {"role": "user", "content": [{**prompt, **MARK}]}
            api.messages.create(**fixed, messages=[*said, newest])
            answer = {"type": "text", "text": f"Nothing new: {WORDS}"}
            said.append({"role": "user", "content": [prompt]})
            said.append({"role": "assistant", "content": [answer]})
            keeper._ended_turns.wait(60)
            until(lambda: not under_way(door), "memd has learnt")


def under_way(door: Any) -> list[Any]:
    """Return the jobs that have not ended."""
    ended = {"completed", "failed", "cancelled", "done"}
    return [job for job in door.call("job.list")["jobs"] if job["state"] not in ended]


def share(usages: Iterable[Mapping[str, int]]) -> float:
    """Return the share of the input that came from the cache."""
    known = [*usages]
    read = sum(usage["cache_read_input_tokens"] for usage in known)
    return read / sum(sum(usage.values()) for usage in known)
