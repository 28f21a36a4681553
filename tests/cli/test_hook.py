"""The hook: one file, run as a client runs it."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.cli import hook
from memd.client import hook_file
from memd.core import limits
from memd.core import places as core_places
from memd.model import processes
from memd.testing.scripted_daemon import HangUp, ScriptedDaemon, ScriptedRefusal, Silence
from tests.cli.home import Home

PROMPT = "UserPromptSubmit"
FILE = str(Path(hook.__file__))
PAYLOAD = b'{"session_id": "s",\n "cwd": "/p", "prompt": "caf\xc3\xa9"}\n'
PATHS = st.sampled_from(["/r", "/r/", "/", "rel", "", "/é" * 20, "/" + "x" * 120])
VARIABLES = ("MEMD_SOCKET", "MEMD_STATE_DIR", "XDG_RUNTIME_DIR", "XDG_STATE_HOME")


def _run(
    home: Home, *args: str, payload: bytes = PAYLOAD, file: str = FILE, **environ: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-I", "-S", file, *args],
        input=payload,
        # Ten seconds: what these tests look at is not the time, and the machine may be busy.
        env={
            **home.environ,
            "MEMD_HOOK_NO_START": "1",
            "MEMD_HOOK_DEADLINE_MS": "10000",
            **environ,
        },
        capture_output=True,
        timeout=60,
        check=False,
    )


def _silent(done: "subprocess.CompletedProcess[bytes]") -> bool:
    return (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def _bytes(environ: dict[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}


def test_the_raw_payload_goes_out_and_the_result_comes_back_to_the_byte(home: Home) -> None:
    """The daemon gets client, event, environment and payload; its result is printed verbatim."""
    result = {"hookSpecificOutput": {"additionalContext": 'é "quoted" \\ \n'}}
    with ScriptedDaemon(home.places.socket, {"hook": result}) as daemon:
        done = _run(home, 'c"\n', PROMPT, MEMD_BASE_DIR='/b"\\\t', OTHER="x")
    assert done.returncode == 0
    assert done.stderr == b""
    assert done.stdout == json.dumps(result, ensure_ascii=False, separators=(",", ":")).encode()
    assert daemon.params("hook") == {
        "deadline_ms": 10_000,
        "client": 'c"\n',
        "event": PROMPT,
        "environment": {"MEMD_BASE_DIR": '/b"\\\t'},
        "payload": json.loads(PAYLOAD),
    }


@pytest.mark.parametrize("answer", [None, ScriptedRefusal(1000, '"result":1'), HangUp(), Silence()])
def test_nothing_to_say_prints_nothing(home: Home, answer: Any) -> None:
    """A null, an error, a lost connection and no answer in time all end silently with 0."""
    with ScriptedDaemon(home.places.socket, {"hook": answer}):
        done = _run(home, "claude-code", PROMPT, MEMD_HOOK_DEADLINE_MS="300")
    assert _silent(done)


@pytest.mark.parametrize("payload", [b"", b"  \n", b"[1]", b"hello"])
def test_what_is_no_object_is_sent_as_null(home: Home, payload: bytes) -> None:
    """Standard input that is no JSON object by its looks becomes a null payload."""
    with ScriptedDaemon(home.places.socket, {"hook": None}) as daemon:
        assert _silent(_run(home, "claude-code", PROMPT, payload=payload))
    assert daemon.params("hook")["payload"] is None


def test_too_much_input_is_not_sent(home: Home) -> None:
    """More than a frame can hold is dropped without asking the daemon."""
    with ScriptedDaemon(home.places.socket, {"hook": {"a": 1}}) as daemon:
        payload = b'{"a":"' + b"x" * hook.PAYLOAD_BYTES + b'"}'
        assert _silent(_run(home, "claude-code", PROMPT, payload=payload))
    assert daemon.methods == []


@pytest.mark.parametrize("args", [(), ("claude-code",)])
def test_a_wrong_call_ends_silently(home: Home, args: tuple[str, ...]) -> None:
    """Missing arguments are no error: a status of 2 would block the user's prompt."""
    assert _silent(_run(home, *args))


