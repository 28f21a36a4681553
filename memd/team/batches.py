"""Put outgoing entries into batches, and compute bases and limits from the answers. Pure.

A batch is the entries of one request. A base is the last version that was the same here and on the
server. A held entry is not sent until a person decides or the reason is gone.
"""

from collections.abc import Container, Iterable, Mapping, Sequence

from msgspec.structs import fields, replace

from memd.base.team import Base, HeldEntry, Limits, Outgoing, PushBatch
from memd.team.values import RemoteEntry


def next_batch(
    outgoing: Iterable[Outgoing],
    sizes: Mapping[str, int],
    limits: Limits,
    *,
    id: str,  # noqa: A002 - the batch's own word
    at: float,
) -> PushBatch | None:
    """Return a batch of the first entries that fit into one request, ``None`` if there are none.

    ``sizes`` are the bytes of each entry in the request. The first entry is always in the batch:
    the server decides whether it is too large.
    """
    batch: list[Outgoing] = []
    total = 0
    for entry in outgoing:
        total += sizes[entry.key]
        if batch and (len(batch) >= limits.put_entries or total > limits.put_bytes):
            break
        batch.append(entry)
    return PushBatch(id, at, tuple(batch)) if batch else None


def bases_from_history(
    batch: PushBatch, versions: Mapping[str, Sequence[RemoteEntry]]
) -> tuple[Base, ...]:
    """Return the bases of the entries that the server accepted of a batch without an answer.

    ``versions`` are the server's, by key. An entry was accepted if one of them has our bytes and is
    newer than the entry's base; the last such version is the new base.
    """
    bases = []
    for entry in batch.entries:
        accepted_versions = [
            version
            for version in versions.get(entry.key, ())
            if version.hash == entry.hash and version.revision > (entry.base or 0)
        ]
        if accepted_versions:
            bases.append(max(accepted_versions, key=lambda version: version.revision).base)
    return tuple(bases)


def lowered_limits(limits: Limits, limit: str, most: int) -> Limits:
    """Return the limits after a refusal (413) that names the ``limit`` and its maximum ``most``.

    The limits of a batch become smaller with each refusal, down to 1. Limits of the repository may
    also grow. The same limits are returned if the refusal names no known one.
    """
    if limit not in {field.name for field in fields(Limits)} or most < 0:
        return limits
    if limit.startswith("put_"):
        current: int = getattr(limits, limit)
        # A server that names no smaller limit refused all the same: try half.
        lower = most if most < current else current // 2
        most = max(1, lower)
    return replace(limits, **{limit: most})


def entries_to_hold(
    outgoing: Sequence[Outgoing],
    bases: Container[str],
    sizes: Mapping[str, int],
    *,
    limit: str,
    room: int,
) -> tuple[HeldEntry, ...]:
    """Return the outgoing entries to hold because the repository has no room for them.

    ``limit`` is the limit that a 413 named (``max_entries`` or ``max_bytes``), and ``room`` is how
    many entries or bytes are left of it. ``bases`` are the keys that the server has, whose updates
    need no room. At least the last entry is held, so that the next request differs.
    """
    without_room = []
    for entry in outgoing:
        if entry.key not in bases:
            room -= sizes[entry.key] if limit == "max_bytes" else 1
            if room < 0:
                without_room.append(entry)
    held = without_room or outgoing[-1:]
    return tuple(HeldEntry(entry.key, entry.hash, "full") for entry in held)
