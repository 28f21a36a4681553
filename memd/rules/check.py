"""Parse the line ``check:`` of a memory, and compare a tool's call with it. Pure.

A check is either ``TOOL /pattern/``, with a pattern for the tool's input, or the first words of a
command. docs/rules.md has the grammar with examples.
"""

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct

from memd.base import regex
from memd.base.errors import Invalid
from memd.conversation.history import members_of, tool_kind
from memd.rules.command_line import PLAIN_WORDS, Started, started
from memd.text import invisible

MOST_CHARACTERS = 500  # of a check
_TRIED_CHARACTERS = 64 * 1024  # of a call's text, that a pattern is tried on
_TOOL_NAME = r"(?:[A-Z][A-Za-z0-9]*|mcp__[A-Za-z0-9_.-]+\*?)"
_PATTERN = rf"({_TOOL_NAME}) /(.+)/"
_ONLY_A_TOOL = _TOOL_NAME
_SHELL_SYNTAX = r"[;&|<>(){}$`*?\n]|(?:^| )#"
_PATCHED_FILE = r"(?m)^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$"
_GROUPED_OPTIONS = r"-[A-Za-z]{1,3}"
_NOT_VISIBLE = f"it has more than {MOST_CHARACTERS} characters, none, or some that show nothing"
_BARE_TOOL = "a tool needs a pattern; TOOL /./ means every call of it"
_NOT_WORDS = "these are not the plain words of one command"
_KINDS_WITH_PATHS = ("read", "edit", "write")
_SHELL = "shell"
_MIXED_KINDS = ("", "search", "task")  # kinds whose tools differ too much to share a rule


def _check_refused(reason: str) -> Invalid:
    return Invalid(
        f"the check is refused: {reason}",
        hint="write  TOOL /pattern/  or the words that a command begins with:  git push --force",
        why=reason,
    )


class PlannedCall(Struct, frozen=True, dict=True):
    """A call that an assistant is about to make: the tool, its input and the directory."""

    tool: str
    input: Mapping[str, Any]
    cwd: str

    @cached_property
    def kind(self) -> str:
        """The kind of the tool, such as ``shell`` or ``read``, or "" if it is not known."""
        return tool_kind(self.tool)

    @cached_property
    def started(self) -> Mapping[str, list[Started]]:
        """The programs that a shell's command starts, by name; empty for any other tool."""
        words = members_of(self.input, "command") if self.kind == _SHELL else []
        if not words:
            return {}
        # Several words are a list that no shell splits again.
        command = words[0] if len(words) == 1 else shlex.join(words)
        result: dict[str, list[Started]] = {}
        for program in started(command):
            result.setdefault(program.program, []).append(program)
        return result

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The texts of the call on which a pattern is tried: command, paths, URL or input."""
        return tuple(text[:_TRIED_CHARACTERS] for text in self._whole_texts())

    def _whole_texts(self) -> Sequence[str]:
        """Return the texts of the call by its kind, before they are cut."""
        if self.kind == _SHELL:
            return (" ".join(members_of(self.input, "command")),)
        if self.kind in _KINDS_WITH_PATHS:
            paths = members_of(self.input, "path") or _patched_paths(self.input)
            absolute = [os.path.normpath(os.path.join(self.cwd, path)) for path in paths]
            return tuple(dict.fromkeys((*paths, *absolute)))  # each once
        if self.kind.startswith("web"):
            for member in ("url", "query"):
                if isinstance(self.input.get(member), str):
                    return (self.input[member],)
        return (json.dumps(self.input, ensure_ascii=False),)


class ToolPattern(Struct, frozen=True, dict=True):
    """A check of the form ``TOOL /pattern/``."""

    tool: str
    pattern: Any

    def fits(self, call: PlannedCall) -> bool:
        """Return whether a call matches the check and so breaks the rule."""
        return self._names_tool(call) and any(self.pattern.search(text) for text in call.texts)

    def _names_tool(self, call: PlannedCall) -> bool:
        """Return whether the check is about the call's tool, or another tool of its kind."""
        if self.tool.endswith("*"):
            return call.tool.startswith(self.tool[:-1])
        if call.tool == self.tool:
            return True
        return call.kind not in _MIXED_KINDS and call.kind == tool_kind(self.tool)


