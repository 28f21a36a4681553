"""Messages that are passed on to another memd of the same user."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from memd.client.errors import RemoteError
from memd.client.launch import Client
from memd.core.agents import BODY_BYTES, MAILBOX_BYTES
from memd.daemon.peers import check_peer, pass_on
from memd.messages.errors import PeerRefusedError
from memd.messages.values import RelayAnswer, RelayedMessage
from tests.client.stranger import NOBODY, Stranger
from tests.support.daemon import Home, client, daemon_process, throw_away_home
from tests.support.scripted_daemon import HangUp, ScriptedDaemon, ScriptedRefusal, Silence

SECONDS = 60.0


@pytest.fixture(name="folder")
def _folder() -> Iterator[str]:
    with throw_away_home() as home:
        folder = f"{os.path.realpath(home.path)}/peer"
        os.mkdir(folder, 0o700)
        yield folder


def _file(folder: str) -> str:
    Path(folder, "s").write_text("")
    return f"{folder}/s"


def _socket(folder: str, mode: int = 0o600) -> str:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/s")
    os.chmod(f"{folder}/s", mode)
    return f"{folder}/s"


def _link(folder: str) -> str:
    os.symlink(_socket(folder), f"{folder}/l")
    return f"{folder}/l"


def _linked_folder(folder: str) -> str:
    _socket(folder)
    os.symlink(folder, f"{folder}-l")
    return f"{folder}-l/s"


def _open_folder(folder: str) -> str:
    Path(folder).chmod(0o755)
    return _socket(folder)


def _hard_link(folder: str) -> str:
    os.link(_socket(folder), f"{folder}/own")
    return f"{folder}/s"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_file, "is no socket"),
        (_link, "through a link"),
        (_linked_folder, "through a link"),
        (_open_folder, "others may use the directory"),
        (lambda folder: _socket(folder, 0o666), "others may use the socket"),
        (lambda folder: f"{folder}/own", "the socket of this memd"),
        (_hard_link, "the socket of this memd"),
    ],
)
def test_a_socket_that_is_not_ours_alone_is_refused(
    folder: str, make: Callable[[str], str], words: str
) -> None:
    """A link, a file, what others may use, and this very daemon: each is refused by name."""
    path = make(folder)
    with pytest.raises(PeerRefusedError, match=words):
        check_peer(path, f"{folder}/own")


def test_a_socket_that_is_not_there_yet_is_no_fault(folder: str) -> None:
    """A memd that does not run is tried again later."""
    check_peer(f"{folder}/s", f"{folder}/own")
    check_peer(f"{folder}/gone/s", f"{folder}/own")
    assert pass_on(_message(f"{folder}/s"), f"{folder}/own").state == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_nothing_is_sent_to_who_is_somebody_else(folder: str) -> None:
    """A listener of another user behind a socket of ours gets not one byte."""
    Path(folder).parent.chmod(0o755)
    with Stranger(f"{folder}/s", NOBODY, mode=0o600, owner=os.geteuid()) as stranger:
        answer = pass_on(_message(f"{folder}/s"), f"{folder}/own")
    assert (answer.state, f"user {NOBODY}" in answer.reason) == ("refused", True)
    assert stranger.received == 0


def _sent(id_: str, state: str) -> dict[str, Any]:
    return {"id": id_, "state": state, "recipients": [{"reason": "why\n<memd> not"}]}


_NOT_UNDERSTOOD = RelayAnswer(reason="its answer was not understood", silent=True)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (_sent("m3", "queued"), RelayAnswer("m3", "queued", "why &lt;memd> not")),
        (ScriptedRefusal(1001, "no\none", {}), RelayAnswer("", "refused", "no one")),
        (ScriptedRefusal(1004, "full", {"retryable": True}), RelayAnswer("", "", "full")),
        *((answer, _NOT_UNDERSTOOD) for answer in (7, {}, _sent("x", "queued"))),
        (_sent("m1", "eaten"), _NOT_UNDERSTOOD),
    ],
)
def test_an_answer_says_what_our_copy_says(
    folder: str, answer: object, expected: RelayAnswer
) -> None:
    """Stored, refused for good, or to be tried again; no shape of an answer is a crash."""
    with ScriptedDaemon(f"{folder}/s", {"message.send": answer}):
        assert pass_on(_message(f"{folder}/s"), f"{folder}/own") == expected
    with ScriptedDaemon(f"{folder}/s", {"message.send": HangUp()}):
        assert pass_on(_message(f"{folder}/s"), f"{folder}/own").state == ""


@pytest.mark.parametrize(
    "line",
    [
        b"garbage",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"id":2,"error":5}',
        b'{"jsonrpc":"2.0","id":2,"error":{"code":"x","message":5,"data":[]}}',
    ],
)
def test_what_is_no_answer_is_tried_again(folder: str, line: bytes) -> None:
    """Whoever listens there and whatever it says, this memd goes on."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/s")
        os.chmod(f"{folder}/s", 0o600)
        listener.listen()

        def say() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(line + b"\n")

        with ThreadPoolExecutor(1) as threads:
            threads.submit(say)
            assert pass_on(_message(f"{folder}/s"), f"{folder}/own") == _NOT_UNDERSTOOD


def _message(path: str) -> RelayedMessage:
    hop = "uds:/own#ann@slug"
    return RelayedMessage(1, path, "ben", hop, "/", "", "hi", 60.0, "m1-1.000")


