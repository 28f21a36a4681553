"""Each limit of the socket is an error that names it, and costs nobody else anything."""

import json
import select
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from tests.net.kit import PYTHON, Home, Project, until
from tests.net.socket_bytes import GOOD, answers, exchanged, headed, raw, request, rest
from tests.net.wire import SECONDS, RpcError

CONNECTIONS, OF_A_PROCESS, IN_FLIGHT = 128, 120, 32
MIB = 1 << 20
HOLDER = """
import socket, sys
held = []
for _ in range(int(sys.argv[2])):
    each = socket.socket(socket.AF_UNIX)
    each.connect(sys.argv[1])
    each.sendall(sys.argv[3].encode())
    held.append(each)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("sent", "limit"),
    [
        (b"Content-Length: 10\r\nX: " + b"y" * 9000, 8192),
        (b"Content-Length: %d\r\n\r\n" % (4 * MIB + 1), 4 * MIB),
        (b'{"' + b"x" * (4 * MIB), 4 * MIB),
        (b"[" + b",".join([GOOD] * 101) + b"]\n", 100),
        (b"[" + b"1," * 20_000 + b"1]\n", 100),
    ],
    ids=["header", "frame", "line", "batch", "large batch"],
)
def test_a_size_is_refused_with_its_limit(home: Home, sent: bytes, limit: int) -> None:
    """What is too large gets one error under no id, which names the limit."""
    (answer,) = answers(exchanged(home, sent))
    error = answer["error"]
    assert (answer["id"], error["code"], error["data"]["kind"]) == (None, 1007, "too_large")
    assert error["data"]["limit"] == limit
    assert str(limit) in error["message"]


def test_what_is_just_small_enough_is_served(home: Home) -> None:
    """A batch of 100, a nesting of 64 and a frame of nearly 4 MiB are within the limits."""
    batch = b"[" + b",".join(request("hello", number) for number in range(100)) + b"]\n"
    assert [a["id"] for a in answers(exchanged(home, batch))] == list(range(100))
    value = b'{"a":' * 61 + b"1" + b"}" * 61  # within the request, its parameters and a list
    deep = b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{"environment":%b}}' % value
    (answer,) = answers(exchanged(home, deep))
    assert answer["error"]["code"] == -32602  # of JSON it is, only not of this method
    large = request("hello", 1, client="x" * (4 * MIB - 1000))
    (answer,) = answers(exchanged(home, headed(large)))
    assert "result" in answer or answer["error"]["code"] == -32602


def test_a_connection_has_32_requests_in_flight(project: Project) -> None:
    """The 33rd is refused with the limit, and its end makes room."""
    client = project.home.connect()
    key = client.call("agent.register", cwd=project.cwd, name="waits")["key"]
    waits = [client.ask("message.receive", key=key, wait=50) for _ in range(IN_FLIGHT)]
    with pytest.raises(RpcError) as error:
        client.call("hello")
    assert (error.value.code, error.value.kind) == (1004, "busy")
    assert error.value.data["limit"] == IN_FLIGHT
    assert error.value.data["retryable"] is True
    client.notify("$/cancelRequest", id=waits[0])
    with pytest.raises(RpcError):
        client.answer(waits[0])
    assert client.call("hello")["name"] == "memd"


@contextmanager
def _held(home: Home, count: int, says: bytes = b"") -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        held = [stack.enter_context(raw(home)) for _ in range(count)]
        for each in held:
            each.sendall(says)
        yield held


def _ended(held: list[socket.socket]) -> list[socket.socket]:
    return select.select(held, [], [], 0)[0]


@pytest.fixture
def alone(home: Home) -> Iterator[Home]:
    """Return the shared home while no connection of another test is left, and leave none."""

    def is_alone() -> bool:
        with suppress(ConnectionError, RpcError):  # too many connections still
            return bool(home.call("status")["connections"] <= 1)
        return False

    home.close_clients()
    until(is_alone, "earlier connections have ended")
    yield home
    home.close_clients()
    until(is_alone, "the connections of this test have ended")


def test_the_longest_idle_connection_gives_way(alone: Home) -> None:
    """The 121st connection of a process is served; its oldest idle one hears why it ends."""
    with _held(alone, OF_A_PROCESS) as held:
        held[0].sendall(GOOD + b"\n")  # the first is no longer the one that was idle longest
        assert held[0].recv(1000)
        with alone.connect() as new:
            assert new.call("hello")["name"] == "memd"
            (told,) = until(lambda: _ended(held[1:]))
            assert told is held[1]
            (answer,) = answers(rest(told))
            assert (answer["error"]["code"], answer["error"]["data"]["kind"]) == (1004, "busy")
            assert answer["error"]["data"]["limit"] == OF_A_PROCESS


def test_a_subscriber_is_not_idle(alone: Home) -> None:
    """Of 120 connections the two that do not subscribe give way first."""
    subscribe = request("subscribe") + b"\n"
    with _held(alone, OF_A_PROCESS - 2, subscribe) as busy:
        for each in busy:
            assert each.recv(10_000)
        with _held(alone, 2) as idle, alone.connect() as new, alone.connect() as newer:
            assert new.call("hello")["pid"] == newer.call("hello")["pid"]
            until(lambda: len(_ended(idle)) == 2)
            assert _ended(busy) == []


def test_a_process_without_an_idle_connection_loses_one(alone: Home) -> None:
    """Where all 120 subscribe, one more ends one of that process with the limit's name."""
    with _held(alone, OF_A_PROCESS, request("subscribe") + b"\n") as held:
        for each in held:
            assert each.recv(10_000)
        with raw(alone) as new:
            (told,) = until(lambda: _ended([*held, new]))
            (answer,) = answers(rest(told))
        assert answer["error"]["data"]["limit"] == OF_A_PROCESS