class CommandPrefix(Struct, frozen=True, dict=True):
    """A check of words: a program, its first plain words in order, and its options anywhere."""

    program: str
    plain: tuple[str, ...]
    options: tuple[str, ...]

    def fits(self, call: PlannedCall) -> bool:
        """Return whether a call matches the check and so breaks the rule."""
        return any(self._fits_program(program) for program in call.started.get(self.program, ()))

    def _fits_program(self, program: Started) -> bool:
        """Return whether a started program has all options and the first words of the check."""
        has_options = all(_has_option(program, option) for option in self.options)
        return has_options and self._has_first_words(program)

    def _has_first_words(self, program: Started) -> bool:
        """Return whether a program's plain words begin with the check's.

        A word that may be an option's value may also be skipped, so all readings are followed.
        """
        matched_counts = {0}  # how many words of the check are matched, in each possible reading
        for word, may_be_value in program.plain:
            if len(self.plain) in matched_counts:
                break
            longer = {count + 1 for count in matched_counts if word == self.plain[count]}
            matched_counts = longer | matched_counts if may_be_value else longer
        return len(self.plain) in matched_counts


Check = ToolPattern | CommandPrefix


def normal(text: str) -> str:
    """Return a check's text on one line, with each run of white space as one space."""
    return " ".join(text.split())


def parse(text: str) -> Check:
    """Return the parsed check of a text. Raises Invalid."""
    text = normal(text)
    is_visible = text.isprintable() and invisible.removed(text) == text
    if not (is_visible and 0 < len(text) <= MOST_CHARACTERS):
        raise _check_refused(_NOT_VISIBLE)
    match = re.fullmatch(_PATTERN, text)
    if match is None:
        return _parse_prefix(text)
    try:
        return ToolPattern(match[1], regex.foreign(match[2]))
    except Invalid as error:
        raise _check_refused(error.sentence) from error


def _parse_prefix(text: str) -> CommandPrefix:
    """Return a check of a command's first words. Raises Invalid."""
    try:
        words = [] if re.search(_SHELL_SYNTAX, text) else shlex.split(text)
    except ValueError as error:  # a quote that does not end
        raise _check_refused(_NOT_WORDS) from error
    if not words or words[0].startswith("-") or "=" in words[0]:
        raise _check_refused(_NOT_WORDS)
    # A word in the form of a tool's name may also be a program.
    means_tool = len(words) == 1 or words[1].startswith("/") or tool_kind(words[0])
    if re.fullmatch(_ONLY_A_TOOL, words[0]) and means_tool:
        raise _check_refused(_BARE_TOOL)
    program = words[0].rpartition("/")[2]
    plain = tuple(word for word in words[1:] if not word.startswith("-"))
    options = tuple(word for word in words[1:] if word.startswith("-"))
    if len(plain) > PLAIN_WORDS:  # no command is read so far, so it would never fit
        raise _check_refused(_NOT_WORDS)
    return CommandPrefix(program, plain, options)


def _has_option(program: Started, option: str) -> bool:
    """Return whether a program has an option, also in a group of letters such as ``-rf``."""
    if option in program.options:
        return True
    is_group = re.fullmatch(_GROUPED_OPTIONS, option) is not None
    return is_group and program.letters.issuperset(option[1:])


def _patched_paths(arguments: Mapping[str, Any]) -> list[str]:
    """Return the paths of the files that a patch in a tool's input changes."""
    texts = [value for value in arguments.values() if isinstance(value, str)]
    return [path for text in texts for path in re.findall(_PATCHED_FILE, text)]