def test_below_a_program_of_memd_s_own_nothing_is_sent(home: Home) -> None:
    """What answers for memd's model is no conversation to learn from."""
    with ScriptedDaemon(home.places.socket, {"hook": {"a": 1}}) as daemon:
        assert _silent(_run(home, "claude-code", "Stop", MEMD_MODEL_RUN="x"))
    assert daemon.methods == []


def test_a_socket_path_that_does_not_fit_ends_silently(home: Home) -> None:
    """A path beyond sun_path is no error either."""
    assert _silent(_run(home, "claude-code", "Stop", MEMD_SOCKET="/" + "x" * 200))


def test_closed_streams_end_silently(home: Home) -> None:
    """Without standard input or output the event still reaches the daemon, and the status is 0."""
    with ScriptedDaemon(home.places.socket, {"hook": {"a": 1}}) as daemon:
        command = f'"{sys.executable}" -I -S "{FILE}" claude-code {PROMPT} <&- >&- 2>&-'
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            env={**home.environ, "MEMD_HOOK_DEADLINE_MS": "10000"},
            capture_output=True,
            check=False,
        )
    assert _silent(done)
    assert daemon.params("hook")["payload"] is None


def test_an_input_that_never_ends_is_bounded(home: Home) -> None:
    """A client that keeps standard input open does not keep the hook past its deadline."""
    begin = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-I", "-S", FILE, "claude-code", "UserPromptSubmit"],
        stdin=subprocess.PIPE,
        env=dict(home.environ),
    ) as process:
        assert process.wait(20) == 0
    assert time.monotonic() - begin < 10


def test_only_the_socket_module_is_imported(home: Home) -> None:
    """Nothing beyond _socket is loaded that the bare interpreter has not loaded already."""
    listing = "import sys; before = set(sys.modules); sys.path.insert(0, %r); import hook; "
    listing += "print(sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", listing % os.path.dirname(FILE)],
        env=dict(home.environ),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "['_socket', 'hook']"


@pytest.fixture(name="installed")
def _installed(home: Home) -> Callable[[], Any]:
    """Put the hook into its place with a program that records its call for memd's interpreter."""
    fifo, python = f"{home.path}/told", Path(home.path) / "recorder"
    os.mkfifo(fifo)
    python.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        "log = os.readlink('/proc/self/fd/2') if os.path.exists('/proc') else ''\n"
        "out = [sys.argv[1:], os.getcwd(), os.getsid(0) == os.getpid(), log]\n"
        f"with open({fifo!r}, 'w') as told: json.dump(out, told)\n"
    )
    python.chmod(0o755)
    hook_file.write(home.places, str(python))

    def reported() -> Any:
        with open(fifo) as stream:
            return json.load(stream)

    return reported


def test_with_the_daemon_down_one_is_started_once(home: Home, installed: Callable[[], Any]) -> None:
    """The event gets no answer; memd's own Python runs the file again, detached, to launch one."""
    file = hook_file.hook_path(home.places)
    done = _run(home, "claude-code", PROMPT, file=file, MEMD_HOOK_NO_START="")
    assert _silent(done)
    argv, cwd, leads, log = installed()
    assert (argv, cwd, leads) == (["-E", file, "launch"], "/", True)
    assert log in {home.places.log, ""}
    assert os.stat(home.places.state_dir).st_mode & 0o777 == 0o700
    stamp = f"{home.places.state_dir}/hook-start"
    claimed = os.stat(stamp).st_mtime_ns
    assert _silent(_run(home, "claude-code", PROMPT, file=file, MEMD_HOOK_NO_START=""))
    assert os.stat(stamp).st_mtime_ns == claimed


@pytest.mark.parametrize("body", [b"", b"def", b"\0", None])
def test_a_hook_without_its_body_stays_silent(home: Home, body: bytes | None) -> None:
    """Whatever became of the file that the hook runs, no prompt is blocked and nothing is said."""
    hook_file.write(home.places)
    path = Path(home.places.data_dir) / "hook_body.py"
    path.unlink() if body is None else path.write_bytes(body)
    assert _silent(_run(home, "claude-code", PROMPT, file=hook_file.hook_path(home.places)))


