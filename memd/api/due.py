"""What begins dreams, as the handlers see it; the composition brings it (daemon/dreaming.py)."""

from typing import Protocol

from memd.core.settings import Settings
from memd.core.values import Project
from memd.state.visits import Visit


class Due(Protocol):
    """The one home of "due and quiet, so submit"."""

    async def offer(self, visit: Visit) -> str:
        """Let an automatic dream begin if it is due and quiet; return its job, "" for none.

        Raises NoProjectError and StateUnusableError.
        """
        ...

    async def start(self, project: Project, visit: Visit) -> str:
        """Submit a dream that a person asked for and return its job. Raises StateUnusableError."""
        ...

    async def waits(self, project: Project, settings: Settings) -> str:
        """Return why an automatic dream would wait now, "" when it would not.

        Raises StateUnusableError.
        """
        ...

    async def watch(self) -> None:
        """Look for dreams that are due every ``dream.check_minutes``; runs until cancelled."""
        ...

    async def under_way(self, project: Project) -> str | None:
        """Return the dream of a project's directory that waits or runs."""
        ...
