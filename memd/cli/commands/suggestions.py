"""suggestions list|accept|dismiss: statements that could become memories.

A statement is printed on one line in quotation marks, below words of memd's.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from memd.base.text import iso_time, one_line
from memd.cli import output
from memd.cli.invocation import Invocation
from memd.cli.output import Screen

_LINE_CHARACTERS = 400  # --json has all of it
# What is written about a suggestion with this origin.
_SOURCES = {"user": "said", "outside": "perhaps another's words,"}


def list_(invocation: Invocation) -> None:
    """Print the suggestions that wait for a decision."""
    answer, screen = invocation.request(), invocation.screen
    if not answer["suggestions"]:
        screen.note("nothing waits to be decided in this project")
    pages = (
        "\n".join(_suggestion_lines(suggestion, screen)) for suggestion in answer["suggestions"]
    )
    screen.answer(answer, "\n\n".join(pages))


def accept(invocation: Invocation) -> None:
    """Save a suggestion as a memory."""
    result = invocation.request()
    lines = [f"saved as {result['path']}"]
    if result["change"]:
        lines.append(f"undo with: {invocation.command('undo', result['change'])}")
    invocation.screen.answer(result, "\n".join(lines))


def dismiss(invocation: Invocation) -> None:
    """Drop a suggestion."""
    result = invocation.request()
    invocation.screen.answer(result, f"{result['suggestion']} is dismissed")


def _suggestion_lines(suggestion: Mapping[str, Any], screen: Screen) -> Iterator[str]:
    """Yield the lines about a suggestion: its source, its text, and how to accept it."""
    kind = f", {suggestion['type']}" if suggestion["type"] else ""
    source = _SOURCES.get(suggestion["origin"], "a model's wording, not found in what was said,")
    name, age = screen.paint(suggestion["id"], "bold"), output.ago(iso_time(suggestion["at"]))
    yield f"{name}  {source} {age}{kind}"
    yield f'"{one_line(suggestion["text"], _LINE_CHARACTERS)}"'
    yield f"accept with: memctl suggestions accept {suggestion['id']}"
