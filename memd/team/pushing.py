"""The push: what changed here goes out in batches. Blocks.

Rules of this file
- A batch is in the state file with its bodies before it goes out, and goes out again under its id
  until there is an answer: nothing is sent twice with another id.
- The exact bytes that go out are looked at first; what breaks a rule is held, the others go.
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

_ROUNDS = 5  # of a push to which the server says that entries changed
_BATCHES = 5_000  # of one push: each entry of a repository alone
_JITTER_SECONDS = 0.25
_VERSIONS = 100
_OK, _CHANGED, _TOO_LARGE, _REFUSED = 200, 412, 413, 422

# Why a push ends, in words.
_CHANGES = "others changed the same memories again and again"
_LIMITS = "it takes no batch, however small"

# What a person can do about a server's rule, in words, where its name does not say so.
_RULES = {"case": "its name differs from another memory's in case alone; rename it"}


def push(exchange: Exchange) -> None:
    """Send what is to be sent; where others were faster, pull and try again.

    Raises TeamUnreachableError, TeamRefusedError, and what the store and the state file raise.
    """
    for turn in range(_ROUNDS):
        if _send_all(exchange):
            exchange.table.prune(exchange.directory)
            return
        exchange.ports.wait(exchange.ports.random() * _JITTER_SECONDS * 2**turn)
        pull(exchange)
        if exchange.state.waits:
            return
    raise exchange.failed(_CHANGES, pushing=True)


def resend(exchange: Exchange, batch: PushBatch) -> None:
    """Send an unanswered batch again under its id; raises what ``push`` does.

    A server that may be wrong gets nothing before a person accepts.
    """
    answer = exchange.answer(requests.repositories(exchange.membership.remote))
    there = exchange.read(wire.repositories, answer.body)
    mark = next((each.mark for each in there if each.id == exchange.repository), None)
    wrong = suspicion(Mark.of(exchange.state.mark), mark) if mark else ""
    if wrong:
        exchange.save(replace(exchange.state, waits=wrong))
        return
    bodies = {item: exchange.table.body(exchange.directory, item.hash) for item in batch.entries}
    if None in bodies.values():  # purged since: nothing of it goes out again
        end_from_history(exchange, batch, [item.key for item in batch.entries])
        return
    packed = [requests.entry(item, (text or b"").decode()) for item, text in bodies.items()]
    _put(exchange, batch, packed, resent=True)


def end_from_history(exchange: Exchange, batch: PushBatch, keys: Iterable[str]) -> None:
    """End a batch that had no effect, but for what the history of some keys shows."""
    versions: dict[str, tuple[RemoteEntry, ...]] = {}
    for key in keys:
        request = requests.history(exchange.repository, key, limit=_VERSIONS)
        versions[key] = exchange.read(wire.history, exchange.answer(request).body, key)
    bases = batches.bases_from_history(batch, versions)
    exchange.table.end(exchange.directory, bases, batch=batch.id)


def _send_all(exchange: Exchange) -> bool:
    """Send batch after batch; return whether no other member's change was in the way."""
    exchange.release()
    for _ in range(_BATCHES):
        batch, packed = _next_batch(exchange)
        if batch is None:
            return True
        if not _put(exchange, batch, packed):
            return False
    raise exchange.paused(_TOO_LARGE, _LIMITS)


def _next_batch(exchange: Exchange) -> tuple[PushBatch | None, list[bytes]]:
    """Return the next batch, written down with its bodies, and its entries as they go out."""
    limits = exchange.state.limits
    wanted = {item.key: item for item in exchange.outgoing()}
    ready: dict[str, Outgoing] = {}
    packed: dict[str, bytes] = {}
    bodies: dict[str, bytes] = {}
    for key, file_hash, content in exchange.ports.files.read(wanted):
        refused = sharing.refusal(key, file_hash, content, limits.entry_bytes)
        if refused is not None:
            exchange.table.save(exchange.directory, refused)
            exchange.done.held.append(refused)
            continue
        ready[key] = replace(wanted[key], hash=file_hash)
        packed[key] = requests.entry(ready[key], content.decode())
        bodies[file_hash] = content
        if len(ready) >= limits.put_entries:
            break
    sizes = {key: len(entry) + 1 for key, entry in packed.items()}
    new_id, now = exchange.ports.new_id(), exchange.ports.now()
    batch = batches.next_batch(ready.values(), sizes, limits, id=new_id, at=now)
    if batch is None:
        return None, []
    named = {item.hash: bodies[item.hash] for item in batch.entries}
    exchange.table.begin(exchange.directory, batch, named)
    return batch, [packed[item.key] for item in batch.entries]


