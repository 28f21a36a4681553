"""Build memctl's argparse parser from the tables of commands.

The usage lines come from the tables and not from argparse, whose wording differs between the
versions of Python; docs/cli.md shows the same lines.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, NoReturn

from memd import __version__
from memd.cli import (
    agent_table,
    dream_table,
    instruction_table,
    memory_table,
    message_table,
    notes_table,
    operation_table,
    portable_table,
    report_table,
    review_table,
    rule_table,
    team_table,
)
from memd.cli.grammar import (
    ALLOWED_VALUES,
    GLOBAL_OPTIONS,
    Command,
    Operand,
    Option,
    synopsis,
)
from memd.cli.output import line_columns

COMMANDS = (
    *memory_table.COMMANDS,
    *review_table.COMMANDS,
    *rule_table.COMMANDS,
    *notes_table.COMMANDS,
    *dream_table.COMMANDS,
    *instruction_table.COMMANDS,
    *team_table.COMMANDS,
    *agent_table.COMMANDS,
    *message_table.COMMANDS,
    *portable_table.COMMANDS,
    *report_table.COMMANDS,
    *operation_table.COMMANDS,
)
# The first two parts of ``memctl --help``; ``memctl help all`` has the other commands too.
DAILY = ("add", "list", "show", "edit", "rm", "search", "log", "undo", "why", "review", "status")
NOW_AND_THEN = (
    "setup",
    "doctor",
    "dream",
    "report",
    "ui",
    "import",
    "export",
    "team",
    "config",
)
GROUPS = {
    "agent": "the agents that are there",
    "message": "messages between agents",
    "context": "what is sent of a conversation, for programs",
    "rule": "rules that hold before a tool runs",
    "job": "background jobs",
    "team": "memories shared with the members of a project",
    "service": "memd as a service of this user",
}
DESCRIPTION = "The command line of memd, which keeps the memories of your AI assistants."
EXIT_STATUS = (
    (0, "done"),
    (1, "the operation failed, or was refused"),
    (2, "the command line is wrong"),
    (69, "no daemon answers, and none could be started"),
    (75, "not now: try again"),
    (78, "the configuration keeps it from working"),
    (130, "interrupted"),
)
# How argparse words the errors for an invalid choice and value; compiled at the first use.
_INVALID_CHOICE = r"argument (\S+): invalid choice: '(.*?)' \(choose from (.*)\)"
_INVALID_VALUE = r"(?s)argument (\S+): invalid (\w+) value: (.*)"
_NAME = r"[\w.-]+"
USAGE = "memctl [OPTION...] COMMAND [ARGUMENT...]"
MORE_HELP = "memctl help COMMAND says more, memctl help all lists the other commands."
_USUAL_COLUMNS = 80
_NAME_COLUMNS = 17  # of a name in the overview
_MAX_LISTED = 6  # choices that an error message lists in full
_FILE_METAVARS = ("FILE", "DIR", "PATH")  # of options whose value is a path
_FILE_OPERANDS = ("DEST", "SOURCE")
OF_EVERY_COMMAND = "Options of every command: see memctl --help."


class CompletionHints(NamedTuple):
    """What shtab completes: ``file`` for paths, ``listed`` for values that a command lists.

    ``listed`` gets the words of the command.
    """

    file: object
    listed: Callable[[str], object]


def parser(
    hints: CompletionHints | None = None, line: Sequence[str] = ()
) -> argparse.ArgumentParser:
    """Return memctl's parser; ``run`` of the parsed options is the Command.

    A parser with ``hints`` is only used to generate shell completion, so it also shows the global
    options with each command. A parser for a command ``line`` knows only the command that the line
    names, unless it names none: to make all of them takes a quarter of a command's time.
    """
    top: argparse.ArgumentParser = _make_parser(_Top, prog="memctl", usage=USAGE)
    top.set_defaults(run=None)
    top.add_argument(
        "--version", action="version", version=f"memctl {__version__}", help="print the version"
    )
    for option in GLOBAL_OPTIONS:
        _add_option(top, option, hints)
    commands = top.add_subparsers(
        metavar="COMMAND", title="commands", prog="memctl", parser_class=_Parser
    )
    groups: dict[str, Any] = {}  # the subparsers by the first word of their commands
    named = _named_command(line)
    if not named and {"-h", "--help"} & {*line}:
        return top  # its help comes from the tables
    for command in COMMANDS:
        first_word, *other_words = command.words
        if named and named not in _first_words(command):
            continue
        if other_words and first_word not in groups:
            groups[first_word] = _add_group(commands, first_word)
        child = _make_parser(
            (groups[first_word] if other_words else commands).add_parser,
            command.words[-1],
            prog=f"memctl {command.name}",
            help=command.summary,
            usage=synopsis(command),
            description=command.summary if hints else command.text,
            epilog=_epilog(command),
            aliases=command.aliases,
        )
        child.set_defaults(run=command)
        _add_arguments(child, command, hints)
        second_words = [] if other_words else verbs(first_word)
        if second_words:  # the command may stand alone or be followed by a verb
            groups[first_word] = child.add_subparsers(
                metavar="|".join(second_words), title="verbs", prog=f"memctl {first_word}"
            )
    return top


def _named_command(line: Sequence[str]) -> str:
    """Return the first word of the command that a line names, "" for none or an unknown one."""
    words = iter(line)
    for word in words:
        option = next((each for each in GLOBAL_OPTIONS if word in each.flags), None)
        if option is None:
            return word if any(word in _first_words(each) for each in COMMANDS) else ""
        if not option.switch:
            next(words, None)  # its value
    return ""


def _first_words(command: Command) -> tuple[str, ...]:
    """Return the words that a line may begin with to name a command."""
    first_word, *other_words = command.words
    return (first_word,) if other_words else (first_word, *command.aliases)


def verbs(first: str) -> list[str]:
    """Return the second words of the two-word commands that begin with ``first``."""
    return [command.words[1] for command in COMMANDS if command.words[:-1] == (first,)]


def overview(*, everything: bool = False) -> str:
    """Return the help of memctl itself: the usual commands, or ``everything`` that there is."""
    lines = [f"usage: {USAGE}", "", DESCRIPTION]
    rows = {
        each.words[0]: (_and_aliases(each.words[0], each.aliases), each.summary)
        for each in COMMANDS
        if len(each.words) == 1
    }
    rows |= {name: (name, summary) for name, summary in GROUPS.items() if name not in rows}
    parts = [("Daily", DAILY), ("Now and then", NOW_AND_THEN)]
    if everything:
        others = [name for name in rows if name not in (*DAILY, *NOW_AND_THEN)]
        parts.append(("Seldom, or for programs", tuple(others)))
    for title, names in parts:
        lines += ["", f"{title}:", *(_help_row(*rows[name]) for name in names)]
    lines += ["", "Options of every command:"]
    lines += [_help_row(option.shown, option.help) for option in GLOBAL_OPTIONS]
    if everything:
        lines += ["", "Exit status:"]
        lines += [f"  {status:>3}  {words}" for status, words in EXIT_STATUS]
    return "\n".join([*lines, "", "" if everything else MORE_HELP, ""]).replace("\n\n\n", "\n")


def _and_aliases(name: str, aliases: Sequence[str]) -> str:
    """Return a command's name with its other names in parentheses."""
    return f"{name} ({', '.join(aliases)})" if aliases else name


