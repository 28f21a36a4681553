"""The log."""

import errno
import io
import json

import pytest

from memd.base.errors import MemdError
from memd.daemon.log import Log


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Return true."""
        return True


def test_lines_are_json_off_a_terminal() -> None:
    """Each note is one JSON object with its event, level, time and facts."""
    stream = io.StringIO()
    log = Log(stream)
    log.note("ready", pid=3)
    log.warning("settings", detail="no")
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (first["event"], first["level"], first["pid"]) == ("ready", "info", 3)
    assert "timestamp" in first
    assert second["level"] == "warning"


def test_lines_are_for_people_on_a_terminal() -> None:
    """A terminal gets readable lines."""
    stream = Terminal()
    Log(stream).note("ready", pid=3)
    assert "ready" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_a_fault_is_found_under_its_id() -> None:
    """The id that a client hears leads to the traceback."""
    stream = io.StringIO()
    log = Log(stream)
    fault = log.unexpected(_raised(), method="hello", client="editor")
    entry = json.loads(stream.getvalue())
    assert (entry["id"], entry["method"], entry["client"]) == (fault, "hello", "editor")
    assert "it broke" in entry["traceback"]
    assert "_raised" in entry["traceback"]


@pytest.mark.parametrize("where", ["note", "fault"])
def test_secrets_never_reach_the_log(where: str) -> None:
    """A credential in a fact or in an exception is replaced by the name of its rule."""
    token = "ghp_" + "16C7e42F292c6912" + "E7710c838347Ae178B4a"
    stream = io.StringIO()
    log = Log(stream)
    if where == "note":
        log.note("seen", detail=f"got {token}")
    else:
        log.unexpected(MemdError(f"got {token}"))
    assert token not in stream.getvalue()
    assert "[secret:" in stream.getvalue()


class Full(io.StringIO):
    """A stream on a disk without room."""

    def write(self, _text: str) -> int:
        """Refuse."""
        raise OSError(errno.ENOSPC, "full")


def test_a_log_that_cannot_be_written_stops_nobody() -> None:
    """On a full disk lines are lost, and nothing is raised."""
    log = Log(Full())
    log.note("lost")
    log.warning("lost")
    assert log.unexpected(MemdError("lost"))


def _raised() -> BaseException:
    """Return an exception that has been raised, so that it has a traceback."""
    try:
        json.loads("it broke")
    except ValueError as error:
        failure = MemdError("it broke")
        failure.__cause__ = error
        return failure.with_traceback(error.__traceback__)
    raise AssertionError
