"""The errors of team memory."""

from memd.base.errors import MemdError
from memd.base.names import printable
from memd.remote.link import HttpResponse


class TeamNotJoinedError(MemdError):
    """The project has not joined a team."""

    code = 1024
    kind = "team_not_joined"
    hint = "memctl team join <url>"

    def __init__(self, directory: str) -> None:
        super().__init__(f"{directory} has joined no team", directory=directory)


class TeamUnreachableError(MemdError):
    """The team's server did not answer, or its answer is invalid."""

    code = 1025
    kind = "team_unreachable"
    retryable = True
    hint = "no memory is lost; give the command again once the server answers"

    def __init__(self, server: str, cause: str) -> None:
        super().__init__(f"{server} cannot be used now: {cause}", server=server, cause=cause)


class TeamRefusedError(MemdError):
    """The server or a rule of team memory refuses a request."""

    code = 1026
    kind = "team_refused"

    def __init__(self, what: str, cause: str, *, status: int = 0) -> None:
        super().__init__(f"{printable(what)} is refused: {cause}", cause=cause, status=status)


class NothingToDecideError(MemdError):
    """A memory that is to be resolved is neither in conflict nor held."""

    code = 1001
    kind = "no_conflict"
    hint = "memctl team status names what waits"

    def __init__(self, path: str) -> None:
        super().__init__(f"nothing waits for a decision about {printable(path)}", path=path)


class TeamHeldError(MemdError):
    """A file is held here: it is not sent until a person decides."""

    code = 1027
    kind = "team_held"
    hint = "change or rename the file and it is sent; memctl team resolve PATH theirs gives it up"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{printable(path)} is held: {reason}", path=path, reason=reason)


def unexpected(response: HttpResponse) -> str:
    """Return in words that an answer without a reason is none that a memd-team server gives."""
    target = response.headers.get("location", "")
    to = f" to {printable(target)}" if target else ""
    return f"it does not answer as a memd-team server does: HTTP {response.status}{to}"
