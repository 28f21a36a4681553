"""The hook: what a client puts on its standard input, and what comes back from the socket."""

import json

import msgspec

from memd.base import strict_json
from memd.base.errors import Invalid
from memd.cli import hook
from memd.hooks import dialects
from memd.hooks.dialects import DIALECTS
from memd.rpc import messages
from memd.rules import check
from tests.fuzz.target import Target, plain

_EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "PreCompress", "PostToolUse", "AfterTool")


def payload(data: bytes) -> None:
    """Check that a payload goes out in one frame or not at all, and is read as an event or none."""
    frame = hook.hook_request(
        "claude-code", "UserPromptSubmit", data, {b"CODEX_HOME": b'/x"\n'}, ""
    )
    if frame:
        items, _ = messages.read(frame)
        assert len(items) == 1
        assert not isinstance(items[0], messages.Cancel)
    about = hook.location(data)
    try:
        given = strict_json.decode(data)
    except strict_json.NotJsonError:
        return
    _location(about)
    for dialect in DIALECTS.values():
        for name in _EVENTS:
            read = dialects.read(dialect, name, given)
            if read is not None:
                facts = read[1]
                assert "<memd-context>" not in facts.prompt
                dialects.named_memories(facts, "/home/u/memory")
                words = dialects.longest_text(facts.tool_response)
                msgspec.json.encode(dialects.with_text(facts.tool_response, words, "stored"))
                answered = dialects.answer(dialect, name, "context", notice="n")
                assert json.dumps(answered)


def _location(about: bytes) -> None:
    """Check that what is spooled of a payload is an object of texts."""
    assert all(type(value) is str for value in json.loads(about, strict=False).values())


def rule(data: bytes) -> None:
    """Check that a rule is a check or refused, and that any call breaks it or not."""
    try:
        given = strict_json.decode(data)
        text, tool, members = given["check"], given["tool"], given["input"]
        made = check.parse(text if isinstance(text, str) else "")
    except (strict_json.NotJsonError, KeyError, TypeError, Invalid):
        return
    if isinstance(tool, str) and isinstance(members, dict):
        made.fits(check.PlannedCall(tool, members, "/p"))
    if isinstance(made, check.CommandPrefix):
        same = {"command": check.normal(text)}
        assert made.fits(check.PlannedCall("Bash", same, "/p")), text


def printed(data: bytes) -> None:
    """Of an answer the result's own bytes are printed, or nothing."""
    result = hook.result_of(data)
    assert not result or data == hook.ANSWER + result + b"}"
    assert result != b"null"


_CLAUDE = {
    "session_id": "s",
    "transcript_path": "/t/s.jsonl",
    "cwd": "/p",
    "prompt": "caf\u00e9 <memd-context>x</memd-context>",
    "prompt_id": "p1",
    "tool_name": "Write",
    "tool_input": {"file_path": "/home/u/memory/a.md", "content": "x"},
    "tool_response": {"content": [{"type": "text", "text": "y" * 50}]},
    "agent_id": "",
    "source": "fork",
    "seconds_since_last_response": 1.5,
}
_CODEX = {"session_id": "s", "cwd": "/p", "turn_id": "t", "prompt": "x", "trigger": "manual"}
_PATCH = {"tool_name": "apply_patch", "tool_input": {"command": "*** Update File: memory/a.md\n"}}
_TOKENS = (
    *(b'"%s":' % name for name in hook.SPOOLED_MEMBERS), b'"session_id"', b"\\", b'\\"', b"\\\\",
    b'"', b":", b",", b"{", b"}", b"null", b"\n", b'"tool_response":', b'"tool_input":', b"\\u0000",
    b"\xff", b"<memd-context>", b"</memd-context>", b"\\ud83d",
)  # fmt: skip
TARGETS = {
    "hook payload": Target(
        plain(payload),
        tuple(json.dumps(given).encode() for given in (_CLAUDE, _CODEX, {**_CODEX, **_PATCH})),
        _TOKENS,
        json=True,
    ),
    "rule": Target(
        plain(rule),
        tuple(
            json.dumps({"check": text, "tool": tool, "input": members}).encode()
            for text, tool, members in (
                ("git push --force", "Bash", {"command": "cd x && sudo git -C . push -f origin"}),
                ("Write /\\.env$/", "Edit", {"file_path": "src/.env", "old_string": "a"}),
                ("mcp__hub__* /x+/", "mcp__hub__get", {"q": ["xx"], "command": ["a", "b"]}),
                ("npm install", "Bash", {"command": "env A=1 sh -c 'npm install x | tee y'"}),
            )
        ),
        (b"git push", b"--force", b"-f", b"sudo ", b"xargs ", b"sh -c ", b"&&", b"|", b"'", b"$("),
        json=True,
    ),
    "hook answer": Target(
        plain(printed), (hook.ANSWER + b'{"a":1}}', hook.ANSWER + b"null}"), (hook.ANSWER, b"}")
    ),
}
