"""Parse the options of the shell's commands with argparse; imported at first use.

Most daemons never run an agent, and argparse costs 0.5 MB and 2 ms.
"""

import argparse
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

from memd.agent.refusals import CommandRefusedError
from memd.core import globs
from memd.core.names import printable

Given = argparse.Namespace


class _Condition(argparse.Action):
    """Collects the conditions of find in order, each with whether ``-not`` precedes it."""

    def __call__(self, _parser: Any, given: Given, value: Any, option: str | None = None) -> None:
        """Add one condition, or negate the next one for ``-not``."""
        if option == "-not":
            given.negated = not given.negated
        else:
            given.conditions.append((option, value, given.negated))
            given.negated = False


class Parser(argparse.ArgumentParser):
    """A parser that raises CommandRefusedError instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        """Raise CommandRefusedError with the tool that may do it instead."""
        instead = {"ls": "Glob", "find": "Glob", "grep": "Grep"}.get(self.prog, "Read")
        why = f"{self.prog}: {printable(message)}; see whether the tool {instead} does it"
        raise CommandRefusedError(why)


@cache
def parser_of(name: str, flags: str, count: Callable[[str], int], most: int) -> Parser:
    """Return the parser of a command with its one-letter ``flags``; ``count`` reads a number.

    ``most`` is the default of ``-maxdepth``.
    """
    parser = Parser(prog=name, add_help=False, allow_abbrev=False)
    for flag in flags:
        parser.add_argument(f"-{flag}", action="store_true")
    if name in ("head", "tail"):
        parser.add_argument("-n", "--lines", default="10")
    elif name == "grep":
        parser.add_argument("-e", action="append")
        parser.add_argument("--include", action="append", type=globs.compiled)
        for short in "mABC":
            parser.add_argument(f"-{short}", type=count)
    elif name == "find":
        for option in ("name", "iname", "path"):
            parser.add_argument(f"-{option}", action=_Condition)
        parser.add_argument("-type", action=_Condition, choices=("f", "d"))
        for option in ("not", "print"):
            parser.add_argument(f"-{option}", action=_Condition, nargs=0)
        parser.add_argument("-maxdepth", type=count, default=most)
    parser.add_argument("paths", nargs="*")
    return parser