def test_the_hook_is_compiled_once(home: Home) -> None:
    """The first call leaves a compiled form beside the hook, which setup takes away again."""
    hook_file.write(home.places)
    _run(home, "claude-code", "Stop", file=hook_file.hook_path(home.places), MEMD_HOOK_NO_START="1")
    assert list(Path(home.places.data_dir).glob("__pycache__/hook_body.*.pyc"))
    hook_file.remove(home.places)
    assert not os.path.exists(home.places.data_dir)


def test_the_interpreter_is_the_one_that_has_memd(home: Home) -> None:
    """The link beside the file counts; where it leads nowhere the Python that runs has to do."""
    folder = os.fsencode(home.places.data_dir)
    hook_file.write(home.places, "/bin/sh")
    assert hook.interpreter(folder) == b"/bin/sh"
    hook_file.write(home.places, "/nowhere/python")
    assert hook.interpreter(folder) == os.fsencode(sys.executable)


def test_it_is_told_once_that_memd_is_gone(home: Home) -> None:
    """Of all hooks that find it out one says so, and none where it cannot be remembered."""
    folder = os.fsencode(home.path)
    assert [
        hook.create_marker(folder + b"/orphaned"),
        hook.create_marker(folder + b"/orphaned"),
    ] == [True, False]
    assert not hook.create_marker(folder + b"/none/orphaned")


def test_a_start_can_be_forbidden(home: Home) -> None:
    """MEMD_HOOK_NO_START leaves no trace."""
    assert _silent(_run(home, "claude-code", PROMPT, MEMD_HOOK_NO_START="1"))
    assert not os.path.exists(home.places.state_dir)


def test_a_stale_socket_is_nobody(home: Home) -> None:
    """A socket file that nobody listens at counts as no daemon."""
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(home.places.socket)
        os.chmod(home.places.socket, 0o600)
    path = os.fsencode(home.places.socket)
    assert hook.send_event("c", "e", path, {}, b"", messages=False) is None
    assert hook.send_event("c", "e", path + b"x", {}, b"", messages=False) is None
    assert hook.send_event("c", "e", b"", {}, b"", messages=False) == b""


def test_a_start_may_be_claimed_again_after_a_while(tmp_path: Path) -> None:
    """A claim holds 30 seconds; one from the future, after a clock was set back, does not."""
    state = os.fsencode(tmp_path / "a" / "state")
    now = time.time()
    assert hook.claim_start(state, now)
    assert not hook.claim_start(state, now + 29)
    assert hook.claim_start(state, now + 40)
    assert hook.claim_start(state, now - 100)


@given(
    st.dictionaries(st.sampled_from(VARIABLES), PATHS),
    st.sampled_from(["linux", "darwin"]),
    st.sampled_from(["/home/u", "/home/ünï"]),
)
def test_places_are_those_of_every_other_client(
    environ: dict[str, str], platform: str, home: str
) -> None:
    """The hook finds the socket and the state directory exactly as memd.core.places does."""
    socket, state = hook.places(_bytes(environ), os.fsencode(home), platform)
    try:
        expected = core_places.find(environ, home, platform)
    except core_places.SocketPathTooLongError:
        assert socket == b""
    else:
        assert (os.fsdecode(socket), os.fsdecode(state)) == (expected.socket, expected.state_dir)