@contextmanager
def _machine(*, peers: str = "", more: str = "") -> Iterator[Home]:
    with throw_away_home() as home:
        config = Path(home.places.config)
        config.parent.mkdir(parents=True)
        listed = f"peers = ['{peers}']\n" if peers else ""
        config.write_text(f"[messages]\ninbound_unregistered = 'accept'\n{listed}{more}")
        yield home


def _waiting(client: Client, key: str, wait: int = 0) -> list[dict[str, Any]]:
    received = client.call("message.receive", {"key": key, "wait": wait})["messages"]
    client.call("message.ack", {"key": key, "ids": [each["id"] for each in received]})
    return list(received)


def _refused(client: Client, **params: Any) -> str:
    with pytest.raises(RemoteError) as caught:
        client.call("message.send", {"body": "x", **params})
    return caught.value.kind


def _place(there: Home, theirs: Client, name: str) -> str:
    """Return the address of an agent of another memd, as an agent of any project writes it."""
    folder = theirs.call("memory.list", {"cwd": there.project()})["memory_dir"]
    return f"uds:{there.places.socket}#{name}@{Path(folder).parent.name}"


def test_a_message_reaches_an_agent_of_another_memd() -> None:
    """Once and in order, whoever dies meanwhile, and the sender is told what became of it."""
    with _machine() as there, _machine(peers=there.places.socket) as here:
        with daemon_process(here), client(here) as ours:
            ann = ours.call("agent.register", {"cwd": here.project(), "name": "ann"})["key"]

            def send(ours: Client, to: str, body: str) -> Any:
                return ours.call("message.send", {"key": ann, "to": to, "body": body})

            with daemon_process(there), client(there) as theirs:
                ben = theirs.call("agent.register", {"cwd": there.project(), "name": "ben"})["key"]
                place = _place(there, theirs, "ben")
                assert send(ours, _place(there, theirs, "benny"), "x")["state"] == "refused"
                (notice,) = _waiting(ours, ann)
                assert (notice["kind"], "refused" in notice["body"]) == ("notice", True)
                first = send(ours, place, "one")
                assert "queued there as m" in first["recipients"][0]["reason"]
                (message,) = _waiting(theirs, ben)
                assert (message["body"], message["from"]) == ("one", "unregistered")
                from_ours = f"memd for uds:{here.places.socket}#ann@"
                assert message["client"].startswith(from_ours)
                hop = {"cwd": there.project(), "hop": f"uds:{here.places.socket}#ann"}
                for to in (f"uds:{here.places.socket}#ann", "*"):
                    assert _refused(theirs, to=to, **hop) == "peer_refused"
                send(ours, place, "two")
                status = ours.call("message.status", {"id": first["id"]})
                assert status["state"] == "read"
                assert [each["body"] for each in _waiting(theirs, ben)] == ["two"]
            later = send(ours, place, "three")
            assert "not stored there yet" in later["recipients"][0]["reason"]
            for bad, kind in (
                (f"uds:{here.places.socket}#ann", "peer_refused"),
                ("uds:/etc/passwd#ann", "peer_refused"),
                ("uds:relative#ann", "invalid_params"),
                ("uds:/no/agent", "invalid_params"),
            ):
                assert _refused(ours, key=ann, to=bad) == kind
        with (
            daemon_process(there),
            daemon_process(here),
            client(here) as ours,
            client(there) as theirs,
        ):
            bodies = [each["body"] for each in _waiting(theirs, ben, wait=20)]
            send(ours, place, "four")
            bodies += [each["body"] for each in _waiting(theirs, ben)]
            assert bodies == ["three", "four"]


def test_no_socket_delays_or_fills_another(folder: str) -> None:
    """A memd that does not answer, and as many messages as may wait for it, are its own matter."""
    slow, gone, fast = (f"{folder}/{name}" for name in ("slow", "gone", "fast"))
    answered = {"message.send": _sent("m1", "queued"), "message.status": _sent("m1", "queued")}
    came = threading.Event()

    def silence(_: object) -> Silence:
        came.set()
        return Silence()

    with (
        _machine(peers=f"{slow}', '{gone}', '{fast}", more="per_minute = 1000\n") as here,
        ScriptedDaemon(slow, {"message.send": silence}),
        ScriptedDaemon(fast, answered),
        daemon_process(here),
        client(here) as ours,
        client(here) as others,
        ThreadPoolExecutor(1) as pool,
    ):
        ann = ours.call("agent.register", {"cwd": here.project(), "name": "ann"})["key"]

        def send(ours: Client, path: str, body: str = "x") -> Any:
            return ours.call("message.send", {"key": ann, "to": f"uds:{path}#ben", "body": body})

        for _ in range(MAILBOX_BYTES // BODY_BYTES):
            send(ours, gone, "x " * (BODY_BYTES // 2))
        assert _refused(ours, key=ann, to=f"uds:{gone}#ben") == "mailbox_full"
        waiting = pool.submit(send, others, slow)
        assert came.wait(SECONDS)
        assert "there as m1" in send(ours, fast)["recipients"][0]["reason"]
        assert not waiting.done()
        assert waiting.result()["state"] == "queued"


def test_a_socket_that_is_listed_no_more_gets_nothing(folder: str) -> None:
    """What waits for it stays here, and says why."""
    answers = {"message.send": _sent("m1", "queued")}
    with ScriptedDaemon(f"{folder}/s", answers) as daemon:
        answer = pass_on(replace(_message(f"{folder}/s"), listed=False), f"{folder}/own")
        assert daemon.requested == []
    assert (answer.state, "not listed" in answer.reason) == ("", True)
