"""The commands of an operator: each is a function that takes the storage and parsed arguments.

A function's docstring is its command's help. What it returns is printed: one thing by its names, or
a list of things. Times are told in UTC.
"""

import time
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from memd.server.access import INVITATION_SECONDS
from memd.server.errors import REPOSITORY, NotThereError
from memd.server.storage import Storage
from memd.server.values import Repository, Role

Row = Mapping[str, object]
Run = Callable[[Storage, Namespace], Row | Sequence[Row]]
Argument = tuple[str, Mapping[str, Any]]  # a name, and what argparse takes beside
_NO_ROLE = "none"
_MOST_HOURS = 8760.0  # a year, as long as a token lasts
_MOST = 10**9  # the greatest number of a token that is taken
_NO_HOURS = f"a number of hours is expected, more than 0 and at most {_MOST_HOURS:.0f}"
_NO_NUMBER = f"a number from 1 to {_MOST} is expected"
_ROLES = [str(role) for role in Role]
_TIMES = ("at", "expires", "revoked")


class OperatorCommand(Struct, frozen=True):
    """A command: its words, what it does, and its operands and options.

    ``sets_up`` says whether it may create the storage.
    """

    words: tuple[str, ...]
    run: Run
    arguments: tuple[Argument, ...]
    sets_up: bool


COMMANDS: list[OperatorCommand] = []


def _argument(name: str, help: str, **options: Any) -> Argument:  # noqa: A002 - argparse's name
    """Return the declaration of one argument of a command, as argparse takes it."""
    return name, {"help": help} | options


def _command(words: str, *arguments: Argument, sets_up: bool = False) -> Callable[[Run], Run]:
    """Return a decorator that makes a function the command with this name and arguments."""

    def add(run: Run) -> Run:
        """Add the function to the commands, and return it as it is."""
        COMMANDS.append(OperatorCommand(tuple(words.split()), run, arguments, sets_up))
        return run

    return add


def _hours(text: str) -> float:
    """Return how long an invitation is good. Raises ArgumentTypeError."""
    try:
        hours = float(text)
    except ValueError as error:
        raise ArgumentTypeError(_NO_HOURS) from error
    if not 0 < hours <= _MOST_HOURS:  # neither is NaN
        raise ArgumentTypeError(_NO_HOURS)
    return hours


def _number(text: str) -> int:
    """Return a number that a database can store. Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:20]) <= _MOST:
        raise ArgumentTypeError(_NO_NUMBER)
    return int(text)


_REMOTE = _argument("remote", "the normalised remote, as github.com/acme/app")
_MEMBER = _argument("member", "the member's name, as others read it")


@_command("repo add", _REMOTE, sets_up=True)
def add_repository(storage: Storage, given: Namespace) -> Row:
    """Make the repository of a project.

    Its remote is the project's origin without scheme, user, usual port and .git, in small letters:
    memd-team repo add github.com/acme/app.
    """
    return asdict(storage.add_repository(given.remote))


@_command("repo list")
def list_repositories(storage: Storage, _: Namespace) -> Sequence[Row]:
    """List repositories."""
    return [asdict(repository) for repository in storage.all_repositories()]


@_command("member add", _MEMBER, sets_up=True)
def add_member(storage: Storage, given: Namespace) -> Row:
    """Add a member. Who is invited is added by that."""
    storage.add_member(given.member)
    return {"member": given.member}


@_command("member list")
def list_members(storage: Storage, _: Namespace) -> Sequence[Row]:
    """List members with their roles."""
    remotes = {each.id: each.remote for each in storage.all_repositories()}
    return [
        {
            "member": member.name,
            "roles": {remotes[number]: str(role) for number, role in member.roles.items()},
        }
        for member in storage.members()
    ]


@_command("member remove", _MEMBER)
def remove_member(storage: Storage, given: Namespace) -> Row:
    """Take a member's roles, tokens and invitations away.

    What the member wrote stays, under the member's name.
    """
    storage.remove_member(given.member, now=time.time())
    return {"removed": given.member}


@_command(
    "member grant", _MEMBER, _REMOTE, _argument("role", "the role", choices=[*_ROLES, _NO_ROLE])
)
def grant(storage: Storage, given: Namespace) -> Row:
    """Give a member a role in a repository, or take it away.

    A reader reads; a member writes, and removes own entries; a maintainer removes all.
    """
    role = None if given.role == _NO_ROLE else Role(given.role)
    storage.grant(given.member, _repository(storage, given.remote).id, role)
    return {"member": given.member, "remote": given.remote, "role": given.role}


@_command(
    "invite",
    _MEMBER,
    _argument(
        "--repo",
        "a repository in which the member gets the role; may be given again",
        metavar="REMOTE",
        action="append",
        default=[],
    ),
    _argument("--role", "default: member", choices=_ROLES, default="member"),
    _argument("--hours", "how long it is good (default: 72)", type=_hours),
)
def invite(storage: Storage, given: Namespace) -> Row:
    """Make a code with which a device joins, once.

    The member types it into `memctl team join`. A further device gets a further code:
    memd-team invite anna --repo github.com/acme/app.
    """
    now = time.time()
    roles = {_repository(storage, remote).id: Role(given.role) for remote in given.repo}
    seconds = INVITATION_SECONDS if given.hours is None else given.hours * 3600
    code = storage.invite(given.member, roles, now=now, seconds=seconds)
    return {"member": given.member, "code": code, "expires": _iso_time(now + seconds)}


@_command("token list")
def list_tokens(storage: Storage, _: Namespace) -> Sequence[Row]:
    """List the tokens of all devices, whose texts are stored nowhere."""
    return [_as_output(token) for token in storage.tokens()]


@_command("token revoke", _argument("number", "as token list shows it", type=_number))
def revoke_token(storage: Storage, given: Namespace) -> Row:
    """Make the token of a lost device worthless, at once and for good."""
    storage.revoke(given.number, now=time.time())
    return {"revoked": given.number}


@_command("purge", _REMOTE, _argument("key", "the path below team/"))
def purge(storage: Storage, given: Namespace) -> Row:
    """Erase all versions of a key, as for a secret that leaked.

    A tombstone takes its place, and members' files of it go with their next pull. Copies elsewhere
    stay: in members' histories, and in backups.
    """
    storage.purge(_repository(storage, given.remote).id, given.key, now=time.time())
    return {"purged": given.key, "elsewhere": "members' histories and backups keep their copies"}


@_command("renew")
def renew(storage: Storage, _: Namespace) -> Row:
    """Make new epochs, after a copy of the database was put back.

    Members' daemons stop and ask before anything changes on their machines, and offer again what
    the copy lacks. Codes that were not used are void.
    """
    storage.renew()
    return {"renewed": True}


def _repository(storage: Storage, remote: str) -> Repository:
    """Return the repository of a remote. Raises NotThereError."""
    for repository in storage.all_repositories():
        if repository.remote == remote:
            return repository
    raise NotThereError(REPOSITORY)


def _as_output(row: Any) -> Row:
    """Return a row as a mapping for output, with its times in ISO 8601."""
    members = asdict(row)
    return {k: _iso_time(v) if k in _TIMES and v is not None else v for k, v in members.items()}


def _iso_time(at: float) -> str:
    """Return seconds since 1970 as ISO 8601 in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
