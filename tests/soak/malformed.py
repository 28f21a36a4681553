"""Bytes for the socket that are wrong in every way: JSON, envelopes, framings, other protocols."""

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from memd.base import limits

_JSONRPC = ("", '"jsonrpc":"2.0",', '"jsonrpc":"1.0",', '"jsonrpc":2.0,', '"jsonrpc":null,')
_IDS = (
    "", "null", "0", "-0", "1.5", "1e400", "NaN", "true", "[]", "{}", '""', '"\\ud800"', "1e-400",
    "18446744073709551616", '"\u202ex"', "[1]",
)  # fmt: skip
_METHODS = (
    "", '""', "7", '"rpc.x"', '"__class__"', '"_private"', '"a\\u0000b"', '"\u202e"', '"hello"',
    "null", '["hello"]',
)  # fmt: skip
_PARAMS = (
    '"x":1', '"params":{}', '"params":"s"', '"params":[1]', '"params":null', '"params":true',
    '"params":{"__class__":1}', '"params":[{"client":"x"}]', '"params":' + "[" * 64 + "]" * 64,
)  # fmt: skip
GOOD = b'{"jsonrpc":"2.0","id":"good","method":"hello","params":{}}'
_BYTES = limits.FRAME_BYTES - 1024
Named = Iterator[tuple[str, bytes]]


