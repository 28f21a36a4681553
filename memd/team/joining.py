"""Find out which server and repository a project would join, and as which device. Blocks."""

import os

from msgspec import Struct

from memd.base.text import one_line
from memd.base.values import Project
from memd.projects.remotes import normalised, repository_of
from memd.team.errors import team_refused
from memd.team.membership import Memberships, server_address
from memd.team.values import Membership

_DEVICE_CHARACTERS = 64

# Why a project cannot join, in words for the sentence of its error.
_NO_REMOTE = "its .git/config names no repository on a server; --repo says which it is"
_NO_REPOSITORY = "it names no repository on a server"
_ELSEWHERE = "it has joined another team; memctl team leave comes first"


class Prospect(Struct, frozen=True):
    """The server, repository and device with which a project would join a team.

    ``origin`` is the repository in the project's .git/config. ``remote`` is the same, unless the
    person named another. ``known`` is a membership whose token is valid here too, ``None`` for
    none. ``joined`` says whether the project is in this team already.
    """

    server: str
    remote: str
    origin: str
    device: str
    known: Membership | None
    joined: bool


def prospect(memberships: Memberships, project: Project, url: str, repo: str) -> Prospect:
    """Return what a project would join; ``repo`` is the repository that a person named, or "".

    Raises Refused if there is no valid repository or the project is in another team.
    """
    server, named = server_address(url), repository_of(project.root)
    remote = (normalised(repo) or normalised(f"https://{repo}")) if repo else named
    if not remote:
        raise team_refused(repo or project.root, _NO_REPOSITORY if repo else _NO_REMOTE)
    joined = memberships.of(project.memory_dir)
    if joined and (joined.server, joined.remote) != (server, remote):
        raise team_refused(project.memory_dir, _ELSEWHERE)
    # A person joins the same team again if the token is invalid, so it is not used.
    known = None if joined else memberships.token_for(server)
    device = known.device if known else device_name()
    return Prospect(server, remote, named, device, known, joined is not None)


def moved(membership: Membership) -> str:
    """Return in words how a project's origin changed since it joined, "" if it did not."""
    named = repository_of(membership.root)
    if named == membership.origin:
        return ""
    return (
        f"{membership.root} names {named or 'no repository'} as its origin, and "
        f"{membership.origin or 'none'} when it joined {membership.remote}"
    )


def device_name() -> str:
    """Return the name of this device for a server: the first part of its host name."""
    name = os.uname().nodename.partition(".")[0]
    plain = "".join(char for char in name if char.isascii() and char.isprintable())
    return one_line(plain, _DEVICE_CHARACTERS) or "device"
