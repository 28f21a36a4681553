"""The errors of clients of the daemon. What the daemon answers is raised as its family."""

from typing import Any

from memd.base.errors import FAMILIES, Busy, MemdError, Refused, Unavailable


class DaemonUnavailableError(Unavailable):
    """No daemon answers, or it went away before it answered.

    It is a class of its own since callers connect again after it, and not after an answer of the
    daemon that something else is unavailable. ``begun`` is ``False`` where the daemon cannot have
    begun the request.
    """

    def __init__(self, socket_path: str, cause: str, log: str = "", *, begun: bool = True) -> None:
        where = f"; its log is {log}" if log else ""
        super().__init__(
            f"no memd answers at {socket_path}: {cause}{where}",
            kind="daemon_unavailable",
            hint="start one with: memd",
            socket=socket_path,
            cause=cause,
            log=log,
        )
        self.begun = begun


class AnswerTimeoutError(Busy):
    """The answer did not come in time; the daemon may still be working on it.

    It is a class of its own since whoever waits for a job then says that the job goes on.
    """

    def __init__(self, method: str, seconds: float) -> None:
        super().__init__(
            f"memd did not answer {method} within {seconds:g} s",
            hint="wait longer, or look at the daemon with: memctl status",
            method=method,
            seconds=seconds,
        )


def server_refused(socket_path: str, cause: str) -> Refused:
    """Return the error that a socket or its listener may be another user's."""
    return Refused(
        f"nothing was sent to {socket_path}: {cause}",
        kind="server_refused",
        exit_status=78,
        hint="the directory must be your own with mode 0700 and the socket 0600: remove what is "
        "there, or choose another place with MEMD_SOCKET",
        socket=socket_path,
        cause=cause,
    )


def answered(failure: dict[str, Any]) -> MemdError:
    """Return the error in an answer of the daemon: of its family, with its kind and its facts."""
    code, data = failure.get("code"), dict(failure.get("data") or {})
    family = next((each for each in FAMILIES if each.code == code), MemdError)
    error = family(
        str(failure.get("message", "")),
        kind=str(data.pop("kind", "failed")),
        hint=str(data.pop("hint", "")),
        retryable=data.pop("retryable", False) is True,
    )
    error.facts = data
    error.code = code if isinstance(code, int) else 0
    return error