def _help_row(name: str, words: str) -> str:
    """Return a row of the overview: a command or option, and what it does."""
    return f"  {name:<{_NAME_COLUMNS}}  {words}"


class _Parser(argparse.ArgumentParser):
    """A parser whose errors name the nearest valid word instead of all of them."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Return the parsed options; exit with status 2 for a word that the command cannot take."""
        options, unknown_words = self.parse_known_args(args, namespace)
        if unknown_words:
            _refuse(self, options.run, unknown_words[0].partition("=")[0])
        return options

    def error(self, message: str) -> NoReturn:
        """Print an error with a hint and exit with status 2."""
        from difflib import get_close_matches  # noqa: PLC0415 - only a wrong line needs it

        wrong_word, valid_words = "", list[str]()
        if match := re.search(_INVALID_CHOICE, message):
            metavar, wrong_word, names = match.groups()
            valid_words = re.findall(_NAME, names)
            sentence = "there is no command" if metavar == "COMMAND" else f"{metavar} cannot be"
            message = f"{sentence} {wrong_word}"
            name = f"{self.prog} {wrong_word}".removeprefix("memctl ")
            _refuse_if_gone(self, name)
        elif match := re.search(_INVALID_VALUE, message):
            flag, kind, value = match.groups()
            allowed = ALLOWED_VALUES.get(kind) or portable_table.ALLOWED_VALUES[kind]
            usage = self.format_usage()
            self.exit(2, f"{usage}{self.prog}: {flag} cannot be {value}\n  it is {allowed}\n")
        nearest = get_close_matches(wrong_word, valid_words, 1)
        if nearest:
            hint = f"the nearest is {nearest[0]}"
        elif 0 < len(valid_words) <= _MAX_LISTED:
            hint = f"it is one of {', '.join(valid_words)}"
        else:
            hint = f"see {self.prog} --help"
        usage = "" if nearest else self.format_usage()
        self.exit(2, f"{usage}{self.prog}: {message}\n  {hint}\n")


