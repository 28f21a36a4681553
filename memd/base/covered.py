"""Types for functions that find a text in a project's instruction files.

The room ``instructions`` makes such functions, and the daemon hands them to the rooms that learn.
"""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from memd.base.settings import Settings
from memd.base.values import Project

# Takes a text; returns the path of an instruction file in which it stands, else "". Pure.
Covered = Callable[[str], str]
# Takes a project and its settings; returns the ``Covered`` function of its instruction files.
CoveredIn = Callable[[Project, Settings], Awaitable[Covered]]


class CoveredText(Struct, frozen=True):
    """A text that was not saved, shortened, and the instruction ``file`` that says it already."""

    text: str
    file: str


def in_no_file(_text: str) -> str:
    """Return "", as if no instruction file said the text."""
    return ""


async def in_no_project(_project: Project, _settings: Settings) -> Covered:
    """Return ``in_no_file``, as for a project without instruction files."""
    return in_no_file
