"""Hostile clients get the right status each, and nobody else notices."""

import hashlib
import json
import socket
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from memd.server.values import Role
from tests.server.servers import TeamServer, team_server

TEXT = "---\nname: a\ndescription: b\ntype: project\n---\nOn Tuesdays.\n"
KEY = {"Idempotency-Key": "00000000-0000-4000-8000-000000000001"}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    """Return a server with a repository, an entry, and a repository of others."""
    with team_server(tmp_path_factory.mktemp("server") / "team.db") as running:
        client = running.client("anna")
        running.invite("olga", remote="github.com/other/app")
        body = json.dumps({"entries": [entry("a.md")]})
        assert client.put(entries(running), content=body, headers=JSON | KEY).is_success
        yield running


def entries(server: TeamServer) -> str:
    """Return the path of a repository's entries."""
    return f"/v1/repos/{server.repository}/entries"


def entry(key: str, **members: Any) -> dict[str, Any]:
    """Return an entry of a PUT."""
    digest = hashlib.sha256(TEXT.encode()).hexdigest()
    return {"key": key, "content": TEXT, "hash": digest, "base": None} | members


HEAD = "Host: a\r\nConnection: close\r\n"
TOKENS = (
    "",
    "Authorization: Bearer \r\n",
    "Authorization: Basic YTpi\r\n",
    f"Authorization: Bearer {'x' * 43}\r\n",
    f"Authorization: Bearer {'x' * 8000}\r\n",
    "Authorization: Bearer a b\r\n",
    "Authorization: Bearer \x7f\x01\r\n",
    "Authorization: Bearer \xff\xfe\r\n",
)


def test_who_has_no_token_gets_401(tmp_path: Path) -> None:
    """Whatever is no token of this server is answered 401, on every route that needs one."""
    now = [1e9]
    with team_server(tmp_path / "team.db", clock=lambda: now[0]) as server:
        routes = [
            ("GET", "/v1/repos"),
            ("GET", entries(server)),
            ("PUT", entries(server)),
            ("DELETE", f"{entries(server)}/a.md"),
            ("GET", f"/v1/repos/{server.repository}/history?key=a.md"),
            ("DELETE", "/v1/token"),
            ("GET", "/metrics"),
        ]
        for token in TOKENS:
            now[0] += 60  # what was refused before is forgotten
            for method, path in routes:
                raw = exchange(server, f"{method} {path} HTTP/1.1\r\n{HEAD}{token}\r\n")
                assert status(raw) == 401, (method, path, token)


def test_tokens_end(tmp_path: Path) -> None:
    """A revoked token, one after its 365 days, and one of a removed member are worth nothing."""
    now = [1e9]
    with team_server(tmp_path / "team.db", clock=lambda: now[0]) as server:
        lost, old, former = (server.client(name) for name in ("anna", "bert", "cleo"))
        assert [each.get("/v1/repos").status_code for each in (lost, old, former)] == [200] * 3
        server.storage.revoke(1, now=now[0])
        server.storage.remove_member("cleo", now=now[0])
        assert [each.get("/v1/repos").status_code for each in (lost, old, former)] == [
            401,
            200,
            401,
        ]
        now[0] += 365 * 86400
        assert old.get("/v1/repos").status_code == 401


def test_a_code_is_good_once_and_for_three_days(tmp_path: Path) -> None:
    """A code that was used, is over or is none is answered 401."""
    now = [1e9]
    with team_server(tmp_path / "team.db", clock=lambda: now[0]) as server:
        client, code = server.client(), server.invite("anna")
        old = server.invite("bert")
        statuses = [
            client.post("/v1/join", json={"code": each, "device": "laptop"}).status_code
            for each in (code, code, "", "x" * 5000)
        ]
        now[0] += 72 * 3600
        over = client.post("/v1/join", json={"code": old, "device": "laptop"}).status_code
        assert (*statuses, over) == (201, 401, 401, 401, 401)


