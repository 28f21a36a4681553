"""Queues of frames that wait to be sent, and the bound that they share."""

from hypothesis import given
from hypothesis import strategies as st

from memd.base import limits
from memd.rpc.outbox import Outbox, UnreadTotal

MEBIBYTE = 1024 * 1024


def made(unread: UnreadTotal) -> tuple[Outbox, list[str]]:
    """Return an outbox and the list of what it asked its session to do."""
    requested: list[str] = []
    return Outbox(
        unread, lambda: requested.append("wake"), lambda: requested.append("drop")
    ), requested


def test_a_frame_that_does_not_fit_drops_its_connection() -> None:
    """Beyond the queue of one connection it is dropped, once, and lets go of what it held."""
    unread = UnreadTotal()
    outbox, requested = made(unread)
    outbox.put(b"x")
    frames = outbox.drain()
    next(frames)
    outbox.put(b"x" * limits.REPLY_QUEUE_BYTES)
    outbox.drop()
    assert (requested, list(frames)) == (["wake", "drop"], [])
    assert (outbox.bytes, unread.bytes, len(outbox)) == (0, 0, 0)


def test_who_reads_is_not_the_one_who_goes() -> None:
    """When all together hold too much, the longest untouched answers go, not the largest."""
    unread = UnreadTotal()
    reader, requested = made(unread)
    silent = [made(unread) for _ in range(40)]
    for outbox, _ in silent:
        reader.put(b"x" * 3 * MEBIBYTE)
        outbox.put(b"x" * MEBIBYTE)
        assert unread.bytes <= limits.UNREAD_BYTES
        assert len(list(reader.drain())) == 1
    assert "drop" not in requested
    dropped = [outbox.dropped for outbox, _ in silent]
    assert dropped == sorted(dropped, reverse=True)
    assert sum(dropped) == 40 - (limits.UNREAD_BYTES - 3 * MEBIBYTE) // MEBIBYTE


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["put", "send", "drop"]),
            st.integers(0, 11),
            st.integers(1, limits.REPLY_QUEUE_BYTES),
        ),
        max_size=80,
    )
)
def test_the_bound_holds_in_any_order(steps: list[tuple[str, int, int]]) -> None:
    """The sum is what the queues hold and never above the bound; a dropped queue stays empty."""
    unread = UnreadTotal()
    outboxes = [made(unread)[0] for _ in range(12)]
    sending = [outbox.drain() for outbox in outboxes]
    frame = memoryview(bytes(limits.REPLY_QUEUE_BYTES))
    for kind, number, size in steps:
        outbox = outboxes[number]
        if kind == "put" and not outbox.dropped:
            outbox.put(frame[:size])  # type: ignore[arg-type] # no copies of megabytes
        elif kind == "send" and next(sending[number], None) is None:
            sending[number] = outbox.drain()
        elif kind == "drop":
            outbox.drop()
        assert unread.bytes == sum(each.bytes for each in outboxes) <= limits.UNREAD_BYTES
        assert all(each.bytes <= limits.REPLY_QUEUE_BYTES for each in outboxes)
        assert all(len(each) == 0 for each in outboxes if each.dropped)
