"""Run read-only command lines: a few commands and pipes, without a shell or a process.

Rules of this file
- A line has words, quotes, escapes, pipes and ``2>/dev/null``. Any other syntax of a shell is
  refused and never taken literally, since the command would then do something else than it says.
- An error of one file is a line of the answer, as in a shell, and is counted.
- Lines are read lazily: ``cat big | head -3`` reads little.
"""

import re
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from memd.agent import commands
from memd.agent.answer import collect
from memd.agent.commands import Lines, Shell
from memd.agent.refusals import CommandRefusedError, LimitError, ToolError
from memd.agent.step import DENIED, FAILED, ToolResult
from memd.agent.view import AgentView
from memd.core import globs
from memd.core.errors import MemdError
from memd.core.names import is_text

_LINE_CHARACTERS = 4_000  # of a command line
_COMMANDS = 6  # in one pipe
_WORDS = 200  # of a command line

# What a word is made of: texts in quotes, escaped characters, and characters that mean themselves.
_SINGLE_QUOTED = r"'[^']*'"
_DOUBLE_QUOTED = r'"(?:[^"\\$`]|\\.|\$(?![\w({]))*"'
_ESCAPE = r"\\."
_PLAIN = r"[^\s'\"\\|&;<>()`${}]|\$(?![\w({'\"])"
_IGNORED = r"2>(?:/dev/null|&1)(?=[\s|]|$)"
_WORD = rf"(?:{_SINGLE_QUOTED}|{_DOUBLE_QUOTED}|{_ESCAPE}|{_PLAIN})+"
_TOKEN = re.compile(rf"[ \t]*(?:{_IGNORED}|(?P<pipe>\|)|(?![#~])(?P<word>{_WORD}))")
_WORD_PART = re.compile(rf"{_SINGLE_QUOTED}|{_DOUBLE_QUOTED}|{_ESCAPE}|.")
_PATTERN_CHARACTER = re.compile(r"([*?\[\]{},\\])")
_ESCAPE_IN_DOUBLE_QUOTES = re.compile(r'\\(["\\$`])')
_ESCAPED_CHARACTER = re.compile(r"\\(.)")

_TOO_LONG = (
    f"it has more than {_LINE_CHARACTERS} characters, {_COMMANDS} commands or {_WORDS} words"
)
_STRANGE_CHARACTER = "it has a line end or another character that no command has"
_NO_COMMAND = "there is no command before or after a '|'"
_UNKNOWN_COMMAND = (
    f"only {', '.join(commands.NAMES)} with pipes between them are known; to read use Read, to "
    "search Grep, to name files Glob, to write Write or Edit"
)


class Word(Struct, frozen=True):
    """One word. ``pattern`` is its shell pattern, or "" without wildcards outside of quotes."""

    text: str
    pattern: str = ""


def run(command: str, view: AgentView) -> ToolResult:
    """Run a command line and return its output. Raises nothing that a model can cause."""
    shell = Shell(view)
    try:
        text = collect(chain(_pipe_lines(command, shell), shell.messages), shell.problems)
    except MemdError as error:
        fault = error.fault if isinstance(error, ToolError) else FAILED
        return ToolResult(error.sentence, fault)
    faults = {problem.fault for problem in shell.problems}
    fault = FAILED if faults else ""
    return ToolResult(text or "(no output)", DENIED if DENIED in faults else fault)


def split(command: str) -> list[list[Word]]:
    """Return the commands of a pipe, each as its words. Raises CommandRefusedError."""
    if len(command) > _LINE_CHARACTERS:
        raise CommandRefusedError(_TOO_LONG)
    command = command.strip(" \t\n")
    if not is_text(command) or not command.replace("\t", " ").isprintable():
        raise CommandRefusedError(_STRANGE_CHARACTER)
    words_of_commands: list[list[Word]] = [[]]
    position = 0
    while position < len(command):
        match = _TOKEN.match(command, position)
        if match is None:
            character = command[position:].strip()[0]
            why = f"{character!r} is not understood; make one call for each command"
            raise CommandRefusedError(why)
        position = match.end()
        if match["pipe"]:
            words_of_commands.append([])
        elif match["word"]:
            words_of_commands[-1].append(_word(match["word"]))
    if not all(words_of_commands):
        raise CommandRefusedError(_NO_COMMAND)
    word_count = sum(len(words) for words in words_of_commands)
    if len(words_of_commands) > _COMMANDS or word_count > _WORDS:
        raise CommandRefusedError(_TOO_LONG)
    return words_of_commands


def _word(written: str) -> Word:
    """Return a word without its quotes and escapes, with its pattern if it has wildcards."""
    text, pattern = "", ""
    has_wildcard = False  # outside of quotes
    for part in _WORD_PART.findall(written):
        if len(part) == 1:  # a character that is neither quoted nor escaped
            has_wildcard = has_wildcard or part in "*?["
            text, pattern = text + part, pattern + part
            continue
        inner = part[1:] if part[0] == "\\" else part[1:-1]
        inner = _ESCAPE_IN_DOUBLE_QUOTES.sub(r"\1", inner) if part[0] == '"' else inner
        text, pattern = text + inner, pattern + _PATTERN_CHARACTER.sub(r"\\\1", inner)
    return Word(text, pattern if has_wildcard else "")


def _pipe_lines(command: str, shell: Shell) -> Lines:
    """Return the output lines of a pipe's last command. Raises CommandRefusedError."""
    lines: Lines | None = None
    for words in split(command):
        name = words[0].text
        if name not in commands.NAMES or words[0].pattern:
            raise CommandRefusedError(_UNKNOWN_COMMAND)
        if name == "find":  # find matches its patterns itself
            given = [word.text for word in words[1:]]
        else:
            given = [text for word in words[1:] for text in _expand(word, shell.view)]
        lines = commands.begin(name, given, shell, lines)
    return lines if lines is not None else iter(())


def _expand(word: Word, view: AgentView) -> list[str]:
    """Return the paths that match a word's pattern, or the word itself if there are none."""
    if not word.pattern:
        return [word.text]
    fits = globs.compiled(word.pattern)
    parts = word.pattern.split("/")
    # Only the folder above the first part with a wildcard has to be searched.
    plain_parts = next(number for number, part in enumerate(parts) if _has_wildcard(part))
    folder = _ESCAPED_CHARACTER.sub(r"\1", "/".join(parts[:plain_parts]))
    start = "/" if word.text[0] == "/" else "."
    depth = len(parts) - plain_parts
    try:
        top = replace(view.entry(folder or start), shown=folder)
        result = [entry.shown for _, entry in view.walk(top, depth) if fits(entry.shown)]
    except LimitError:
        raise
    except ToolError:
        result = []
    return result or [word.text]


def _has_wildcard(part: str) -> bool:
    """Return whether a part of a shell pattern has a wildcard that is not escaped."""
    return globs.MAGIC.search(_ESCAPED_CHARACTER.sub("", part)) is not None