def test_what_a_member_was_not_granted_is_not_there(server: TeamServer) -> None:
    """Another repository's id, an unknown id and strange ids are all answered 404."""
    [other] = [r.id for r in server.storage.all_repositories() if r.id != server.repository]
    client = server.client("bert")
    for number in (other, "0" * 16, "x", "%2e%2e", "%00", "a%2Fb", "\u00e9", "*"):
        body = json.dumps({"entries": [entry("a.md")]})
        answers = [
            client.get(f"/v1/repos/{number}/entries"),
            client.get(f"/v1/repos/{number}/history?key=a.md"),
            client.put(f"/v1/repos/{number}/entries", content=body, headers=JSON | KEY),
            client.delete(
                f"/v1/repos/{number}/entries/a.md?reason=x", headers=KEY | {"If-Match": '"a.1"'}
            ),
        ]
        assert [each.status_code for each in answers] == [404] * 4, number
        assert all(each.json()["error"]["kind"] == "not_found" for each in answers)


def test_a_reader_only_reads(server: TeamServer) -> None:
    """A reader's write and removal are answered 403, and a member's removal of others' text."""
    reader, member = server.client("rita", role=Role.READER), server.client("mara")
    mark = reader.get(entries(server)).headers["etag"]
    body = json.dumps({"entries": [entry("b.md")]})
    refused = reader.put(entries(server), content=body, headers=JSON | KEY)
    removals = [
        client.delete(f"{entries(server)}/a.md?reason=x", headers=KEY | {"If-Match": mark})
        for client in (reader, member)
    ]
    assert [each.status_code for each in (refused, *removals)] == [403, 403, 403]
    assert server.client("anna").get("/metrics").status_code == 403


