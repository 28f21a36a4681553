"""JSON-RPC 2.0 in three framings: strict JSON, envelopes, batches, and bytes of any other kind."""

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPConnection
from itertools import product
from pathlib import Path

import pytest

from tests.net.kit import Home, Project
from tests.net.socket_bytes import (
    FRAMINGS,
    GOOD,
    answers,
    bodies,
    exchanged,
    headed,
    posted,
    raw,
    request,
)
from tests.net.wire import RpcError

CORPORA = Path(os.environ.get("MEMD_CORPORA") or Path(__file__).parents[3] / "shared/corpora")
HELLO = b'{"jsonrpc":"2.0","id":1,"method":"hello","params":%b}'
STRICT = {
    "a key twice": b'{"jsonrpc":"2.0","id":1,"id":2,"method":"hello"}',
    "a key twice deep inside": HELLO % b'{"environment":{"A":"1","A":"2"}}',
    "a lone surrogate": HELLO % b'{"client":"\\ud800"}',
    "a lone surrogate as key": HELLO % b'{"\\udc00":1}',
    "no UTF-8": HELLO % b'{"client":"\xff\xfe"}',
    "an overlong form": HELLO % b'{"client":"\xc0\xaf"}',
    "NaN": HELLO % b'{"client":NaN}',
    "Infinity": HELLO % b'{"client":-Infinity}',
    "a comma too many": HELLO % b'{"client":"x",}',
    "a comment": HELLO % b"{/* */}",
    "single quotes": HELLO % b"{'client':'x'}",
    "a control character": HELLO % b'{"client":"\x01"}',
    "nested 65 deep": HELLO % (b'{"a":' * 65 + b"1" + b"}" * 65),
    "half a text": b'{"jsonrpc":"2.0","id":1,',
}


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("name", STRICT)
def test_json_is_strict(home: Home, name: str, framing: str) -> None:
    """What is no strict JSON gets one error without an id, and the next frame an answer."""
    sent = b"".join(map(FRAMINGS[framing], (STRICT[name], GOOD)))
    bad, good = answers(exchanged(home, sent))
    assert (bad["id"], bad["error"]["code"]) == (None, -32700)
    assert good["result"]["name"] == "memd"


@pytest.mark.parametrize(
    ("change", "identity", "code"),
    [
        ({"jsonrpc": "1.0"}, 1, -32600),
        ({"jsonrpc": None}, 1, -32600),
        ({"method": 1}, 1, -32600),
        ({"method": None}, 1, -32600),
        ({"params": "x"}, 1, -32600),
        ({"params": True}, 1, -32600),
        ({"id": True}, None, -32600),
        ({"id": [1]}, None, -32600),
        ({"id": {}}, None, -32600),
        ({"params": [1]}, 1, -32602),
        ({"params": {"client": 7}}, 1, -32602),
        ({"method": "no.such"}, 1, -32601),
        ({"method": "__class__"}, 1, -32601),
        ({"method": "rpc.nope"}, 1, -32601),
    ],
)
def test_a_wrong_envelope_is_answered_under_its_id(
    home: Home, change: dict[str, object], identity: int | None, code: int
) -> None:
    """Where the id was understood the error carries it."""
    sent = json.dumps({**json.loads(HELLO % b"{}"), **change}).encode()
    (answer,) = answers(exchanged(home, sent))
    assert (answer["id"], answer["error"]["code"]) == (identity, code)


@pytest.mark.parametrize("identity", [0, -7, 1.5, "", "x" * 1000, "\u202e\U0001f600", None])
def test_an_id_comes_back_as_it_was(home: Home, identity: object) -> None:
    """Numbers, texts and null are ids."""
    (answer,) = answers(exchanged(home, request("hello", identity)))
    assert answer["id"] == identity
    assert "result" in answer


def test_an_unknown_parameter_is_named(project: Project) -> None:
    """A parameter that a method does not have is an error that names it."""
    with pytest.raises(RpcError, match="nope") as error:
        project.call("load_prompt", nope=1)
    assert (error.value.code, error.value.kind) == (-32602, "invalid_params")


