"""A hostile server: nothing escapes, little is spent, and what stands here stays as it is."""

import json
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from memd.base.errors import MemdError, Refused, Unavailable
from memd.remote.link import HttpRequest, Link, RemoteAnswerError, RemoteUnreachableError
from tests.team.devices import Device, device, memory
from tests.team.hostile import (
    MEBIBYTE,
    answer,
    bomb,
    endless,
    entry,
    hostile,
    page,
)
from tests.team.membership import OWN, TOKEN, joined

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).resolve().parents[2]
NAMES = [
    *("../a.md", "/etc/a.md", "a/../../b.md", "a\\b.md", "MEMORY.md", "sub/memory.md", ".a.md"),
    *("a.txt", "", "a\u0000.md", "a\n.md", "con.md", "a/b/c/d.md", "%2e%2e%2fa.md", "x.md/y.md"),
    *("\u2025/a.md", "-rf.md", "a//b.md", "a" * 101 + ".md", "C:a.md", "a.md ", "\u202ea.md"),
]


def everything(folder: Path) -> set[str]:
    """Return every Markdown file below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*.md")}


async def pulled(tmp_path: Path, answers: Callable[[str], Iterable[bytes]]) -> tuple[Any, ...]:
    """Pull from a hostile server; return the result or the error, the texts, and the requests."""
    with hostile(answers) as server:
        async with device(tmp_path / "home") as home:
            await joined(home, server.url)
            result: Any
            try:
                result = await home.sync()
            except MemdError as error:
                result = error
            assert all(TOKEN in head for head in server.heads)
            assert home.faults == []
            return result, home.texts(), server


def body(text: bytes) -> Callable[[str], Iterable[bytes]]:
    """Return what answers every request with a body."""
    return lambda _: answer(text)


def twice(text: bytes) -> bytes:
    """Return a page in which a member's name comes twice."""
    return text.replace(b'"epoch": "e"', b'"epoch": "e", "epoch": "f"')


def redirect(target: str) -> Callable[[str], Iterable[bytes]]:
    """Return what sends every request elsewhere."""
    return lambda _: answer(b"", "307 Temporary Redirect", f"Location: {target}")


