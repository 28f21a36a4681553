"""The hook's third argument: what it sends for messages of other agents, byte for byte."""

import json
import os
import socket
import subprocess
import sys

import pytest

from memd.client import hook_file
from memd.testing.scripted_daemon import read_frame
from tests.cli.home import Home

PAYLOAD = b'{"session_id": "s",\n "cwd": "/p", "prompt": "caf\xc3\xa9"}'
PRINTED = b'{"jsonrpc":"2.0","method":"hook.printed"}'
SECONDS = 60.0


def _exchange(home: Home, result: bytes, *more: str) -> tuple[bytes, bytes, bytes]:
    """Run the hook that ``memctl setup`` puts in its place, and answer it with a result.

    Return its request, what it sent after the answer on the same connection, and what it had
    printed when the first of that came, or at its end where nothing did.
    """
    hook_file.write(home.places)
    file = hook_file.hook_path(home.places)
    path = home.places.socket
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    environ = {"MEMD_HOOK_NO_START": "1", "MEMD_HOOK_DEADLINE_MS": "10000"}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        os.chmod(path, 0o600)
        listener.listen()
        listener.settimeout(SECONDS)
        with subprocess.Popen(
            [sys.executable, "-I", "-S", file, "claude-code", "UserPromptSubmit", *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**home.environ, **environ},
            bufsize=0,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(PAYLOAD)
            process.stdin.close()
            connection, _ = listener.accept()
            connection.settimeout(SECONDS)
            with connection, connection.makefile("rb") as stream:
                request, headed = read_frame(stream) or (b"", False)
                assert headed
                body = b'{"jsonrpc":"2.0","id":1,"result":%s}' % result
                connection.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                first = stream.read(1)
                if not first:
                    process.wait(SECONDS)
                os.set_blocking(process.stdout.fileno(), False)  # what is not there yet is missing
                shown = process.stdout.read() or b""
                after = first + stream.read()
            assert process.wait(SECONDS) == 0
        os.unlink(path)
    return request, after, shown


def test_with_messages_it_says_so_and_tells_what_it_printed(home: Home) -> None:
    """The request has "messages":true; hook.printed follows once the answer was written."""
    request, after, shown = _exchange(home, b'{"a":"b"}', "messages")
    assert b'"params":{"messages":true,' in request
    assert json.loads(request)["params"]["payload"] == json.loads(PAYLOAD)
    assert after == b"Content-Length: %d\r\n\r\n%s" % (len(PRINTED), PRINTED)
    assert shown == b'{"a":"b"}'


@pytest.mark.parametrize("more", [(), ("message",)])
def test_without_it_neither_is_sent(home: Home, more: tuple[str, ...]) -> None:
    """No request of a plain set-up speaks of messages, and its connection ends with the answer."""
    request, after, shown = _exchange(home, b'{"a":"b"}', *more)
    assert b'"messages"' not in request
    assert (after, shown) == (b"", b'{"a":"b"}')


def test_where_nothing_is_printed_nothing_is_told(home: Home) -> None:
    """A null leaves the receipt alone: what was not printed is not read."""
    request, after, shown = _exchange(home, b"null", "messages")
    assert b'"messages":true' in request
    assert (after, shown) == (b"", b"")
