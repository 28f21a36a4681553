"""Commands, operands and options as values, from which parser, help and manual are made."""

import re
import time
from collections.abc import Callable
from keyword import iskeyword
from typing import Any, NamedTuple


def number(text: str) -> int:
    """Parse a count, a whole number of at least 1. Raise ValueError."""
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def seconds(text: str) -> float:
    """Parse a number of seconds above zero and up to a week. Raise ValueError."""
    value = float(text)
    if not 0 < value <= _WEEK_SECONDS:
        raise ValueError
    return value


def moment(text: str) -> float:
    """Parse a time as a person writes it into seconds since 1970. Raise ValueError."""
    from memd.base.instants import spoken  # noqa: PLC0415 - memctl starts without

    instant = spoken(text, time.time())
    if instant is None:
        raise ValueError
    return instant


_WEEK_SECONDS = 7 * 24 * 60 * 60
CHANGE_ID = re.compile(r"c[0-9]+")
_MOMENT = "a time such as 2026-03-01, '2026-03-01 14:30', yesterday, 3d or '2 hours ago'"
# What the functions above take, by their names: argparse says no more than that a value is invalid.
ALLOWED_VALUES = {
    "number": "a whole number of at least 1",
    "seconds": "a number of seconds above 0 and up to a week",
    "moment": _MOMENT,
}
MEMORIES = "list"  # the command that lists the memories


class Operand(NamedTuple):
    """A positional argument of a command; ``many`` takes several words.

    ``listed`` is the command whose first column lists the possible values, "" if there is none.
    ``param`` is as in Option.
    """

    name: str
    help: str
    optional: bool = False
    many: bool = False
    choices: tuple[str, ...] = ()
    param: str | None = None
    listed: str = ""

    @property
    def attribute(self) -> str:
        """The name of the operand's value in the parsed options."""
        return self.name.lower()

    @property
    def parameter(self) -> str:
        """The name of the method's parameter that takes the value, empty if none does."""
        return self.attribute if self.param is None else self.param


class Option(NamedTuple):
    """A named option of a command; without ``metavar`` and ``choices`` it is a switch.

    ``kind`` converts the value; ``repeat`` collects several. ``param`` names the parameter of the
    command's method that takes the value: by default the option's own name; empty for none.
    ``short`` is another way to write the flag. ``listed`` is as in Operand.
    """

    flag: str
    help: str
    metavar: str = ""
    kind: Callable[[str], Any] = str
    choices: tuple[str, ...] = ()
    repeat: bool = False
    param: str | None = None
    short: str = ""
    listed: str = ""

    @property
    def switch(self) -> bool:
        """Whether the option takes no value."""
        return not self.metavar and not self.choices

    @property
    def flags(self) -> list[str]:
        """The flags that a person may write, the short one first."""
        return [self.short, self.flag] if self.short else [self.flag]

    @property
    def shown(self) -> str:
        """The option as a synopsis prints it: its flags and what stands for its value."""
        value = self.metavar or "|".join(self.choices)
        flags = "|".join(self.flags)
        return f"{flags} {value}" if value else flags

    @property
    def attribute(self) -> str:
        """The name of the option's value in the parsed options."""
        name = self.flag.lstrip("-").replace("-", "_")
        return f"{name}_" if iskeyword(name) else name

    @property
    def parameter(self) -> str:
        """The name of the method's parameter that takes the value, empty if none does."""
        return self.attribute.rstrip("_") if self.param is None else self.param


class Command(NamedTuple):
    """One command of memctl. ``run`` is ``module:function`` below ``memd.cli.commands``.

    ``words`` are what a person types; ``aliases`` are other first words. ``examples`` pairs a
    command line with its purpose. ``method`` is the API method that takes the operands and
    options: by default the command's words joined by dots; empty for none.
    """

    words: tuple[str, ...]
    summary: str
    text: str
    run: str
    operands: tuple[Operand, ...] = ()
    options: tuple[Option, ...] = ()
    examples: tuple[tuple[str, str], ...] = ()
    aliases: tuple[str, ...] = ()
    method: str | None = None

    @property
    def api_method(self) -> str:
        """The name of the API method, empty if there is none."""
        return ".".join(self.words) if self.method is None else self.method

    @property
    def name(self) -> str:
        """The command's words with spaces."""
        return " ".join(self.words)


# Scripts give it with each command that asks a person, or deletes and might ask.
YES = Option("--yes", "do it without asking", param="")
GLOBAL_OPTIONS = (
    Option("--json", "print exactly the result as one JSON object"),
    Option("--socket", "the daemon's socket (else MEMD_SOCKET, or the usual place)", "PATH"),
    Option("--cwd", "a directory of the project (default: the current one)", "DIR"),
    Option("--timeout", "seconds to wait for an answer", "SECONDS", seconds),
    Option("--no-start", "do not start a daemon when none runs"),
    Option("--quiet", "no notes on standard error; errors stay"),
    Option(
        "--color",
        "auto, always or never; NO_COLOR switches it off",
        "WHEN",
        choices=("auto", "always", "never"),
    ),
)


def synopsis(command: Command, width: int = 80 - len("usage: ")) -> str:
    """Return a command's usage, wrapped at ``width`` characters, without the global options."""
    parts = []
    for option in command.options:
        repeat = "..." if option.repeat else ""
        parts.append(f"[{option.shown}]{repeat}")
    for operand in command.operands:
        word = f"{operand.name}..." if operand.many else operand.name
        parts.append(f"[{word}]" if operand.optional else word)
    start = f"memctl {command.name}"
    lines = [start]
    for part in parts:
        if len(lines[-1]) + 1 + len(part) <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(f"{' ' * (len(start) + 1)}{part}")
    return "\n".join(lines)
