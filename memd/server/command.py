"""The command ``memd-team``: run the server, and manage it as its operator.

An operator's command is a function that takes the storage and the parsed arguments. Its docstring
is its help, and what it returns is printed: one thing by its names, or a list of things. Times are
told in UTC.
"""

import argparse
import inspect
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, NamedTuple

from msgspec.structs import asdict

from memd.base.errors import MemdError
from memd.base.extras import install_command
from memd.base.names import printable
from memd.server.access import INVITATION_SECONDS
from memd.server.errors import REPOSITORY, NotThereError, TeamServerError
from memd.server.storage import Storage, open_storage
from memd.server.values import Repository, Role

Row = Mapping[str, object]
Run = Callable[[Storage, argparse.Namespace], Row | Sequence[Row]]
_CANNOT_CREATE, _MISCONFIGURED = 73, 78  # of sysexits
_PORTS = 65_536
_MOST = 10**9  # the greatest number of a token that is taken
_NO_ADDRESS = "a host and a port are expected, as 127.0.0.1:8790"
_NO_NUMBER = f"a number from 1 to {_MOST} is expected"
_NO_ROLE = "none"
_ROLES = [str(role) for role in Role]
_TIMES = ("at", "expires", "revoked")
_DESCRIPTION = """\
The server of memd's team memory: it keeps what the members of a project share. Members
join with `memctl team join <url>` and a code of `memd-team invite`; what they save below
team/ is then on every member's machine.
"""
_EPILOG = """\
the data:
  Every command takes --data DIR, a folder with a SQLite file, or --database URL, a
  PostgreSQL database that several processes may share. MEMD_TEAM_DATA and
  MEMD_TEAM_DATABASE say the same; an address with a password belongs there, since others
  see a command's arguments.

first steps:
  export MEMD_TEAM_DATA=/var/lib/memd-team
  memd-team serve &
  memd-team repo add github.com/acme/app
  memd-team invite anna --repo github.com/acme/app

exit status:
  0 done; 1 failed; 2 wrong arguments; others as the failure says.

See also: docs/team-server.md, docs/team-protocol.md, memctl team.
"""
_SERVE = """\
Serve until SIGTERM or SIGINT; requests that run then have 10 s. The address is printed once
the server listens; the log goes to standard error, a JSON object a line, without content.

It listens only on this machine. A reverse proxy with a certificate serves others.
"""
# Commands and options of the version before, with what does their work; for one release.
_PROXY = "a reverse proxy has TLS, rates and addresses (docs/team-server.md)"
_GONE = {
    "audit": "the log on standard error says who did what",
    "backup": 'sqlite3 DIR/team.db ".backup FILE", or pg_dump',
    "check": 'sqlite3 DIR/team.db "PRAGMA integrity_check", or pg_amcheck',
    "member add": "memd-team invite adds who is invited",
    "migrate": "the repositories are added to the new database, and members join anew",
    "restore": "put the copy back as team.db or with pg_restore, then memd-team renew",
    "token issue": "nothing takes its place, since /metrics is gone",
    "--admin": "nothing takes its place, since /metrics is gone",
    "--behind-proxy": "every request counts as one of this machine",
    "--hours": "an invitation is good for 72 hours",
    "--tls-cert": _PROXY,
    "--tls-key": _PROXY,
}


def add_repository(storage: Storage, given: argparse.Namespace) -> Row:
    """Make the repository of a project.

    Its remote is the project's origin without scheme, user, usual port and .git, in small letters:
    memd-team repo add github.com/acme/app.
    """
    return asdict(storage.add_repository(given.remote))


def list_repositories(storage: Storage, _: argparse.Namespace) -> Sequence[Row]:
    """List repositories."""
    return [asdict(repository) for repository in storage.all_repositories()]


def list_members(storage: Storage, _: argparse.Namespace) -> Sequence[Row]:
    """List members with their roles."""
    return [{"member": name, "roles": roles} for name, roles in storage.members().items()]


def remove_member(storage: Storage, given: argparse.Namespace) -> Row:
    """Take a member's roles, tokens and invitations away.

    What the member wrote stays, under the member's name.
    """
    storage.remove_member(given.member, now=time.time())
    return {"removed": given.member}


def grant(storage: Storage, given: argparse.Namespace) -> Row:
    """Give a member a role in a repository, or take it away.

    A reader reads; a member writes, and removes own entries; a maintainer removes all.
    """
    role = None if given.role == _NO_ROLE else Role(given.role)
    storage.grant(given.member, _repository(storage, given.remote).id, role)
    return {"member": given.member, "remote": given.remote, "role": given.role}