def _refuse_if_gone(parser: argparse.ArgumentParser, name: str) -> None:
    """Exit with status 2 if a command was there in the version before, saying what to use."""
    from memd.base import gone  # noqa: PLC0415 - only a wrong line needs it

    if name in gone.COMMANDS:
        parser.exit(2, f"memctl: {name} is gone\n  {gone.COMMANDS[name]}\n")


def _refuse(top: argparse.ArgumentParser, command: Command | None, word: str) -> NoReturn:
    """Exit with status 2 because a command, or memctl without one, cannot take a word."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a wrong line needs it

    gone_name = f"{command.name} {word}" if command else word
    _refuse_if_gone(top, gone_name)
    name = f"memctl {command.name}" if command else "memctl"
    own_flags = [flag for option in command.options for flag in option.flags] if command else []
    valid_flags = [*own_flags, "--help", *(option.flag for option in GLOBAL_OPTIONS)]
    is_of_another = any(word in option.flags for other in COMMANDS for option in other.options)
    nearest = [] if is_of_another else get_close_matches(word, valid_flags, 1)
    usage, sentence = "", f"{command.name if command else name} takes no {word}"
    if not word.startswith("-"):
        sentence += " there"
        hint = f"see {name} --help: options stand before or behind all other words"
    elif word in own_flags:
        sentence += " there"
        hint = f"it stands behind the command: {name} {word}"
    elif nearest:
        hint = f"the nearest is {nearest[0]}"
    else:
        usage = f"usage: {synopsis(command)}\n" if command else top.format_usage()
        hint = f"see {name} --help"
    top.exit(2, f"{usage}memctl: {sentence}\n  {hint}\n")


@cache
def _columns() -> int:
    """Return the columns of a help text."""
    # A process that was started with its standard output closed has none.
    shown = line_columns(sys.stdout, os.environ) if sys.stdout is not None else None
    return shown or _USUAL_COLUMNS


class _Top(_Parser):
    """The parser of the whole command line, whose help is the overview."""

    def format_help(self) -> str:
        """Return the overview."""
        return overview()


class _Formatter(argparse.HelpFormatter):
    """A help formatter that wraps paragraphs but leaves indented lines as they are.

    argparse makes one for each argument, and asks shutil for the width unless it is given.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Return a text wrapped at ``width``; an indented line stays as it is."""
        import textwrap  # noqa: PLC0415 - only a help text needs it

        lines = []
        for line in text.splitlines():
            lines += [line] if line.startswith(" ") else textwrap.wrap(line, width) or [""]
        return "\n".join(indent + line for line in lines)


def _make_parser(factory: Any, *names: str, usage: str, **settings: Any) -> Any:
    """Return a parser made by ``factory`` with the settings that all parsers share.

    ``names`` and ``settings`` are further arguments of the factory.
    """
    return factory(
        *names,
        # argparse formats the usage with %.
        usage=usage.replace("%", "%%"),
        formatter_class=_Formatter,
        # A new option must not change what an abbreviation in a script means.
        allow_abbrev=False,
        **settings,
    )


def _add_group(commands: Any, name: str) -> Any:
    """Add the parser of a group, such as ``memctl job``, and return its subparsers."""
    names = "|".join(verbs(name))
    group = _make_parser(
        commands.add_parser,
        name,
        prog=f"memctl {name}",
        help=GROUPS[name],
        usage=f"memctl {name} {names} [ARGUMENT...]",
        description=f"{GROUPS[name][0].upper()}{GROUPS[name][1:]}.",
        epilog=OF_EVERY_COMMAND,
    )
    return group.add_subparsers(metavar=names, title="verbs", required=True, prog=f"memctl {name}")


def _add_arguments(
    child: argparse.ArgumentParser, command: Command, hints: CompletionHints | None
) -> None:
    """Add a command's operands and options, and the global options, to its parser."""
    for operand in command.operands:
        _add_operand(child, operand, hints)
    for option in command.options:
        _add_option(child, option, hints)
    for option in GLOBAL_OPTIONS:
        hidden = option if hints else option._replace(help=argparse.SUPPRESS)
        # Without a default, so that the same option before the command keeps its value.
        _add_option(child, hidden, hints, argparse.SUPPRESS)


