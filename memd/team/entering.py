"""Join a team and leave it: send the requests and store or remove the membership. Blocks."""

from collections.abc import Callable
from typing import TypeVar

from memd.base.errors import Refused, Unavailable
from memd.base.names import TEAM
from memd.base.values import Draft, FileEdit, Project, Tree
from memd.remote.link import HttpRequest, HttpResponse, RemoteAnswerError, RemoteUnreachableError
from memd.team import requests, wire
from memd.team.errors import team_refused, team_unreachable, unexpected
from memd.team.joining import Prospect
from memd.team.membership import Memberships
from memd.team.values import Membership
from memd.team.wire import RemoteRepository

# Sends a request to a server with a token, "" for none.
Ask = Callable[[str, str, HttpRequest], HttpResponse]

T = TypeVar("T")
_OK, _CREATED, _NO_CONTENT, _UNKNOWN, _SERVER = 200, 201, 204, 401, 500
_NOT_IMPLEMENTED = 501  # of a web server that knows no POST
_NOT_GRANTED = "the server has no such repository for this member"
_NO_CODE = "an invitation's code is needed"
_LOST = "its token is not on this device any more"
_WRONG_SERVER = "it is no memd-team server ({cause})"
_REVOKED = "this device's token is no good any more; a new code in --code-file brings another"


def enter(
    memberships: Memberships,
    project: Project,
    prospect: Prospect,
    code: str,
    *,
    ask: Ask,
    now: float,
) -> tuple[Membership, str]:
    """Join a project to a team; return the stored membership and the member's role.

    An invitation's ``code`` is exchanged for a token. Without a code the token is used that this
    device has for the server. Raises Unavailable, Refused and Storage.
    """
    server, known = prospect.server, None if code else prospect.known
    if known is not None:
        token, member = memberships.token(known), known.member
    elif code:
        memberships.check_writable()  # the code works once: the token must not be lost
        request = requests.join(code, prospect.device)
        token, member = _read_body(
            server, wire.joined, _request_body(ask, server, "", request, _CREATED)
        )
    else:
        raise team_refused(server, _NO_CODE)
    try:
        ours = _find_repository(ask, server, token, prospect.remote)
    except (Unavailable, Refused) as error:
        if known is None:  # revoke the new token, as it will not be stored
            _request_body(ask, server, token, requests.leave(), _NO_CONTENT)
        elif error.facts.get("status") == _UNKNOWN:
            raise team_refused(server, _REVOKED, status=_UNKNOWN) from None
        raise
    membership = Membership(
        root=project.root,
        directory=project.memory_dir,
        server=server,
        repository=ours.id,
        remote=prospect.remote,
        member=member,
        device=prospect.device,
        token="",
        at=now,
        origin=prospect.origin,
    )
    return memberships.add(membership, token), ours.role


def leave(memberships: Memberships, membership: Membership, ask: Ask) -> str:
    """Remove a membership and revoke its token; return why that failed, or "".

    A token that another directory uses is not revoked. One that the server does not take any more
    needs no revoking.
    """
    problem = ""
    if memberships.is_last(membership):
        token = memberships.token(membership)
        problem = "" if token else _LOST
        try:
            if token:
                _request_body(ask, membership.server, token, requests.leave(), _NO_CONTENT)
        except (Unavailable, Refused) as error:
            if error.facts.get("status") != _UNKNOWN:
                problem = error.sentence  # the membership is removed all the same
    memberships.remove(membership.directory)
    return problem


def without_team(tree: Tree) -> Draft:
    """Return the draft that deletes all files below ``team/``, also those with invalid names."""
    paths = [header.path for header in tree.headers() if header.path.startswith(TEAM)]
    return Draft(tuple(FileEdit(path, None) for path in paths), restores=True)


def _find_repository(ask: Ask, server: str, token: str, remote: str) -> RemoteRepository:
    """Return the server's repository for a remote. Raises Refused if there is none."""
    body = _request_body(ask, server, token, requests.repositories(remote))
    for each in _read_body(server, wire.repositories, body):
        if each.remote == remote:
            return each
    raise team_refused(remote, _NOT_GRANTED, status=404)


def _request_body(
    ask: Ask, server: str, token: str, request: HttpRequest, expected: int = _OK
) -> bytes:
    """Send a request and return the body of an answer with the expected status.

    Raises Unavailable if there is no answer or the server has failed, else
    Refused.
    """
    try:
        answer = ask(server, token, request)
    except (RemoteUnreachableError, RemoteAnswerError) as error:
        raise team_unreachable(server, error.cause) from None
    if answer.status == expected:
        return answer.body
    problem = wire.problem(answer.body)
    message = problem.message or unexpected(answer)
    if answer.status < _SERVER or answer.status == _NOT_IMPLEMENTED:
        raise team_refused(server, message, status=answer.status)
    raise team_unreachable(server, message)


def _read_body(server: str, reader: Callable[[str, bytes], T], body: bytes) -> T:
    """Return the body of an answer as ``reader`` parses it. Raises Refused."""
    try:
        return reader(server, body)
    except RemoteAnswerError as error:
        raise team_refused(server, _WRONG_SERVER.format(cause=error.cause)) from None
