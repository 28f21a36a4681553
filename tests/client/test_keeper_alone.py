"""The middleware without memd, or with one that hangs, dies or talks nonsense."""

import gzip
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic import APIStatusError

from memd.client.context import READER, Keeper
from memd.core.canonical import content_hash
from tests.client.agents import LARGE, WAYS, blocking, body, history, sent_by
from tests.support.messages import (
    Drip,
    Failure,
    Hang,
    Interrupt,
    MessagesServer,
    Raw,
    messages_server,
    text,
)
from tests.support.scripted_daemon import HangUp, ScriptedDaemon, ScriptedRefusal, Silence
from tests.timing import least_seconds

UNBOUND = "claude-haiku-4-5"  # a model whose thinking outlives what stands before it
COUNTED = {"status": "ok", "request": {}, "compact": {"due": False}}


@pytest.fixture(name="server")
def _server() -> Iterator[MessagesServer]:
    with messages_server(text("done")) as server:
        yield server


@pytest.fixture(name="socket")
def _socket(tmp_path: Path) -> str:
    return str(tmp_path / "run" / "memd.sock")


def keeper(socket: str) -> Keeper:
    """Return a middleware of the daemon at a socket, which waits as long as a loaded machine is."""
    return Keeper(".", "s", socket=socket, seconds=10)


def spilled(call: str, content: Any, path: str = "") -> dict[str, Any]:
    """Return memd's decision that a result is stored."""
    shown = f"<persisted-output>\n{path}\n</persisted-output>"
    hashed = {"tool_use_id": call, "content_hash": content_hash(content)}
    return {**hashed, "action": "spill", "content": shown, "path": path, "size": 1}


