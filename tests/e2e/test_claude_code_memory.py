"""The real Claude Code and its own memory: where it is, what it writes there, who is told."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.claude import conversation, once
from tests.e2e.hooks import blocks
from tests.e2e.programs import learn_from_scripts, memctl
from tests.e2e.relay import FACTS
from tests.support.daemon import Home, client, daemon_process, throw_away_home
from tests.support.messages import messages_server, text, tools

pytestmark = pytest.mark.e2e
_TOLD = "informational"  # how the client shows what a hook tells the person
FACT = FACTS[0]
FILE = """---
name: heron-branch
description: how the heron service is deployed
type: project
---

{statement}
"""


@pytest.fixture
def home() -> Iterator[Home]:
    """Run a daemon in a home where memd's hooks are set up, the one after a tool's use as well."""
    with throw_away_home() as made:
        memctl(made, "setup", "claude-code")
        settings = Path(made.path) / ".claude/settings.json"
        options = json.loads(settings.read_text())
        entry = json.dumps(options["hooks"]["UserPromptSubmit"][0])
        used = json.loads(entry.replace("UserPromptSubmit", "PostToolUse"))
        options["hooks"].setdefault("PostToolUse", [used | {"matcher": "Write|Edit"}])
        settings.write_text(json.dumps(options))
        memctl(made, "shutdown")
        with daemon_process(made):
            yield made


def ask(home: Home, method: str, **params: Any) -> Any:
    """Ask the daemon about the home's project."""
    with client(home) as caller:
        return caller.call(method, {"cwd": home.project(), **params})


def writes(folder: str) -> Any:
    """Return a model that reads the index, writes a memory and adds a line for it itself."""
    index = f"{folder}/MEMORY.md"
    last = "- [old](old.md) — an old one"
    line = "- [Heron](heron-branch.md) — its branch"
    content = FILE.format(statement=FACT.statement)
    return [
        tools(("Read", {"file_path": index})),
        tools(
            ("Write", {"file_path": f"{folder}/heron-branch.md", "content": content}),
            ("Edit", {"file_path": index, "old_string": last, "new_string": f"{last}\n{line}"}),
        ),
        text("Saved."),
        text("From the cobalt branch."),
    ]


def test_a_memory_of_its_own_is_indexed_and_known_as_its_own(home: Home) -> None:
    """It has one line, is recorded with client and session, and is not brought to its writer."""
    old = {"name": "old", "description": "an old one", "type": "project", "body": "An old one."}
    ask(home, "memory.write", path="old.md", **old)
    folder = ask(home, "memory.list")["memory_dir"]
    with ExitStack() as stack:
        server = stack.enter_context(messages_server(writes(folder)))
        talk = stack.enter_context(conversation(home, server, home.project()))
        saved = talk.say(FACT.request)
        asked = talk.say(FACT.question)
    told = "memd has added the line of this memory"
    assert saved.requests[-1].body.decode().count(told) == 1
    index = Path(folder, "MEMORY.md").read_text()
    assert index.count("(heron-branch.md)") == index.count("— its branch") == 1
    (made,) = ask(home, "memory.history", path="heron-branch.md")["changes"]
    assert (made["actor"], made["client"]) == ("assistant", "claude-code")
    assert made["session"]
    assert not [block for block in blocks(asked.requests[-1]) if FACT.statement in block]


@pytest.mark.parametrize(
    ("option", "value", "lines"),
    [("autoMemoryDirectory", "~/mine", 1), ("autoMemoryEnabled", False, 0)],
)
def test_both_mean_the_same_directory(home: Home, option: str, value: Any, lines: int) -> None:
    """The client's own directory is memd's; where its memory is off, memd brings the index."""
    settings = Path(home.path) / ".claude/settings.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {option: value}))
    config = Path(home.places.config)
    config.parent.mkdir(parents=True, exist_ok=True)
    with config.open("a") as file:  # for the case that the client's own memory is off
        file.write("\n[claude_code]\nbring_memory = true\n")
    config.chmod(0o600)
    parts = {"name": "heron", "description": "deploying the heron", "type": "project"}
    ask(home, "memory.write", path="heron.md", **parts, body=FACT.statement)
    with messages_server(text("Understood.")) as server:
        once(home, server, home.project(), FACT.question)
        body = server.messages[-1].body.decode()
    assert body.count("](heron.md)") == 1
    assert body.count(FACT.statement) == 1
    assert "](heron.md)" not in "".join(blocks(server.messages[-1])) or not lines
    directory = ask(home, "memory.list")["memory_dir"]
    assert (directory == f"{home.path}/mine") is bool(lines)
    checks = {check["name"]: check["state"] for check in ask(home, "doctor")["checks"]}
    assert checks["client memory"] == "ok"


@pytest.mark.parametrize("allowed", [False, True])
def test_a_script_is_learnt_from_only_where_the_settings_say_so(
    home: Home, *, allowed: bool
) -> None:
    """``claude -p`` is no person; where it counts, one line tells what was saved."""
    if allowed:
        learn_from_scripts(home)
    with ExitStack() as stack:
        server = stack.enter_context(messages_server(text("Understood.")))
        talk = stack.enter_context(conversation(home, server, home.project()))
        talk.say(FACT.request)
        events = list(talk.say("Fine.").events)  # by now the end of the first turn has arrived
        with client(home) as caller:
            for job in caller.call("job.list", {})["jobs"]:
                caller.call("job.wait", {"job": job["job"]}, timeout=60)
        events += talk.say("Good.").events
    notices = [str(event.get("content")) for event in events if event.get("subtype") == _TOLD]
    assert any("memd: saved " in notice for notice in notices) is allowed
    assert len(ask(home, "memory.list")["memories"]) == allowed
    assert "memd: saved " not in server.messages[-1].body.decode()