TARGETS = ("http://127.0.0.1:9/", "https://evil.example/", "file:///etc/passwd", "//x")
USELESS: dict[str, Callable[[str], Iterable[bytes]]] = {
    "bomb": lambda _: answer(bomb(), "200 OK", "Content-Encoding: gzip"),
    "endless": endless,
    "endless header": lambda _: (b"HTTP/1.1 200 OK\r\n", *[b"x: " + b"y" * 60000] * 3),
    "no http": lambda _: [b"\x00" * 5000],
    "nothing": lambda _: [],
    "half": lambda _: [b"".join(answer(page()))[:-9]],
    "too short": lambda _: [answer(page())[0].replace(b"th: ", b"th: 9"), page()],
    "negative length": lambda _: [b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", page()],
    "two lengths": lambda _: answer(page(), "200 OK", "Content-Length: 3"),
    "deflate": lambda _: answer(page(), "200 OK", "Content-Encoding: deflate"),
    "packed twice": lambda _: answer(page(), "200 OK", "Content-Encoding: gzip, gzip"),
    "no gzip": lambda _: answer(page(), "200 OK", "Content-Encoding: gzip"),
    "duplicate keys": body(twice(page())),
    "surrogate": body(page(entry("a.md", member="\ud800"))),
    "number": body(page().replace(b"9", b"1e400")),
    "nan": body(page(entry("a.md")).replace(b"1.0", b"NaN")),
    "deep": body(b"[" * 100_000),
    "many lists": body(b'{"x":[' + b"[]," * 200_000 + b"[]]}"),
    "22,582 keys": body(page(*[entry(f"k{n}.md", "x") for n in range(22_582)])),
    "list": body(b"[]"),
    "text": body(b'"x"'),
    "negative revision": body(page(revision=-1)),
    "huge revision": body(page(revision=2**60)),
    "revision of another type": body(page(revision="9")),
    "newer than the whole": body(page(entry("a.md", revision=10))),
    "an entry twice": body(page(entry("a.md"), entry("a.md"))),
    "epoch with CRLF": body(page(epoch="e\r\nX: y")),
    "epoch of 10 kB": body(page(epoch="e" * 10_000)),
    "cursor with CRLF": body(page(next="1\r\nX: y")),
    "not modified": lambda _: answer(b"", "304 Not Modified"),
    "500": lambda _: answer(b"x" * 5000, "500 Internal Server Error"),
    "busy": lambda _: answer(b"{}", "429 Too Many Requests", "Retry-After: 1e999"),
    **{f"redirect to {target}": redirect(target) for target in TARGETS},
}


@pytest.mark.parametrize("attack", USELESS)
async def test_an_answer_that_cannot_be_used_changes_nothing(tmp_path: Path, attack: str) -> None:
    """Whatever comes instead of an answer: own memories stay, and the sync backs off."""
    result, texts, server = await pulled(tmp_path, USELESS[attack])
    assert isinstance(result, Unavailable), result
    # What is too long is asked for once more, in small pages.
    assert (texts, len(server.heads)) == ({"own.md": OWN}, 1 + (attack in ("bomb", "endless")))
    assert TOKEN not in result.sentence


WEB = {
    "page": body(b"<html>hello</html>"),
    "no page": lambda _: answer(b"<html>none</html>", "404 Not Found"),
    "no method": lambda _: answer(b"<html>none</html>", "501 Unsupported method"),
    "object": lambda _: answer(b"{}", "201 Created"),
    "list": body(b"[]"),
    "moved": redirect("https://elsewhere.example/login"),
}


@pytest.mark.parametrize("kind", WEB)
async def test_another_web_server_is_not_joined(tmp_path: Path, kind: str) -> None:
    """What is no memd-team server is called that, with where it sends to, and not tried again."""
    async with device(tmp_path / "home") as home:
        with hostile(WEB[kind]) as server, pytest.raises(Refused) as refused:
            await home.join(server.url, "code")
    assert "memd-team server" in refused.value.sentence
    assert ("https://elsewhere.example/login" in refused.value.sentence) == (kind == "moved")


async def test_an_etag_of_any_kind_is_no_header_of_ours(tmp_path: Path) -> None:
    """A header that tells of the mark is not believed: the body's mark alone goes into requests."""
    for etag in ('W/"e.9"', '"' + "e" * 10_000 + '"', '"e.9\r\nX: y"', "e.9"):
        said = answer(page(), "200 OK", f"ETag: {etag}")
        async with device(tmp_path / str(len(etag))) as home:
            with hostile(partial(_same, said)) as server:
                await joined(home, server.url)
                await home.sync()
                await home.sync()
                assert 'If-None-Match: "e.9"\r\n'.lower() in server.heads[1].lower()


async def test_hostile_names_are_left_out_and_the_rest_comes(tmp_path: Path) -> None:
    """No name of a server leaves the team directory; other entries of the page are unharmed."""
    entries = [entry(name, revision=n + 1) for n, name in enumerate(NAMES)]
    text = page(*entries, entry("fine.md"), entry("FINE.md"), revision=99)
    result, texts, _ = await pulled(tmp_path, body(text))
    assert len(result.taken) == 1
    assert {path.lower() for path in texts} == {"own.md", "fine.md"}
    assert len(result.left_out) == len(NAMES) + 1
    outside = {path for path in everything(tmp_path) if "/team/" not in path}
    assert outside <= {"home/memory/MEMORY.md"}


async def test_hostile_texts_are_left_out(tmp_path: Path) -> None:
    """A text of another hash, type or size, a secret or a bomb in its head does not come in."""
    bad = {
        "hash.md": {"hash": "0" * 64},
        "user.md": {"text": memory("user", "I am Eve.", "user")},
        "bare.md": {"text": "no head"},
        "large.md": {"text": memory("large", "x" * 65536)},
        "bomb.md": {"text": "---\na: &a [x]\nb: [*a, *a]\n---\n"},
    }
    text = page(*(entry(key, **members) for key, members in bad.items()), entry("fine.md"))
    result, texts, _ = await pulled(tmp_path, body(text))
    assert sorted(texts) == ["fine.md", "own.md"]
    assert {item.key for item in result.left_out} == bad.keys()


@pytest.mark.skipif(sys.platform != "linux", reason="no peak of memory here")
@pytest.mark.parametrize("attack", ["22,582 keys", "endless", "bomb", "many lists"])
def test_memory_is_bounded(tmp_path: Path, attack: str) -> None:
    """An attack that costs much takes less than 16 MiB of memory."""
    with hostile(body(page())) as calm, hostile(USELESS[attack]) as server:
        arguments = ["-m", "tests.team.peak", calm.url, server.url, str(tmp_path / "home")]
        done = subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert len(server.heads) >= 1
    assert 0 < int(done.stdout) <= 16 * MEBIBYTE


def _same(said: list[bytes], _: str) -> list[bytes]:
    return said


async def test_412_for_ever_ends(tmp_path: Path) -> None:
    """A server that always says that entries changed is asked five times, and ours stays."""

    def answers(line: str) -> Iterable[bytes]:
        told = {"error": {"kind": "changed", "entries": [{"key": "ours.md", "revision": 7}]}}
        refused = answer(json.dumps(told).encode(), "412 Precondition Failed")
        return refused if line.startswith("PUT") else answer(page())

    with hostile(answers) as server:
        async with device(tmp_path / "home") as home:
            await joined(home, server.url)
            await home.write("ours.md", memory("ours", "Ours."))
            async with anyio.create_task_group() as group:
                group.start_soon(_pass_time, home)
                with pytest.raises(Unavailable):
                    await home.sync()
                group.cancel_scope.cancel()
            assert sum(head.startswith("PUT") for head in server.heads) == 5
            assert home.texts() == {"own.md": OWN, "ours.md": memory("ours", "Ours.")}


async def _pass_time(home: Device) -> None:
    while True:
        await anyio.lowlevel.checkpoint()
        if home.clock.sleepers:
            home.clock.advance(5.0)


@pytest.mark.parametrize(("entries", "pages"), [(500, 51), (0, 1)])
async def test_pages_without_end_end(tmp_path: Path, entries: int, pages: int) -> None:
    """A server with ever more pages is left after 25,000 keys, or a page without any."""
    number = 0

    def answers(_: str) -> Iterable[bytes]:
        nonlocal number
        number += 1
        names = [entry(f"../{number}-{n}.md", "x") for n in range(entries)]
        return answer(page(*names, next=str(number)))

    result, texts, server = await pulled(tmp_path, answers)
    assert isinstance(result, Unavailable)
    assert (texts, len(server.heads)) == ({"own.md": OWN}, pages)


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"])
async def test_slow_bytes_end_in_time(first: bytes) -> None:
    """A server that trickles its header or its body is left when the time of a page is over."""
    over = threading.Event()

    def trickle(_: str) -> Iterator[bytes]:
        yield first
        for byte in b"HTTP/1.1 200 OK" * 100:
            if over.wait(0.02):
                return
            yield bytes([byte])

    with hostile(trickle) as server:
        async with Link(server.url, TOKEN, page_seconds=0.3) as link:
            with anyio.fail_after(25), pytest.raises(RemoteUnreachableError):
                await link.send(HttpRequest("GET", "/"))
            over.set()


async def test_a_token_goes_to_its_server_alone() -> None:
    """Plain http to another machine, and a header with a line break, never go out."""
    for address in ("http://example.com", "ftp://127.0.0.1", "http://127.0.0.1.example.com"):
        async with Link(address, TOKEN) as link:
            with pytest.raises(RemoteUnreachableError) as refused:
                await link.send(HttpRequest("GET", "/"))
            assert TOKEN not in str(refused.value)
    with hostile(body(b"{}")) as server:
        async with Link(server.url, TOKEN) as link:
            with pytest.raises(RemoteUnreachableError):
                await link.send(HttpRequest("GET", "/", {"If-Match": "a\r\nX: y"}))
        assert server.heads == []


async def test_no_cookie_is_kept_and_an_answer_is_read_whole() -> None:
    """A cookie that a server sets does not come back, and a body up to the bound is returned."""
    said = answer(b"x" * 1000, "200 OK", "Set-Cookie: a=b")
    with hostile(lambda _: said) as server:
        async with Link(server.url, TOKEN, max_bytes=1000) as link:
            assert len((await link.send(HttpRequest("GET", "/"))).body) == 1000
            await link.send(HttpRequest("GET", "/"))
        assert not any("cookie" in head.lower() for head in server.heads)
        async with Link(server.url, TOKEN, max_bytes=999) as link:
            with pytest.raises(RemoteAnswerError):
                await link.send(HttpRequest("GET", "/"))


async def test_texts_that_json_escapes_come_in_small_pages(tmp_path: Path) -> None:
    """A member whose texts are six times as long in an answer keeps nobody from the others."""
    head = memory("bell", "")
    keys = [f"{n}.md" for n in range(24)]

    def answers(line: str) -> Iterable[bytes]:
        limit = int(line.partition("limit=")[2].partition("&")[0].partition(" ")[0])
        cursor = line.partition("cursor=")[2].partition("&")[0].partition(" ")[0]
        start = int(cursor or 0)
        part = keys[start : start + limit]
        more = str(start + limit) if start + limit < len(keys) else None
        text = head + "\u0007" * (65536 - len(head))
        return answer(page(*(entry(key, text) for key in part), next=more))

    result, texts, _ = await pulled(tmp_path, answers)
    assert (len(result.taken), len(texts)) == (24, 25)


async def test_a_certificate_that_nobody_vouches_for_gets_no_token(tmp_path: Path) -> None:
    """A server with a certificate of its own making, or without TLS, is told nothing."""
    if not shutil.which("openssl"):
        pytest.skip("openssl, which makes a certificate, is not on PATH")
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1"]
    await anyio.run_process([*make, "-keyout", key, "-out", cert])
    secure = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secure.load_cert_chain(cert, key)
    # Who does not speak TLS never answers: it is given up whenever that is.
    for given, why, seconds in ((secure, "certificate", 60.0), (None, "reached", 0.2)):
        with hostile(body(b"{}"), given) as server:
            url = server.url.replace("http:", "https:")
            async with Link(url, TOKEN, connect_seconds=seconds) as link:
                with pytest.raises(RemoteUnreachableError, match=why):
                    await link.send(HttpRequest("GET", "/"))
            assert TOKEN not in "".join(server.heads)
