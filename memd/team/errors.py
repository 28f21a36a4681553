"""The errors of team memory."""

from memd.base.errors import NotFound, Off, Refused, Unavailable
from memd.base.names import printable
from memd.remote.link import HttpResponse


def team_not_joined(directory: str) -> Off:
    """Return the error that the project has not joined a team."""
    return Off(
        f"{directory} has joined no team",
        kind="team_not_joined",
        hint="memctl team join <url>",
        directory=directory,
    )


def team_unreachable(server: str, cause: str) -> Unavailable:
    """Return the error that the team's server did not answer, or its answer is invalid."""
    return Unavailable(
        f"{server} cannot be used now: {cause}",
        kind="team_unreachable",
        hint="no memory is lost; give the command again once the server answers",
        server=server,
        cause=cause,
    )


def team_refused(what: str, cause: str, *, status: int = 0) -> Refused:
    """Return the error that the server or a rule of team memory refuses a request."""
    return Refused(
        f"{printable(what)} is refused: {cause}", kind="team_refused", cause=cause, status=status
    )


def nothing_to_decide(path: str) -> NotFound:
    """Return the error that a memory that is to be resolved is neither in conflict nor held."""
    return NotFound(
        f"nothing waits for a decision about {printable(path)}",
        kind="nothing_to_decide",
        hint="memctl team status names what waits",
        path=path,
    )


def team_held(path: str, reason: str) -> Refused:
    """Return the error that a file is held here: it is not sent until a person decides."""
    return Refused(
        f"{printable(path)} is held: {reason}",
        kind="team_refused",
        hint="change or rename the file and it is sent; "
        "memctl team resolve PATH theirs gives it up",
        path=path,
        reason=reason,
    )


def unexpected(response: HttpResponse) -> str:
    """Return in words that an answer without a reason is none that a memd-team server gives."""
    target = response.headers.get("location", "")
    to = f" to {printable(target)}" if target else ""
    return f"it does not answer as a memd-team server does: HTTP {response.status}{to}"
