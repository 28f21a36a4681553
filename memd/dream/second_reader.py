"""Have a model compare the old and the new texts of a group, and read its answer. Pure.

The request is a fresh one: it holds nothing of the conversation in which the texts were written.
"""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from memd.base import prose
from memd.dream.values import Group, quoted
from memd.model.port import Ask, Reply

ASK_SECONDS = 90.0
_TOKENS = 4_000  # of an answer
_PACKAGE = "memd.dream"
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["differences"],
    "additionalProperties": False,
    "properties": {
        "differences": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["what", "words"],
                "additionalProperties": False,
                "properties": {
                    "what": {"type": "string", "enum": ["lost", "added", "changed"]},
                    "words": {"type": "string"},
                },
            },
        }
    },
}
_LITTLE_THOUGHT: Mapping[str, Any] = {"thinking": {"type": "between_tools"}}


class Difference(Struct, frozen=True):
    """A fact that a group lost, gained or changed, in words of the texts."""

    what: str
    words: str


class _Comparison(Struct, frozen=True):
    """The answer of a second reader."""

    differences: tuple[Difference, ...]


def request(group: Group, *, kind: str, model: str, today: str, directory: str) -> Ask:
    """Return the request to compare the texts of a group."""
    values = {"old": prose.inert(group.old), "new": prose.inert(group.new) or "(nothing)"}
    text = prose.fill(prose.template("second", _PACKAGE), (), {**values, "today": today})
    return Ask(
        kind=kind,
        model=model,
        messages=({"role": "user", "content": text},),
        max_tokens=_TOKENS,
        seconds=ASK_SECONDS,
        schema=_SCHEMA,
        project=directory,
        extra=_LITTLE_THOUGHT,
    )


def problems(reply: Reply, group: Group) -> tuple[str, ...]:
    """Return the differences of an answer as problems of a group, empty if there are none.

    Only an answer that is a list, and nothing else, can be empty.
    """
    named = ", ".join(edit.path for edit in group.edits)
    text = reply.text.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    try:
        value = json.loads(text)
        value = {"differences": value} if isinstance(value, list) else value
        comparison = msgspec.convert(value, _Comparison)
    except (ValueError, RecursionError, msgspec.ValidationError):
        return (f"{named}: the second reader gave no list of differences",)
    return tuple(f"{named}: {each.what}: '{quoted(each.words)}'" for each in comparison.differences)