def test_a_missing_parameter_is_named(project: Project) -> None:
    """A parameter that a method needs is named when it is missing."""
    with pytest.raises(RpcError, match="path") as error:
        project.call("memory.read")
    assert error.value.code == -32602


def test_optional_members_may_be_null(project: Project) -> None:
    """A null is as good as an absent member."""
    optional = dict.fromkeys(("session_id", "mode", "agent", "skip_index", "instructions"))
    assert project.call("load_prompt", **optional) == project.call("load_prompt")
    (answer,) = answers(exchanged(project.home, HELLO % b"null"))
    assert "result" in answer


def test_a_notification_is_not_answered(home: Home) -> None:
    """Neither its success nor its error nor an answer of a client is answered."""
    quiet = [
        b'{"jsonrpc":"2.0","method":"hello"}',
        b'{"jsonrpc":"2.0","method":"nope"}',
        b'{"jsonrpc":"2.0","method":"load_prompt","params":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}',
        b'[{"jsonrpc":"2.0","method":"hello"},{"jsonrpc":"2.0","method":"nope"}]',
    ]
    assert [a["id"] for a in answers(exchanged(home, b"\n".join([*quiet, GOOD])))] == ["good"]


@pytest.mark.parametrize("framing", FRAMINGS)
def test_each_item_of_a_batch_is_answered_for_itself(project: Project, framing: str) -> None:
    """A bad item gets its own error, a notification nothing, and the others their results."""
    batch = b"[%b]" % b",".join(
        [
            request("status", 1),
            b"7",
            b'{"jsonrpc":"2.0","method":"hello"}',
            request("nope", 2),
            b"[]",
            request("memory.read", "r", cwd=project.cwd, path="none.md"),
            request("hello", 3, nope=1),
            b'{"jsonrpc":"2.0","id":4,"method":"hello","params":[]}',
            request("load_prompt", 5, cwd=project.cwd),
        ]
    )
    received = exchanged(project.home, FRAMINGS[framing](batch))
    assert len(bodies(received)) == 1
    found = answers(received)
    codes = {a["id"]: a.get("error", {}).get("code") for a in found if a["id"] is not None}
    assert codes == {1: None, 2: -32601, "r": 1001, 3: -32602, 4: codes[4], 5: None}
    assert [a["error"]["code"] for a in found if a["id"] is None] == [-32600, -32600]


def test_an_empty_batch_is_one_error(home: Home) -> None:
    """An empty batch is no batch."""
    assert isinstance(json.loads(exchanged(home, b"[]\n")), dict)


def test_the_same_id_twice_at_once_is_an_error(project: Project) -> None:
    """An id is free again once its request was answered."""
    client = project.home.connect()
    key = client.call("agent.register", cwd=project.cwd, name="twice")["key"]
    waits = {"jsonrpc": "2.0", "id": 70, "method": "message.receive"}
    client.send({**waits, "params": {"key": key, "wait": 50}})
    client.send({**waits, "method": "hello"})
    assert client.read()["error"]["code"] == -32600
    client.notify("$/cancelRequest", id=70)
    assert client.read()["error"]["code"] == -32800
    client.send({**waits, "method": "hello"})
    assert client.read()["result"]["name"] == "memd"


def test_clients_with_the_same_ids_get_their_own_answers(home: Home) -> None:
    """Eight clients use the same ids for projects of their own; none sees a foreign answer."""
    projects = [home.project() for _ in range(8)]
    clients = [home.connect() for _ in projects]
    for _ in range(5):
        for client, project in zip(clients, projects, strict=True):
            client.ask("load_prompt", cwd=project.cwd)
    for number in range(2, 7):
        for client, project in zip(clients, projects, strict=True):
            assert client.answer(number)["memory_dir"].rstrip("/") == str(project.memory)


