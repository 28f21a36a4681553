"""Clients that send anything at all never disturb another one, on a real daemon."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from memd.testing.daemon import Home, client, daemon_process, throw_away_home

HEADER = b"Content-Length: %d\r\n\r\n"
FLOOD = 5 * 1024 * 1024


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    """Run one daemon for all attacks."""
    with throw_away_home() as made, daemon_process(made):
        yield made


def attack(home: Home, data: bytes) -> None:
    """Send bytes, end our side, and read what comes until the daemon ends its own."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(home.places.socket)
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):
                pass
        except (BrokenPipeError, ConnectionResetError):
            return


@pytest.mark.parametrize(
    "data",
    [
        b"Content-Length: 10",
        b"Content-Length: 10\r\n\r\n{",
        b"Content-Length: -1\r\n\r\n{}",
        b"Content-Length: 99999999999999999999\r\n\r\n{}",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"{" + b"x" * FLOOD,
        b"[" + b"0," * (FLOOD // 2),
        b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}\n',
        b"[" + b",".join([b'{"jsonrpc":"2.0","method":"hello"}'] * 20_000) + b"]\n",
        b"\x00" * 100_000,
        b"",
    ],
    ids=lambda data: f"{data[:12]!r}-{len(data)}",
)
def test_malformed_frames_leave_others_alone(home: Home, data: bytes) -> None:
    """Truncated headers, floods, junk and a huge batch do not disturb a second client."""
    with client(home) as other:
        assert other.call("hello", {})["name"] == "memd"
        attack(home, data)
        assert other.call("hello", {})["name"] == "memd"


def in_pieces(connection: socket.socket, data: bytes) -> None:
    """Send one byte at a time."""
    for at in range(len(data)):
        connection.send(data[at : at + 1])


def out_of_band(connection: socket.socket, data: bytes) -> None:
    """Send a byte out of band in the middle, where the system has such bytes on these sockets."""
    connection.send(data[:30])
    try:
        connection.send(b"!", socket.MSG_OOB)
    except OSError:
        pytest.skip("this system has no bytes out of band here")
    connection.send(data[30:])


def with_descriptors(connection: socket.socket, data: bytes) -> None:
    """Pass as many descriptors as one message may have with each half."""
    with open(os.devnull, "rb") as null:
        for half in (data[:30], data[30:]):
            socket.send_fds(connection, [half], [null.fileno()] * 253)


def then_half_closed(connection: socket.socket, data: bytes) -> None:
    """End our side at once, and read afterwards."""
    connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)


def held_by(pid: int) -> list[str]:
    """Return what a process has open, nothing where the system does not tell."""
    folder, held = f"/proc/{pid}/fd", []
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        with suppress(FileNotFoundError):  # closed meanwhile
            held.append(os.readlink(f"{folder}/{name}"))
    return held


WAYS = (socket.socket.sendall, in_pieces, out_of_band, with_descriptors, then_half_closed)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_odd_ways_to_write_are_answered(
    home: Home, way: Callable[[socket.socket, bytes], None]
) -> None:
    """However the bytes come they are one request, and of what came with them nothing is kept."""
    request = b'{"jsonrpc":"2.0","id":%d,"method":"status","params":{}}\n'
    one, two = request % 7, request % 8
    for sent, ids in ((one, {7}), (one + two, {7, 8}), (two[:-1] + b"\r\n", {8})):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(30)
            connection.connect(home.places.socket)
            way(connection, sent)
            with connection.makefile("rb") as reader:
                answers = [json.loads(reader.readline()) for _ in ids]
            assert {answer["id"] for answer in answers} == ids
            pid = answers[0]["result"]["pid"]
    with client(home) as other:
        assert other.call("status", {})["pid"] == pid
    assert held_by(pid).count(os.devnull) <= 2  # its standard input, and the one in reserve


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_is_refused(home: Home) -> None:
    """Another user cannot even reach the socket; its uid would be refused next (tests/rpc)."""
    code = (
        "import os, socket, sys\n"
        "connection = socket.socket(socket.AF_UNIX)\n"
        "os.setresuid(0, 65534, 0)\n"
        "try:\n"
        "    connection.connect(sys.argv[1])\n"
        "except PermissionError:\n"
        "    sys.exit('refused by the file system')\n"
    )
    with tempfile.TemporaryDirectory() as work:
        done = subprocess.run(
            [sys.executable, "-c", code, home.places.socket],
            cwd=work,
            capture_output=True,
            text=True,
            check=False,
        )
    assert "refused by the file system" in done.stderr


def test_answers_use_the_framing_of_the_question(home: Home) -> None:
    """One line is answered by one line, headers by headers, also without a last newline."""
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "load_prompt", "params": {"cwd": home.project()}}
    ).encode()
    for sent, headed in ((body, False), (HEADER % len(body) + body, True)):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(home.places.socket)
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
        if headed:
            head, _, answer = answer.partition(b"\r\n\r\n")
            assert head == b"Content-Length: %d" % len(answer)
        assert "MEMORY.md" in json.loads(answer)["result"]["prompt"]


def test_the_log_never_shows_a_traceback(home: Home) -> None:
    """Nothing that a stranger sent was a fault of memd."""
    assert "traceback" not in Path(home.places.log).read_text()
