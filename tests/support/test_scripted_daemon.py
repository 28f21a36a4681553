"""The scripted daemon."""

import json
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted_daemon import (
    HangUp,
    ScriptedDaemon,
    ScriptedRefusal,
    SentProgress,
    Silence,
    read_frame,
)


def _ask(path: str, *requests: dict[str, Any], headed: bool = False) -> list[dict[str, Any]]:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        for request in requests:  # a daemon that hung up may have gone before the last one
            body = json.dumps({"jsonrpc": "2.0", **request}).encode()
            head = b"Content-Length: %d\r\n\r\n" % len(body)
            with suppress(OSError):
                client.sendall(head + body if headed else body + b"\n")
        with suppress(OSError):
            client.shutdown(socket.SHUT_WR)
        answers = []
        with client.makefile("rb") as stream, suppress(ConnectionResetError):
            while (frame := read_frame(stream)) is not None:
                assert frame[1] == headed
                answers.append(json.loads(frame[0]))
        return answers


@pytest.mark.parametrize("headed", [True, False])
def test_it_answers_in_the_framing_of_the_question(tmp_path: Path, headed: bool) -> None:  # noqa: FBT001 - a case of the table
    """Results, refusals and notifications come back in the question's framing, in order."""
    script = {
        "status": {"é": 1},
        "echo": lambda params: params,
        "no": ScriptedRefusal(1001, "not there", {"kind": "not_found"}),
        "subscribe": SentProgress({"ok": True}, (("job.done", {"job": "j"}),)),
    }
    with ScriptedDaemon(str(tmp_path / "run" / "s"), script) as daemon:
        answers = _ask(
            daemon.path,
            {"id": 1, "method": "status"},
            {"id": 2, "method": "echo", "params": {"a": 1}},
            {"id": 3, "method": "no"},
            {"id": 4, "method": "subscribe"},
            {"method": "status"},
            {"id": 5, "method": "other"},
            headed=headed,
        )
    assert [a.get("result") for a in answers] == [
        {"é": 1},
        {"a": 1},
        None,
        {"ok": True},
        None,
        None,
    ]
    assert answers[2]["error"] == {
        "code": 1001,
        "message": "not there",
        "data": {"kind": "not_found"},
    }
    assert answers[4]["method"] == "job.done"
    assert answers[5]["error"]["code"] == -32601
    assert daemon.methods == ["status", "echo", "no", "subscribe", "status", "other"]
    assert daemon.params("echo") == {"a": 1}
    with pytest.raises(KeyError):
        daemon.params("never")


def test_it_can_stay_silent_or_hang_up(tmp_path: Path) -> None:
    """A silent method gets no answer, a hang-up ends the connection, the end ends all."""
    script = {
        "silent": Silence(),
        "gone": HangUp(),
        "bye": SentProgress(1, hang_up=True),
        "status": {},
    }
    with ScriptedDaemon(str(tmp_path / "s"), script) as daemon:
        assert _ask(daemon.path, {"id": 1, "method": "silent"}) == []
        assert _ask(daemon.path, {"id": 1, "method": "gone"}, {"id": 2, "method": "status"}) == []
        last = _ask(daemon.path, {"id": 1, "method": "bye"}, {"id": 2, "method": "status"})
        assert [answer["result"] for answer in last] == [1]
        waiting = socket.socket(socket.AF_UNIX)
        waiting.connect(daemon.path)
    with suppress(ConnectionResetError):  # an end either way
        assert waiting.recv(1) == b""
    waiting.close()
    assert not (tmp_path / "s").exists()
