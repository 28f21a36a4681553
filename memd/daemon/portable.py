"""Build exports and imports from the daemon's parts."""

import os
from collections.abc import Callable

from memd.base.clock import Clock
from memd.base.places import Places
from memd.base.values import Project
from memd.methods.callers import Callers
from memd.notes import files as notes
from memd.portable.service import ExportPorts, Exports, ImportPorts, Imports
from memd.projects.known import KnownProject, last_visits
from memd.projects.projects import Projects
from memd.state.database import Database
from memd.state.docs import Docs
from memd.store.store import Store


def exports(
    database: Database, store: Store, projects: Projects, places: Places, callers: Callers
) -> Exports:
    """Return the service that writes archives."""
    ports = ExportPorts(
        known=_known(projects, database),
        notes=notes.contents,
        own=(places.state_dir, os.path.dirname(places.config), places.data_dir),
    )
    return Exports(store, ports, callers)


def imports(
    database: Database,
    store: Store,
    projects: Projects,
    places: Places,
    callers: Callers,
    *,
    clock: Clock,
    checkpoint: Callable[[], None],
    joined: Callable[[str], bool],
) -> Imports:
    """Return the service that reads archives."""
    known = _known(projects, database)
    ports = ImportPorts(places.state_dir, _restore_notes, checkpoint, known, joined)
    return Imports(store, clock, ports, callers)


def _known(projects: Projects, database: Database) -> Callable[[], tuple[KnownProject, ...]]:
    """Return a function that returns all known projects, and blocks."""
    docs = Docs(database)
    return lambda: projects.known(last_visits(docs))


def _restore_notes(project: Project, session: str, content: bytes, mtime_ns: int) -> bool:
    """Write a session's notes unless it has some; return whether they were written."""
    return notes.restore(notes.place(project, session), content, mtime_ns)