def invite(storage: Storage, given: argparse.Namespace) -> Row:
    """Make a code with which a device joins, once, within 72 hours.

    The member types it into `memctl team join`. A further device gets a further code:
    memd-team invite anna --repo github.com/acme/app.
    """
    now = time.time()
    roles = {_repository(storage, remote).id: Role(given.role) for remote in given.repo}
    code = storage.invite(given.member, roles, now=now)
    return {"member": given.member, "code": code, "expires": _iso_time(now + INVITATION_SECONDS)}


def list_tokens(storage: Storage, _: argparse.Namespace) -> Sequence[Row]:
    """List the tokens of all devices, whose texts are stored nowhere."""
    return [
        {
            name: _iso_time(value) if name in _TIMES and value is not None else value
            for name, value in asdict(token).items()
        }
        for token in storage.tokens()
    ]


def revoke_token(storage: Storage, given: argparse.Namespace) -> Row:
    """Make the token of a lost device worthless, at once and for good."""
    storage.revoke(given.number, now=time.time())
    return {"revoked": given.number}


def purge(storage: Storage, given: argparse.Namespace) -> Row:
    """Erase all versions of a key, as for a secret that leaked.

    A tombstone takes its place, and members' files of it go with their next pull. Copies elsewhere
    stay: in members' histories, and in backups.
    """
    storage.purge(_repository(storage, given.remote).id, given.key, now=time.time())
    return {"purged": given.key, "elsewhere": "members' histories and backups keep their copies"}


def renew(storage: Storage, _: argparse.Namespace) -> Row:
    """Make new epochs, after a copy of the database was put back.

    Members' daemons stop and ask before anything changes on their machines, and offer again what
    the copy lacks. Codes that were not used are void.
    """
    storage.renew()
    return {"renewed": True}


def _number(text: str) -> int:
    """Return a number that a database can store. Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:20]) <= _MOST:
        raise argparse.ArgumentTypeError(_NO_NUMBER)
    return int(text)


class OperatorCommand(NamedTuple):
    """An operator's command; its arguments are names with what argparse takes beside."""

    words: str
    run: Run
    arguments: Mapping[str, Mapping[str, Any]] = {}


