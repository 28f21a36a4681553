"""Events to subscribers."""

from memd.base import limits
from memd.base.events import Event
from memd.base.values import Caller
from memd.rpc.connection import Connection
from memd.rpc.hub import Hub

EVENT = Event("memory.changed", "/a", {"change": "c1"})


def joined(hub: Hub) -> Connection:
    """Return a connection that the hub knows."""
    connection = Connection(Caller(connection=1, uid=0, pid=0), lambda: None, lambda: None)
    hub.add(connection)
    return connection


def test_who_left_hears_nothing() -> None:
    """A connection that was taken out gets no more events; twice does no harm."""
    hub = Hub()
    connection = joined(hub)
    connection.subscribe(["memory.changed"])
    hub.discard(connection)
    hub.discard(connection)
    hub.publish(EVENT)
    assert (connection.outbox.bytes, hub.connections()) == (0, 0)


def test_a_subscription_names_topics_and_directories() -> None:
    """Events of a topic come for one directory, for several, or for all."""
    connection = joined(Hub())
    connection.subscribe(["memory.changed", "job.done"], "/a")
    connection.subscribe(["memory.changed"], "/b")
    connection.subscribe(["job.done"])
    assert connection.wants(EVENT)
    assert connection.wants(Event("memory.changed", "/b", {}))
    assert not connection.wants(Event("memory.changed", "/c", {}))
    assert connection.wants(Event("job.done", "/anywhere", {}))


def test_publishing_never_fails_and_never_waits() -> None:
    """Params that are no JSON are left out; a full subscriber is dropped, the others hear."""
    hub = Hub()
    slow, quick = joined(hub), joined(hub)
    for connection in (slow, quick):
        connection.subscribe(["memory.changed"])
    slow.send(b"x" * (limits.REPLY_QUEUE_BYTES - 10))
    hub.publish(Event("memory.changed", "/a", {"x": object()}))
    hub.publish(Event("memory.changed", "/a", {"x": "\ud800"}))
    hub.publish(EVENT)
    assert slow.outbox.dropped
    assert len(list(quick.outbox.drain())) == 1


def test_the_hub_knows_whether_anybody_listens() -> None:
    """A topic has listeners while a connection that is there subscribed to it, of one directory."""
    hub = Hub()
    connection = joined(hub)
    assert not hub.listening("agent.progress")
    connection.subscribe(["agent.progress"], "/a")
    assert hub.listening("agent.progress")
    hub.discard(connection)
    assert not hub.listening("agent.progress")
