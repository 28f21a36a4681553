"""What may come back from the socket, whatever was sent: whole answers of JSON-RPC in a framing."""

import json
import re
from typing import Any

_HEADER = re.compile(rb"Content-Length: (\d+)\r\n\r\n")
_INSIDE = ("Traceback (most recent call last)", '.py\\", line ')


def bodies(data: bytes) -> list[bytes]:
    """Return the bodies of frames; each is whole, and nothing stands between them."""
    result, at = [], 0
    while at < len(data):
        header = _HEADER.match(data, at)
        start = header.end() if header else at
        end = start + int(header[1]) if header else data.index(b"\n", at)
        assert end <= len(data)
        result.append(data[start:end])
        at = end if header else end + 1
    return result


def assert_answers(data: bytes) -> list[dict[str, Any]]:
    """Return the answers that some bytes are; nothing else may be among them."""
    return [answer for body in bodies(data) for answer in assert_body(body)]


def assert_body(body: bytes) -> list[dict[str, Any]]:
    """Return the answers of one frame, a batch's or a single one; each must be as JSON-RPC says."""
    value = json.loads(body)
    assert value != []
    answers: list[dict[str, Any]] = value if isinstance(value, list) else [value]
    for answer in answers:
        assert set(answer) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"}), answer
        assert answer["jsonrpc"] == "2.0"
        assert answer["id"] is None or type(answer["id"]) in (str, int, float)
        if "error" in answer:
            assert type(answer["error"]["code"]) is int, answer
            assert answer["error"]["message"], answer
            assert not any(words in json.dumps(answer) for words in _INSIDE), answer
    return answers
