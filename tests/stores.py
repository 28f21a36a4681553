"""A real store in a folder, for the tests of whatever stands on one."""

from pathlib import Path
from typing import Any, TypeVar

from memd.base.clock import Clock
from memd.base.events import Event
from memd.projects.configuration import Configuration
from memd.state.baseline import Baseline, FileState
from memd.state.database import Database
from memd.store.service import Store

S = TypeVar("S", bound=Store)


class Sink:
    """An event sink that keeps what was published."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def publish(self, event: Event) -> None:
        """Keep an event."""
        self.events.append(event)


def store_in(folder: str | Path, database: Database, clock: Clock, **more: Any) -> Store:
    """Return a store whose home and settings lie in a folder; see ``Store`` for ``more``."""
    return store_of(Store, folder, database, clock, **more)


def store_of(kind: type[S], folder: str | Path, database: Database, clock: Clock, **more: Any) -> S:
    """Return a store of a class of the test's own; see ``store_in``."""
    configuration = Configuration(f"{folder}/memd.toml", f"{folder}/policy.toml")
    options: dict[str, Any] = {"events": Sink(), "home": str(folder), "environ": {}} | more
    return kind(database, configuration, clock, **options)


def files_of(baseline: Baseline, directory: str) -> dict[str, FileState] | None:
    """Return what a baseline has of a directory, ``None`` for one that was never looked at."""
    known = baseline.is_scanned(directory)
    return baseline.states(directory, baseline.fingerprints(directory)) if known else None