_REMOTE = {"remote": {"help": "the normalised remote, as github.com/acme/app"}}
_MEMBER = {"member": {"help": "the member's name, as others read it"}}
_INVITED = {
    "--repo": {
        "help": "a repository in which the member gets the role; may be given again",
        "metavar": "REMOTE",
        "action": "append",
        "default": [],
    },
    "--role": {"help": "default: member", "choices": _ROLES, "default": "member"},
}
_GRANTED = {"role": {"help": "the role", "choices": [*_ROLES, _NO_ROLE]}}
COMMANDS = (
    OperatorCommand("repo add", add_repository, _REMOTE),
    OperatorCommand("repo list", list_repositories),
    OperatorCommand("member list", list_members),
    OperatorCommand("member remove", remove_member, _MEMBER),
    OperatorCommand("member grant", grant, {**_MEMBER, **_REMOTE, **_GRANTED}),
    OperatorCommand("invite", invite, {**_MEMBER, **_INVITED}),
    OperatorCommand("token list", list_tokens),
    OperatorCommand(
        "token revoke", revoke_token, {"number": {"help": "as token list shows", "type": _number}}
    ),
    OperatorCommand("purge", purge, {**_REMOTE, "key": {"help": "the path below team/"}}),
    OperatorCommand("renew", renew),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    commands = parser()
    words = sys.argv[1:] if arguments is None else arguments
    _refuse_gone(commands, words)
    given = commands.parse_args(words)
    sets_up = given.run in (None, add_repository)  # only these make a storage that is missing
    try:
        database = _database(given, create=sets_up)
        if not database:
            commands.error("say where the data is: --data or --database")
        with closing(open_storage(database, create=sets_up)) as storage:
            if given.run is None:
                _serve(storage, given)
                return 0
            result = given.run(storage, given)
            as_json = json.dumps(result, indent=2, ensure_ascii=False) + "\n"
            sys.stdout.write(as_json if given.json else _text(result))
            return 0
    except (MemdError, TeamServerError) as error:
        sys.stderr.write(f"memd-team: {error.sentence}\n")
        return error.exit_status
    except ModuleNotFoundError as error:
        command = install_command("team-server", "team-postgres")
        sys.stderr.write(f"memd-team: {error.name} is not installed ({command})\n")
        return _MISCONFIGURED
    except OSError as error:
        sys.stderr.write(f"memd-team: {error.filename}: {error.strerror}\n")
        return _CANNOT_CREATE


def _refuse_gone(commands: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Exit with 2 and the replacement if a command line names what is gone."""
    named = [words[0] if words else "", " ".join(words[:2])]
    options = [word.partition("=")[0] for word in words if word.startswith("--")]
    for name in (*named, *options):
        if name in _GONE:
            commands.error(f"{name} is gone: {_GONE[name]}")


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    result = argparse.ArgumentParser("memd-team", **_layout(_DESCRIPTION, _EPILOG))
    commands = result.add_subparsers(metavar="COMMAND", required=True)
    serve = commands.add_parser("serve", help="run the server", **_layout(_SERVE))
    address = serve.add_mutually_exclusive_group()
    address.add_argument(
        "--listen",
        metavar="HOST:PORT",
        type=_address,
        default=("127.0.0.1", 8790),
        help="default: 127.0.0.1:8790; port 0: any that is free",
    )
    address.add_argument(
        "--uds", metavar="PATH", default="", help="listen at a Unix socket instead, mode 0660"
    )
    _add_storage(serve, None)
    groups = {"": commands}  # the subparsers of each first word of two, "" for single words
    for command in COMMANDS:
        *group, name = command.words.split()
        place = "".join(group)
        if place not in groups:
            names = [each.words for each in COMMANDS if each.words.startswith(f"{place} ")]
            group_parser = commands.add_parser(place, help=", ".join(names))
            groups[place] = group_parser.add_subparsers(metavar="COMMAND", required=True)
        text = inspect.getdoc(command.run) or ""
        summary = text.split("\n")[0]
        command_parser = groups[place].add_parser(name, help=summary, **_layout(text))
        for argument, options in command.arguments.items():
            command_parser.add_argument(argument, **options)
        command_parser.add_argument("--json", action="store_true", help="print JSON")
        _add_storage(command_parser, command.run)
    return result


def _layout(text: str, epilog: str = "") -> dict[str, Any]:
    """Return the options of a parser with this description and epilog."""
    formatter = argparse.RawDescriptionHelpFormatter
    return {
        "description": text,
        "epilog": epilog,
        "formatter_class": formatter,
        "allow_abbrev": False,
    }


def _add_storage(command: argparse.ArgumentParser, run: Run | None) -> None:
    """Add the options that name the storage, and what runs the command (``None``: serve)."""
    help_ = "the folder; serve and repo add make a missing one"
    command.add_argument("--data", metavar="DIR", default="", help=help_)
    command.add_argument("--database", metavar="URL", default="", help="postgresql://... instead")
    command.set_defaults(run=run)


def _address(text: str) -> tuple[str, int]:
    """Return host and port. Raises ArgumentTypeError."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) >= _PORTS:
        raise argparse.ArgumentTypeError(_NO_ADDRESS)
    return host.strip("[]"), int(port)


def _database(given: argparse.Namespace, *, create: bool) -> str:
    """Return the database that a command is for, "" if none is named; ``create`` its folder."""
    data = given.data or os.environ.get("MEMD_TEAM_DATA", "")
    database: str = given.database
    if not (given.data or database):
        database = os.environ.get("MEMD_TEAM_DATABASE", "")
    if database or not data:
        return database
    if create:
        os.makedirs(data, mode=0o700, exist_ok=True)
    return os.path.join(data, "team.db")


def _serve(storage: Storage, given: argparse.Namespace) -> None:
    """Serve a storage until the process is told to end."""
    # Imported here, since the other commands do not need a server's libraries.
    from memd.server.app import application  # noqa: PLC0415
    from memd.server.serving import ListenAddress, serve  # noqa: PLC0415

    def started(address: str) -> None:
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()

    host, port = given.listen
    serve(application(storage), ListenAddress(host, port, given.uds), started)


def _repository(storage: Storage, remote: str) -> Repository:
    """Return the repository of a remote. Raises NotThereError."""
    for repository in storage.all_repositories():
        if repository.remote == remote:
            return repository
    raise NotThereError(REPOSITORY)


def _iso_time(at: float) -> str:
    """Return seconds since 1970 as ISO 8601 in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def _text(result: Row | Sequence[Row]) -> str:
    """Return a result for people: names and values of a thing, a line for each of several."""
    if isinstance(result, Mapping):
        return "".join(f"{name}: {_shown(value)}\n" for name, value in result.items())
    return "".join(f"{'  '.join(map(_shown, row.values()))}\n" for row in result)


def _shown(value: object) -> str:
    """Return a value as it is printed."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} ({role})" for name, role in value.items()) or "-"
    return printable(str(value)) if value not in ("", None) else "-"