@pytest.mark.parametrize("home", ["/home/u", "/home/u//", "/", "", None])
def test_the_home_directory_is_pythons(home: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """HOME counts, without trailing slashes; without it the user database does."""
    if home is None:
        monkeypatch.delenv("HOME")
    else:
        monkeypatch.setenv("HOME", home)
    assert os.fsdecode(hook.home_directory(_bytes(dict(os.environ)))) == os.path.expanduser("~")


def test_what_is_known_here_twice_is_the_same() -> None:
    """The variables and the limits are those of memd.core."""
    assert tuple(name.decode() for name in hook.FORWARDED) == core_places.FORWARDED
    assert hook.OWN_RUN.decode() == processes.MARK
    assert (hook.FRAME_BYTES, hook.HEADER_BYTES) == (limits.FRAME_BYTES, limits.HEADER_BYTES)


@pytest.mark.parametrize(
    ("event", "wanted", "seconds"),
    [
        ("UserPromptSubmit", None, 0.2),
        ("UserPromptSubmit", b"50", 0.05),
        ("UserPromptSubmit", b"5", 0.2),
        ("UserPromptSubmit", b"soon", 0.2),
        ("BeforeAgent", b"900", 0.9),
        ("SessionStart", b"900", 0.4),
        ("PostToolUse", b"900", 0.2),
        ("Stop", b"900", 0.04),
        ("AfterAgent", None, 0.04),
        ("SessionEnd", None, 0.04),
        ("PreCompact", None, 0.8),
    ],
)
def test_each_event_has_a_bound_of_its_own(
    event: str, wanted: bytes | None, seconds: float
) -> None:
    """A prompt's may be set within the bounds of the setting; an end hardly waits."""
    environ = {} if wanted is None else {b"MEMD_HOOK_DEADLINE_MS": wanted}
    assert hook.deadline_seconds(event, environ) == seconds


def test_a_path_that_is_not_utf8_is_never_guessed() -> None:
    """A forwarded variable in another encoding ends the hook instead of naming another place."""
    with pytest.raises(UnicodeDecodeError):
        hook.hook_request("c", "e", b"{}", {b"MEMD_BASE_DIR": b"/\xff"}, "")


@given(st.text(), st.text(), st.dictionaries(st.sampled_from(hook.FORWARDED), st.text()))
def test_every_text_is_quoted_as_json(client: str, event: str, values: dict[bytes, str]) -> None:
    """The request is valid JSON with the very texts that went in."""
    texts = [client, event, *values.values()]
    if any(0xD800 <= ord(c) <= 0xDFFF for text in texts for c in text):
        return
    environ = {name: value.encode() for name, value in values.items()}
    message = json.loads(hook.hook_request(client, event, b' {"a": [1]}\n', environ, ""))
    assert message["method"] == "hook"
    assert message["params"] == {
        "deadline_ms": int(hook.deadline_seconds(event, environ) * 1000),
        "client": client,
        "event": event,
        "environment": {name.decode(): value for name, value in values.items()},
        "payload": {"a": [1]},
    }


def test_a_broken_answer_is_no_answer(tmp_path: Path) -> None:
    """Answers that are cut, too long, endless in their header or of no frame print nothing."""
    path = str(tmp_path / "s")
    wrong = [
        b"Content-Length: 9999999\r\n\r\n{}",
        b"Content-Length: 50\r\n\r\n{}",
        b"x" * (hook.HEADER_BYTES + 1),
        b'{"jsonrpc":"2.0","id":1,"result":1}\r\n\r\n',
    ]

    def serve(listener: socket.socket) -> None:
        for data in wrong:
            with listener.accept()[0] as connection:
                connection.recv(1)
                connection.sendall(data)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        os.chmod(path, 0o600)
        listener.listen()
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        for _ in wrong:
            assert hook.result_of(_quietly(path)) == b""
        thread.join()


def _quietly(path: str) -> bytes:
    try:
        return hook.send_request(os.fsencode(path), b"x")
    except ConnectionError:
        return b""


def test_a_long_answer_arrives_whole(home: Home) -> None:
    """An answer of many reads is printed to its last byte, even without standard input."""
    path = os.fsencode(home.places.socket)
    with ScriptedDaemon(home.places.socket, {"hook": {"text": "x" * 300_000}}):
        payload = bytearray()
        hook.read_input(1 << 20, payload)
        body = hook.send_event("c", "e", path, {}, bytes(payload), messages=False)
    assert hook.result_of(body or b"") == b'{"text":"' + b"x" * 300_000 + b'"}'


def test_payloads_are_read_to_their_bound(tmp_path: Path) -> None:
    """Reading stops just above what a payload may have."""
    file = tmp_path / "payload"
    file.write_bytes(b"x" * (hook.FRAME_BYTES * 2))
    payload = bytearray()
    with file.open("rb") as stream:
        hook.read_input(stream.fileno(), payload)
    assert hook.PAYLOAD_BYTES < len(payload) <= hook.FRAME_BYTES
    assert hook.send_event("c", "e", b"/s", {}, bytes(payload), messages=False) == b""
