"""The edge of the command line: every end is a status and a sentence."""

import io
import os
import subprocess
import sys

import pytest

from memd import __version__
from memd.cli.running import run
from tests.cli.driver import Stream, memctl, surroundings
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon, ScriptedRefusal

STATUS = {
    "name": "memd",
    "version": "1",
    "pid": 1,
    "uptime": 1.0,
    "socket": "/s",
    "state_dir": "/d",
    "connections": 1,
    "rss": 0,
    "jobs": {},
    "projects": [],
    "notes": [],
}


def _process(
    home: Home, *arguments: str, redirect: str = "", **environ: str
) -> "subprocess.CompletedProcess[str]":
    program = [sys.executable, "-c", "import sys; from memd.cli.main import main; sys.exit(main())"]
    command = [*program, *arguments]
    if redirect:
        command = ["/bin/sh", "-c", f'"$0" "$@" {redirect}', *command]
    return subprocess.run(
        command,
        env={**home.environ, **environ},
        cwd=home.cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_an_unexpected_failure_is_a_sentence(home: Home) -> None:
    """An answer of another shape than expected is status 1 and no traceback."""
    with ScriptedDaemon(home.places.socket, {"memory.list": {"other": 1}}):
        ran = memctl(home, "list")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == "memctl: KeyError: 'memories'\n"


def test_a_reader_that_stops_is_no_failure(home: Home) -> None:
    """A closed pipe behind standard output ends the program silently with status 0."""
    done = _process(home, "help", redirect="| head -n 1 >&2; true")
    assert done.stderr.count("\n") == 1

    class Closed(Stream):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

        def fileno(self) -> int:
            raise io.UnsupportedOperation

    around = surroundings(home)
    typed = type(around)(around.environ, around.home, around.stdin, Closed(), around.stderr)
    assert run(["config", "--socket-path"], typed) == 0
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        typed = type(around)(around.environ, around.home, around.stdin, stream, around.stderr)
        assert run(["completion", "bash"], typed) == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_full_disk_behind_the_output_is_a_sentence(home: Home) -> None:
    """Output that cannot be written is status 1 and one line, whatever the command."""
    done = _process(home, "config", "--socket-path", redirect=">/dev/full")
    said = "memctl: the output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_no_message_is_read_where_nobody_sees_it(home: Home) -> None:
    """With standard output closed no message is leased or acknowledged."""
    with ScriptedDaemon(home.places.socket, {}) as daemon:
        done = _process(home, "--no-start", "message", "read", "--key", "k", redirect=">&-")
    assert (done.returncode, "is closed" in done.stderr) == (1, True)
    assert "message.receive" not in daemon.methods


def test_the_start_is_light(home: Home) -> None:
    """A status needs no event loop and no library of the daemon's."""
    code = (
        "import sys; sys.argv[1:] = {!r}; from memd.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    heavy = {"asyncio", "anyio", "structlog", "dataclasses", "tempfile", "difflib", "plistlib"}
    with ScriptedDaemon(home.places.socket, {"status": STATUS}):
        for arguments in (["--version"], ["status"]):
            done = subprocess.run(
                [sys.executable, "-c", code.format(arguments)],
                env=dict(home.environ),
                capture_output=True,
                text=True,
                check=True,
            )
            assert done.stdout.startswith("mem")
            loaded = set(done.stderr.split())
            assert not loaded & heavy
            assert ("memd.cli.running" in loaded) == (arguments == ["status"])
            assert "memd.cli.commands.memories" not in loaded


def test_a_client_of_mcp_waits_for_few_imports() -> None:
    """What memctl mcp imports has no library, no event loop and no parser of arguments."""
    code = "import sys; from memd.cli import main, mcp; print(*sys.modules)"
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    heavy = {"asyncio", "anyio", "msgspec", "argparse", "socket", "subprocess", "threading"}
    assert heavy.intersection(done.stdout.split()) == set()


def test_a_refused_parameter_is_a_wrong_command_line(home: Home) -> None:
    """A person reads of the command and its help, not of a method and its parameters."""
    data = {"kind": "invalid_params", "hint": "rpc.discover shows each method's parameters"}
    refusal = ScriptedRefusal(-32602, "memory.history: since is later than until", data)
    script = {"hello": {"version": __version__}, "memory.history": refusal}
    with ScriptedDaemon(home.places.socket, script):
        ran = memctl(home, "log", "--since", "yesterday")
    assert (ran.status, ran.err) == (
        2,
        "memctl: since is later than until\n  see memctl log --help\n",
    )


def test_a_number_that_is_too_large_is_told_its_bound(home: Home) -> None:
    """The bound of a method stands in words, and not as the program that checks it prints it."""
    data = {"kind": "invalid_params"}
    refusal = ScriptedRefusal(-32602, "report: days: expected int <= 365", data)
    script = {"hello": {"version": __version__}, "report": refusal}
    with ScriptedDaemon(home.places.socket, script):
        ran = memctl(home, "report", "--days", "99999")
    assert (ran.status, ran.err.splitlines()[0]) == (2, "memctl: days may be at most 365")


def test_a_parameter_that_another_version_refuses_names_the_remedy(home: Home) -> None:
    """The help of the command is of no use where the daemon is older than memctl."""
    data = {"kind": "invalid_params", "hint": "rpc.discover shows each method's parameters"}
    refusal = ScriptedRefusal(-32602, "memory.list: unknown field", data)
    with ScriptedDaemon(home.places.socket, {"memory.list": refusal}):
        ran = memctl(home, "list")
    assert ran.status == 2
    assert "memd scripted runs" in ran.err
    assert "memctl restart" in ran.err
