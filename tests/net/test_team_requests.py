"""memd-team and hostile requests: each has its status, changes nothing and is not repeated."""

import json
import socket
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.net.team_server import Device, TeamServer, entry, memory, serving

pytestmark = pytest.mark.full  # the quick run has test_team_http

KEYS = [  # names that are none of a memory below team/
    "", ".md", "..md", "a.md/", "./a.md", "x//b.md", "x/./b.md", "x/../b.md", "../b.md",
    "/etc/b.md", "b.md.", "b.md ", "b.MD", "b.txt", ".hidden.md", "b.md:x", "x\\b.md", "C:b.md",
    "//host/b.md", "file:///b.md", "~/b.md", "CON.md", "aux.md", "COM1.md", "con",
    "%2e%2e%2fb.md", "..%00/b.md", "b\0.md", "b\n.md", "b\x7f.md", "\x1b[2J.md",
    "\uff0e\uff0e\uff0fb.md", "\uff21.md", "x\u2215b.md", "b\u200b.md", "b\u202e.md",
    "\ufeffb.md", "e\u0301.md", "\ud800.md", "A" * 300 + ".md", "d/" * 100 + "b.md", "x/y/z/b.md",
    "MEMORY.md", "x/MEMORY.md", "memory.md", "b](x).md", "<b>.md", "KEPT.md", "kept.md/b.md",
]  # fmt: skip
TEXTS = {  # contents that no team shares, each with its rule
    "of type user": memory("Anna is a beginner.", "user"),
    "without a type": "---\nname: a\ndescription: b\n---\n\nText.\n",
    "without a head": "Just a text.\n",
    "of a strange type": memory("Text.", "secret"),
    "a GitHub token": memory("token: ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"),
    "an AWS key": memory("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYZZZPLEKEY"),
    "too large": memory("x" * 65537),
}
BODIES: dict[str, tuple[bytes, int]] = {
    "empty": (b"", 400),
    "no JSON": (b"{", 400),
    "two values": (b"{} {}", 400),
    "a list": (b"[]", 400),
    "a member twice": (b'{"entries": [], "entries": []}', 400),
    "an unknown member": (b'{"entries": [], "more": 1}', 400),
    "NaN": (b'{"entries": [{"key": "b.md", "content": "", "hash": "", "base": NaN}]}', 400),
    "a fraction": (b'{"entries": [{"key": "b.md", "content": "", "hash": "", "base": 1.5}]}', 400),
    "a huge number": (b'{"entries": [{"key": "b.md", "base": 1' + b"0" * 400 + b"}]}", 400),
    "half a surrogate": (b'{"entries": [{"key": "\\ud800", "content": ""}]}', 400),
    "no UTF-8": (b'{"entries": "\xff"}', 400),
    "a BOM": (b'\xef\xbb\xbf{"entries": []}', 400),
    "deep": (b'{"entries": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
    "no entries": (b'{"entries": []}', 400),
    "101 entries": (json.dumps({"entries": [entry(f"b{n}.md") for n in range(101)]}).encode(), 413),
    "a wrong hash": (json.dumps({"entries": [entry("b.md", hash="0" * 64)]}).encode(), 422),
    "a key twice": (json.dumps({"entries": [entry("b.md"), entry("b.md")]}).encode(), 422),
    "one good, one bad": (json.dumps({"entries": [entry("b.md"), entry("../c.md")]}).encode(), 422),
    "a foreign base": (json.dumps({"entries": [entry("b.md", base=99)]}).encode(), 412),
    "over 512 KiB": (b" " * (512 * 1024 + 1), 413),
}
JSON = "Content-Type: application/json\r\n"
ID = "Idempotency-Key: 00000000-0000-4000-8000-000000000001\r\n"
REQUESTS: dict[str, tuple[str, str, str, int]] = {
    "no type": ("PUT", "", ID, 415),
    "a form": ("PUT", "", f"{ID}Content-Type: application/x-www-form-urlencoded\r\n", 415),
    "zipped": ("PUT", "", f"{ID}{JSON}Content-Encoding: gzip\r\n", 415),
    "no id": ("PUT", "", JSON, 400),
    "no UUID": ("PUT", "", f"{JSON}Idempotency-Key: 1\r\n", 400),
    "no mark": ("DELETE", "/kept.md?reason=x", ID, 428),
    "an old mark": ("DELETE", "/kept.md?reason=x", f'{ID}If-Match: "a.1"\r\n', 412),
    "no reason": ("DELETE", "/kept.md", f'{ID}If-Match: "a.1"\r\n', 400),
    "no entry": ("DELETE", "/b.md?reason=x", f'{ID}If-Match: "a.1"\r\n', 404),
    "a way out": ("DELETE", "/../../kept.md?reason=x", f'{ID}If-Match: "a.1"\r\n', 404),
    "a parameter twice": ("GET", "?limit=1&limit=2", "", 400),
    "an unknown parameter": ("GET", "?x=1", "", 400),
    "a strange number": ("GET", "?limit=%D9%A1", "", 400),
    "a limit too large": ("GET", "?limit=501", "", 400),
    "a strange view": ("GET", "?view=all", "", 400),
    "no mark of ours": ("GET", "?since=1", "", 400),
    "no cursor of ours": ("GET", "?cursor=x", "", 400),
    "a bad percent": ("GET", "?cursor=%FF", "", 400),
    "another method": ("POST", "", "", 405),
    "no method": ("BREW", "", "", 405),
    "no route": ("GET", "s", "", 404),
}
AMBIGUOUS = {
    "two lengths": "Content-Length: 2\r\nContent-Length: 3\r\n",
    "length and chunks": "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
    "chunks twice": "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "a list of lengths": "Content-Length: 2, 3\r\n",
    "a signed length": "Content-Length: +2\r\n",
    "an endless length": f"Content-Length: {'9' * 5000}\r\n",
    "a space before the colon": "Content-Length : 2\r\n",
    "a bare return": "X: a\rb\r\nContent-Length: z\r\n",
    "two tokens": "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n",
    "two hosts": "Host: b\r\n",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    """Serve one repository with one entry."""
    with serving(tmp_path_factory.mktemp("team")) as made:
        yield made


@pytest.fixture(scope="module")
def anna(server: TeamServer) -> Device:
    """Return the member who wrote that entry."""
    device = server.device("anna")
    assert device.put(entry("kept.md")).status == 200
    return device


def fresh(device: Device) -> Device:
    """Return another device of a server's, with a rate of its own."""
    return device.server.device(f"m{uuid.uuid4().hex[:6]}")


def raw(server: TeamServer, request: str | bytes) -> bytes:
    """Return all that the server answers to bytes before it hangs up or waits for more."""
    data = request.encode("latin-1") if isinstance(request, str) else request
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(data)
        answer = b""
        with suppress(TimeoutError, ConnectionError):
            while piece := connection.recv(65536):
                answer += piece
                connection.settimeout(0.2)
        return answer


def status(answer: bytes) -> int:
    """Return the status of an answer's bytes."""
    return int(answer.split(b" ", 2)[1])


def test_no_key_leads_outside(anna: Device) -> None:
    """Whatever is no key of a memory below team/ is refused, and nothing is written for it."""
    device = fresh(anna)
    accepted = {key: device.put(entry(key)).status for key in KEYS}
    assert {key: each for key, each in accepted.items() if each not in {400, 422}} == {}
    assert [row["key"] for row in anna.page().json["entries"]] == ["kept.md"]


def test_names_in_three_parts_are_keys(tmp_path: Path) -> None:
    """A memory in a folder of a folder is taken, and one in a case of its own."""
    with serving(tmp_path) as server:
        device = server.device("anna")
        keys = ["a.md", "x/a.md", "x/y/a.md", "Freeze-2026_v1.2.md"]
        assert {key: device.put(entry(key)).status for key in keys} == dict.fromkeys(keys, 200)


@pytest.mark.parametrize("name", TEXTS)
def test_what_no_team_shares_is_refused_by_its_rule(anna: Device, name: str) -> None:
    """A private, untyped, secret or large text is 422 with key and rule, and no word of it."""
    answer = anna.put(entry("b.md", TEXTS[name]))
    assert (answer.status, answer.error["kind"]) == (422, "refused")
    rows = answer.error["entries"]
    assert {row["key"] for row in rows} == {"b.md"}
    assert all(row["rule"] for row in rows)
    for word in TEXTS[name].splitlines()[-1].split():
        assert len(word) < 8 or word.encode() not in answer.body


def test_a_body_gets_its_status(anna: Device) -> None:
    """Whatever a PUT sends has its status and a kind, and nothing of it is written."""
    device = fresh(anna)
    for name, (body, expected) in BODIES.items():
        answer = device.ask("PUT", device.server.entries, body)
        assert answer.status == expected, name
        assert set(answer.error) >= {"kind", "message", "retryable"}, name
    assert [row["key"] for row in anna.page().json["entries"]] == ["kept.md"]


def test_a_request_gets_its_status(anna: Device) -> None:
    """Whatever is wrong with the head of a request has a status of its own, and a sentence."""
    device = fresh(anna)
    for name, (method, suffix, head, expected) in REQUESTS.items():
        body = json.dumps({"entries": [entry("b.md")]}) if method == "PUT" else ""
        line = f"{method} {device.server.entries}{suffix} HTTP/1.1\r\nHost: a\r\n"
        who = f"Authorization: Bearer {device.token}\r\nConnection: close\r\n"
        given = f"{line}{who}{head}Content-Length: {len(body)}\r\n\r\n{body}"
        answer = raw(device.server, given)
        assert status(answer) == expected, name
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["message"], name


@pytest.mark.full
@pytest.mark.parametrize("name", AMBIGUOUS)
def test_what_two_servers_could_read_differently_is_refused(server: TeamServer, name: str) -> None:
    """An ambiguous request gets an error, and what hides behind it is not answered."""
    hidden = "GET /healthz HTTP/1.1\r\nHost: hidden\r\n\r\n"
    head = f"PUT {server.entries} HTTP/1.1\r\nHost: a\r\n{AMBIGUOUS[name]}\r\n"
    answer = raw(server, f"{head}{{}}{hidden}")
    assert status(answer) in {400, 413, 431, 501}
    assert b'"ok"' not in answer


@pytest.mark.full
def test_an_endless_body_is_cut(anna: Device) -> None:
    """A body without end is answered 413 long before it ends."""
    server = anna.server
    who = f"Authorization: Bearer {anna.token}\r\n{ID}{JSON}Transfer-Encoding: chunked\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(f"PUT {server.entries} HTTP/1.1\r\nHost: a\r\n{who}\r\n".encode())
        sent = 0
        with suppress(ConnectionError):
            while sent < 1000:
                connection.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
                sent += 1
        assert sent < 300
        assert status(connection.recv(65536)) == 413


@pytest.mark.parametrize("token", ["", "x" * 43, "a b"])
def test_who_has_no_token_gets_401(server: TeamServer, token: str) -> None:
    """Without a token of this server nothing is read or written."""
    device = Device(server, token)
    assert [device.page().status, device.put(entry("b.md")).status] == [401] * 2


@pytest.mark.full
def test_bad_tokens_stop_nobody(tmp_path: Path) -> None:
    """Who has no token is 401 each time; others go on."""
    with serving(tmp_path) as server:
        stranger, member = Device(server, "x" * 43), server.device("anna")
        assert {stranger.page().status for _ in range(30)} == {401}
        assert member.page().status == 200


def test_a_revoked_token_is_worth_nothing(server: TeamServer) -> None:
    """A token that the operator revokes, and each of a removed member, is 401 at once."""
    lost, former = server.device("lea"), server.device("fred")
    rows = {row["member"]: row["number"] for row in server.command("token", "list")}
    server.command("token", "revoke", str(rows["lea"]))
    server.command("member", "remove", "fred")
    assert [device.page().status for device in (lost, former)] == [401, 401]


def test_no_error_and_no_log_repeats_what_was_sent(tmp_path: Path) -> None:
    """A word in a key, text, query, path, reason or token stands in no answer and no log line."""
    word = "xyzzy4711plugh"
    with serving(tmp_path) as server:
        device, content = server.device("anna"), memory(word, "user", word)
        revision = device.put(entry("a.md", memory(word))).json["revision"]
        answers = [
            device.put(entry(f"{word}.txt")),
            device.put(entry("b.md", content)),
            device.put(entry("b.md"), Idempotency_Key=word),
            device.ask("PUT", server.entries, word.encode()),
            device.page(f"?{word}={word}"),
            device.page(f"?cursor={word}"),
            device.ask("GET", f"/{word}"),
            device.ask("GET", f"/v1/repos/{word}/entries"),
            device.remove("a.md", revision + 9, word),
            Device(server, word).page(),
            Device(server, "").ask("POST", "/v1/join", {"code": word, "device": "laptop"}),
        ]
        assert all(answer.status >= 400 for answer in answers)
        texts = [answer.body.decode() for answer in answers]
        keys = [text for text in texts[1:] if word in text]  # a refused key is named with its rule
        assert keys == []
        assert device.remove("a.md", revision, "done").status == 200
        assert server.stop() == 0
        log = server.log.read_text()
    assert word not in log
    assert device.token not in log
    assert [type(json.loads(line)) for line in log.splitlines()] == [dict] * log.count("\n")
    assert len(log.splitlines()) > 10


@pytest.mark.full
def test_nothing_is_stored_that_was_refused(tmp_path: Path) -> None:
    """No byte of a credential that a member tries to send is in the server's data."""
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    with serving(tmp_path) as server:
        device = server.device("anna")
        revision = device.put(entry("a.md")).json["revision"]
        tried = [
            device.put(entry("b.md", memory(f"the key is {token}"))),
            device.put(entry(f"{token}.md")),
            device.remove("a.md", revision, f"leaked {token}"),
        ]
        assert {answer.status for answer in tried} == {422}
        server.stop()
        stored = b"".join(path.read_bytes() for path in server.data.iterdir() if path.is_file())
    assert b"a1B2c3D4e5a1B2" not in stored
    assert device.token.encode() not in stored  # of a token only the hash is kept