def _at_once(connection: socket.socket, data: bytes) -> None:
    connection.sendall(data)


def _in_pieces(connection: socket.socket, data: bytes) -> None:
    for at in range(len(data)):
        connection.send(data[at : at + 1])


def _with_descriptors(connection: socket.socket, data: bytes) -> None:
    with open(os.devnull, "rb") as null:
        for half in (data[:30], data[30:]):
            socket.send_fds(connection, [half], [null.fileno()] * 250)


def _then_half_closed(connection: socket.socket, data: bytes) -> None:
    connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)


WAYS = (_at_once, _in_pieces, _with_descriptors, _then_half_closed)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("end", ["LF", "CRLF", "headers", "HTTP"])
def test_however_bytes_come_they_are_one_request(
    home: Home, way: Callable[[socket.socket, bytes], None], end: str
) -> None:
    """Pieces, descriptors and a half-closed side change no answer; passed files are not kept."""
    pair = [request("hello", 7), request("hello", 8)]
    heads = {"headers": headed, "HTTP": posted}
    ends = {"LF": b"\n", "CRLF": b"\r\n"}
    sent = b"".join(map(heads[end], pair)) if end in heads else ends[end].join([*pair, b""])
    with raw(home) as connection:
        way(connection, sent)
        received = b""
        while received.count(b'"result"') < 2 or not received.rstrip().endswith(b"}"):
            received += connection.recv(1 << 16)
    found = answers(received)
    assert {answer["id"] for answer in found} == {7, 8}
    folder = f"/proc/{found[0]['result']['pid']}/fd"
    held = []
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        with suppress(FileNotFoundError):
            held.append(os.readlink(f"{folder}/{name}"))
    assert held.count(os.devnull) <= 3


def test_an_http_client_gets_answer_after_answer(project: Project) -> None:
    """A library for HTTP reads them as such, over one connection; what is no POST is refused."""
    client = HTTPConnection("memd")
    client.sock = raw(project.home)
    for number in range(3):
        client.request("POST", "/", request("load_prompt", number, cwd=project.cwd))
        reply = client.getresponse()
        answer = json.loads(reply.read())
        assert (reply.status, answer["id"]) == (200, number)
        assert "MEMORY.md" in answer["result"]["prompt"]
    client.request("PUT", "/", GOOD)
    assert json.loads(client.getresponse().read())["error"]["code"] == -32700
    client.close()


def test_a_last_line_without_newline_is_answered(project: Project) -> None:
    """The end of the client's side ends its last line."""
    sent = request("load_prompt", 1, cwd=project.cwd)
    (answer,) = answers(exchanged(project.home, sent))
    assert "MEMORY.md" in answer["result"]["prompt"]


OTHERS = {
    "nothing": b"",
    "half a header": b"Content-Length: 10",
    "half a body": b"Content-Length: 10\r\n\r\n{",
    "a negative length": b"Content-Length: -1\r\n\r\n{}",
    "an enormous length": b"Content-Length: 99999999999999999999\r\n\r\n{}",
    "two lengths": b"Content-Length: 58\r\nContent-Length: 5\r\n\r\n" + GOOD,
    "HTTP GET": b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "HTTP POST": b"POST / HTTP/1.1\r\nContent-Length: 58\r\n\r\n" + GOOD,
    "HTTP POST in chunks": b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3a\r\n" + GOOD,
    "HTTP PUT": b"PUT / HTTP/1.1\r\nContent-Length: 58\r\n\r\n" + GOOD,
    "TLS": b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + bytes(100),
    "gzip": b"\x1f\x8b\x08\x00" + bytes(50),
    "UTF-16": GOOD.decode().encode("utf-16") + b"\n",
    "a byte order mark": b"\xef\xbb\xbf" + GOOD + b"\n",
    "zeros": bytes(100_000),
    "a line of 5 MiB": b'{"' + b"x" * (5 << 20),
    "a list of 5 MiB": b"[" + b"0," * (5 << 19),
    "100,000 deep": b"[" * 100_000 + b"\n",
    "a large batch": b"[" + b",".join([GOOD] * 20_000) + b"]\n",
    "a long number": HELLO.replace(b'"id":1', b'"id":' + b"9" * 10**6) % b"{}",
    "an infinite number": HELLO.replace(b'"id":1', b'"id":1e400') % b"{}",
    "100,000 keys": b"{" + b'"a":1,' * 100_000 + b'"a":1}\n',
}