BODIES: dict[str, tuple[bytes, int]] = {
    "empty": (b"", 400),
    "no JSON": (b"{", 400),
    "two values": (b"{} {}", 400),
    "a list": (b"[]", 400),
    "a member twice": (b'{"entries": [], "entries": []}', 400),
    "an unknown member": (b'{"entries": [], "more": 1}', 400),
    "NaN": (b'{"entries": [{"key": "b.md", "content": "", "hash": "", "base": NaN}]}', 400),
    "a fraction": (b'{"entries": [{"key": "b.md", "content": "", "hash": "", "base": 1.5}]}', 400),
    "a text as number": (
        b'{"entries": [{"key": "b.md", "content": "", "hash": "", "base": "1"}]}',
        400,
    ),
    "a huge number": (
        b'{"entries": [{"key": "b.md", "content": "", "hash": "", "base": 1' + b"0" * 400 + b"}]}",
        400,
    ),
    "half a surrogate": (b'{"entries": [{"key": "\\ud800", "content": ""}]}', 400),
    "no UTF-8": (b'{"entries": "\xff"}', 400),
    "a BOM": (b'\xef\xbb\xbf{"entries": []}', 400),
    "deep": (b'{"entries": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
    "no entries": (b'{"entries": []}', 400),
    "too many": (json.dumps({"entries": [entry(f"b{n}.md") for n in range(101)]}).encode(), 413),
    "a wrong hash": (json.dumps({"entries": [entry("b.md", hash="0" * 64)]}).encode(), 422),
    "no hash": (json.dumps({"entries": [entry("b.md", hash="")]}).encode(), 422),
    "a key twice": (json.dumps({"entries": [entry("b.md"), entry("b.md")]}).encode(), 422),
    "the index": (json.dumps({"entries": [entry("MEMORY.md")]}).encode(), 422),
    "a way out": (json.dumps({"entries": [entry("../b.md")]}).encode(), 422),
    "an entry too large": (
        json.dumps({"entries": [entry("b.md", content="x" * 65537)]}).encode(),
        422,
    ),
    "a foreign base": (json.dumps({"entries": [entry("b.md", base=99)]}).encode(), 412),
    "a negative base": (json.dumps({"entries": [entry("b.md", base=-1)]}).encode(), 412),
    "large": (b" " * (512 * 1024 + 1), 413),
    "very large": (b" " * (3 * 1024 * 1024), 413),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_gets_its_status(name: str, server: TeamServer) -> None:
    """Whatever a PUT sends, it is answered with the right status, and nothing is written."""
    body, expected = BODIES[name]
    client = server.client("anna")
    before = client.get(entries(server)).headers["etag"]
    for chunked in (False, True):
        answer = client.put(
            entries(server),
            content=iter([body]) if chunked else body,
            headers=JSON | {"Idempotency-Key": str(uuid.uuid4())},
        )
        assert answer.status_code == expected
        assert set(answer.json()["error"]) >= {"kind", "message", "retryable"}
    assert client.get(entries(server)).headers["etag"] == before


REQUESTS: dict[str, tuple[str, str, dict[str, str], int]] = {
    "no type": ("PUT", "", KEY, 415),
    "a form": ("PUT", "", KEY | {"Content-Type": "application/x-www-form-urlencoded"}, 415),
    "zipped": ("PUT", "", KEY | JSON | {"Content-Encoding": "gzip"}, 415),
    "no key": ("PUT", "", JSON, 400),
    "no UUID": ("PUT", "", JSON | {"Idempotency-Key": "1"}, 400),
    "a weak mark": ("PUT", "", JSON | KEY | {"If-Match": 'W/"a.1"'}, 400),
    "a star": ("PUT", "", JSON | KEY | {"If-Match": "*"}, 400),
    "another epoch": ("PUT", "", JSON | KEY | {"If-Match": '"a.1"'}, 412),
    "no mark": ("DELETE", "/a.md?reason=x", KEY, 428),
    "an old mark": ("DELETE", "/a.md?reason=x", KEY | {"If-Match": '"a.1"'}, 412),
    "no reason": ("DELETE", "/a.md", KEY | {"If-Match": '"a.1"'}, 400),
    "no entry": ("DELETE", "/b.md?reason=x", KEY | {"If-Match": '"a.1"'}, 404),
    "no key of an entry": ("DELETE", "/../../a.md?reason=x", KEY | {"If-Match": '"a.1"'}, 404),
    "a parameter twice": ("GET", "?limit=1&limit=2", {}, 400),
    "an unknown parameter": ("GET", "?x=1", {}, 400),
    "no value": ("GET", "?limit", {}, 400),
    "a strange number": ("GET", "?limit=%D9%A1", {}, 400),
    "a limit too large": ("GET", "?limit=501", {}, 400),
    "a strange view": ("GET", "?view=all", {}, 400),
    "no mark of ours": ("GET", "?since=1", {}, 400),
    "a mark of another epoch": ("GET", "?since=0123456789abcdef.1", {}, 410),
    "no cursor of ours": ("GET", "?cursor=x", {}, 400),
    "a bad percent": ("GET", "?cursor=%FF", {}, 400),
    "another method": ("POST", "", {}, 405),
    "no method": ("BREW", "", {}, 405),
    "no route": ("GET", "s", {}, 404),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_gets_its_status(name: str, server: TeamServer) -> None:
    """Whatever is wrong with a request's head has a status of its own."""
    method, suffix, headers, expected = REQUESTS[name]
    body = json.dumps({"entries": [entry("b.md")]}).encode() if method == "PUT" else b""
    token = server.token("anna")
    head = headers | {"Authorization": f"Bearer {token}", "Content-Length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    text = f"{method} {entries(server)}{suffix} HTTP/1.1\r\n{HEAD}{lines}\r\n"
    raw = exchange(server, text.encode() + body)
    assert status(raw) == expected
    assert json.loads(raw.partition(b"\r\n\r\n")[2])["error"]["message"]


SMUGGLED = {
    "two lengths": "Content-Length: 2\r\nContent-Length: 3\r\n",
    "length and chunks": "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
    "chunks twice": "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "other chunks": "Transfer-Encoding: xchunked\r\n",
    "a list of lengths": "Content-Length: 2, 3\r\n",
    "a signed length": "Content-Length: +2\r\n",
    "a length in hex": "Content-Length: 0x2\r\n",
    "an endless length": f"Content-Length: {'9' * 5000}\r\n",
    "a space before the colon": "Content-Length : 2\r\n",
    "a folded line": "X: a\r\n b: c\r\nContent-Length: -1\r\n",
    "a bare return": "X: a\rb\r\nContent-Length: z\r\n",
    "a null": "X: a\0b\r\n",
    "two tokens": "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n",
    "two hosts": "Host: b\r\n",
}


@pytest.mark.parametrize("name", SMUGGLED)
def test_a_request_that_two_servers_could_read_differently_is_refused(
    name: str, server: TeamServer
) -> None:
    """Such a request gets an error, and what hides behind it is not answered."""
    hidden = "GET /healthz HTTP/1.1\r\nHost: hidden\r\n\r\n"
    head = f"PUT {entries(server)} HTTP/1.1\r\nHost: a\r\n{SMUGGLED[name]}\r\n"
    raw = exchange(server, f"{head}{{}}{hidden}")
    assert status(raw) in {400, 413, 431, 501}
    assert b'"ok"' not in raw


@pytest.mark.parametrize("token", [False, True])
def test_an_endless_body_is_cut(token: bool, server: TeamServer) -> None:  # noqa: FBT001
    """A body without end is answered 401, or 413 with a token, and its connection ends."""
    address = urlsplit(server.url)
    who = f"Authorization: Bearer {server.token('anna')}\r\n" * token
    kind = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    head = f"PUT {entries(server)} HTTP/1.1\r\nHost: a\r\n{who}{kind}\r\n"
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(head.encode())
        sent = 0
        with suppress(ConnectionError):
            while sent < 1000:
                connection.sendall(chunk)
                sent += 1
        assert sent < 300
        assert status(connection.recv(65536)) == (413 if token else 401)


def test_an_endless_head_is_cut(server: TeamServer) -> None:
    """A head without end is refused, and its connection ends."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n")
        sent = 0
        with suppress(ConnectionError):
            while sent < 1000:
                connection.sendall(b"X: " + b"a" * 10_000)
                sent += 1
        assert sent < 1000


def test_no_error_repeats_what_was_sent(server: TeamServer) -> None:
    """Neither the answer to a refused request nor the log holds a word of it."""
    word, client = "xyzzy4711", server.client("anna")
    text = f"---\nname: {word}\ndescription: {word}\ntype: user\n---\n{word}\n"
    bad = json.dumps({"entries": [entry("b.md", content=text)]})
    answers = [
        client.put(entries(server), content=bad, headers=JSON | {"Idempotency-Key": word}),
        client.put(entries(server), content=bad, headers=JSON | KEY),
        client.put(entries(server), content=word, headers=JSON | KEY),
        client.get(f"/v1/repos/{word}/entries"),
        client.get(f"{entries(server)}?{word}={word}"),
        client.get(f"/{word}", headers={"Authorization": f"Bearer {word}"}),
        client.post("/v1/join", json={"code": word, "device": "laptop"}),
    ]
    assert all(each.status_code >= 400 for each in answers)
    assert not [each.text for each in answers if word in each.text]
    assert word not in server.log.getvalue()


def exchange(server: TeamServer, request: str | bytes) -> bytes:
    """Return all that the server answers to raw bytes before it hangs up or waits for more."""
    data = request.encode("latin-1") if isinstance(request, str) else request
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.settimeout(60)  # each of these requests gets an answer
        connection.sendall(data)
        answer = b""
        with suppress(TimeoutError):
            while piece := connection.recv(65536):
                answer += piece
                connection.settimeout(0.3)
        return answer


def status(raw: bytes) -> int:
    """Return the status of an answer."""
    return int(raw.split(b" ", 2)[1])
