"""The native hook beside the Python one: they send the same bytes and print the same answers."""

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.net.kit import PYTHON, Home
from tests.net.wire import SECONDS

COMPILER = "/usr/bin/cc"
_WHERE = (PYTHON, "-P", "-c", "import memd; print(*memd.__path__)")
CLI = Path(subprocess.run(_WHERE, capture_output=True, text=True, check=True).stdout.strip(), "cli")
STRICT = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror")
SANITIZED = (*STRICT, "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
PROMPT = {"MEMD_HOOK_DEADLINE_MS": "10000"}
PAYLOAD = json.dumps({"session_id": "s", "cwd": "/w", "prompt": 'a "b" {c} \\ \u00e4\n'}).encode()
NULL = b'Content-Length: 38\r\n\r\n{"jsonrpc":"2.0","id":1,"result":null}'

pytestmark = pytest.mark.skipif(not os.path.exists(COMPILER), reason="no C compiler: /usr/bin/cc")


class Hooks:
    """Both hooks in a folder each, without a daemon, and what a daemon of the test gets from them.

    ``flags`` are those that the native hook is compiled with.
    """

    def __init__(self, home: Home, flags: tuple[str, ...] = STRICT) -> None:
        self.home = home
        for kind in ("native", "python"):
            folder = home.path / kind
            folder.mkdir()
            shutil.copy(CLI / "hook.py", folder / "hook_body.py")
            shutil.copy(CLI / "hook_stub.py", folder / "hook.py")
            (folder / "interpreter").symlink_to(PYTHON)
            if kind == "python":
                (folder / "python").symlink_to(PYTHON)
        program = home.path / "native/python"
        done = home.run(COMPILER, *flags, "-o", str(program), str(CLI / "hook.c"))
        assert (done.returncode, done.stderr) == (0, "")

    def start(
        self, kind: str, event: str, environ: Mapping[str, str], *more: str
    ) -> "subprocess.Popen[bytes]":
        """Run a hook with exactly these variables besides those of the home."""
        folder = self.home.path / kind
        given = {**self.home.environ, "MEMD_HOOK_NO_START": "1", **environ}
        return subprocess.Popen(
            [folder / "python", "-I", "-S", folder / "hook.py", "claude-code", event, *more],
            env={name: value for name, value in given.items() if value != "-"},
            cwd=self.home.path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def answered(
        self,
        kind: str,
        answer: bytes,
        *more: str,
        payload: bytes = PAYLOAD,
        event: str = "UserPromptSubmit",
        environ: Mapping[str, str] = PROMPT,
        path: str = "",
    ) -> tuple[bytes, bytes]:
        """Return what a hook sends to a daemon that gives this answer, and what it prints."""
        with self.listening(path or self.home.socket) as server:
            process = self.start(kind, event, environ, *more)
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.write(payload)
                process.stdin.close()
            process.stdin = None
            connection, _ = server.accept()
            with connection:
                connection.settimeout(SECONDS)
                sent = _frame(connection)
                with suppress(OSError):  # a hook need not read all of an answer
                    connection.sendall(answer)
                    connection.shutdown(socket.SHUT_WR)
                printed, errors = process.communicate(timeout=SECONDS)
                with suppress(OSError):
                    sent += connection.recv(1000)
        assert (process.returncode, errors) == (0, b"")
        return sent, printed

    @contextmanager
    def listening(self, path: str) -> Iterator[socket.socket]:
        """Listen as a daemon does; nothing is left."""
        folder = Path(path).parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            os.chmod(path, 0o600)
            server.listen()
            server.settimeout(SECONDS)
            yield server
        os.unlink(path)

    def silent(self, kind: str, event: str, payload: bytes = PAYLOAD) -> None:
        """Run a hook that is to print nothing."""
        printed = self.start(kind, event, {}).communicate(payload, SECONDS)
        assert printed == (b"", b"")


def _frame(connection: socket.socket) -> bytes:
    """Return one frame as it was sent, with its header."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536)
    header, _, body = received.partition(b"\r\n\r\n")
    length = int(header.split(b":")[1])
    while len(body) < length:
        body += connection.recv(1 << 20)
    return header + b"\r\n\r\n" + body


@pytest.fixture
def hooks(own: Home) -> Hooks:
    """Return both hooks; the native one has been compiled without a warning."""
    return Hooks(own)


ENVIRONMENTS: tuple[Mapping[str, str], ...] = (
    {},
    {"MEMD_HOOK_DEADLINE_MS": "9"},
    {"MEMD_HOOK_DEADLINE_MS": "0300"},
    {"MEMD_HOOK_DEADLINE_MS": "10001"},
    {"MEMD_HOOK_DEADLINE_MS": "9" * 40},
    {"MEMD_HOOK_DEADLINE_MS": "1e3"},
    {"CLAUDE_PROJECT_DIR": '/a "b"\\c\n\x01\x7f\u00e4', "CODEX_HOME": "", "DISABLE_COMPACT": "1"},
    {"MEMD_EXTRA_GUIDELINES": "x" * 60_000, "CLAUDE_CODE_SIMPLE": "0", "MEMD_DISABLE": "no"},
)
PAYLOADS = (
    b"",
    b" \n",
    b"[1]",
    b"{",
    b'{"a":',
    b'\n {"a": "}"} \r\n',
    b'{"a": "\\\\", "b": {"c": "\\"}"}}',
    b'{"a": {}} {"b": 1}',
    b'{"a": "\xff\x00"}',
    json.dumps({"prompt": "{" * 200_000}).encode(),
)
EVENTS = ("SessionStart", "UserPromptSubmit", "BeforeAgent", "AfterAgent", "Stop", "PreCompact")


def test_both_hooks_send_the_same_request(hooks: Hooks) -> None:
    """For each event, environment and payload the native hook sends what the Python one sends."""
    cases: list[dict[str, Any]] = [
        *({"environ": environ} for environ in ENVIRONMENTS),
        *({"payload": payload} for payload in PAYLOADS),
        *({"event": event, "environ": {}} for event in (*EVENTS, "SessionEnd", "PostToolUse")),
    ]
    for case in cases:
        native, python = (hooks.answered(kind, NULL, **case) for kind in ("native", "python"))
        assert native == python, case
        assert b'"method":"hook"' in native[0]
    native, python = (hooks.answered(kind, NULL, "messages") for kind in ("native", "python"))
    assert native == python
    assert b'"messages":true' in native[0]


PLACES: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("x.sock", {"MEMD_SOCKET": "{}/x.sock"}),
    ("r/memd/memd.sock", {"XDG_RUNTIME_DIR": "{}/r//"}),
    ("s/run/memd.sock", {"XDG_RUNTIME_DIR": "-", "MEMD_STATE_DIR": "{}/s"}),
    ("x/memd/run/memd.sock", {"XDG_RUNTIME_DIR": "r", "XDG_STATE_HOME": "{}/x/"}),
    ("h/.local/state/memd/run/memd.sock", {"XDG_RUNTIME_DIR": "/", "XDG_STATE_HOME": "x"}),
    ("h/.local/state/memd/run/memd.sock", {"XDG_RUNTIME_DIR": "-", "HOME": "{}/h/"}),
)


@pytest.mark.parametrize("kind", ["native", "python"])
def test_both_hooks_find_the_socket(hooks: Hooks, kind: str) -> None:
    """The socket is where the variables say, and that is tried for no other."""
    os.chmod(hooks.home.path, 0o700)
    for place, environ in PLACES:
        given = {name: value.format(hooks.home.path) for name, value in environ.items()}
        path = str(hooks.home.path / place)
        assert hooks.answered(kind, NULL, environ={**PROMPT, **given}, path=path)[1] == b"", place
    too_long = {"MEMD_SOCKET": "/" + "x" * 5000}
    assert hooks.start(kind, "Stop", too_long).communicate(b"{}", SECONDS) == (b"", b"")


def _framed(body: bytes, length: int | None = None) -> bytes:
    return b"Content-Length: %d\r\n\r\n%s" % (len(body) if length is None else length, body)


def _result(result: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":1,"result":' + result + b"}"


MOST = b'"' + b"x" * (4 * 1024 * 1024 - 40) + b'"'
ANSWERS: tuple[tuple[bytes, bytes], ...] = (
    (_framed(_result(b'{"a": "\x00 \xff"}')), b'{"a": "\x00 \xff"}'),
    (b"content-LENGTH:37\r\n\r\n" + _result(b'"x"') + b"more", b'"x"'),
    (_framed(_result(MOST)), MOST),
    (_framed(_result(MOST + b" " * 10)), b""),
    (_framed(_result(b"")), b""),
    (_framed(_result(b"null")), b""),
    (_framed(_result(b"1")[:-1]), b""),
    (_framed(b'{"jsonrpc":"2.0","id":1,"error":{"code":1}}'), b""),
    (_framed(_result(b'"cut"'), 1000), b""),
    (_framed(_result(b'"x"'), -1), b""),
    (_framed(b"", 0), b""),
    (_framed(b"x", 10**30), b""),
    (_framed(b"x" * 5_000_000), b""),
    (b"Content-Length: 4294967333\r\n\r\n" + _result(b'"x"'), b""),
    (b"Content-Length: 37\r\nX: y\r\n\r\n" + _result(b'"x"'), b""),
    (b"Content-Length: 37x\r\n\r\n" + _result(b'"x"'), b""),
    (b"Content-Length", b""),
    (b"\r\n\r\n" + _result(b'"x"'), b""),
    (b"x" * 5_000_000, b""),
    (b"", b""),
)


@pytest.mark.parametrize("kind", ["native", "python"])
def test_whatever_the_daemon_answers_a_result_or_nothing_is_printed(
    hooks: Hooks, kind: str
) -> None:
    """Of a whole answer the result is printed to the byte, of any other nothing."""
    for answer, printed in ANSWERS:
        assert hooks.answered(kind, answer)[1] == printed, answer[:100]
    sent, printed = hooks.answered(kind, ANSWERS[0][0], "messages")
    assert printed == ANSWERS[0][1]
    assert sent.endswith(b'"method":"hook.printed"}')


@pytest.mark.parametrize("kind", ["native", "python"])
def test_nothing_is_sent_to_a_socket_that_others_may_open(hooks: Hooks, kind: str) -> None:
    """A folder or socket that is open to others gets no byte."""
    with hooks.listening(hooks.home.socket) as server:
        for path, mode in ((hooks.home.socket, 0o666), (os.path.dirname(hooks.home.socket), 0o755)):
            before = os.stat(path).st_mode & 0o777
            os.chmod(path, mode)
            hooks.silent(kind, "UserPromptSubmit")
            os.chmod(path, before)
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize("kind", ["native", "python"])
def test_a_payload_without_an_end_or_bound_is_harmless(hooks: Hooks, kind: str) -> None:
    """Above 4 MiB nothing is printed, and of an end of a turn the place is kept all the same."""
    start = b'{"session_id": "s", "transcript_path": "/t", "x": "'
    with hooks.listening(hooks.home.socket):
        for event in ("UserPromptSubmit", "Stop"):
            with hooks.start(kind, event, {}) as process:
                printed = process.communicate(start + b"y" * 6_000_000, SECONDS)
            assert (process.returncode, *printed) == (0, b"", b"")
    (kept,) = (hooks.home.state / "spool").iterdir()
    assert b'"transcript_path":"/t"' in kept.read_bytes()


@pytest.mark.parametrize("kind", ["native", "python"])
def test_no_hook_outlives_its_deadline(hooks: Hooks, kind: str) -> None:
    """A server that never answers is left, even by a hook that was started with all blocked."""
    every = signal.valid_signals()
    with hooks.listening(hooks.home.socket):
        before = signal.pthread_sigmask(signal.SIG_BLOCK, every)
        try:
            process = hooks.start(kind, "UserPromptSubmit", {"MEMD_HOOK_DEADLINE_MS": "50"})
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        assert process.communicate(PAYLOAD, SECONDS) == (b"", b"")
        assert process.returncode == 0


def test_other_calls_go_to_the_interpreter(hooks: Hooks) -> None:
    """Called as a Python, the native hook is that Python."""
    program = str(hooks.home.path / "native/python")
    done = hooks.home.run(program, "-I", "-S", "-c", "print(6 * 7)")
    assert (done.returncode, done.stdout) == (0, "42\n")


@pytest.mark.full
def test_hostile_cases_break_no_bound(own: Home) -> None:
    """The cases of this file run without a fault in a native hook that checks each access."""
    flags = [*SANITIZED, "-o", str(own.path / "tried"), "-x", "c", "-"]
    tried = own.run(COMPILER, *flags, input="int main(void) { return 0; }")
    if tried.returncode != 0 or own.run(str(own.path / "tried")).returncode != 0:
        pytest.skip("this compiler has no sanitizers")
    hooks = Hooks(own, SANITIZED)
    test_both_hooks_send_the_same_request(hooks)
    test_whatever_the_daemon_answers_a_result_or_nothing_is_printed(hooks, "native")
    test_a_payload_without_an_end_or_bound_is_harmless(hooks, "native")
    test_both_hooks_find_the_socket(hooks, "native")