def _put(
    exchange: Exchange, batch: PushBatch, packed: Iterable[bytes], *, resent: bool = False
) -> bool:
    """Send a batch and take in its answer; return ``False`` where entries have changed."""
    request = requests.put(exchange.repository, batch.id, packed)
    try:
        expected = (_OK, _CHANGED, _TOO_LARGE, _REFUSED)
        answer = exchange.answer(request, expected, pushing=True)
    except TeamRefusedError:
        if not resent:  # it was refused as a whole, and had no effect
            exchange.table.end(exchange.directory, (), batch=batch.id)
        raise
    keys = [item.key for item in batch.entries]
    if answer.status == _OK:
        _accepted(exchange, batch, answer.body)
        return True
    problem = wire.problem(answer.body)
    if answer.status == _CHANGED:
        # What the server has forgotten, a tombstone of long ago, no pull of changes tells of.
        exchange.everything = problem.forgotten
        end_from_history(exchange, batch, [key for key in keys if resent and key in problem.rules])
        return False
    _refused(exchange, batch, problem)
    return True


def _accepted(exchange: Exchange, batch: PushBatch, body: bytes) -> None:
    """Move the bases of a batch; the mark, too, where nobody else wrote since the last pull."""
    place, now = exchange.membership, exchange.ports.now()
    keys = [item.key for item in batch.entries]
    revision, revisions = exchange.read(wire.accepted, body, keys)
    bases = batches.accepted(batch, revisions, member=place.member, device=place.device, at=now)
    exchange.table.end(exchange.directory, bases, batch=batch.id)
    exchange.done.sent += [f"{TEAM}{key}" for key in keys]
    mark = Mark.of(exchange.state.mark)
    after = str(replace(mark, revision=revision)) if revision == mark.revision + 1 else str(mark)
    exchange.save(replace(exchange.state, pushed_at=now, mark=after))


def _refused(exchange: Exchange, batch: PushBatch, problem: RemoteProblem) -> None:
    """End a batch that is too large or breaks a rule; hold what is named, or learn a limit."""
    limits = batches.lowered_limits(exchange.state.limits, problem.limit, problem.max)
    held = tuple(
        HeldEntry(item.key, item.hash, "refused", _RULES.get(rule, rule))
        for item in batch.entries
        if (rule := problem.rules.get(item.key)) is not None
    )
    if problem.limit.startswith("max_"):
        held = _without_room(exchange, batch, problem)
    exchange.table.end(exchange.directory, (), held, batch=batch.id)
    exchange.done.held += held
    if not held and limits == exchange.state.limits:
        raise exchange.paused(400, problem.message or _LIMITS)
    exchange.save(replace(exchange.state, limits=limits))


def _without_room(
    exchange: Exchange, batch: PushBatch, problem: RemoteProblem
) -> tuple[HeldEntry, ...]:
    """Return what is held of all that is to be sent, since the repository is full."""
    files = exchange.ports.files.files(exchange.ports.now())
    sizes = {key: file.size for key, file in files.items()}
    bases = exchange.table.bases(exchange.directory)
    there = {key for key, base in bases.items() if base.hash}
    new = [item.key for item in batch.entries if item.key not in there]
    in_bytes = problem.limit == "max_bytes"
    added = sum(sizes.get(key, 0) if in_bytes else 1 for key in new)
    room = problem.max - (problem.have - added)
    outgoing = [item for item in exchange.outgoing() if item.key in sizes]
    return batches.full(outgoing, there, sizes, limit=problem.limit, room=room)
