"""Events that the daemon sends to subscribers; the rpc room transports them."""

from typing import Any, Protocol

from msgspec import Struct

MEMORY_CHANGED = "memory.changed"
MEMORY_SAVED = "memory.saved"
JOB_PROGRESS = "job.progress"
JOB_DONE = "job.done"
TEAM_CHANGED = "team.changed"
TEAM_CONFLICT = "team.conflict"
TEAM_SUPPRESSED = "team.suppressed"  # a sync is paused, or waits for a person
AGENT_CHANGED = "agent.changed"
AGENT_PROGRESS = "agent.progress"
MESSAGE_PENDING = "message.pending"
MESSAGE_ENDED = "message.ended"
_AGENTS = (AGENT_CHANGED, AGENT_PROGRESS, MESSAGE_PENDING, MESSAGE_ENDED)
_TEAM = (TEAM_CHANGED, TEAM_CONFLICT, TEAM_SUPPRESSED)
# The events in the daemon's log; a log that is shown to others has only lines of these names.
LOG_EVENTS = (
    *("accept_failed", "connections_exhausted", "drained", "fault", "hook"),
    *("no dream begun", "no dreams looked for", "not pruned", "out_of_memory", "peer_refused"),
    *("prefix_changed", "pruned", "ready", "record_lost", "recovered", "repaired"),
    *("service failed", "settings", "spool", "stopping", "unreachable"),
)
TOPICS = (MEMORY_CHANGED, MEMORY_SAVED, JOB_PROGRESS, JOB_DONE, *_TEAM, *_AGENTS)


class Event(Struct, frozen=True):
    """One notification: its topic, the memory directory it concerns, and JSON members."""

    topic: str
    directory: str
    params: dict[str, Any]


class EventSink(Protocol):
    """Where events go. Never blocks and never fails the publisher; call it on the loop only."""

    def publish(self, event: Event) -> None:
        """Send one event to all subscribers."""
        ...
