"""The command ``memd-team``: run the server, and manage it as its operator."""

import argparse
import inspect
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from memd.core.errors import MemdError
from memd.core.extras import install_command
from memd.core.names import printable
from memd.server.operations import COMMANDS, Row
from memd.server.storage import Storage, open_storage

_FILE = "team.db"
_CANNOT_CREATE, _MISCONFIGURED = 73, 78  # of sysexits
_PORTS = 65_536
_NO_ADDRESS = "a host and a port are expected, as 127.0.0.1:8790"
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
_SERVE_EPILOG = """\
examples:
  memd-team serve --data DIR
  memd-team serve --data DIR --listen 127.0.0.1:9000
  memd-team serve --data DIR --uds /run/memd-team/http.sock
"""
# Commands and options of the version before, with what does their work; for one release.
_PROXY = "a reverse proxy has TLS, rates and addresses (docs/team-server.md)"
_GONE = {
    "audit": "the log on standard error says who did what",
    "backup": 'sqlite3 DIR/team.db ".backup FILE", or pg_dump',
    "check": 'sqlite3 DIR/team.db "PRAGMA integrity_check", or pg_amcheck',
    "migrate": "the repositories are added to the new database, and members join anew",
    "restore": "put the copy back as team.db or with pg_restore, then memd-team renew",
    "token issue": "nothing takes its place, since /metrics is gone",
    "--admin": "nothing takes its place, since /metrics is gone",
    "--behind-proxy": "every request counts as one of this machine",
    "--tls-cert": _PROXY,
    "--tls-key": _PROXY,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    commands = parser()
    words = sys.argv[1:] if arguments is None else arguments
    _refuse_gone(commands, words)
    given = commands.parse_args(words)
    sets_up = given.command is None or given.command.sets_up
    try:
        database = _database(given, create=sets_up)
        if not database:
            commands.error("say where the data is: --data or --database")
        with closing(open_storage(database, create=sets_up)) as storage:
            if not given.command:
                _serve(storage, given)
                return 0
            result = given.command.run(storage, given)
            sys.stdout.write(_json(result) if given.json else _text(result))
            return 0
    except MemdError as error:
        hint = f" ({error.hint})" if error.hint else ""
        sys.stderr.write(f"memd-team: {error.sentence}{hint}\n")
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
    _add_serve(
        commands.add_parser("serve", help="run the server", **_layout(_SERVE, _SERVE_EPILOG))
    )
    groups = {"": commands}  # the subparsers of each first word of two, "" for single words
    for command in COMMANDS:
        *group, name = command.words
        place = "".join(group)
        if place not in groups:
            words = [each.words[1] for each in COMMANDS if each.words[0] == place]
            group_parser = commands.add_parser(place, help=", ".join(words))
            groups[place] = group_parser.add_subparsers(metavar="COMMAND", required=True)
        text = inspect.getdoc(command.run) or ""
        summary = text.split("\n")[0]
        command_parser = groups[place].add_parser(name, help=summary, **_layout(text))
        for argument, options in command.arguments:
            command_parser.add_argument(argument, **options)
        command_parser.add_argument("--json", action="store_true", help="print JSON")
        _add_storage(command_parser)
        command_parser.set_defaults(command=command)
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


def _add_storage(command: argparse.ArgumentParser) -> None:
    """Add the options that name the storage to the parser of a command."""
    command.add_argument(
        "--data",
        metavar="DIR",
        default="",
        help="the folder; serve and add make a missing one",
    )
    command.add_argument("--database", metavar="URL", default="", help="postgresql://... instead")


def _add_serve(command: argparse.ArgumentParser) -> None:
    """Add the options of the command ``serve`` to its parser."""
    address = command.add_mutually_exclusive_group()
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
    _add_storage(command)
    command.set_defaults(command=None)  # ``serve`` is no command of an operator


def _address(text: str) -> tuple[str, int]:
    """Return host and port. Raises ArgumentTypeError."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) >= _PORTS:
        raise argparse.ArgumentTypeError(_NO_ADDRESS)
    return host.strip("[]"), int(port)


def _database(given: argparse.Namespace, *, create: bool) -> str:
    """Return the database that a command is for, "" if none is named; ``create`` its folder.

    An option goes before the variables of the environment.
    """
    environment = os.environ
    data = given.data or environment.get("MEMD_TEAM_DATA", "")
    database: str = given.database
    if not (given.data or database):
        database = environment.get("MEMD_TEAM_DATABASE", "")
    if database or not data:
        return database
    if create:
        os.makedirs(data, mode=0o700, exist_ok=True)
    return os.path.join(data, _FILE)


def _serve(storage: Storage, given: argparse.Namespace) -> None:
    """Serve a storage until the process is told to end."""
    # Imported here, since the other commands do not need a server's libraries.
    from memd.server.app import application  # noqa: PLC0415
    from memd.server.serving import ListenAddress, serve  # noqa: PLC0415

    def started(address: str) -> None:
        """Print the address at which the server listens."""
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()

    host, port = given.listen
    serve(application(storage), ListenAddress(host, port, given.uds), started)


def _json(result: Row | Sequence[Row]) -> str:
    """Return a command's result as readable JSON with a line end."""
    return json.dumps(result, indent=2, ensure_ascii=False) + "\n"


def _text(result: Row | Sequence[Row]) -> str:
    """Return a result for people: names and values, or a table."""
    if isinstance(result, Mapping):
        return "".join(f"{name}: {_shown(value)}\n" for name, value in result.items())
    heading = [list(row) for row in result[:1]]  # the names of the columns, if there is a row
    rows = heading + [[_shown(value) for value in row.values()] for row in result]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    text = ""
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        text += "  ".join(cells).rstrip() + "\n"
    return text


def _shown(value: object) -> str:
    """Return a value as it is printed in a table."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} ({role})" for name, role in value.items()) or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return printable(str(value)) if value not in ("", None) else "-"
