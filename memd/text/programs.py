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
_SOURCES = {".", "source"}  # they run a file, which is named behind them
_WORD_JOINERS = {"eval", "trap"}  # join their words and run them as a shell line
_FIND_EXEC = {"-exec", "-execdir", "-ok", "-okdir"}
_PYTHON = re.compile(r"python[0-9.]*")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_NUMBER = re.compile(r"[0-9][0-9.]*[smhd]?")  # of timeout, nice, xargs
_SCRIPT_OPTION = re.compile(r"-[A-Za-z]*c[A-Za-z]*")
_SHORT_OPTIONS = re.compile(r"-([A-Za-z]{1,4})")
_MOST_DEPTH = 8  # of texts within texts
_MOST_PROGRAMS = 16  # of one command
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
        options = [word for word in self.words[self.at + 1 :] if word.startswith("-")]
        without_values = [option.partition("=")[0] for option in options]
        return frozenset((*options, *without_values))

    @cached_property
    def letters(self) -> frozenset[str]:
        """The letters of its short options, written one by one or together."""
        matches = (_SHORT_OPTIONS.fullmatch(option) for option in self.options)
        return frozenset(letter for match in matches if match for letter in match[1])

    @cached_property
    def plain(self) -> tuple[tuple[str, bool], ...]:
        """Its words that are not options, each with whether it may be the value of an option."""
        result: list[tuple[str, bool]] = []
        may_be_value = False
        for word in self.words[self.at + 1 :]:
            is_option = word.startswith("-")
            if not is_option:
                result.append((word, may_be_value))
                if len(result) == PLAIN_WORDS:
                    break
            may_be_value = is_option and "=" not in word
        return tuple(result)


def started(text: str) -> Iterator[Started]:
    """Yield each program that a shell line starts; a very long line is read in part only."""
    steps_left = STEPS
    # Texts that are read, each with whether it is a document, and in how many others it stands.
    # The list grows while it is read.
    texts = [(text, False, 0)]
    for piece, is_document, depth in texts:
        line = ShellLine(piece, steps_left, document=is_document)
        steps_left -= line.steps
        inner_texts = line.more
        for command in line.commands:
            for index in _program_indices(command.words):
                yield Started(command.words, index)
                inner_texts += ((script, False) for script in _scripts(command, index))
        if depth < _MOST_DEPTH:
            texts += (
                (inner, is_inner_document, depth + 1) for inner, is_inner_document in inner_texts
            )


def _program_indices(words: Sequence[str]) -> list[int]:
    """Return the indices of the words that name programs in a command, 16 at most."""
    # The first word that is no assignment of a variable names a program.
    no_assignments = (n for n, word in enumerate(words) if not _ASSIGNMENT.match(word))
    indices = list(islice(no_assignments, 1))
    for at in indices:  # the list grows by the programs that these programs start
        name = words[at].rpartition("/")[2]
        if name in _RUNNERS or name in _SHELLS or name in _SOURCES:
            indices += _indices_behind_options(words, at + 1)
        elif name == "find":
            indices += (n + 1 for n in range(at + 1, len(words) - 1) if words[n] in _FIND_EXEC)
        elif _PYTHON.fullmatch(name) and "-m" in words[at + 1 : -1]:
            indices.append(words.index("-m", at + 1) + 1)
        del indices[_MOST_PROGRAMS:]
    return indices


def _indices_behind_options(words: Sequence[str], at: int) -> Iterator[int]:
    """Yield the indices at which a program may begin behind the options of another.

    The first word behind an option is either its value or the program, so both are yielded.
    """
    may_be_value = False
    for n in range(at, len(words)):
        word = words[n]
        if word.startswith("-"):
            may_be_value = "=" not in word
        elif not (_ASSIGNMENT.match(word) or _NUMBER.fullmatch(word)):
            yield n
            if not may_be_value:
                return
            may_be_value = False


def _scripts(command: ShellCommand, at: int) -> Iterator[str]:
    """Yield the texts that a program runs as shell lines: of ``sh -c``, ``eval`` and the like."""
    words = command.words
    name = words[at].rpartition("/")[2]
    if name in _WORD_JOINERS:
        yield " ".join(words[at + 1 :])
    elif name in _SHELLS:
        yield from command.inputs
        options = (n for n in range(at + 1, len(words)) if _SCRIPT_OPTION.fullmatch(words[n]))
        behind_option = words[next(options, len(words)) :]
        # The first word that is no option is the script.
        yield from islice((word for word in behind_option if word[:1] not in "-+"), 1)
