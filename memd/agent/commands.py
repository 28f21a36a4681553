"""The read-only commands: one line of text in, lines of text out. There is no shell and no process.

A command is a function from its words and the lines before the pipe to lines. Lines are made when
somebody asks for them, so ``cat big | head -3`` reads little. What goes wrong with one file is a
line of the answer, as a shell would show it, and is remembered for the count.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from memd.agent import find, globs, grep, listing, printing, shell_words
from memd.agent.refusals import CommandRefusedError, LimitError, ToolError
from memd.agent.shell import Command, Lines, Shell
from memd.agent.shell_words import Word
from memd.agent.step import DENIED, FAILED, Result
from memd.agent.view import View
from memd.core.errors import MemdError

OUTPUT_BYTES = 30_000
OUTPUT_LINES = 2_000
LINE_CHARACTERS = 2_000
_MATCHES = 1_000  # names that one pattern may stand for
_ESCAPED = re.compile(r"\\(.)")

_TABLE: dict[str, Command] = {
    "cat": printing.cat,
    "find": find.find,
    "grep": grep.grep,
    "head": printing.head,
    "ls": listing.ls,
    "stat": listing.stat,
    "tail": printing.tail,
    "wc": printing.wc,
}
NAMES = tuple(_TABLE)


def run(command: str, view: View) -> Result:
    """Interpret a command line. Never raises for what a model may write."""
    shell = Shell(view)
    try:
        text = collect(_pipe(command, shell), shell)
    except MemdError as error:
        fault = error.fault if isinstance(error, ToolError) else FAILED
        return Result(error.sentence, fault)
    faults = [problem.fault for problem in shell.problems]
    fault = DENIED if DENIED in faults else FAILED if faults else ""
    return Result(text or "(no output)", fault)


@dataclass(slots=True)
class _Room:
    """How much an answer may still hold."""

    bytes: int = OUTPUT_BYTES
    lines: int = OUTPUT_LINES
    kept: list[str] = field(default_factory=list)

    def take(self, line: str) -> bool:
        """Keep a line, cut to its bound; say whether there was room."""
        if len(line) > LINE_CHARACTERS:
            line = f"{line[:LINE_CHARACTERS]} [… {len(line) - LINE_CHARACTERS} more characters]"
        self.bytes -= len(line.encode("utf-8", "replace")) + 1
        self.lines -= 1
        if self.bytes < 0 or self.lines < 0:
            return False
        self.kept.append(line)
        return True


def collect(lines: Iterable[str], shell: Shell, size: int = OUTPUT_BYTES) -> str:
    """Return lines as one text within the bounds of an answer; a limit ends it in words."""
    room = _Room(size)
    try:
        for line in lines:
            if not room.take(line):
                room.kept.append("[… the rest is cut; ask for less at once]")
                break
    except ToolError as error:
        shell.problems.append(error)
        room.kept.append(error.sentence)
    return "\n".join(room.kept)


def _pipe(command: str, shell: Shell) -> Lines:
    lines: Lines | None = None
    for words in shell_words.split(command):
        name = words[0].text
        if name not in _TABLE or words[0].pattern:
            raise CommandRefusedError(_unknown())
        lines = _TABLE[name](shell, tuple(_expanded(name, words[1:], shell.view)), lines)
    return lines if lines is not None else iter(())


def _unknown() -> str:
    return f"it is not one of {', '.join(NAMES)}, with pipes between them"


def _expanded(command: str, words: Iterable[Word], view: View) -> Iterator[Word]:
    """Put the names that patterns stand for in their place; find reads its own patterns."""
    for word in words:
        names = _matching(word.pattern, view) if word.pattern and command != "find" else []
        if names:
            yield from map(Word, names)
        else:
            yield word


def _matching(pattern: str, view: View) -> list[str]:
    """Return the paths that a pattern stands for, part by part; none where there is none."""
    found = ["/" if pattern.startswith("/") else ""]
    parts = [part for part in pattern.split("/") if part]
    for place, part in enumerate(parts, start=1):
        bare = _ESCAPED.sub(r"\1", part)
        fits = globs.compiled(part) if globs.MAGIC.search(_ESCAPED.sub("", part)) else None
        below = [path for folder in found for path in _step(folder, bare, fits, view)]
        found = below[:_MATCHES] if place == len(parts) else [f"{p}/" for p in below[:_MATCHES]]
    return [path for path in found if _exists(path, view)]


def _step(folder: str, bare: str, fits: Callable[[str], bool] | None, view: View) -> list[str]:
    if fits is None:
        return [f"{folder}{bare}"]
    try:
        children = view.children(view.entry(folder or "."))
    except LimitError:
        raise
    except ToolError:
        return []
    return [f"{folder}{child.name}" for child in children if fits(child.name)]


def _exists(path: str, view: View) -> bool:
    try:
        view.entry(path)
    except ToolError:
        return False
    return True
