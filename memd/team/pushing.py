"""Push: send the changes here to the server in batches. Blocks.

Rules of this file
- A batch is stored with its texts before it is sent. It is sent again under the same id until there
  is an answer, so the server carries it out once.
- Each text is checked in exactly the bytes that are sent. A file that breaks a rule is held, and
  the others are sent.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from memd.core.names import TEAM
from memd.core.team import HeldEntry, Outgoing, PushBatch
from memd.team import batches, requests, sharing, wire
from memd.team.errors import TeamRefusedError
from memd.team.exchange import Exchange
from memd.team.pulling import pull, suspicion
from memd.team.values import RemoteEntry
from memd.team.wire import Mark, RemoteProblem

_ATTEMPTS = 5  # of a push, as long as others change the same entries meanwhile
_BATCHES = 5_000  # of one push: as many as a repository has entries
_JITTER_SECONDS = 0.25
_VERSIONS_SEARCHED = 100
_OK, _CHANGED, _TOO_LARGE, _REFUSED = 200, 412, 413, 422

# Why a push ends, in words.
_TOO_MANY_CHANGES = "others changed the same memories again and again"
_NO_BATCH_FITS = "it takes no batch, however small"

# What a person can do about a rule of the server, if its name does not say that.
_RULES = {"case": "its name differs from another memory's in case alone; rename it"}


def push(exchange: Exchange) -> None:
    """Send all changes here; if others changed the same entries, pull and try again.

    Raises TeamUnreachableError, TeamRefusedError, and errors of the store and the state file.
    """
    for turn in range(_ATTEMPTS):
        if _send_all(exchange):
            exchange.table.prune(exchange.directory)
            return
        exchange.ports.wait(exchange.ports.random() * _JITTER_SECONDS * 2**turn)
        pull(exchange)
        if exchange.state.waits:
            return
    raise exchange.failed(_TOO_MANY_CHANGES, pushing=True)


def resend(exchange: Exchange, batch: PushBatch) -> None:
    """Send a batch without an answer again under its id. Raises the errors of ``push``.

    If the server may be the wrong one, nothing is sent before a person accepts it.
    """
    answer = exchange.answer(requests.repositories(exchange.membership.remote))
    repositories = exchange.read(wire.repositories, answer.body)
    mark = next((each.mark for each in repositories if each.id == exchange.repository), None)
    suspicious = suspicion(Mark.of(exchange.state.mark), mark) if mark else ""
    if suspicious:
        exchange.save(replace(exchange.state, waits=suspicious))
        return
    bodies = {item: exchange.table.body(exchange.directory, item.hash) for item in batch.entries}
    if None in bodies.values():  # a text was purged since, so the batch is not sent again
        end_from_history(exchange, batch, [item.key for item in batch.entries])
        return
    packed = [requests.entry(item, (text or b"").decode()) for item, text in bodies.items()]
    _send_batch(exchange, batch, packed, resent=True)


def end_from_history(exchange: Exchange, batch: PushBatch, keys: Iterable[str]) -> None:
    """End a batch without an answer; entries in the server's history count as accepted.

    Only the history of ``keys`` is read.
    """
    versions: dict[str, tuple[RemoteEntry, ...]] = {}
    for key in keys:
        request = requests.history(exchange.repository, key, limit=_VERSIONS_SEARCHED)
        versions[key] = exchange.read(wire.history, exchange.answer(request).body, key)
    bases = batches.bases_from_history(batch, versions)
    exchange.table.end(exchange.directory, bases, batch=batch.id)


def _send_all(exchange: Exchange) -> bool:
    """Send all batches; return ``False`` if another member changed one of the entries."""
    exchange.release()
    for _ in range(_BATCHES):
        batch, packed = _next_batch(exchange)
        if batch is None:
            return True
        if not _send_batch(exchange, batch, packed):
            return False
    raise exchange.paused(_TOO_LARGE, _NO_BATCH_FITS)


def _next_batch(exchange: Exchange) -> tuple[PushBatch | None, list[bytes]]:
    """Store the next batch with its texts; return it with the bytes of each entry.

    Files that break a rule are held. Return ``None`` and no bytes if there is nothing to send.
    """
    limits = exchange.state.limits
    outgoing = {item.key: item for item in exchange.outgoing()}
    ready: dict[str, Outgoing] = {}
    packed: dict[str, bytes] = {}
    bodies: dict[str, bytes] = {}
    for key, file_hash, content in exchange.ports.files.read(outgoing):
        refused = sharing.refusal(key, file_hash, content, limits.entry_bytes)
        if refused is not None:
            exchange.table.save(exchange.directory, refused)
            exchange.done.held.append(refused)
            continue
        ready[key] = replace(outgoing[key], hash=file_hash)  # it may have changed since
        packed[key] = requests.entry(ready[key], content.decode())
        bodies[file_hash] = content
        if len(ready) >= limits.put_entries:
            break
    sizes = {key: len(entry) + 1 for key, entry in packed.items()}  # with a comma
    new_id, now = exchange.ports.new_id(), exchange.ports.now()
    batch = batches.next_batch(ready.values(), sizes, limits, id=new_id, at=now)
    if batch is None:
        return None, []
    batch_bodies = {item.hash: bodies[item.hash] for item in batch.entries}
    exchange.table.begin(exchange.directory, batch, batch_bodies)
    return batch, [packed[item.key] for item in batch.entries]


def _send_batch(
    exchange: Exchange, batch: PushBatch, packed: Iterable[bytes], *, resent: bool = False
) -> bool:
    """Send a batch and store the result; return ``False`` if others changed its entries.

    ``packed`` are the bytes of each entry. ``resent`` says that the batch was sent before, so that
    the server may have accepted it then.
    """
    request = requests.put(exchange.repository, batch.id, packed)
    try:
        expected = (_OK, _CHANGED, _TOO_LARGE, _REFUSED)
        answer = exchange.answer(request, expected, pushing=True)
    except TeamRefusedError:
        if not resent:  # refused as a whole, so nothing of it was accepted
            exchange.table.end(exchange.directory, (), batch=batch.id)
        raise
    keys = [item.key for item in batch.entries]
    if answer.status == _OK:
        _store_accepted(exchange, batch, answer.body)
        return True
    problem = wire.problem(answer.body)
    if answer.status == _CHANGED:
        # A pull of changes does not have tombstones that the server deleted as too old.
        exchange.everything = problem.forgotten
        end_from_history(exchange, batch, [key for key in keys if resent and key in problem.rules])
        return False
    _handle_refusal(exchange, batch, problem)
    return True


def _store_accepted(exchange: Exchange, batch: PushBatch, body: bytes) -> None:
    """Store the bases of an accepted batch, and end it.

    The mark moves too if no one else wrote since the last pull.
    """
    place, now = exchange.membership, exchange.ports.now()
    keys = [item.key for item in batch.entries]
    revision, revisions = exchange.read(wire.accepted, body, keys)
    bases = batches.accepted(batch, revisions, member=place.member, device=place.device, at=now)
    exchange.table.end(exchange.directory, bases, batch=batch.id)
    exchange.done.sent += [f"{TEAM}{key}" for key in keys]
    mark = Mark.of(exchange.state.mark)
    after = str(replace(mark, revision=revision)) if revision == mark.revision + 1 else str(mark)
    exchange.save(replace(exchange.state, pushed_at=now, mark=after))


def _handle_refusal(exchange: Exchange, batch: PushBatch, problem: RemoteProblem) -> None:
    """End a batch that is too large or breaks a rule: hold entries or lower the limits.

    Pauses the sync if neither is possible, and raises TeamRefusedError.
    """
    limits = batches.lowered_limits(exchange.state.limits, problem.limit, problem.max)
    held = tuple(
        HeldEntry(item.key, item.hash, "refused", _RULES.get(rule, rule))
        for item in batch.entries
        if (rule := problem.rules.get(item.key)) is not None
    )
    if problem.limit.startswith("max_"):
        held = _entries_without_room(exchange, batch, problem)
    exchange.table.end(exchange.directory, (), held, batch=batch.id)
    exchange.done.held += held
    if not held and limits == exchange.state.limits:
        raise exchange.paused(400, problem.message or _NO_BATCH_FITS)
    exchange.save(replace(exchange.state, limits=limits))


def _entries_without_room(
    exchange: Exchange, batch: PushBatch, problem: RemoteProblem
) -> tuple[HeldEntry, ...]:
    """Return the outgoing entries to hold, since the repository is full."""
    files = exchange.ports.files.files(exchange.ports.now())
    sizes = {key: file.size for key, file in files.items()}
    bases = exchange.table.bases(exchange.directory)
    on_server = {key for key, base in bases.items() if base.hash}
    new = [item.key for item in batch.entries if item.key not in on_server]
    in_bytes = problem.limit == "max_bytes"
    added = sum(sizes.get(key, 0) if in_bytes else 1 for key in new)
    room = problem.max - (problem.have - added)  # ``have`` is what it would have with the batch
    outgoing = [item for item in exchange.outgoing() if item.key in sizes]
    return batches.full(outgoing, on_server, sizes, limit=problem.limit, room=room)
