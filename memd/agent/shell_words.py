"""A command line as lists of words: quotes, escapes and pipes, and nothing else of a shell. Pure.

What a shell would act on outside quotes (chains, redirections, substitutions, variables, groups,
comments) is refused and never taken literally: a command that means something else than it says is
worse than none. ``2>/dev/null`` and ``2>&1`` are passed over; here there is nothing to redirect.
"""

import re
from dataclasses import dataclass

from memd.agent.refusals import CommandRefusedError
from memd.store.names import is_text

_CHARACTERS = 4_000
_STAGES = 6
_WORDS = 200
_IGNORED = re.compile(r"(?:2>/dev/null|2>&1)(?=[ \t|]|$)")
_FORBIDDEN = {
    ";": "commands cannot be chained with ';'; make one call for each",
    "&": "'&' and '&&' are not understood; make one call for each command",
    "<": "nothing can be redirected",
    ">": "nothing can be redirected; use Write to write",
    "(": "'(' is not understood outside quotes",
    ")": "')' is not understood outside quotes",
    "`": "nothing is substituted",
    "$": "there are no variables and no substitution",
    "{": "braces are not understood outside quotes",
    "}": "braces are not understood outside quotes",
    "#": "comments are not understood",
    "~": "'~' is not understood; name the whole path",
}
_AT_START = "#~"  # these mean something at the start of a word only

_LONG = f"it is longer than {_CHARACTERS} characters"
_STRANGE = "it has a line end or another character that no command has"
_OPEN_QUOTE = "a quote is not closed"
_LAST_BACKSLASH = "it ends with a backslash"
_NO_COMMAND = "there is no command before or after a '|'"
_MANY_STAGES = f"it has more than {_STAGES} commands"
_MANY_WORDS = f"it has more than {_WORDS} words"


@dataclass(frozen=True, slots=True)
class Word:
    """One word. ``pattern`` is its shell pattern where it has one outside quotes, else ""."""

    text: str
    pattern: str = ""


class _Building:
    """The word that is being read: ``None`` until something of it was seen."""

    def __init__(self) -> None:
        self.text: str | None = None
        self.pattern = ""
        self.magic = False

    def add(self, character: str, *, literal: bool) -> None:
        """Add a character; one that is not literal may be part of a pattern."""
        self.text = (self.text or "") + character
        if character in "*?[":
            self.magic = self.magic or not literal
        self.pattern += f"\\{character}" if literal and character in "*?[]{},\\" else character

    def word(self) -> Word:
        """Return the word."""
        return Word(self.text or "", self.pattern if self.magic else "")


def split(command: str) -> tuple[tuple[Word, ...], ...]:
    """Return the commands of a pipe, each as its words. Raises CommandRefusedError."""
    if len(command) > _CHARACTERS:
        raise CommandRefusedError(_LONG)
    command = command.strip(" \t\n")
    if not is_text(command) or not command.replace("\t", " ").isprintable():
        raise CommandRefusedError(_STRANGE)
    stages: list[list[Word]] = [[]]
    at = 0
    while at < len(command):
        character = command[at]
        ignored = _IGNORED.match(command, at)
        if character in " \t":
            at += 1
        elif ignored:
            at = ignored.end()
        elif character == "|":
            stages.append([])
            at += 1
        else:
            at, word = _word(command, at)
            stages[-1].append(word)
    _check(stages)
    return tuple(tuple(stage) for stage in stages)


def _check(stages: list[list[Word]]) -> None:
    if not all(stages):
        raise CommandRefusedError(_NO_COMMAND)
    if len(stages) > _STAGES:
        raise CommandRefusedError(_MANY_STAGES)
    if sum(map(len, stages)) > _WORDS:
        raise CommandRefusedError(_MANY_WORDS)


def _word(command: str, at: int) -> tuple[int, Word]:
    """Read one word; return where it ends as well."""
    built = _Building()
    while at < len(command) and command[at] not in " \t|":
        character = command[at]
        if character == "'":
            at = _single(command, at + 1, built)
        elif character == '"':
            at = _double(command, at + 1, built)
        elif character == "\\":
            if at + 1 == len(command):
                raise CommandRefusedError(_LAST_BACKSLASH)
            built.add(command[at + 1], literal=True)
            at += 2
        else:
            if character in _FORBIDDEN and not (character in _AT_START and built.text):
                raise CommandRefusedError(_FORBIDDEN[character])
            built.add(character, literal=False)
            at += 1
    return at, built.word()


def _single(command: str, at: int, built: _Building) -> int:
    end = command.find("'", at)
    if end < 0:
        raise CommandRefusedError(_OPEN_QUOTE)
    built.text = built.text or ""
    for character in command[at:end]:
        built.add(character, literal=True)
    return end + 1


def _double(command: str, at: int, built: _Building) -> int:
    built.text = built.text or ""
    while at < len(command) and command[at] != '"':
        character = command[at]
        if character in "$`":
            raise CommandRefusedError(_FORBIDDEN[character])
        if character == "\\" and command[at + 1 : at + 2] in ('"', "\\", "$", "`"):
            at += 1
            character = command[at]
        built.add(character, literal=True)
        at += 1
    if at >= len(command):
        raise CommandRefusedError(_OPEN_QUOTE)
    return at + 1
