"""Find the programs that a shell line starts, also through sudo, xargs, sh -c and others. Pure.

It finds the usual ways to start a program, not all of them: docs/rules.md lists which.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice

from msgspec import Struct

from memd.text.shell import STEPS, ShellCommand, ShellLine

# Programs that run another one, which is named behind their options.
_RUNNERS = str.split(
    "sudo doas env command builtin exec time coproc nice ionice nohup setsid stdbuf timeout xargs "
    "parallel watch npx bunx"
)
_SHELLS = str.split("sh bash dash zsh ksh ash fish su script")  # with -c they run a text
_SOURCES = {".", "source"}
_JOINED = {"eval", "trap"}  # join their words and run them as a shell line
_EXEC = {"-exec", "-execdir", "-ok", "-okdir"}
_PYTHON = re.compile(r"python[0-9.]*")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")
_NUMBER = re.compile(r"[0-9][0-9.]*[smhd]?")  # of timeout, nice, xargs
_SCRIPT = re.compile(r"-[A-Za-z]*c[A-Za-z]*")
_LETTERS = re.compile(r"-([A-Za-z]{1,4})")
_DEPTH = 8  # texts within texts
_STARTS = 16  # programs of one command
PLAIN_WORDS = 64  # that are no options; no sub-command stands behind so many


class Started(Struct, frozen=True, dict=True):
    """A program that a shell line starts, with the words of its call: ``words[at]`` names it."""

    words: Sequence[str]
    at: int

    @property
    def program(self) -> str:
        """The program's name without its folder."""
        return self.words[self.at].rpartition("/")[2]

    @cached_property
    def options(self) -> frozenset[str]:
        """Its options; one with a value behind ``=`` is there with and without the value."""
        given = [word for word in self.words[self.at + 1 :] if word.startswith("-")]
        return frozenset((*given, *(word.partition("=")[0] for word in given)))

    @cached_property
    def letters(self) -> frozenset[str]:
        """The letters of its short options, written one by one or together."""
        matches = (_LETTERS.fullmatch(option) for option in self.options)
        return frozenset(letter for match in matches if match for letter in match[1])

    @cached_property
    def plain(self) -> tuple[tuple[str, bool], ...]:
        """Its words that are not options, each with whether it may be the value of an option."""
        result: list[tuple[str, bool]] = []
        words = self.words
        for at in range(self.at + 1, len(words)):
            before = words[at - 1]
            if not words[at].startswith("-"):
                may_be_value = at > self.at + 1 and before.startswith("-") and "=" not in before
                result.append((words[at], may_be_value))
                if len(result) == PLAIN_WORDS:
                    break
        return tuple(result)


def started(text: str) -> Iterator[Started]:
    """Yield each program that a shell line starts; a very long line is read in part only."""
    steps = STEPS
    due = [(text, False, 0)]
    for piece, document, depth in due:
        line = ShellLine(piece, steps, document=document)
        steps -= line.steps
        more = line.more
        for command in line.commands:
            for at in _starts(command.words):
                yield Started(command.words, at)
                more += ((script, False) for script in _scripts(command, at))
        if depth < _DEPTH:
            due += ((inner, is_document, depth + 1) for inner, is_document in more)


def _starts(words: Sequence[str]) -> list[int]:
    """Return the indices of the words that name programs in a command, at most ``_STARTS``."""
    first = next((at for at, word in enumerate(words) if not _ASSIGNED.match(word)), len(words))
    due = [first] if first < len(words) else []
    for at in due:
        name = words[at].rpartition("/")[2]
        if name in _RUNNERS or name in _SHELLS or name in _SOURCES:
            due += _behind_options(words, at + 1)
        elif name == "find":
            due += (n + 1 for n in range(at + 1, len(words) - 1) if words[n] in _EXEC)
        elif _PYTHON.fullmatch(name) and "-m" in words[at + 1 : -1]:
            due.append(words.index("-m", at + 1) + 1)
        del due[_STARTS:]
    return due


def _behind_options(words: Sequence[str], at: int) -> Iterator[int]:
    """Yield the indices at which a program may begin behind the options of another.

    The first word behind an option is either its value or the program, so both are yielded.
    """
    may_be_value = False
    for n in range(at, len(words)):
        word = words[n]
        if word.startswith("-"):
            may_be_value = "=" not in word
        elif not (_ASSIGNED.match(word) or _NUMBER.fullmatch(word)):
            yield n
            if not may_be_value:
                return
            may_be_value = False


def _scripts(command: ShellCommand, at: int) -> Iterator[str]:
    """Yield the texts that a program runs as shell lines: of ``sh -c``, ``eval`` and the like."""
    words = command.words
    name = words[at].rpartition("/")[2]
    if name in _JOINED:
        yield " ".join(words[at + 1 :])
    elif name in _SHELLS:
        yield from command.inputs
        options = (n for n in range(at + 1, len(words)) if _SCRIPT.fullmatch(words[n]))
        behind = words[next(options, len(words)) :]
        yield from islice((word for word in behind if word[:1] not in "-+"), 1)
