"""Which server and repository a project would join, and as which device."""

import os

from msgspec import Struct

from memd.core.text import one_line
from memd.core.values import Project
from memd.projects.projects import normalised, repository_of
from memd.team.errors import TeamRefusedError
from memd.team.membership import Memberships, server_address
from memd.team.values import Membership

_DEVICE_CHARACTERS = 64

# Why a project cannot join, in words for the sentence of its error.
_NO_REMOTE = "its .git/config names no repository on a server; --repo says which it is"
_NO_REPOSITORY = "it names no repository on a server"
_ELSEWHERE = "it has joined another team; memctl team leave comes first"


class Prospect(Struct, frozen=True):
    """What joins: ``known`` is a membership whose token serves here too, ``None`` for none.

    ``origin`` is what the root names as its repository, which ``remote`` is unless a person said
    otherwise.
    """

    server: str
    remote: str
    origin: str
    device: str
    known: Membership | None


def prospect(memberships: Memberships, project: Project, url: str, repo: str) -> Prospect:
    """Return what a project would join. Blocks; raises TeamRefusedError."""
    server, named = server_address(url), repository_of(project.root)
    remote = (normalised(repo) or normalised(f"https://{repo}")) if repo else named
    if not remote:
        raise TeamRefusedError(repo or project.root, _NO_REPOSITORY if repo else _NO_REMOTE)
    joined = memberships.of(project.memory_dir)
    if joined and (joined.server, joined.remote) != (server, remote):
        raise TeamRefusedError(project.memory_dir, _ELSEWHERE)
    # Who joins once more does so because the token is no good.
    known = None if joined else memberships.token_for(server)
    return Prospect(server, remote, named, known.device if known else device_name(), known)


def moved(membership: Membership) -> str:
    """Return why a directory's project is not the one that joined, "" if it is. Blocks."""
    named = repository_of(membership.root)
    if named == membership.origin:
        return ""
    return (
        f"{membership.root} names {named or 'no repository'} as its origin, and "
        f"{membership.origin or 'none'} when it joined {membership.remote}"
    )


def device_name() -> str:
    """Return what this device is called on a server: the first part of its host name."""
    name = os.uname().nodename.partition(".")[0]
    plain = "".join(char for char in name if char.isascii() and char.isprintable())
    return one_line(plain, _DEVICE_CHARACTERS) or "device"
