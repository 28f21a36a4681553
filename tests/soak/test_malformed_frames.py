"""G9: thousands of wrong frames, each answered or closed in order; a second client is served."""

import json
import socket
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.corpora import PLACE, folder
from tests.rpc.answers import assert_answers
from tests.soak import second_client
from tests.soak.figures import FIGURE
from tests.soak.malformed import every
from tests.support.daemon import Home, client, daemon_process, throw_away_home

_P99_MILLISECONDS = 50
_TIMES_ALONE = 10  # what the machine does to one client, it does to the other
_SECONDS = 30
_ALONE_SECONDS = 5.0
INTERNAL = -32603


@pytest.mark.parametrize("step", [40, pytest.param(1, marks=pytest.mark.soak)])
def test_every_wrong_frame_is_answered(
    step: int, record_property: Callable[[str, object], None]
) -> None:
    """Each gets answers of JSON-RPC or a clean end, and a second client is served as ever."""
    folder("JSONTestSuite"), folder("blns")
    counts: Counter[str] = Counter()
    with throw_away_home() as home, daemon_process(home) as process:
        cwd = home.project()
        frames = every(PLACE, cwd)[::step]
        with second_client.asking(home, cwd) as alone:
            threading.Event().wait(_ALONE_SECONDS / step)
        with second_client.asking(home, cwd) as meanwhile:
            for name, data in frames:
                counts[outcome(home, name, data)] += 1
        with client(home) as caller:
            assert caller.call("status", {})["pid"] == process.pid
        log = Path(home.places.log).read_text()
    record_property(
        FIGURE,
        f"G9 wrong frames: {len(frames):,} distinct, {counts['error']:,} answered with errors,"
        f" {counts['result']:,} with results, {counts['silence']:,} rightly not, 0 deaths;"
        f" second client meanwhile {meanwhile}; alone {alone};"
        f" p99 {meanwhile.at(0.99) / alone.at(0.99):.1f} times that alone",
    )
    assert "raceback" not in log
    if step == 1:
        assert len(frames) >= 5000
        assert meanwhile.at(0.99) <= max(_P99_MILLISECONDS, _TIMES_ALONE * alone.at(0.99))


def outcome(home: Home, name: str, data: bytes) -> str:
    """Send bytes on a connection of their own and return how they were answered."""
    answers = assert_answers(exchanged(home, data))
    assert all(answer.get("error", {}).get("code") != INTERNAL for answer in answers), name
    if not answers:
        assert needs_no_answer(data), name
        return "silence"
    return "error" if any("error" in answer for answer in answers) else "result"


def exchanged(home: Home, data: bytes) -> bytes:
    """Send bytes, end our side, and return what comes until the daemon ends its own."""
    received = bytearray()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_SECONDS)
        connection.connect(home.places.socket)
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has heard enough: what it says of it is there to be read
        try:
            while part := connection.recv(1 << 16):
                received += part
        except ConnectionResetError:
            assert received  # the end of what was not read any more, behind the answer
    return bytes(received)


def needs_no_answer(data: bytes) -> bool:
    """Return whether no frame of these bytes is whole, or all of them want no answer."""
    texts = data.split(b"\n")
    if data[:1] in (b"C", b"c"):
        head, blank, body = data.replace(b"\r\n", b"\n").partition(b"\n\n")
        length = head.lower().partition(b"content-length:")[2].split(b"\n")[0].strip()
        if not blank or (length.isdigit() and len(body) < int(length)):
            return True
        texts = [body]
    return all(map(_wants_none, filter(bytes.strip, texts)))


def _wants_none(text: bytes) -> bool:
    value: Any = json.loads(text)
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(
        isinstance(item, dict)
        and ("id" not in item if "method" in item else "result" in item or "error" in item)
        for item in items
    )
