"""The function that resolves each view. Pure."""

from collections.abc import Callable, Mapping

from memd.instructions import claude, codex, cursor, gemini
from memd.instructions.union import united
from memd.instructions.values import InstructionDisk, Resolution, View, ViewRequest

ViewFunction = Callable[[ViewRequest, InstructionDisk], Resolution]
# The order in which the union lists them.
_OF_CLIENTS: dict[View, ViewFunction] = {
    View.CLAUDE: claude.resolve,
    View.CODEX: codex.resolve,
    View.GEMINI: gemini.resolve,
    View.CURSOR: cursor.resolve,
}


def _union(request: ViewRequest, disk: InstructionDisk) -> Resolution:
    """Return the files that all clients together load."""
    return united((resolve(request, disk) for resolve in _OF_CLIENTS.values()), disk)


# Each returns which files it loads, in order, and why it does not load others.
VIEWS: Mapping[View, ViewFunction] = {**_OF_CLIENTS, View.UNION: _union}