def _add_operand(
    child: argparse.ArgumentParser, operand: Operand, hints: CompletionHints | None
) -> None:
    """Add an operand to a command's parser, with its completion if ``hints`` are given."""
    arguments: dict[str, Any] = {"help": operand.help, "metavar": operand.name}
    if operand.many:
        # With a default, as argparse names a missing "*" in errors otherwise.
        arguments |= {"nargs": "*", "default": []} if operand.optional else {"nargs": "+"}
    elif operand.optional:
        arguments["nargs"] = "?"
    if operand.choices:
        arguments["choices"] = operand.choices
    action = child.add_argument(operand.attribute, **arguments)
    if hints and operand.listed:
        hint = hints.listed(operand.listed)
        action.complete = hint  # type: ignore[attr-defined] # where shtab looks
    if hints and operand.name in _FILE_OPERANDS:
        action.complete = hints.file  # type: ignore[attr-defined] # where shtab looks


def _add_option(
    child: argparse.ArgumentParser,
    option: Option,
    hints: CompletionHints | None,
    default: Any = None,
) -> None:
    """Add an option to a command's parser, with its completion if ``hints`` are given."""
    arguments: dict[str, Any] = {"help": option.help, "dest": option.attribute}
    if option.switch:
        arguments |= {"action": "store_true", "default": default or False}
    else:
        arguments |= {"type": option.kind, "default": default}
        arguments["action"] = "append" if option.repeat else "store"
        if option.choices:
            arguments["choices"] = option.choices
        arguments["metavar"] = option.metavar or "|".join(option.choices)
    action = child.add_argument(*option.flags, **arguments)
    if hints and option.listed:
        hint = hints.listed(option.listed)
        action.complete = hint  # type: ignore[attr-defined] # where shtab looks
    if option.metavar in _FILE_METAVARS and hints:
        action.complete = hints.file  # type: ignore[attr-defined] # where shtab looks


def _epilog(command: Command) -> str:
    """Return the text below a command's help: its examples and a note on global options."""
    lines = [f"  {line}\n      {why}" for line, why in command.examples]
    examples = "\n".join(["examples:", *lines, "", ""]) if lines else ""
    return examples + OF_EVERY_COMMAND
