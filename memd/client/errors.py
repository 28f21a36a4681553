"""The errors of clients of the daemon."""

from typing import Any

from memd.base.errors import MemdError
from memd.base.extras import install_command


class DaemonUnavailableError(MemdError):
    """No daemon answers, or it went away before it answered."""

    code = 1004
    kind = "daemon_unavailable"
    retryable = True
    hint = "start one with: memd"
    exit_status = 69

    def __init__(self, socket_path: str, cause: str, log: str = "") -> None:
        where = f"; its log is {log}" if log else ""
        super().__init__(
            f"no memd answers at {socket_path}: {cause}{where}",
            socket=socket_path,
            cause=cause,
            log=log,
        )


class RequestUndeliveredError(DaemonUnavailableError):
    """The daemon had closed the connection when the request was sent, so it was not begun."""


class ServerRefusedError(MemdError):
    """The socket, its directory or the listener may be another user's, so nothing was sent."""

    code = 1006
    kind = "server_refused"
    hint = (
        "the directory must be your own with mode 0700 and the socket 0600: remove what is there, "
        "or choose another place with MEMD_SOCKET"
    )
    exit_status = 78

    def __init__(self, socket_path: str, cause: str) -> None:
        super().__init__(
            f"nothing was sent to {socket_path}: {cause}", socket=socket_path, cause=cause
        )


class AnswerTimeoutError(MemdError):
    """The answer did not come in time; the daemon may still be working on it."""

    code = 1004
    kind = "answer_late"
    retryable = True
    hint = "wait longer, or look at the daemon with: memctl status"
    exit_status = 75

    def __init__(self, method: str, seconds: float) -> None:
        super().__init__(
            f"memd did not answer {method} within {seconds:g} s", method=method, seconds=seconds
        )


class SdkTooOldError(MemdError, ImportError):
    """The installed SDK has no middleware."""

    code = 1009
    kind = "sdk_too_old"

    def __init__(self, version: str) -> None:
        super().__init__(f"anthropic {version} has no middleware", version=version)
        self.hint = install_command("anthropic")  # it fits this installation


class RemoteError(MemdError):
    """The daemon answered with an error: its code, its sentence and its facts.

    ``data`` is the answer's ``data`` member. The exit status is 75 where trying again can help.
    """

    # In this class these values come with each answer and are not the same for the class.
    code: int
    kind: str
    retryable: bool
    hint: str
    exit_status: int

    def __init__(self, code: int, message: str, data: dict[str, Any]) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.kind = str(data.get("kind", "failed"))
        self.retryable = data.get("retryable") is True
        self.hint = str(data.get("hint", ""))
        self.exit_status = 75 if self.retryable else 1