@pytest.mark.full
@pytest.mark.parametrize("says", [b"", GOOD[:20], request("subscribe") + b"\n"], ids=str)
def test_others_that_hold_all_connections_let_a_new_client_in(own: Home, says: bytes) -> None:
    """Whether silent, within a frame or subscribed: one of two greedy processes gives way."""
    own.start()
    with ExitStack() as stack:
        for _ in range(2):
            command = [PYTHON, "-c", HOLDER, own.socket, str(CONNECTIONS // 2), says.decode()]
            process = stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
            assert process.stdout is not None
            assert process.stdin is not None
            assert process.stdout.readline() == b"ready\n"
            stack.callback(process.stdin.close)
        for _ in range(3):
            assert own.call("hello")["name"] == "memd"


@pytest.mark.full
def test_a_frame_must_be_whole_within_ten_seconds(own: Home) -> None:
    """A frame that was begun and not finished ends its connection with an error; idle ones stay."""
    own.start()
    with raw(own) as silent, raw(own) as slow, raw(own) as unfinished:
        slow.sendall(GOOD + b"\n")
        assert slow.recv(1000)
        slow.sendall(GOOD[:20])
        unfinished.sendall(headed(GOOD)[:-5])
        for each in (slow, unfinished):
            (answer,) = answers(rest(each))
            assert answer["error"]["data"]["retryable"] is True
        silent.sendall(GOOD + b"\n")
        assert b"memd" in silent.recv(1000)


@pytest.mark.full
def test_answers_that_nobody_reads_are_bounded(own: Home) -> None:
    """A client that asks without reading is not read from; when it reads, it gets every answer."""
    project = own.start().project()
    for number in range(50):
        project.put(f"m{number}.md", f"---\nname: m{number}\ndescription: {'d' * 900}\n---\nx\n")
    size = len(json.dumps(project.call("memory.list")))
    count = 40 * MIB // size
    asked = b"".join(
        request("memory.list", number, cwd=project.cwd) + b"\n" for number in range(count)
    )
    with raw(own) as deaf, own.connect() as other:
        deaf.settimeout(0)
        sent = 0
        before = other.call("status")["rss"]
        for _ in range(200):
            with suppress(BlockingIOError):
                sent += deaf.send(asked[sent:])
            assert other.call("hello")["name"] == "memd"
        assert other.call("status")["rss"] - before <= 35 * MIB
        deaf.settimeout(SECONDS)
        found, buffer = set[int](), b""
        while len(found) < asked[:sent].count(b"\n"):
            buffer += deaf.recv(MIB)
            *lines, buffer = buffer.split(b"\n")
            found |= {json.loads(line)["id"] for line in lines}