def headed(body: bytes) -> bytes:
    """Return a frame with a header."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def envelopes() -> Named:
    """Yield every combination of members that an envelope may have or lack, a line each."""
    ids = ("" if value == "" else f'"id":{value},' for value in _IDS)
    methods = ("" if value == "" else f'"method":{value},' for value in _METHODS)
    for number, parts in enumerate(itertools.product(_JSONRPC, ids, methods, _PARAMS)):
        yield f"envelope {number}", ("{" + "".join(parts) + "}\n").encode(errors="surrogatepass")


def json_texts(folder: Path) -> Named:
    """Yield each text of a folder of JSON texts in both framings."""
    for file in sorted(folder.rglob("*.json")):
        data = file.read_bytes()
        yield f"{file.name} in a line", data + b"\n"
        yield f"{file.name} with a header", headed(data)


def naughty(file: Path, cwd: str) -> Named:
    """Yield each naughty text in seven places of a request."""
    write = {
        "cwd": cwd,
        "path": "n.md",
        "name": "n",
        "description": "d",
        "type": "user",
        "body": "b",
    }
    places: dict[str, Callable[[str], dict[str, object]]] = {
        "method": lambda text: {"method": text, "params": {}},
        "id": lambda text: {"id": text, "method": "hello", "params": {}},
        "value": lambda text: {"method": "memory.search", "params": {"cwd": cwd, "query": text}},
        "file": lambda text: {"method": "memory.read", "params": {"cwd": cwd, "path": text}},
        "body": lambda text: {"method": "memory.write", "params": {**write, "body": text}},
        "head": lambda text: {"method": "memory.write", "params": {**write, "description": text}},
        "project": lambda text: {"method": "memory.list", "params": {"cwd": f"/nowhere/{text}"}},
    }
    for number, text in enumerate(json.loads(file.read_text(encoding="utf-8"))):
        for place, make in places.items():
            request = {"jsonrpc": "2.0", "id": 1, **make(text)}
            yield f"naughty {number} as {place}", json.dumps(request).encode() + b"\n"


def large() -> Named:
    """Yield frames of which one part is as large as may be, or larger."""
    call = b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}\n'
    yield "an id of a mebibyte", call % (b'"' + b"i" * 2**20 + b'"', b'"hello"', b"{}")
    yield "a method of 100 kB", call % (b"1", b'"' + b"m" * 100_000 + b'"', b"{}")
    yield "a million items", call % (b"1", b'"hello"', b"[" + b"1," * 999_999 + b"1]")
    yield "a depth of 100,000", call % (b"1", b'"hello"', b"[" * 100_000 + b"]" * 100_000)
    yield "a depth of millions", b"[" * _BYTES + b"\n"
    yield "a batch of 20,000", b"[" + b",".join([GOOD] * 20_000) + b"]\n"
    yield "a frame of 4 MiB", b'{"a":"' + b"x" * _BYTES + b'"}\n'
    yield "no newline", b"{" + b"x" * (5 * 2**20)
    yield "a number of a million digits", call % (b"9" * 10**6, b'"hello"', b"{}")
    yield "a key a hundred thousand times", b"{" + b'"a":1,' * 100_000 + b'"a":1}\n'


def batches() -> Named:
    """Yield batches that are empty, wrong, mixed, or of notifications alone."""
    quiet = b'{"jsonrpc":"2.0","method":"hello"}'
    items = (b"", b"1", b"[]", GOOD, quiet, b"null", b"{}", b"1,1,1", GOOD + b"," + GOOD)
    for first, second in itertools.product(items, items):
        body = b",".join(filter(None, (first, second)))
        yield f"a batch of {body[:60]!r}", b"[" + body + b"]\n"
    yield "the same id twice in flight", GOOD + b"\n" + GOOD + b"\n" + GOOD + b"\n"


def framings() -> Named:
    """Yield good requests in framings that are wrong or odd, and other protocols."""
    ends = {"LF": b"\n", "CRLF": b"\r\n", "CR": b"\r", "nothing": b"", "two": b"\n\n", "NUL": b"\0"}
    for name, end in ends.items():
        yield f"a line that ends with {name}", GOOD + end
        yield f"two that end with {name}", (GOOD + end) * 2
        yield f"headers that end with {name}", b"Content-Length: %d" % len(GOOD) + end * 2 + GOOD
    for length in (b"", b"x", b"-1", b"5", b"+58", b"0x3a", b"58 ", b"9" * 30, b"58, 58", b"5.8"):
        yield f"a length of {length!r}", b"Content-Length: " + length + b"\r\n\r\n" + GOOD
    for name, header in {
        "no length": b"Content-Type: x\r\n\r\n", "no colon": b"Content-Length 5\r\n\r\n",
        "two lengths": b"Content-Length: 58\r\nContent-Length: 58\r\n\r\n", "half": b"Content-Le",
        "9 KiB": b"Content-Length: 5\r\nX: " + b"y" * 9000, "many": b"C: 1\r\n" * 5000,
        "an unending one": b"C" * 20_000, "a body too short": b"Content-Length: 999\r\n\r\n",
    }.items():  # fmt: skip
        yield f"headers with {name}", header + GOOD
    for code in ("utf-16", "utf-16-be", "utf-32", "utf-8-sig", "cp037"):
        yield code, GOOD.decode().encode(code) + b"\n"
    for name, data in {
        "HTTP GET": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "HTTP POST": b"POST / HTTP/1.1\r\nContent-Length: 58\r\n\r\n" + GOOD,
        "CONNECT": b"CONNECT a:1 HTTP/1.1\r\n\r\n", "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "TLS": b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + bytes(100),
        "SSH": b"SSH-2.0-x\r\n", "a WebSocket": b"\x81\x85\0\0\0\0hello",
        "gzip": b"\x1f\x8b\x08\x00" + bytes(50), "zstd": b"\x28\xb5\x2f\xfd" + bytes(50),
        "zeros": bytes(1_000_000), "ones": b"\xff" * 1000, "spaces": b" \r\n" * 100_000,
        "nothing": b"", "a BOM": b"\xef\xbb\xbf",
    }.items():  # fmt: skip
        yield name, data
    whole = headed(GOOD)
    for size in range(1, len(whole), 3):
        yield f"a frame that ends after {size} bytes", whole[:size]
    for size in range(1, len(GOOD), 3):
        yield f"a line that ends after {size} bytes", GOOD[:size]


def every(corpora: Path, cwd: str) -> list[tuple[str, bytes]]:
    """Return all of them, each once."""
    kinds = (
        json_texts(corpora / "JSONTestSuite"),
        naughty(corpora / "blns" / "blns.json", cwd),
        envelopes(),
        batches(),
        framings(),
        large(),
    )
    return [(name, data) for data, name in {d: n for n, d in itertools.chain(*kinds)}.items()]
