"""What goes out together, and what an answer means for the bases. Pure."""

from collections.abc import Container, Iterable, Mapping, Sequence

from msgspec.structs import fields, replace

from memd.core.team import Base, HeldEntry, Limits, Outgoing, PushBatch
from memd.team.values import RemoteEntry


def next_batch(
    outgoing: Iterable[Outgoing],
    sizes: Mapping[str, int],
    limits: Limits,
    *,
    id: str,  # noqa: A002 - the batch's own word
    at: float,
) -> PushBatch | None:
    """Return the first entries that fit into one request, ``None`` where none is to be sent.

    ``sizes`` are the bytes of each entry as it stands in the request. The first entry goes whatever
    its size: whether it is too large is the server's word.
    """
    batch: list[Outgoing] = []
    total = 0
    for entry in outgoing:
        total += sizes[entry.key]
        if batch and (len(batch) >= limits.put_entries or total > limits.put_bytes):
            break
        batch.append(entry)
    return PushBatch(id, at, tuple(batch)) if batch else None


def accepted(
    batch: PushBatch,
    revisions: Mapping[str, int],
    *,
    member: str = "",
    device: str = "",
    at: float = 0.0,
) -> tuple[Base, ...]:
    """Return the bases after an answer that gave each of a batch's entries its revision.

    ``at`` is this device's time; the server's own stamp may follow with a pull.
    """
    return tuple(
        Base(entry.key, entry.hash, revisions[entry.key], member, device, at)
        for entry in batch.entries
    )


def settled_from_history(
    batch: PushBatch, versions: Mapping[str, Sequence[RemoteEntry]]
) -> tuple[Base, ...]:
    """Return the bases of what the server took of a batch whose id it has forgotten.

    ``versions`` are the server's, by key. Where one that is newer than the entry's base has our
    bytes, the last of these is the base; the others of the batch were not taken.
    """
    taken = []
    for entry in batch.entries:
        ours = [
            version
            for version in versions.get(entry.key, ())
            if version.hash == entry.hash and version.revision > (entry.base or 0)
        ]
        if ours:
            taken.append(max(ours, key=lambda version: version.revision).base)
    return tuple(taken)


def refused_413(limits: Limits, limit: str, most: int) -> Limits:
    """Return the limits after a 413 that names one of them and what it is at most.

    Batches become smaller each time, down to one entry. Equal limits: nothing is learnt from it.
    """
    if limit not in {field.name for field in fields(Limits)} or most < 0:
        return limits
    if limit.startswith("put_"):
        now: int = getattr(limits, limit)
        most = max(1, min(most, now if most < now else now // 2))
    return replace(limits, **{limit: most})


def full(
    outgoing: Sequence[Outgoing],
    bases: Container[str],
    sizes: Mapping[str, int],
    *,
    limit: str,
    room: int,
) -> tuple[HeldEntry, ...]:
    """Return what is held of all that is to be sent when a repository has no room for it.

    ``limit`` is the one that a 413 named (``max_entries`` or ``max_bytes``) and ``room`` what it
    leaves. ``bases`` are the keys that the server has: an update needs no room. The last entry is
    held at least, so that the next request is another one.
    """
    beyond = []
    for entry in outgoing:
        if entry.key not in bases:
            room -= sizes[entry.key] if limit == "max_bytes" else 1
            if room < 0:
                beyond.append(entry)
    return tuple(HeldEntry(each.key, each.hash, "full") for each in beyond or outgoing[-1:])
