"""From the tables to a parser, with argparse.

The usage lines come from the tables and not from argparse, whose wording differs between the
versions of Python; docs/cli.md shows the same lines.
"""

import argparse
import textwrap
from typing import Any

from memd import __version__
from memd.cli import dream_table, memory_table, operation_table, suggestion_table
from memd.cli.grammar import GLOBAL_OPTIONS, Command, Operand, Option, synopsis

COMMANDS = (
    *memory_table.COMMANDS,
    *suggestion_table.COMMANDS,
    *dream_table.COMMANDS,
    *operation_table.COMMANDS,
)
GROUPS = {
    "job": "background jobs",
    "session": "the life of a client's session",
    "service": "memd as a service of this user",
    "setup": "connect a client",
}
DESCRIPTION = (
    "The command line of memd, the daemon that keeps the memories of your AI assistants. "
    "The answer goes to standard output, everything else to standard error."
)
EXIT_STATUS = (
    (0, "done"),
    (1, "the operation failed, or was refused"),
    (2, "the command line is wrong"),
    (69, "no daemon answers, and none could be started"),
    (75, "not now: try again"),
    (78, "the configuration keeps it from working"),
    (130, "interrupted"),
)
_FILES = ("FILE", "DIR", "PATH")  # what options call a value that names one
_EPILOG = "Options of every command: see memctl --help."


def parser(files: object = None) -> argparse.ArgumentParser:
    """Return the parser; ``run`` of what it parses is the Command.

    ``files`` is shtab's mark for arguments that name a file; a parser that has it is for completion
    alone, which offers the options of every command behind each.
    """
    top: argparse.ArgumentParser = _new(
        argparse.ArgumentParser,
        prog="memctl",
        usage="memctl [OPTION...] COMMAND [ARGUMENT...]",
        description=DESCRIPTION,
        epilog=_exit_words(),
    )
    top.set_defaults(run=None)
    top.add_argument(
        "--version", action="version", version=f"memctl {__version__}", help="print the version"
    )
    for option in GLOBAL_OPTIONS:
        _add_option(top, option, files)
    commands = top.add_subparsers(metavar="COMMAND", title="commands")
    groups: dict[str, Any] = {}
    for command in COMMANDS:
        first, *rest = command.words
        if rest and first not in groups:
            groups[first] = _group(commands, first)
        child = _new(
            (groups[first] if rest else commands).add_parser,
            command.words[-1],
            prog=f"memctl {command.name}",
            help=command.summary,
            usage=synopsis(command),
            description=command.text,
            epilog=_epilog(command),
            aliases=command.aliases,
        )
        child.set_defaults(run=command)
        _fill(child, command, files)
        if not rest and (names := verbs(first)):  # it may stand alone or be followed by a verb
            groups[first] = child.add_subparsers(metavar="|".join(names), title="verbs")
    return top


def verbs(first: str) -> list[str]:
    """Return the second words that commands have behind a first one."""
    return [command.words[1] for command in COMMANDS if command.words[:-1] == (first,)]


class _Formatter(argparse.HelpFormatter):
    """Wraps prose and leaves lines alone that begin with a space."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = []
        for line in text.splitlines():
            lines += [line] if line.startswith(" ") else textwrap.wrap(line, width) or [""]
        return "\n".join(indent + line for line in lines)


def _new(make: Any, *names: str, usage: str, **more: Any) -> Any:
    return make(
        *names,
        usage=usage.replace("%", "%%"),
        formatter_class=_Formatter,
        allow_abbrev=False,
        **more,
    )


def _group(commands: Any, name: str) -> Any:
    names = "|".join(verbs(name))
    group = _new(
        commands.add_parser,
        name,
        prog=f"memctl {name}",
        help=GROUPS[name],
        usage=f"memctl {name} {names} [ARGUMENT...]",
        description=f"{GROUPS[name][0].upper()}{GROUPS[name][1:]}.",
        epilog=_EPILOG,
    )
    return group.add_subparsers(metavar=names, title="verbs", required=True)


def _fill(child: argparse.ArgumentParser, command: Command, files: object) -> None:
    for operand in command.operands:
        _add_operand(child, operand)
    for option in command.options:
        _add_option(child, option, files)
    for option in GLOBAL_OPTIONS:
        hidden = option if files else option._replace(help=argparse.SUPPRESS)
        # Without a default, so that the same option before the command keeps its value.
        _add_option(child, hidden, files, argparse.SUPPRESS)


def _add_operand(child: argparse.ArgumentParser, operand: Operand) -> None:
    arguments: dict[str, Any] = {"help": operand.help, "metavar": operand.name}
    if operand.many:
        arguments["nargs"] = "*" if operand.optional else "+"
    elif operand.optional:
        arguments["nargs"] = "?"
    if operand.choices:
        arguments["choices"] = operand.choices
    child.add_argument(operand.attribute, **arguments)


def _add_option(
    child: argparse.ArgumentParser, option: Option, files: object, default: Any = None
) -> None:
    arguments: dict[str, Any] = {"help": option.help, "dest": option.attribute}
    if option.switch:
        arguments |= {"action": "store_true", "default": default or False}
    else:
        arguments |= {"type": option.kind, "default": default}
        arguments["action"] = "append" if option.repeat else "store"
        if option.choices:
            arguments["choices"] = option.choices
        arguments["metavar"] = option.metavar or "|".join(option.choices)
    added = child.add_argument(option.flag, **arguments)
    if option.metavar in _FILES:
        added.complete = files  # type: ignore[attr-defined] # where shtab looks


def _epilog(command: Command) -> str:
    lines = [f"  {line}\n      {why}" for line, why in command.examples]
    examples = "\n".join(["examples:", *lines, "", ""]) if lines else ""
    return examples + _EPILOG


def _exit_words() -> str:
    lines = [f"  {status:>3}  {words}" for status, words in EXIT_STATUS]
    return "\n".join(["exit status:", *lines])
