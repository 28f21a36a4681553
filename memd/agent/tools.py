"""Define the tools for a model, and parse their inputs into typed values. Pure.

A client's own tools of these names have more members. Members without effect here are ignored; one
that would change what the call means is refused with a reason.
"""

import copy
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Literal

import msgspec

from memd.agent.refusals import EditFailedError, InputError
from memd.base import limits
from memd.base.package_files import read_text
from memd.model.port import Block

_Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
_Text = Annotated[str, msgspec.Meta(max_length=1_000_000)]
_IN_BACKGROUND = "nothing runs in the background"
_ONE_LINE = "a pattern matches within one line"
_EMPTY_OLD_STRING = "old_string is empty"
_SAME_STRINGS = "old_string and new_string are the same"
_NO_MATCH = "old_string does not stand in it exactly like that"
_TOO_LARGE = "it would become far too large"


class Read(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Input of Read."""

    file_path: _Text
    offset: _Count | None = None
    limit: _Count | None = None
    pages: Any = None


class Grep(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Input of Grep."""

    pattern: _Text
    path: _Text | None = None
    glob: _Text | None = None
    output_mode: Literal["content", "files_with_matches", "count"] = "files_with_matches"
    ignore_case: bool = msgspec.field(default=False, name="-i")
    numbers: bool = msgspec.field(default=True, name="-n")
    after: _Count | None = msgspec.field(default=None, name="-A")
    before: _Count | None = msgspec.field(default=None, name="-B")
    around: _Count | None = msgspec.field(default=None, name="-C")
    context: _Count | None = None
    head_limit: _Count | None = None
    offset: _Count | None = None
    type: _Text | None = None
    multiline: bool = False


class Glob(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Input of Glob."""

    pattern: _Text
    path: _Text | None = None


class Write(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Input of Write."""

    file_path: _Text
    content: str


class Edit(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Input of Edit."""

    file_path: _Text
    old_string: _Text
    new_string: _Text
    replace_all: bool = False

    def applied(self, text: str) -> str:
        """Return a text with the one match, or all matches, replaced. Raises EditFailedError."""
        old, new = self.old_string, self.new_string
        if not old:
            raise EditFailedError(self.file_path, _EMPTY_OLD_STRING)
        if old == new:
            raise EditFailedError(self.file_path, _SAME_STRINGS)
        places = text.count(old)
        if not places:
            raise EditFailedError(self.file_path, _NO_MATCH)
        if places > 1 and not self.replace_all:
            why = f"old_string stands in it {places} times; name more of its surroundings"
            raise EditFailedError(self.file_path, why)
        if len(text) + places * (len(new) - len(old)) > limits.READ_BYTES:
            raise EditFailedError(self.file_path, _TOO_LARGE)  # checked before the text is made
        return text.replace(old, new)


class Bash(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Input of Bash."""

    command: _Text
    description: Any = None
    timeout: Any = None
    run_in_background: bool = False


Reading = Read | Grep | Glob | Bash
Input = Reading | Write | Edit
_INPUTS: Mapping[str, type[Input]] = {
    kind.__name__: kind for kind in (Read, Grep, Glob, Write, Edit, Bash)
}
NAMES = frozenset(_INPUTS)
# What msgspec raises for an invalid input; the last for half a character in a member's name.
NO_INPUT = (msgspec.ValidationError, RecursionError, UnicodeEncodeError)


def definitions() -> tuple[Block, ...]:
    """Return the tools in the shape of the Messages API, always in the same order."""
    return tuple(copy.deepcopy(_definitions()))


def parse(name: str, given: Mapping[str, Any]) -> Input:
    """Return a tool's input as a typed value. Raises InputError."""
    try:
        result: Input = msgspec.convert(given, type=_INPUTS[name], strict=False)
    except NO_INPUT as error:
        raise InputError(name, str(error)) from error
    for is_unsupported, why in _UNSUPPORTED:
        if is_unsupported(result):
            raise InputError(name, why)
    return result


_UNSUPPORTED: tuple[tuple[Callable[[Input], bool], str], ...] = (
    (lambda call: isinstance(call, Bash) and call.run_in_background, _IN_BACKGROUND),
    (lambda call: isinstance(call, Grep) and call.multiline, _ONE_LINE),
)


@cache
def _definitions() -> list[Block]:
    """Return the tools defined in ``tools.toml``, in the shape of the Messages API."""
    tools = msgspec.toml.decode(read_text("agent/tools.toml"))["tool"]
    return [tool | {"description": tool["description"].strip()} for tool in tools]
