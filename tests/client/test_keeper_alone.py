"""The middleware without memd, or with one that hangs, dies or talks nonsense."""

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from anthropic import APIStatusError

from memd.client.context import Keeper
from tests.client.agents import LARGE, blocking, body, history, sent_by
from tests.support.messages import STREAM, MessagesServer, messages_server, text
from tests.support.scripted_daemon import HangUp, ScriptedDaemon, ScriptedRefusal, Silence
from tests.support.steps import Drip, Hang, Raw
from tests.timing import least_seconds

COUNTED = {"request": {}, "compact": {"due": False}}


@pytest.fixture(name="socket")
def _socket(tmp_path: Path) -> str:
    return str(tmp_path / "run" / "memd.sock")


def keeper(socket: str) -> Keeper:
    """Return a middleware of the daemon at a socket, which waits as long as a loaded machine is."""
    return Keeper(".", "s", socket=socket, seconds=10)


def planned(*decisions: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return an answer to context.plan."""
    return {**COUNTED, "decisions": list(decisions), **members}


NONSENSE: tuple[Any, ...] = (
    None,
    [],
    "text",
    {},
    {"decisions": 5, "request": {}},
    {"decisions": [5, {"action": "spill"}, {}], "request": {}},
    {"decisions": [], "request": 5},
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


REPLY = b'event: message_delta\ndata: {"usage":{"output_tokens":3},"x":"\xe5\xa5\xbd"}\r\n\n: end'


@pytest.mark.parametrize("packed", [False, True])
def test_a_reply_passes_as_it_comes(socket: str, *, packed: bool) -> None:
    """The bytes of a stream are those of the server, packed or not, in odd pieces."""
    headers = {"Content-Encoding": "gzip"} if packed else {}
    data = gzip.compress(REPLY) if packed else REPLY
    reply = Raw(data, content_type=STREAM, headers=headers)
    known = keeper(socket)
    with messages_server(Drip(reply, 3, 0.0)) as server, blocking(server.url, known) as client:
        given = body(history(LARGE), known, stream=True)
        with client.messages.with_streaming_response.create(**given) as response:
            assert b"".join(response.iter_bytes()) == REPLY
    assert known._reply.usage == {"output_tokens": 3}


def test_a_stream_that_nobody_reads_to_its_end_is_closed(socket: str) -> None:
    """A stream that breaks is the program's error as ever, and one that is dropped is let go."""
    error = b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error"}}\n\n'
    script: list[Any] = [Raw(error, content_type=STREAM), Hang(text("a b c"), at=500)]
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


def _uncounted(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name != "max_tokens"}
