"""Options of the commands: only those that a command names, read as getopt reads them. Pure.

An option that is not in a command's table is refused, however harmless; abbreviated long options
are not understood, so that none can become another one.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from memd.agent.refusals import OptionRefusedError
from memd.agent.shell_words import Word

_NO_VALUE, _WANTS_VALUE = "it takes no value", "it needs a value"
_NO_NUMBER = "its value must be a number up to 1000000"
_NUMBER = re.compile(r"\+?\d{1,7}", re.ASCII)
_MOST = 1_000_000
Take = Callable[[str, str | None], None]


@dataclass(frozen=True, slots=True)
class Syntax:
    """A command's options: flags, options with a value, long names, and what ``-5`` means."""

    command: str
    flags: str
    values: tuple[str, ...] = ()
    long: Mapping[str, str] = field(default_factory=dict)
    digits: str = ""


@dataclass(frozen=True, slots=True)
class Given:
    """What a command line says: flags, values by option (each as often as given), operands."""

    flags: frozenset[str]
    values: Mapping[str, tuple[str, ...]]
    operands: tuple[Word, ...]

    def value(self, option: str) -> str | None:
        """Return the last value of an option."""
        return self.values.get(option, (None,))[-1]


def read(syntax: Syntax, words: tuple[Word, ...]) -> Given:
    """Sort words into options and operands. Raises OptionRefusedError."""
    flags: set[str] = set()
    values: dict[str, tuple[str, ...]] = {}
    operands: list[Word] = []
    waiting = list(reversed(words))

    def take(option: str, value: str | None) -> None:
        if value is None:
            if not waiting:
                raise OptionRefusedError(syntax.command, option, _WANTS_VALUE)
            value = waiting.pop().text
        values[option] = (*values.get(option, ()), value)

    while waiting:
        word = waiting.pop()
        text = word.text
        if text == "--":
            operands += reversed(waiting)
            break
        if not text.startswith("-") or text == "-":
            operands.append(word)
        elif text.startswith("--"):
            _long(syntax, text, flags, take)
        elif syntax.digits and text[1:].isascii() and text[1:].isdigit():
            take(syntax.digits, text[1:])
        else:
            _cluster(syntax, text, flags, take)
    return Given(frozenset(flags), values, tuple(operands))


def number(command: str, option: str, value: str) -> int:
    """Return an option's value as a number. Raises OptionRefusedError."""
    if not _NUMBER.fullmatch(value) or int(value) > _MOST:
        raise OptionRefusedError(command, option, _NO_NUMBER)
    return int(value)


def _long(syntax: Syntax, text: str, flags: set[str], take: Take) -> None:
    """Read ``--name`` or ``--name=value``."""
    name, equals, value = text.partition("=")
    option = syntax.long.get(name, "")
    if not option:
        raise OptionRefusedError(syntax.command, name)
    if option in syntax.values:
        take(option, value if equals else None)
    elif equals:
        raise OptionRefusedError(syntax.command, name, _NO_VALUE)
    else:
        flags.add(option)


def _cluster(syntax: Syntax, text: str, flags: set[str], take: Take) -> None:
    """Read ``-abc``: flags, up to an option that takes the rest as its value."""
    for place, letter in enumerate(text[1:], start=2):
        if letter in syntax.values:
            take(letter, text[place:] or None)
            return
        if letter not in syntax.flags:
            option = f"-{letter}"
            raise OptionRefusedError(syntax.command, option)
        flags.add(letter)
