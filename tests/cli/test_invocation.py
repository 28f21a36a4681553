"""One run's options, surroundings and connection."""

import os
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memd.cli.invocation import (
    DirectoryGoneError,
    DirectoryNameError,
    InputUnreadableError,
    Surroundings,
)
from memd.client.errors import AnswerTimeoutError, DaemonUnavailableError
from memd.core.places import SocketPathTooLongError
from tests.cli.driver import Stream, invocation
from tests.cli.home import Home
from tests.support.scripted_daemon import HangUp, ScriptedDaemon, Silence


def test_one_connection_serves_all_calls(home: Home) -> None:
    """Calls share a connection, leave out what is not given, and say who asks."""
    with ScriptedDaemon(home.places.socket, {"status": {"a": 1}}) as daemon:
        run = invocation(home, "status", MEMD_BASE_DIR="/b")
        assert run.call("status", one=1, none=None) == {"a": 1}
        assert run.ask("status") == {"a": 1}
        run.close()
        run.close()
    assert daemon.methods == ["status", "status"]
    assert daemon.requested[1].params == {"one": 1}
    assert daemon.params("status") == {"cwd": home.cwd}
    hello = daemon.params("hello")
    assert (hello["client"], hello["environment"]) == ("memctl", {"MEMD_BASE_DIR": "/b"})


def test_the_timeout_of_the_command_line_wins(home: Home) -> None:
    """A daemon that does not answer in the time given is an error that says so."""
    with ScriptedDaemon(home.places.socket, {"status": Silence()}):
        run = invocation(home, "--timeout", "0.05", "status")
        with pytest.raises(AnswerTimeoutError, match=r"within 0\.05 s"):
            run.call("status", seconds=100)
        run.close()


def test_a_socket_can_be_named(home: Home) -> None:
    """--socket is where the daemon is asked; a path that does not fit is an error."""
    path = f"{home.path}/other"
    with ScriptedDaemon(path, {"status": {}}):
        run = invocation(home, "--socket", path, "status")
        assert run.places.socket == path
        assert run.call("status") == {}
        run.close()
    with pytest.raises(SocketPathTooLongError):
        _ = invocation(home, "--socket", "/" + "x" * 200, "status").places


def test_no_daemon_is_started_when_none_is_wanted(home: Home) -> None:
    """With --no-start an absent daemon is an error and stays absent."""
    with pytest.raises(DaemonUnavailableError):
        invocation(home, "status").call("status")
    assert not os.path.exists(home.places.state_dir)


def test_a_daemon_that_went_away_is_told_with_its_log(home: Home) -> None:
    """Whoever loses the connection hears why the daemon ended, where it said so."""
    os.makedirs(home.places.state_dir)
    Path(home.places.log).write_text("memd: the disk is full\n", "utf-8")
    with (
        ScriptedDaemon(home.places.socket, {"status": HangUp()}),
        closing(invocation(home, "status")) as asking,
        pytest.raises(DaemonUnavailableError, match="the disk is full; its log is"),
    ):
        asking.call("status")


def test_what_was_not_taken_is_sent_to_the_next_daemon(home: Home) -> None:
    """A request that a daemon that ended did not even get is the next one's."""
    with closing(invocation(home, "status")) as asking:
        with ScriptedDaemon(home.places.socket, {}):
            asking.client()
        with ScriptedDaemon(home.places.socket, {"status": {"ok": True}}) as daemon:
            assert asking.call("status") == {"ok": True}
            assert [call.method for call in daemon.requested if call.method != "hello"] == [
                "status"
            ]


@pytest.mark.parametrize(
    ("method", "params", "times"),
    [("memory.write", {"request_id": "r"}, 2), ("job.wait", {}, 2), ("extract", {}, 1)],
)
def test_only_what_is_safe_is_repeated(
    home: Home, method: str, params: dict[str, Any], times: int
) -> None:
    """What may have been done is asked for once more where that does nothing twice."""
    answers: list[object] = [HangUp(), {"done": True}]
    with (
        ScriptedDaemon(home.places.socket, {method: lambda _: answers.pop(0)}) as daemon,
        closing(invocation(home, "status")) as asking,
    ):
        if times == 1:
            with pytest.raises(DaemonUnavailableError):
                asking.call(method, **params)
        else:
            assert asking.call(method, **params) == {"done": True}
        sent = [call.params for call in daemon.requested if call.method == method]
        assert sent == [params] * times


def test_the_directory_is_absolute(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current directory counts by default, and --cwd is taken from there."""
    monkeypatch.chdir(home.cwd)
    run = invocation(home, "status")
    run.options.cwd = None
    assert run.cwd == os.getcwd()
    run = invocation(home, "--cwd", ".git", "status")
    assert run.cwd == f"{os.getcwd()}/.git"


def test_a_directory_that_is_gone_is_named(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A current directory that was removed is an error of its own."""
    gone = Path(home.cwd) / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    run = invocation(home, "status")
    run.options.cwd = None
    with pytest.raises(DirectoryGoneError):
        _ = run.cwd


def test_a_directory_must_have_a_name_in_utf8(home: Home) -> None:
    """What JSON cannot carry is refused before anything is sent."""
    with pytest.raises(DirectoryNameError):
        _ = invocation(home, "--cwd", "/\udcff", "status").cwd


def test_files_are_read_as_they_are(home: Home) -> None:
    """UTF-8 with its line ends comes from a file or standard input; anything else is named."""
    run = invocation(home, "status")
    file = Path(home.path) / "file"
    file.write_bytes("é\r\n".encode())
    assert run.read(str(file)) == "é\r\n"
    around = Surroundings({}, home.path, Stream("x\r\n"), Stream(), Stream())
    run.surroundings = around
    assert run.read("-") == "x\r\n"
    file.write_bytes(b"\xff")
    with pytest.raises(InputUnreadableError, match="UTF-8"):
        run.read(str(file))
    with pytest.raises(InputUnreadableError, match="No such file"):
        run.read(f"{file}x")