def planned(*decisions: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return an answer to context.plan."""
    return {**COUNTED, "decisions": list(decisions), **members}


@pytest.mark.parametrize("way", WAYS)
def test_without_a_daemon_requests_are_those_without_memd(
    server: MessagesServer, socket: str, way: str
) -> None:
    """A program whose daemon is not there sends the same bytes as without the middleware."""
    alone = keeper(socket)
    given = body(history(LARGE), alone)
    assert sent_by(way, server.url, alone, given) == sent_by(way, server.url, None, given) == "done"
    first, second = server.messages
    assert first.body == second.body


NONSENSE: tuple[Any, ...] = (
    None,
    [],
    "text",
    {},
    {"status": "ok"},
    {"status": "ok", "decisions": 5, "request": {}},
    {"status": "ok", "decisions": [5, {"action": "spill"}, {}], "request": {}},
    {"status": "ok", "decisions": [], "request": 5},
    {"status": "resync", "checkpoints": 5},
    {"status": "resync", "checkpoints": [{"messages": 9, "hash": "x"}]},
    ScriptedRefusal(1002, "changed"),
    Silence(),
    HangUp(),
)


@pytest.mark.parametrize("answer", NONSENSE, ids=str)
@pytest.mark.parametrize("way", ["create", "stream_async"])
def test_whatever_memd_answers_the_request_goes_out(
    server: MessagesServer, socket: str, way: str, answer: Any
) -> None:
    """Errors, nonsense, silence and a lost connection change nothing, and cost little time."""
    with ScriptedDaemon(socket, {"context.plan": answer}):
        alone = Keeper(".", "s", socket=socket)
        given = body(history(LARGE), alone)
        sent_by(way, server.url, None, given)

        def send() -> None:
            assert sent_by(way, server.url, alone, given) == "done"

        assert least_seconds(send, 5.0) < 5  # of which memd has 0.15 s
    assert len({request.body for request in server.messages}) == 1


def test_what_was_sent_without_memd_is_reported_and_stays(
    server: MessagesServer, socket: str
) -> None:
    """A result that went out while memd was away is reported as kept, and goes out like that."""
    late = keeper(socket)
    first, both = history(LARGE), history(LARGE, LARGE + "2")
    sent_by("create", server.url, late, body(first, late))
    new, old = spilled("toolu_1", LARGE + "2", "/r/2"), spilled("toolu_0", LARGE, "/r/1")
    answers = {"context.plan": planned(new, old), "context.restore": {"restored": 1}}
    with ScriptedDaemon(socket, answers) as daemon:
        sent_by("create", server.url, late, body(both, late))
        sent_by("create", server.url, late, body(both, late))
    assert daemon.methods == ["context.restore", "context.plan", "context.plan"]
    (reported,) = daemon.params("context.restore")["decisions"]
    assert (reported["tool_use_id"], reported["action"]) == ("toolu_0", "keep")
    for request in server.messages[1:]:
        contents = [message["content"][0]["content"] for message in request.json["messages"][2::2]]
        assert contents == [LARGE, new["content"]]


def test_what_was_decided_holds_when_memd_is_gone(server: MessagesServer, socket: str) -> None:
    """Without memd the known decisions are sent on, byte for byte, in this process and another."""
    known = keeper(socket)
    given = body(history(LARGE), known)
    with ScriptedDaemon(socket, {"context.plan": planned(spilled("toolu_0", LARGE))}):
        sent_by("create", server.url, known, given)
    sent_by("stream", server.url, known, given)
    other = keeper(socket)
    other.load(known.dump())
    sent_by("create_async", server.url, other, given)
    parts = [request.json["messages"] for request in server.messages]
    assert parts[0] == parts[1] == parts[2] != given["messages"]


def test_each_attempt_sends_the_same_bytes(socket: str) -> None:
    """A retry is what was sent before, whatever memd would say by then."""
    answers = iter([planned(spilled("toolu_0", LARGE)), HangUp(), planned()])
    script: list[Any] = [Failure(429, retry_after=0), Failure(529, retry_after=0), text("done")]
    with (
        ScriptedDaemon(socket, {"context.plan": lambda _: next(answers)}) as daemon,
        messages_server(script) as server,
    ):
        tried = keeper(socket)
        with blocking(server.url, tried, retries=2) as client:
            client.messages.create(**body(history(LARGE), tried))
        assert len({request.body for request in server.messages}) == 1
        assert daemon.methods == ["context.plan"]
        assert "persisted-output" in server.messages[2].last_text


def test_memd_is_told_what_is_new_and_all_of_it_when_it_asks(
    server: MessagesServer, socket: str
) -> None:
    """A plan has the messages that memd lacks; those behind its checkpoint when it has others."""
    given = history(LARGE, LARGE + "2")

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        if daemon.methods != ["context.plan"] * 2:
            return planned()
        hashed = params["hash"]
        checkpoints = [{"messages": 64, "hash": hashed}, {"messages": 0, "hash": hashed}]
        return {"status": "resync", "checkpoints": checkpoints}

    with ScriptedDaemon(socket, {"context.plan": answer}) as daemon:
        known = keeper(socket)
        for length in (3, 5, 5, 3):
            sent_by("create", server.url, known, body(given[:length], known))
    plans = [call.params for call in daemon.requested if call.method == "context.plan"]
    assert [(plan["from"], len(plan["messages"])) for plan in plans] == [
        (0, 3),
        (3, 2),
        (0, 5),
        (5, 0),
        (3, 0),
    ]
    assert plans[0]["reader"] == READER


def test_marks_of_the_cache_move_without_new_messages(server: MessagesServer, socket: str) -> None:
    """A mark of the cache that wanders to the newest message leaves the older ones known."""
    with ScriptedDaemon(socket, {"context.plan": planned()}) as daemon:
        known = keeper(socket)
        for results in ([LARGE], [LARGE, LARGE + "2"]):
            given = history(*results)
            given[-1]["content"][0]["cache_control"] = {"type": "ephemeral"}
            sent_by("create", server.url, known, body(given, known))
    assert daemon.params("context.plan")["from"] == 3


def test_older_results_and_thinking_go_only_where_memd_says_so(
    server: MessagesServer, socket: str
) -> None:
    """A later decision to clear or to drop replaces an earlier one; a later spill does not."""
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    messages = [*history(LARGE), {"role": "assistant", "content": [thought, _said("well")]}]
    messages += [{"role": "user", "content": "Go on."}]
    first, second = spilled("toolu_0", LARGE, "/r/1"), spilled("toolu_0", LARGE, "/r/2")
    cleared = {**second, "action": "clear", "content": "[cleared] /r/2"}
    dropped = {**spilled("", [thought]), "action": "drop", "content": ""}
    answers = iter([planned(first), planned(second), planned(cleared, dropped)])
    with ScriptedDaemon(socket, {"context.plan": lambda _: next(answers)}):
        known = keeper(socket)
        for length in (3, 5, 5):
            sent_by("create", server.url, known, body(messages[:length], known, model=UNBOUND))
    asked = [request.json["messages"] for request in server.messages]
    contents = [conversation[2]["content"][0]["content"] for conversation in asked]
    assert contents == [first["content"], first["content"], cleared["content"]]
    assert [len(conversation[3]["content"]) for conversation in asked[1:]] == [2, 1]


def test_memd_adds_members_to_requests_and_names_their_betas(
    server: MessagesServer, socket: str
) -> None:
    """What the plan adds goes out with its betas and the program's, but not to be counted."""
    edits = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    added = {"context_management": edits, "betas": ["context-management-2025-06-27"]}
    with ScriptedDaemon(socket, {"context.plan": planned(request=added)}):
        known = keeper(socket)
        given = body(history(LARGE), known)
        with blocking(server.url, known) as client:
            client.beta.messages.create(**given, betas=["compact-2026-09-04"])
            client.messages.create(**given, extra_headers={"Anthropic-Beta": "compact-2026-09-04"})
            client.beta.messages.count_tokens(**_uncounted(given))
    *created, counted = server.requests
    for request in created:
        assert request.json["context_management"] == edits
        assert request.betas == {"compact-2026-09-04", "context-management-2025-06-27"}
    assert "context_management" not in counted.json


def test_a_mark_within_a_stored_text_stays_at_its_end(server: MessagesServer, socket: str) -> None:
    """The cache's mark of a text that is replaced is then the mark of its result."""
    mark = {"cache_control": {"type": "ephemeral"}}
    messages = history("")
    messages[2]["content"][0]["content"] = content = [{**_said(LARGE), **mark}]
    plain = [_said(LARGE)]
    assert content_hash(content) == content_hash(plain)
    with ScriptedDaemon(socket, {"context.plan": planned(spilled("toolu_0", plain))}):
        known = keeper(socket)
        sent_by("create", server.url, known, body(messages, known))
    (block,) = server.messages[0].json["messages"][2]["content"]
    assert block["cache_control"] == mark["cache_control"]
    assert "persisted-output" in block["content"]


STREAM = b'event: message_delta\ndata: {"usage":{"output_tokens":3},"x":"\xe5\xa5\xbd"}\r\n\n: end'


@pytest.mark.parametrize("packed", [False, True])
def test_a_reply_passes_as_it_comes(socket: str, *, packed: bool) -> None:
    """The bytes of a stream are those of the server, packed or not, in odd pieces."""
    headers = {"Content-Encoding": "gzip"} if packed else {}
    data = gzip.compress(STREAM) if packed else STREAM
    reply = Raw(data, content_type="text/event-stream", headers=headers)
    known = keeper(socket)
    with messages_server(Drip(reply, 3, 0.0)) as server, blocking(server.url, known) as client:
        given = body(history(LARGE), known, stream=True)
        with client.messages.with_streaming_response.create(**given) as response:
            assert b"".join(response.iter_bytes()) == STREAM
    assert known._reply.usage == {"output_tokens": 3}


def test_a_stream_that_nobody_reads_to_its_end_is_closed(socket: str) -> None:
    """A stream that breaks is the program's error as ever, and one that is dropped is let go."""
    script: list[Any] = [Interrupt(text("a b c")), Hang(text("a b c"), at=500)]
    known = keeper(socket)
    with messages_server(script) as server, blocking(server.url, known) as client:
        with pytest.raises(APIStatusError):
            list(client.messages.create(**body(history(), known), stream=True))
        stream = client.messages.create(**body(history(), known), stream=True)
        next(iter(stream))
        del stream
        assert server.messages[1].wait() == "gone"


OLD = """
import sys, types
sdk = types.ModuleType("anthropic")
sdk.__version__ = "0.39.0"
sys.modules["anthropic"] = sdk
import memd.client.context
"""


def test_an_old_sdk_is_named() -> None:
    """An SDK without middleware fails the import with an error that names its version."""
    done = subprocess.run(
        [sys.executable, "-c", OLD],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 1
    assert "anthropic 0.39.0 has no middleware" in done.stderr


def _said(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def _uncounted(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name != "max_tokens"}
