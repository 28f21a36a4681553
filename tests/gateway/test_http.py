"""What passes through the gateway, and what does not get in."""

import gzip
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.gateway.connection import HEAD_BYTES
from tests.gateway.gateways import (
    SECONDS,
    WAIT,
    RawUpstream,
    RunningGateway,
    arguments_of,
    gateway,
    raw_upstream,
)
from tests.support.daemon import throw_away_home

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Odd-CASE:  a b \r\n\r\nok"
END = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
EVENTS = b'event: message_start\ndata: {"type":"message_start"}\n\nevent: ping\ndata: {}\n\n'
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def upstream() -> Iterator[RawUpstream]:
    """Serve what a test says."""
    with raw_upstream() as serving:
        yield serving


@pytest.fixture(scope="module")
def running(upstream: RawUpstream) -> Iterator[RunningGateway]:
    """Run a gateway in a home without a daemon."""
    with throw_away_home() as home, gateway(home, f"{upstream.url}/base") as process:
        yield process


@pytest.fixture(autouse=True)
def fresh(upstream: RawUpstream) -> None:
    """Begin each test with an upstream that heard nothing."""
    upstream.heard.clear()
    upstream.left.clear()
    upstream.replies = [[END, None]]


def _chunked(data: bytes, *sizes: int) -> list[bytes]:
    pieces, at = [], 0
    for size in (*sizes, len(data)):
        part = data[at : at + size]
        at += size
        if part:
            pieces.append(b"%x;ext=1\r\n%s\r\n" % (len(part), part))
    return pieces


