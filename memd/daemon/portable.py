"""Build exports and imports from the daemon's parts."""

import os

from memd.base.clock import Clock
from memd.base.places import Places
from memd.base.values import Project
from memd.jobs.priority import RequestPriority
from memd.notes import files as notes
from memd.portable.service import ExportPorts, Exports, ImportPorts, Imports
from memd.projects.known import last_visits
from memd.projects.projects import Projects
from memd.state.database import Database
from memd.state.docs import Docs
from memd.store.store import Store


def exports(database: Database, store: Store, projects: Projects, places: Places) -> Exports:
    """Return the service that writes archives."""
    docs = Docs(database)
    ports = ExportPorts(
        known=lambda: projects.known(last_visits(docs)),
        notes=notes.contents,
        own=(places.state_dir, os.path.dirname(places.config), places.data_dir),
    )
    return Exports(store, ports)


def imports(store: Store, clock: Clock, places: Places, priority: RequestPriority) -> Imports:
    """Return the service that reads archives."""
    ports = ImportPorts(places.state_dir, _restore_notes, priority.checkpoint)
    return Imports(store, clock, ports)


def _restore_notes(project: Project, session: str, content: bytes, mtime_ns: int) -> bool:
    """Write a session's notes unless it has some; return whether they were written."""
    return notes.restore(notes.place(project, session), content, mtime_ns)