@pytest.mark.parametrize("name", OTHERS)
def test_any_bytes_disturb_nobody_else(home: Home, name: str) -> None:
    """They are answered with errors or closed; another client does not notice."""
    with home.connect() as other:
        pid = other.call("hello")["pid"]
        for answer in answers(exchanged(home, OTHERS[name])):
            assert "error" in answer or answer["id"] == "good"
        assert other.call("hello")["pid"] == pid
        assert home.call("hello")["pid"] == pid
    assert "raceback" not in home.log.read_text()


def _envelopes() -> Iterator[bytes]:
    versions = ("", '"jsonrpc":"2.0",', '"jsonrpc":2.0,', '"jsonrpc":null,')
    ids = ("", '"id":null,', '"id":0,', '"id":1e400,', '"id":true,', '"id":[],', '"id":"\\ud800",')
    methods = ("", '"method":"",', '"method":7,', '"method":"a\\u0000b",', '"method":"hello",')
    params = ('"x":1', '"params":{}', '"params":"s"', '"params":[1]', '"params":{"__class__":1}')
    for parts in product(versions, ids, methods, params):
        yield ("{" + "".join(parts) + "}").encode()


def test_every_envelope_is_answered_or_rightly_not(home: Home) -> None:
    """Every combination of members that an envelope may have or lack ends in order."""
    frames = list(_envelopes())
    for start in range(0, len(frames), 20):
        part = frames[start : start + 20]
        found = answers(exchanged(home, b"\n".join([*part, GOOD])))
        assert found[-1]["id"] == "good"
        assert len(found) <= len(part) + 1
        assert all(a.get("error", {}).get("code") != -32603 for a in found)
    assert "raceback" not in home.log.read_text()


@pytest.mark.full
@pytest.mark.parametrize("framing", FRAMINGS)
def test_texts_of_a_json_test_suite_are_answered(home: Home, framing: str) -> None:
    """Each text that is not JSON is an error; none of them ends the daemon."""
    files = sorted((CORPORA / "JSONTestSuite").rglob("*.json"))
    if not files:
        pytest.skip("no JSONTestSuite; MEMD_CORPORA names the folder of corpora")
    for file in files:
        data = file.read_bytes()
        found = answers(exchanged(home, FRAMINGS[framing](data)))
        assert all("error" in answer for answer in found), file.name
        assert found or not data.strip(), file.name
    assert home.call("hello")["name"] == "memd"


@pytest.mark.full
def test_naughty_strings_are_texts_like_others(project: Project) -> None:
    """Each naughty string in a method, query, name or body gets a proper answer."""
    file = CORPORA / "blns/blns.json"
    if not file.exists():
        pytest.skip("no list of naughty strings; MEMD_CORPORA names the folder of corpora")
    memory = {"cwd": project.cwd, "path": "n.md", "name": "n", "description": "d", "body": "b"}
    for text in json.loads(file.read_text(encoding="utf-8")):
        sent = [
            request(text),
            request("hello", text),
            request("memory.search", cwd=project.cwd, query=text),
            request("memory.read", cwd=project.cwd, path=text),
            request("memory.write", **{**memory, "body": text, "type": "project"}),
            request("memory.write", **{**memory, "description": text, "type": "project"}),
            request("memory.list", cwd=f"/nowhere/{text}"),
        ]
        for each in sent:
            for answer in answers(exchanged(project.home, each)):
                assert answer.get("error", {}).get("code") != -32603, (text, each)
