"""A real store in a folder, for the tests of whatever stands on one."""

from pathlib import Path
from typing import Any

from memd.base.clock import Clock
from memd.base.events import Event
from memd.projects.configuration import Configuration
from memd.projects.projects import Projects
from memd.state.database import Database
from memd.state.docs import Docs
from memd.store.store import Store


class Sink:
    """An event sink that keeps what was published."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def publish(self, event: Event) -> None:
        """Keep an event."""
        self.events.append(event)


def store_in(database: Database, clock: Clock, **more: Any) -> Store:
    """Return a store that keeps its events; see ``Store`` for ``more``."""
    options: dict[str, Any] = {"events": Sink()} | more
    return Store(database, clock, **options)


def projects_in(folder: str | Path, database: Database) -> Projects:
    """Return the projects of a user whose home and settings lie in a folder."""
    configuration = Configuration(f"{folder}/memd.toml", f"{folder}/policy.toml")
    return Projects(configuration, Docs(database), {}, str(folder))