_ZIPPED = gzip.compress(EVENTS)
REPLIES: dict[str, list[bytes | None]] = {
    "closing": [END, None],
    "events in odd chunks": [STREAM, *_chunked(EVENTS, 1, 2, 30), b"0\r\n\r\n", None],
    "chunks in odd packets": [STREAM + b"5\r", b"\nab", b"cde\r", b"\n0\r\n\r", b"\n", None],
    "trailers": [STREAM, b"2\r\nok\r\n0\r\nX-Check: 1\r\nX-Sum:2\r\n\r\n", None],
    "zipped": [b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
               % len(_ZIPPED), _ZIPPED[:7], _ZIPPED[7:], None],
    "overloaded": [b"HTTP/1.1 529 Overloaded\r\nretry-after: 3\r\nContent-Length: 4\r\n\r\n{}\n\n",
                   None],
    "early hints": [b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", OK, None],
    "no content": [b"HTTP/1.1 204 No Content\r\n\r\n", None],
    "until it hangs up": [b"HTTP/1.1 200 OK\r\n\r\nsome", b"thing", None],
    "cut in a chunk": [STREAM, b"ff\r\nabc", None],
    "cut in a body": [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", None],
    "cut in a head": [b"HTTP/1.1 200 OK\r\nContent-Le", None],
    "bad chunks": [STREAM, b"zz\r\nabc", None],
    "redirect": [b"HTTP/1.1 307 Elsewhere\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", None],
    "a long header": [b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", None],
    "no HTTP": [b"SSH-2.0-OpenSSH\r\n", b"\x00\xff", None],
    "nothing": [None],
}  # fmt: skip


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_comes_as_it_was_sent(
    name: str, upstream: RawUpstream, running: RunningGateway
) -> None:
    """Whatever the upstream sends reaches the client byte for byte, and so does its end."""
    upstream.replies = [REPLIES[name]]
    whole = b"".join(piece for piece in REPLIES[name] if piece is not None)
    assert running.reply(running.head("POST", "/v1/messages", "Content-Length: 2") + b"{}") == whole


def test_replies_without_a_body_keep_the_connection(
    upstream: RawUpstream, running: RunningGateway
) -> None:
    """A HEAD has the length of a body that does not come; the next request is answered too."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
    upstream.replies = [[head], [OK], [OK, None]]
    with running.connect() as connection:
        connection.sendall(running.head("HEAD", "/v1/models"))
        assert connection.recv(1000) == head
        # Both at once: the second waits for the first.
        connection.sendall(running.head("GET", "/v1/a") + running.head("GET", "/v1/b"))
        assert b"".join(iter(lambda: connection.recv(1000), b"")) == OK + OK
    assert [request.split()[1] for request in upstream.heard] == [
        b"/base/v1/models",
        b"/base/v1/a",
        b"/base/v1/b",
    ]


def test_a_request_goes_as_it_came(upstream: RawUpstream, running: RunningGateway) -> None:
    """Of a request only Host and the secret change, whatever its body is."""
    body = b'{ "model" : "x",\t"a":1.0,"a":NaN}\xff\x00'
    lines = ("X-Api-Key: sk-1", "x-ODD: \xe9", f"Content-Length: {len(body)}")
    head = running.head("POST", "/v1/messages?beta=true", *lines).replace("é".encode(), b"\xe9")
    running.reply(head + body)
    head, _, rest = upstream.heard[0].partition(b"\r\n\r\n")
    assert rest == body
    assert head.split(b"\r\n") == [
        b"POST /base/v1/messages?beta=true HTTP/1.1",
        f"Host: 127.0.0.1:{upstream.port}".encode(),
        b"X-Api-Key: sk-1",
        b"x-ODD: \xe9",
        f"Content-Length: {len(body)}".encode(),
    ]


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/files"])
def test_chunks_of_a_request_arrive_whole(
    path: str, upstream: RawUpstream, running: RunningGateway
) -> None:
    """A body without a length goes on as one, with what stands behind it."""
    chunks = b'3\r\n{ \n\r\n4;a=b\r\n""  \r\n0\r\nX-After: 1\r\n\r\n'
    running.reply(running.head("POST", path, "Transfer-Encoding: chunked") + chunks)
    assert b"X-After: 1" in upstream.heard[0]
    assert b"".join(upstream.heard[0].split(b"\r\n\r\n")[1].split(b"\r\n")[1:-2:2]) in (
        b'{ \n""  ', b'{ \n""  '
    )  # fmt: skip


def test_a_body_that_is_too_large_to_change_passes(
    upstream: RawUpstream, running: RunningGateway
) -> None:
    """What is larger than 32 MiB is not held back, with a length or without."""
    body = os.urandom(1 << 20) * 33
    running.reply(running.head("POST", "/v1/messages", f"Content-Length: {len(body)}") + body)
    assert upstream.heard[0].endswith(body)
    chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    running.reply(running.head("POST", "/v1/messages", "Transfer-Encoding: chunked") + chunk)
    assert len(upstream.heard[1]) > len(body)


def test_a_client_may_ask_before_it_sends(upstream: RawUpstream, running: RunningGateway) -> None:
    """A client that waits for 100 (Continue) gets it, and its body arrives."""
    with running.connect() as connection:
        lines = ("Content-Length: 2", "Expect: 100-continue")
        connection.sendall(running.head("POST", "/v1/messages", *lines))
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"{}")
        assert connection.recv(1000) == END
    assert b"xpect" not in upstream.heard[0]


def test_an_answer_may_come_before_the_body_ends(
    upstream: RawUpstream, running: RunningGateway
) -> None:
    """A refusal reaches a client that is still sending."""
    with running.connect() as connection:
        connection.sendall(running.head("POST", "/v1/files", "Transfer-Encoding: chunked"))
        connection.sendall(b"2\r\n{}\r\n0\r\n")
        upstream.replies = [[END, None]]
        connection.sendall(b"\r\n")
        assert connection.recv(1000) == END


STRANGERS = {
    "wrong secret": b"GET /" + b"0" * 32 + b"/v1/models HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n",
    "no secret": b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n",
    "only the secret": b"GET /SECRET HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n",
    "foreign host": b"GET /SECRET/v1/models HTTP/1.1\r\nHost: evil.example:%d\r\n\r\n",
    "other port": b"GET /SECRET/v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nX: %d\r\n\r\n",
    "origin": b"GET /SECRET/v1/models HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nOrigin: null\r\n\r\n",
    "a page": b"GET /SECRET/v1/models HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
              b"sec-fetch-site: same-origin\r\nSec-Fetch-Mode: cors\r\n\r\n",
    "preflight": b"OPTIONS /SECRET/v1/messages HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                 b"Origin: http://127.0.0.1\r\n\r\n",
    "absolute": b"GET http://127.0.0.1:1/SECRET/v1/models HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n",
    "tunnel": b"CONNECT api.anthropic.com:443 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n",
    "no host": b"GET /SECRET/v1/models HTTP/1.0\r\nX: %d\r\n\r\n",
}  # fmt: skip


@pytest.mark.parametrize("name", STRANGERS)
def test_strangers_find_nothing(name: str, upstream: RawUpstream, running: RunningGateway) -> None:
    """Who has not the secret, the right host, or comes from a page gets 404, and nobody hears."""
    request = STRANGERS[name].replace(b"SECRET", running.secret.encode()) % running.port
    assert running.reply(request).startswith(b"HTTP/1.1 404 Not Found\r\n")
    assert upstream.heard == []


def test_a_program_s_own_fetch_is_no_page(upstream: RawUpstream, running: RunningGateway) -> None:
    """What Node's fetch sends of its own is let in."""
    lines = ("sec-fetch-mode: cors", "accept-language: *")
    assert running.reply(running.head("GET", "/v1/models", *lines)) == END
    assert len(upstream.heard) == 1


AMBIGUOUS = {
    "both lengths": (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG", 400),
    "two lengths": (b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef", 400),
    "a signed length": (b"Content-Length: +2\r\n\r\n{}", 400),
    "no number": (b"Content-Length: 0x2\r\n\r\n{}", 400),
    "another coding": (b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    "hidden coding": (b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),
    "bad chunk": (b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", 400),
    "chunk without an end": (b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}GET / HTTP/1.1\r\n", 400),
    "line feed in a value": (b"X: a\nGET /x HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 400),
    "NUL in a value": (b"X: a\x00b\r\nContent-Length: 0\r\n\r\n", 400),
    "huge head": (b"X: " + b"x" * (HEAD_BYTES + 10), 431),
}  # fmt: skip


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_what_two_servers_read_differently_gets_nowhere(
    name: str, upstream: RawUpstream, running: RunningGateway
) -> None:
    """No request whose end could be seen elsewhere reaches the upstream."""
    rest, status = AMBIGUOUS[name]
    reply = running.reply(running.head("POST", "/v1/messages")[:-2] + rest)
    assert reply.startswith(b"HTTP/1.1 %d " % status)
    assert upstream.heard == []


def test_a_slow_head_is_waited_for_a_while(running: RunningGateway) -> None:
    """A client that does not finish its head is hung up on, and others are served meanwhile."""
    with running.connect() as slow, running.connect() as silent:
        slow.sendall(running.head()[:-4])
        assert running.reply(running.head("GET", "/v1/models")) == END
        slow.settimeout(SECONDS)
        assert slow.recv(1) == b""
        silent.settimeout(SECONDS)
        assert silent.recv(1) == b""


def test_who_hangs_up_is_hung_up_on(upstream: RawUpstream, running: RunningGateway) -> None:
    """A client's end in the middle of a reply is the upstream's, and the other way round."""
    upstream.replies = [[STREAM, WAIT]]
    connection = running.connect()
    connection.sendall(running.head("GET", "/v1/models"))
    assert connection.recv(1000) == STREAM
    assert not upstream.left.is_set()
    connection.close()
    assert upstream.left.wait(SECONDS)
    upstream.heard.clear()
    upstream.replies = [[OK, None]]
    with running.connect() as connection:
        connection.sendall(running.head("GET", "/v1/models"))
        assert b"".join(iter(lambda: connection.recv(1000), b"")) == OK


def test_an_upstream_that_is_not_there_is_the_gateway_s_word() -> None:
    """Where nothing listens the client gets an error in the API's form."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with throw_away_home() as home, gateway(home, f"http://127.0.0.1:{port}") as running:
        reply = running.reply(running.head("POST", "/v1/messages", "Content-Length: 2") + b"{}")
    assert reply.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    assert b'"type":"api_error"' in reply


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_its_streams(ending: signal.Signals, upstream: RawUpstream) -> None:
    """A signal ends the gateway with status 0 and every connection of it."""
    upstream.replies = [[STREAM, WAIT]]
    with (
        throw_away_home() as home,
        gateway(home, upstream.url) as running,
        running.connect() as connection,
        running.connect(),
    ):
        connection.sendall(running.head("GET", "/v1/models"))
        assert connection.recv(1000) == STREAM
        running.process.send_signal(ending)
        assert connection.recv(1000) == b""
        assert running.process.wait(SECONDS) == 0
    assert upstream.left.wait(SECONDS)


def test_credentials_are_in_nothing_that_it_writes(upstream: RawUpstream) -> None:
    """A key is in no argument, no output and no file, whatever becomes of the request."""
    key = "sk-ant-very-secret-0123456789"
    with throw_away_home() as home, gateway(home, upstream.url) as running:
        for path in ("/v1/messages", "/v1/other"):
            lines = (f"X-Api-Key: {key}", f"Authorization: Bearer {key}", "Content-Length: 2")
            running.reply(running.head("POST", path, *lines) + b"{}")
            running.reply(running.head("POST", path, *lines).replace(b"HTTP/1.1", b"HTTP/9") + b"{")
        assert key.encode() not in arguments_of(running.process)
        assert running.secret.encode() not in arguments_of(running.process)
        files = [path for path in Path(home.path).rglob("*") if path.is_file()]
        assert not [path for path in files if key.encode() in path.read_bytes()]
    assert len([heard for heard in upstream.heard if key.encode() in heard]) == 2


@pytest.mark.skipif(shutil.which("openssl") is None, reason="nobody makes a certificate here")
def test_an_upstream_has_to_prove_its_name(tmp_path: Path) -> None:
    """What is not who it says it is hears nothing; what can prove it is served over TLS."""
    key, certificate = str(tmp_path / "key"), str(tmp_path / "certificate")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(
        [*made, *names, "-keyout", key, "-out", certificate], check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with throw_away_home() as home, raw_upstream(context) as upstream:
        upstream.replies = [[STREAM, *_chunked(EVENTS, 3), None]]
        address = f"https://localhost:{upstream.port}"
        request = ("POST", "/v1/messages", "Content-Length: 2")
        with gateway(home, address) as running:
            assert running.reply(running.head(*request) + b"{}").startswith(b"HTTP/1.1 502 ")
        assert upstream.heard == []
        with gateway(home, address, SSL_CERT_FILE=certificate) as running:
            whole = b"".join((STREAM, *_chunked(EVENTS, 3)))
            assert running.reply(running.head(*request) + b"{}") == whole


def test_a_taken_port_is_said(running: RunningGateway, upstream: RawUpstream) -> None:
    """Where the port is taken the gateway says so and ends with 1."""
    with throw_away_home() as home:
        command = [sys.executable, "-m", "memd", "gateway", "--port", str(running.port)]
        done = subprocess.run(
            [*command, "--upstream", upstream.url],
            capture_output=True,
            text=True,
            check=False,
            env=dict(home.environ),
        )
    assert done.returncode == 1
    assert f"port {running.port} " in done.stderr
