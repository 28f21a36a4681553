"""Build exports and imports from the daemon's parts."""

import os
from functools import partial

from anyio import to_thread

from memd.base.values import Project
from memd.daemon.core import Core
from memd.notes import files as notes
from memd.portable.service import ExportPorts, Exports, ImportPorts, Imports
from memd.projects.known import KnownProject, last_visits


def exports(core: Core) -> Exports:
    """Return the service that writes archives."""
    places = core.places
    own = (places.state_dir, os.path.dirname(places.config), places.data_dir)
    return Exports(
        core.store, ExportPorts(partial(_known, core), notes.contents, own), core.callers
    )


def imports(core: Core) -> Imports:
    """Return the service that reads archives."""
    places, checkpoint = core.places, core.priority.checkpoint
    known = partial(_known, core)
    ports = ImportPorts(places.state_dir, _restore_notes, checkpoint, known, core.joined)
    return Imports(core.store, core.clock, ports, core.callers)


async def known_projects(core: Core) -> tuple[KnownProject, ...]:
    """Return all known projects. Raises StateUnusableError."""
    return await to_thread.run_sync(_known, core)


def _known(core: Core) -> tuple[KnownProject, ...]:
    """Return all known projects. Blocks."""
    return core.projects.known(last_visits(core.docs))


def _restore_notes(project: Project, session: str, content: bytes, mtime_ns: int) -> bool:
    """Write a session's notes unless it has some; return whether they were written."""
    return notes.restore(notes.place(project, session), content, mtime_ns)
