"""Report changes of memories, whoever made them, to a team's syncs."""

from collections.abc import Callable, Collection

from memd.base.events import MEMORY_CHANGED, Event, EventSink
from memd.base.values import Actor

# Takes a memory directory and the changed paths in it.
Noticed = Callable[[str, Collection[str]], None]


class ChangeRelay:
    """An event sink that calls ``noticed`` with changed paths, except those that a sync wrote."""

    def __init__(self, events: EventSink) -> None:
        self._events = events
        self.noticed: Noticed = lambda _directory, _paths: None

    def publish(self, event: Event) -> None:
        """Publish an event, and report the paths that it says were changed."""
        self._events.publish(event)
        if event.topic == MEMORY_CHANGED and event.params["actor"] != Actor.TEAM:
            paths = [file["path"] for file in event.params["files"]]
            self.noticed(event.directory, paths)
