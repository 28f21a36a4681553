"""What can go wrong for a client."""

import pytest

from memd.client.errors import AnswerLateError, DaemonUnavailableError, RemoteError


@pytest.mark.parametrize(
    ("data", "status", "kind"),
    [
        ({"kind": "busy", "retryable": True, "hint": "wait"}, 75, "busy"),
        ({"kind": "taken", "retryable": False}, 1, "taken"),
        ({"retryable": "yes"}, 1, "failed"),
        ({}, 1, "failed"),
    ],
)
def test_a_remote_error_says_whether_to_try_again(
    data: dict[str, object], status: int, kind: str
) -> None:
    """The exit status is 75 where the daemon says that trying again can help, else 1."""
    error = RemoteError(1004, "a sentence", data)
    assert (error.code, error.message, error.data) == (1004, "a sentence", data)
    assert (error.sentence, error.exit_status, error.kind) == ("a sentence", status, kind)


def test_an_absent_daemon_has_its_own_status() -> None:
    """69 means unavailable, and the sentence names the socket, the cause and the log."""
    error = DaemonUnavailableError("/s", "it hung up", "/l")
    assert error.exit_status == 69
    assert error.sentence == "no memd answers at /s: it hung up; its log is /l"
    assert "log" not in DaemonUnavailableError("/s", "it hung up").sentence


def test_a_late_answer_can_be_tried_again() -> None:
    """The method and the seconds are named."""
    error = AnswerLateError("dream", 2.5)
    assert (error.exit_status, error.retryable) == (75, True)
    assert "dream within 2.5 s" in error.sentence
