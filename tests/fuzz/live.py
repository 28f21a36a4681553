"""A whole daemon: calls of every method with parameters of any shape, one after another."""

import json
import socket
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
from anyio.from_thread import start_blocking_portal

from memd.base import strict_json
from memd.daemon.table import methods
from memd.methods.method import Method
from tests.fuzz.target import Target, Use
from tests.rpc.answers import assert_body
from tests.support.daemon import daemon_here, throw_away_home

INTERNAL = -32603
# These end the daemon, wait for others, or touch files and servers that the caller names.
_LEFT_OUT = frozenset(
    (
        "shutdown",
        "export",
        "import",
        "team.join",
        "message.receive",
        "job.wait",
    )
)
_PLACE, _SECONDS, _REMEMBERED = "$P", 30, 20
_TEXT = "Remember: always run the checks before you push to the main branch."
_VALUES: dict[str, Any] = {
    "cwd": _PLACE, "session_id": "s1", "session": "s1", "path": "a.md", "limit": 3, "days": 2,
    "content": "---\nname: a\ndescription: d\nmetadata:\n  type: user\n---\n\nb\n",
    "messages": [{"role": "user", "content": _TEXT}, {"role": "assistant", "content": "I will."}],
    "command": {"command": "view", "path": "/memories"}, "client": "claude-code", "at": 1.5,
    "event": "UserPromptSubmit", "topics": ["memory.changed"], "change": "c1", "section": "Files",
    "payload": {"session_id": "s1", "cwd": _PLACE, "prompt": "what of the build?"}, "to": "ada",
    "environment": {"CODEX_HOME": "/x"}, "name": "ada", "key": "k", "pattern": "x", "all": True,
    "transcript_path": f"{_PLACE}/s.jsonl", "conversation": "main", "from": 0, "hash": "0" * 16,
    "tool": "Read", "tool_use_id": "t1", "model": "claude-haiku-4-5", "text": _TEXT, "pid": 1,
    "kind": "note", "body": "x", "url": "http://127.0.0.1:1", "code": "x", "ids": ["m1"],
    "job": "j1", "suggestion": "s1", "proposal": "p1", "type": "user", "description": "d",
    "wait": False, "usage": {"input_tokens": 5}, "how": "mine", "revision": 1, "said": "x",
    "decisions": [], "view": "claude-code", "strategy": "local", "scope": "user", "by": "day",
    "query": "what of the build?", "dry_run": True, "id": "m1",
}  # fmt: skip


@contextmanager
def calls() -> Iterator[Use]:
    """Open a daemon: whatever it is called with, the answer is a result or a typed error."""
    with (
        throw_away_home() as home,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(daemon_here(home)),
        socket.socket(socket.AF_UNIX) as line,
        line.makefile("rb") as reader,
    ):
        line.connect(home.places.socket)
        line.settimeout(_SECONDS)
        known, before = {row.name for row in methods()}, deque[bytes](maxlen=_REMEMBERED)

        def use(data: bytes) -> None:
            frame = _frame(data, home.project(), known)
            if frame is None:
                return
            before.append(frame)
            line.sendall(frame)
            for body in iter(reader.readline, b""):
                if b'"method"' not in body[:40]:  # no notification
                    break
            try:
                (answer,) = assert_body(body)
                assert answer.get("error", {}).get("code") != INTERNAL, answer
            except (AssertionError, ValueError) as error:
                error.add_note("the calls before: " + b"".join(before).decode())
                raise

        yield use


def _frame(data: bytes, project: str, known: set[str]) -> bytes | None:
    """Return an input as a line that asks for something; ``None`` for one that does not."""
    try:
        given = strict_json.decode(data.replace(_PLACE.encode(), project.encode()))
    except strict_json.NotJsonError:
        return None
    method = given.get("method") if isinstance(given, dict) else None
    if not isinstance(method, str) or method not in known - _LEFT_OUT:
        return None
    asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": given.get("params")}
    with suppress(ValueError):
        return json.dumps(asked).encode() + b"\n"
    return None


def _seed(row: Method) -> bytes:
    """Return a call of a method with parameters that make sense where they are known."""
    names = [field.encode_name for field in msgspec.structs.fields(row.params)]
    params = {name: _VALUES[name] for name in names if name in _VALUES}
    return json.dumps({"method": row.name, "params": params}).encode()


SEEDS = tuple(_seed(row) for row in methods() if row.name not in _LEFT_OUT)
_TOKENS = tuple(sorted({f'"{name}"'.encode() for name in _VALUES} | {_PLACE.encode()}))
TARGETS = {"daemon": Target(calls, SEEDS, _TOKENS, json=True)}
