"""The page as a process: what it answers to whom, and that it ends and leaves nothing behind."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from memd.testing.daemon import (
    Home,
    daemon_process,
    memctl_command,
    memctl_ended,
    throw_away_home,
)
from memd.ui.access import TOKEN_SECONDS
from memd.ui.app import BODY_BYTES, HEAD_BYTES, HEADERS
from memd.ui.serving import CONNECTIONS
from tests.ui.served import Served, page_process

STRANGER = """\
import encodings.idna, os, socket, sys
os.setuid(65534)
try:
    peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=10)
    peer.sendall(sys.argv[2].encode())
    print(len(peer.recv(100)))
except OSError:
    print(0)
"""


@pytest.fixture(name="served", scope="module")
def _served() -> Iterator[Served]:
    """Run a daemon and a page, and enter it."""
    with throw_away_home() as home, daemon_process(home), page_process(home) as page:
        entry = page.address.removeprefix(f"http://{page.host}")
        assert status(page.request("HEAD", entry)) == 403
        assert status(page.enter()) == 303
        yield page


def status(answer: bytes) -> int:
    """Return the status of an answer, 0 for none."""
    return int(answer.split(b" ", 2)[1]) if answer else 0


def test_every_answer_has_the_headers_and_strangers_get_nothing(served: Served) -> None:
    """Pages, refusals and faults of HTTP have all headers, and a refusal has no body."""
    root, style = served.root, f"{served.root}static/style.css"
    etag = served.request("GET", style).split(b"etag: ")[1].split(b"\r\n")[0].decode()
    answers = {
        200: served.request("GET", root),
        304: served.request("GET", style, if_none_match=etag),
        400: served.raw(b"\x16\x03\x01 no HTTP\r\n\r\n"),
        403: served.request("GET", "/"),
        404: served.request("GET", f"{root}nothing"),
        405: served.request("BREW", root),
        413: served.post(f"{root}quit", f"x={'y' * BODY_BYTES}"),
    }
    for expected, answer in answers.items():
        assert status(answer) == expected
        head, _, body = answer.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        own = {"cache-control"} if expected == 304 else set()
        assert [f"{n}: {v}" for n, v in HEADERS.items() if f"{n}: {v}" not in lines] == [
            f"{n}: {HEADERS[n]}" for n in own
        ]
        assert not any(line.lower().startswith("server:") for line in lines)
        assert (expected == 200) == bool(body)
    # What no browser of ours sends.
    refused = [
        served.request("GET", root, host=f"evil.example:{served.port}"),
        served.request("GET", root, host=f"localhost:{served.port}"),
        served.request("GET", root, cookie=""),
        served.request("GET", root, sec_fetch_site="cross-site"),
        served.request("GET", root, sec_fetch_site="same-origin", sec_fetch_dest="iframe"),
        served.request("GET", root.replace("/s/", "/S/")),
        served.request("GET", style, cookie=""),
        served.request("GET", f"{root}events?topics=memory.changed", cookie=""),
        served.request("OPTIONS", root, cookie="", origin="http://evil.example"),
        served.post(f"{root}quit"),
        served.post(f"{root}quit", "form_token=guessed"),
        served.post(f"{root}quit", origin="null"),
        served.post(f"{root}quit", origin="http://evil.example"),
        served.request("GET", served.address.removeprefix(f"http://{served.host}")),
    ]
    for answer in refused:
        assert status(answer) == 403
        assert answer.endswith(b"\r\n\r\n")
    allowed = served.request("OPTIONS", root)
    assert status(allowed) == 405
    assert b"allow: GET, HEAD, POST" in allowed
    assert status(served.request("HEAD", root)) == 200
    assert served.request("HEAD", root).endswith(b"\r\n\r\n")


def test_what_no_browser_sends_ends_a_connection(served: Served) -> None:
    """Heads beyond their bound, two hosts, too many connections: refused, and the page goes on."""
    long = served.request("GET", f"{served.root}?x={'y' * HEAD_BYTES}")
    assert status(long) in {0, 400, 403}
    assert status(served.request("GET", served.root, x="y" * HEAD_BYTES)) in {0, 400, 403}
    two = served.head("GET", served.root).replace("\r\n\r\n", f"\r\nhost: {served.host}\r\n\r\n")
    assert status(served.raw(two.encode())) == 400
    idle = [served.connect() for _ in range(CONNECTIONS + 8)]
    try:
        closed = sum(_is_closed(each) for each in idle[CONNECTIONS:])
        assert closed == 8
    finally:
        for each in idle:
            each.close()
    assert status(served.request("GET", served.root)) == 200


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells only on Linux")
def test_another_user_gets_nothing(served: Served) -> None:
    """Who has the address, the path and the cookie, and is another user, gets no byte."""
    request = served.head("GET", served.root)
    command = [sys.executable, "-c", STRANGER, str(served.port), request]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_it_ends_with_its_terminal_and_on_its_button(home: Home) -> None:
    """The end of a terminal and the button end it, beside an open page too; nothing is left."""
    with daemon_process(home):
        with page_process(home) as page:
            _end_beside_a_stream(page, signal.SIGHUP)
        with page_process(home) as page:
            page.enter()
            assert b"The page has ended" in page.quit()
            assert page.ended() == 0


def test_an_address_that_nobody_reads_opens_nothing(home: Home) -> None:
    """A pipe that is closed is no failure, as with every command; the page ends."""
    reading, writing = os.pipe()
    os.close(reading)
    with daemon_process(home), os.fdopen(writing) as output:
        command, environ = memctl_command("ui", "--no-open"), dict(home.environ)
        done = subprocess.run(
            command,
            env=environ,
            cwd=home.project(),
            stdout=output,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.soak
def test_it_ends_on_signals_and_does_not_begin_at_a_taken_port(home: Home) -> None:
    """Ctrl-C and SIGTERM end it with status 0; a port that cannot be had is said."""
    with daemon_process(home):
        for number in (signal.SIGINT, signal.SIGTERM):
            with page_process(home) as page:
                _end_beside_a_stream(page, number)
        with page_process(home, "--port", "70000") as page:
            assert (page.process.wait(20), page.address) == (2, "")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            done = memctl_ended(home, home.project(), "ui", "--no-open", "--port", port)
        assert done.returncode == 1
        assert f"port {port} cannot be listened at" in done.stderr


@pytest.mark.soak
def test_it_ends_when_nobody_looks(home: Home) -> None:
    """Without a request and without an open page it ends after its minutes."""
    with daemon_process(home), page_process(home, "--idle", "1") as page:
        page.enter()
        assert page.process.wait(90) == 0


@pytest.mark.soak
def test_it_ends_when_nobody_came(home: Home) -> None:
    """Once its address works no more and nobody used it, it ends."""
    with daemon_process(home), page_process(home) as page:
        assert page.process.wait(TOKEN_SECONDS + 30) == 0


@pytest.mark.soak
def test_a_slow_peer_is_ended(served: Served) -> None:
    """A head that comes byte by byte, and an answer that nobody reads, end their connections."""
    with served.connect() as silent, served.connect() as slow:
        slow.sendall(served.head("GET", served.root)[:40].encode())
        for each in (silent, slow):
            each.settimeout(40)
            assert _is_closed(each)
    assert status(served.request("GET", served.root)) == 200


def _end_beside_a_stream(page: Served, number: signal.Signals) -> None:
    """Enter a page, have it tell of changes, and end it with a signal."""
    page.enter()
    with page.connect() as stream:
        path = f"{page.root}events?topics=memory.changed"
        stream.sendall(page.head("GET", path).encode())
        assert b"retry" in _until(stream, b"retry")
        page.process.send_signal(number)
        assert page.ended() == 0


def _is_closed(connection: socket.socket) -> bool:
    """Return whether the other side ends a connection; waits for it."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def _until(connection: socket.socket, words: bytes) -> bytes:
    received = b""
    while words not in received and (piece := connection.recv(4096)):
        received += piece
    return received
