"""Texts that a project's instruction files say already, as the rooms that learn are told of them.

What tells them is made by the room ``instructions``, which the composition hands to the others.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from memd.core.settings import Settings
from memd.core.values import Project

# The path of the instruction file that says a text already, "" where none does. Pure.
Covered = Callable[[str], str]
# What tells it for a project, by its settings.
CoveredIn = Callable[[Project, Settings], Awaitable[Covered]]


@dataclass(frozen=True, slots=True)
class CoveredText:
    """What was not saved, shortened, and the path of the instruction ``file`` that says it."""

    text: str
    file: str


def in_no_file(_text: str) -> str:
    """Return "": no instruction file says a text."""
    return ""


async def in_no_project(_project: Project, _settings: Settings) -> Covered:
    """Return what tells of no file at all."""
    return in_no_file
