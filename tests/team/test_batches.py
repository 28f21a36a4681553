"""What goes out together, and what an answer means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.core.team import Base, HeldEntry, Limits, Outgoing, PushBatch
from memd.team import batches
from memd.team.values import RemoteEntry

ENTRIES = tuple(Outgoing(f"{n}.md", f"hash {n}", n or None) for n in range(5))
SIZES = {entry.key: 10 for entry in ENTRIES}
BATCH = PushBatch("id", 1.0, ENTRIES[:2])


@given(st.lists(st.integers(1, 300), max_size=40), st.integers(1, 12), st.integers(1, 400))
def test_batches_are_the_entries_in_their_order(sizes: list[int], entries: int, size: int) -> None:
    """Batch after batch holds all entries in order, none beyond a limit but a single entry."""
    limits = Limits(put_entries=entries, put_bytes=size)
    outgoing = tuple(Outgoing(f"{n}.md", "h", None) for n in range(len(sizes)))
    by_key = {entry.key: size for entry, size in zip(outgoing, sizes, strict=True)}
    left = outgoing
    sent: list[Outgoing] = []
    while batch := batches.next_batch(left, by_key, limits, id="id", at=1.0):
        together = batch.entries
        sent += together
        left = left[len(together) :]
        assert len(together) <= entries
        assert len(together) == 1 or sum(by_key[e.key] for e in together) <= size
    assert tuple(sent) == outgoing


def test_an_answer_gives_each_entry_its_base() -> None:
    """A base has the text that was sent, the revision of the answer, and no time as yet."""
    bases = batches.bases_of_accepted(BATCH, {"0.md": 7, "1.md": 8}, member="anna", device="laptop")
    assert bases == (
        Base("0.md", "hash 0", 7, "anna", "laptop"),
        Base("1.md", "hash 1", 8, "anna", "laptop"),
    )


def test_a_forgotten_id_is_settled_from_the_history() -> None:
    """The last version with our bytes that is newer than the base is the base, if there is one."""
    versions = {
        "0.md": [RemoteEntry("0.md", "hash 0", r, "anna", "laptop", 2.0) for r in (4, 6)]
        + [RemoteEntry("0.md", "theirs", 7)],
        "1.md": [RemoteEntry("1.md", "hash 1", 1)],  # the base itself: ours was not taken
    }
    assert batches.bases_from_history(BATCH, versions) == (
        Base("0.md", "hash 0", 6, "anna", "laptop", 2.0),
    )
    assert batches.bases_from_history(BATCH, {}) == ()


@pytest.mark.parametrize(
    ("limit", "most", "limits"),
    [
        ("put_entries", 10, Limits(put_entries=10)),
        ("put_entries", 100, Limits(put_entries=50)),  # it was no more than that
        ("put_entries", 0, Limits(put_entries=1)),
        ("put_bytes", 10**9, Limits(put_bytes=256 * 1024)),
        ("max_entries", 7, Limits(max_entries=7)),
        ("max_bytes", 7, Limits(max_bytes=7)),
        ("entry_bytes", 7, Limits(entry_bytes=7)),
        ("max_entries", -1, Limits()),
        ("__class__", 7, Limits()),
        ("", 7, Limits()),
    ],
)
def test_a_413_is_learnt_from(limit: str, most: int, limits: Limits) -> None:
    """Batches get smaller each time, other limits are remembered, and nonsense changes nothing."""
    assert batches.lowered_limits(Limits(), limit, most) == limits


def test_no_413_makes_batches_smaller_for_ever() -> None:
    """After few answers that name the same limit nothing is learnt any more."""
    limits, turns = Limits(), 0
    while (smaller := batches.lowered_limits(limits, "put_bytes", 10**9)) != limits:
        limits, turns = smaller, turns + 1
    assert limits.put_bytes == 1
    assert turns < 20


@pytest.mark.parametrize(
    ("limit", "room", "keys"),
    [
        ("max_entries", 2, ["4.md"]),
        ("max_entries", 0, ["2.md", "3.md", "4.md"]),
        ("max_entries", 9, ["4.md"]),  # the server counts otherwise: one less is sent
        ("max_bytes", 20, ["4.md"]),
        ("max_bytes", 19, ["3.md", "4.md"]),
        ("max_bytes", -5, ["2.md", "3.md", "4.md"]),
    ],
)
def test_a_full_repository_gets_updates_and_the_oldest_entries(
    limit: str, room: int, keys: list[str]
) -> None:
    """New entries beyond the room are held, one at least, and updates go."""
    held = batches.entries_to_hold(ENTRIES, {"0.md", "1.md"}, SIZES, limit=limit, room=room)
    assert held == tuple(HeldEntry(key, f"hash {key[0]}", "full") for key in keys)
