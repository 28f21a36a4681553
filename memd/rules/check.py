"""The line ``check:`` of a memory: what it may say, and whether a tool's call fits. Pure.

Either ``TOOL /pattern/``, a pattern on what the tool is given, or the first words of a command.
docs/rules.md has the grammar with examples.
"""

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from memd.conversation.history import members_of, tool_kind
from memd.core import regex
from memd.core.errors import WrongParameterError
from memd.core.regex import PatternRefusedError
from memd.text import invisible
from memd.text.programs import PLAIN_WORDS, Started, started

CHARACTERS = 500  # of a check
_TEXT = 64 * 1024  # characters of a call that a pattern is matched with
_TOOL = r"(?:[A-Z][A-Za-z0-9]*|mcp__[A-Za-z0-9_.-]+\*?)"
_PATTERN = re.compile(rf"({_TOOL}) /(.+)/")
_BARE = re.compile(_TOOL)
_NOT_PLAIN = re.compile(r"[;&|<>(){}$`*?\n]|(?:^| )#")
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.MULTILINE)
_SHORT = re.compile(r"-[A-Za-z]{1,3}")
_NOT_SHOWN = f"it has more than {CHARACTERS} characters, none, or some that show nothing"
_BARE_TOOL = "a tool needs a pattern; TOOL /./ means every call of it"
_NOT_WORDS = "these are not the plain words of one command"
_ON_PATHS = ("read", "edit", "write")
_SHELL = "shell"
_MIXED = ("", "search", "task")  # kinds of tools that do different things


class CheckRefusedError(WrongParameterError):
    """A check is neither a tool with a pattern nor the first words of a command."""

    hint = "write  TOOL /pattern/  or the words that a command begins with:  git push --force"

    def __init__(self, why: str) -> None:
        super().__init__(f"the check is refused: {why}", why=why)


@dataclass(frozen=True)
class PlannedCall:
    """What an assistant is about to do in a session: a tool with its input, in a directory."""

    tool: str
    input: Mapping[str, Any]
    cwd: str
    session: str = ""

    @cached_property
    def kind(self) -> str:
        """What the tool does, "" where that is not known."""
        return tool_kind(self.tool)

    @cached_property
    def started(self) -> Mapping[str, list[Started]]:
        """The programs that a shell's call starts, by their names."""
        words = members_of(self.input, "command") if self.kind == _SHELL else []
        if len(words) > 1:  # a list of words, of which no shell reads the outer ones
            words = [shlex.join(words)]
        result: dict[str, list[Started]] = {}
        for each in started(words[0]) if words else ():
            result.setdefault(each.program, []).append(each)
        return result

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """What a pattern is matched with: any of these."""
        return tuple(text[:_TEXT] for text in self._texts())

    def _texts(self) -> Sequence[str]:
        if self.kind == _SHELL:
            return (" ".join(members_of(self.input, "command")),)
        if self.kind in _ON_PATHS:
            paths = members_of(self.input, "path") or _patched(self.input)
            whole = (os.path.normpath(os.path.join(self.cwd, path)) for path in paths)
            return tuple(dict.fromkeys((*paths, *whole)))
        for member in ("url", "query"):
            if self.kind.startswith("web") and isinstance(self.input.get(member), str):
                return (self.input[member],)
        return (json.dumps(self.input, ensure_ascii=False),)


@dataclass(frozen=True)
class ToolPattern:
    """A check of the form ``TOOL /pattern/``."""

    tool: str
    pattern: Any

    def fits(self, call: PlannedCall) -> bool:
        """Say whether a call breaks it."""
        return self._means(call) and any(self.pattern.search(text) for text in call.texts)

    def _means(self, call: PlannedCall) -> bool:
        if self.tool.endswith("*"):
            return call.tool.startswith(self.tool[:-1])
        alike = call.kind not in _MIXED and call.kind == tool_kind(self.tool)
        return call.tool == self.tool or alike


@dataclass(frozen=True)
class CommandPrefix:
    """A check of words: a program, what comes first of its plain words, and options anywhere."""

    program: str
    plain: tuple[str, ...]
    options: tuple[str, ...]

    def fits(self, call: PlannedCall) -> bool:
        """Say whether a call breaks it."""
        return any(map(self._fits, call.started.get(self.program, ())))

    def _fits(self, call: Started) -> bool:
        return all(_has(call, option) for option in self.options) and self._begins(call)

    def _begins(self, call: Started) -> bool:
        """Say whether the plain words come first, but for values of options between them."""
        reached = {0}
        for word, may_be_value in call.plain:
            if len(self.plain) in reached:
                break
            on = {n + 1 for n in reached if word == self.plain[n]}
            reached = on | reached if may_be_value else on
        return len(self.plain) in reached


Check = ToolPattern | CommandPrefix


def normal(text: str) -> str:
    """Return a check's text as it is compared and shown: on one line, white space folded."""
    return " ".join(text.split())


def parse(text: str) -> Check:
    """Return what a check means. Raises CheckRefusedError."""
    text = normal(text)
    shown = text.isprintable() and invisible.removed(text) == text
    if not (shown and 0 < len(text) <= CHARACTERS):
        raise CheckRefusedError(_NOT_SHOWN)
    if match := _PATTERN.fullmatch(text):
        try:
            return ToolPattern(match[1], regex.foreign(match[2]))
        except PatternRefusedError as error:
            raise CheckRefusedError(error.sentence) from error
    return _prefix(text)


def _prefix(text: str) -> CommandPrefix:
    try:
        words = [] if _NOT_PLAIN.search(text) else shlex.split(text)
    except ValueError as error:  # a quote that does not end
        raise CheckRefusedError(_NOT_WORDS) from error
    if not words or words[0].startswith("-") or "=" in words[0]:
        raise CheckRefusedError(_NOT_WORDS)
    no_pattern = len(words) == 1 or words[1].startswith("/") or tool_kind(words[0])
    if _BARE.fullmatch(words[0]) and no_pattern:
        raise CheckRefusedError(_BARE_TOOL)
    program = words[0].rpartition("/")[2]
    plain = tuple(word for word in words[1:] if not word.startswith("-"))
    if len(plain) > PLAIN_WORDS:  # no command is read so far, so it would never fit
        raise CheckRefusedError(_NOT_WORDS)
    return CommandPrefix(program, plain, tuple(w for w in words[1:] if w.startswith("-")))


def _has(call: Started, option: str) -> bool:
    if option in call.options:
        return True
    return bool(_SHORT.fullmatch(option)) and call.letters.issuperset(option[1:])


def _patched(given: Mapping[str, Any]) -> list[str]:
    """Return the files that a patch changes."""
    texts = [value for value in given.values() if isinstance(value, str)]
    return [path for text in texts for path in _PATCHED.findall(text)]
