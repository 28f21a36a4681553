"""What exports need of the daemon, put together."""

import os

from memd.core.places import Places
from memd.notes.files import contents
from memd.portable.service import ExportPorts, Exports
from memd.projects.configuration import Configuration
from memd.state.database import Database
from memd.state.tables import ImportTable, Visits
from memd.store.service import Store


def exports(
    database: Database, store: Store, configuration: Configuration, places: Places
) -> Exports:
    """Return what writes archives."""
    visits = Visits(database)
    ports = ExportPorts(
        known=lambda: store.projects.known(visits.all()),
        notes=contents,
        settings=configuration.own,
        own=(places.state_dir, os.path.dirname(places.config), places.data_dir),
    )
    return Exports(store, ImportTable(database), ports)
