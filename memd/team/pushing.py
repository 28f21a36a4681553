"""Push: send the changes here to the server in batches. Blocks.

Rules of this file
- A batch is stored with its texts before it is sent. It is sent again under the same id until there
  is an answer, so the server carries it out once.
- Each text is checked in exactly the bytes that are sent. A file that breaks a rule is held, and
  the others are sent.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from memd.base.errors import Refused
from memd.base.names import TEAM
from memd.base.team import Base, HeldEntry, Outgoing, PushBatch
from memd.team import batches, requests, sharing, wire
from memd.team.exchange import Exchange
from memd.team.pulling import pull, reason_for_doubt
from memd.team.values import RemoteEntry
from memd.team.wire import Mark, RemoteProblem

_ATTEMPTS = 5  # of a push, as long as others change the same entries meanwhile
_MOST_BATCHES = 5_000  # of one push: as many as a repository has entries
_LONGEST_WAIT_SECONDS = 0.25  # before the second attempt; it doubles with each further one
_VERSIONS_SEARCHED = 100  # versions of a key in which a text that was sent is searched
_OK, _ENTRIES_CHANGED, _TOO_LARGE, _RULE_BROKEN = 200, 412, 413, 422

# Why a push ends, in words.
_TOO_MANY_CHANGES = "others changed the same memories again and again"
_NO_BATCH_FITS = "it takes no batch, however small"

# What a person can do about a rule of the server, if its name does not say that.
_ADVICE_ON_RULES = {"case": "its name differs from another memory's in case alone; rename it"}


def push(exchange: Exchange) -> None:
    """Send all changes here; if others changed the same entries, pull and try again.

    Raises Unavailable, Refused, and errors of the store and the state file.
    """
    for attempt in range(_ATTEMPTS):
        if _send_all(exchange):
            exchange.table.prune(exchange.directory)
            return
        # A random delay, so that devices do not all try again at the same moment.
        exchange.ports.wait(exchange.ports.random() * _LONGEST_WAIT_SECONDS * 2**attempt)
        pull(exchange)
        if exchange.state.waits:  # a person has to accept the server first
            return
    raise exchange.transient_error(_TOO_MANY_CHANGES, pushing=True)


def resend(exchange: Exchange, batch: PushBatch) -> None:
    """Send a batch without an answer again under its id. Raises the errors of ``push``.

    If the server may be the wrong one, nothing is sent before a person accepts it.
    """
    answer = exchange.answer(requests.repositories(exchange.membership.remote))
    repositories = exchange.read(wire.repositories, answer.body)
    known = [Mark(e.epoch, e.revision) for e in repositories if e.id == exchange.repository]
    doubt = reason_for_doubt(Mark.of(exchange.state.mark), known[0]) if known else ""
    if doubt:
        exchange.save(replace(exchange.state, waits=doubt))
        return
    bodies = {item: exchange.table.body(exchange.directory, item.hash) for item in batch.entries}
    if None in bodies.values():  # a text was purged since, so the batch is not sent again
        end_from_history(exchange, batch, [item.key for item in batch.entries])
        return
    encoded_entries = [
        requests.entry(item, (text or b"").decode()) for item, text in bodies.items()
    ]
    _send_batch(exchange, batch, encoded_entries, resent=True)


def end_from_history(exchange: Exchange, batch: PushBatch, keys: Iterable[str]) -> None:
    """End a batch without an answer; entries in the server's history count as accepted.

    ``keys`` are those of the batch whose history is read.
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
    for _ in range(_MOST_BATCHES):
        batch, encoded_entries = _next_batch(exchange)
        if batch is None:
            return True
        if not _send_batch(exchange, batch, encoded_entries):
            return False
    raise exchange.permanent_error(_TOO_LARGE, _NO_BATCH_FITS)


def _next_batch(exchange: Exchange) -> tuple[PushBatch | None, list[bytes]]:
    """Store the next batch with its texts; return it with the bytes of each entry."""
    limits = exchange.state.limits
    outgoing = {item.key: item for item in exchange.outgoing()}
    valid_entries: dict[str, Outgoing] = {}
    encoded_entries: dict[str, bytes] = {}
    texts: dict[str, bytes] = {}  # by hash
    for key, file_hash, content in exchange.ports.files.read(outgoing):
        refusal = sharing.refusal(key, file_hash, content, limits.entry_bytes)
        if refusal is not None:
            exchange.table.save(exchange.directory, refusal)
            exchange.effects.held.append(refusal)
            continue
        # The file may have changed since it was listed.
        valid_entries[key] = replace(outgoing[key], hash=file_hash)
        encoded_entries[key] = requests.entry(valid_entries[key], content.decode())
        texts[file_hash] = content
        if len(valid_entries) >= limits.put_entries:
            break
    sizes = {key: len(entry) + 1 for key, entry in encoded_entries.items()}  # with a comma
    new_id, now = exchange.ports.new_id(), exchange.ports.now()
    batch = batches.next_batch(valid_entries.values(), sizes, limits, id=new_id, at=now)
    if batch is None:
        return None, []
    batch_texts = {item.hash: texts[item.hash] for item in batch.entries}
    exchange.table.begin(exchange.directory, batch, batch_texts)
    return batch, [encoded_entries[item.key] for item in batch.entries]


def _send_batch(
    exchange: Exchange, batch: PushBatch, encoded_entries: Iterable[bytes], *, resent: bool = False
) -> bool:
    """Send a batch and store the result; return ``False`` if others changed its entries.

    ``encoded_entries`` are the bytes of each entry. ``resent`` says that the batch was sent before,
    so that the server may have accepted it then.
    """
    request = requests.put(exchange.repository, batch.id, encoded_entries)
    try:
        expected = (_OK, _ENTRIES_CHANGED, _TOO_LARGE, _RULE_BROKEN)
        answer = exchange.answer(request, expected, pushing=True)
    except Refused:
        if not resent:  # refused as a whole, so nothing of it was accepted
            exchange.table.end(exchange.directory, (), batch=batch.id)
        raise
    if answer.status == _OK:
        _store_accepted(exchange, batch, answer.body)
        return True
    problem = wire.problem(answer.body)
    if answer.status == _ENTRIES_CHANGED:
        # A pull of changes does not have tombstones that the server deleted as too old.
        exchange.pull_all = problem.forgotten
        changed_keys = [item.key for item in batch.entries if item.key in problem.rules]
        # Only a batch that was sent before may have made these changes itself.
        end_from_history(exchange, batch, changed_keys if resent else [])
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
    # ``now`` is this device's time; the server's own stamp may follow with a pull.
    bases = [
        Base(item.key, item.hash, revisions[item.key], place.member, place.device, now)
        for item in batch.entries
    ]
    exchange.table.end(exchange.directory, bases, batch=batch.id)
    exchange.effects.sent += [f"{TEAM}{key}" for key in keys]
    mark = Mark.of(exchange.state.mark)
    if revision == mark.revision + 1:
        mark = replace(mark, revision=revision)
    exchange.save(replace(exchange.state, pushed_at=now, mark=str(mark)))


def _handle_refusal(exchange: Exchange, batch: PushBatch, problem: RemoteProblem) -> None:
    """End a batch that is too large or breaks a rule: hold entries or lower the limits."""
    limits = batches.lowered_limits(exchange.state.limits, problem.limit, problem.max)
    if problem.limit.startswith("max_"):  # the repository is full
        held = _entries_without_room(exchange, batch, problem)
    else:
        held = _entries_with_broken_rule(batch, problem)
    exchange.table.end(exchange.directory, (), held, batch=batch.id)
    exchange.effects.held += held
    if not held and limits == exchange.state.limits:
        raise exchange.permanent_error(400, problem.message or _NO_BATCH_FITS)
    exchange.save(replace(exchange.state, limits=limits))


def _entries_with_broken_rule(batch: PushBatch, problem: RemoteProblem) -> tuple[HeldEntry, ...]:
    """Return the entries of a batch to hold, since the server names a rule that they break."""
    held = []
    for item in batch.entries:
        rule = problem.rules.get(item.key)
        if rule is not None:
            detail = _ADVICE_ON_RULES.get(rule, rule)
            held.append(HeldEntry(item.key, item.hash, "refused", detail))
    return tuple(held)


def _entries_without_room(
    exchange: Exchange, batch: PushBatch, problem: RemoteProblem
) -> tuple[HeldEntry, ...]:
    """Return the outgoing entries to hold, since the repository is full."""
    files = exchange.ports.files.files()
    sizes = {key: file.size for key, file in files.items()}
    bases = exchange.table.bases(exchange.directory)
    on_server = {key for key, base in bases.items() if base.hash}
    new_keys = [item.key for item in batch.entries if item.key not in on_server]
    if problem.limit == "max_bytes":
        added = sum(sizes.get(key, 0) for key in new_keys)
    else:
        added = len(new_keys)
    room = problem.max - (problem.have - added)  # ``have`` is what it would have with the batch
    outgoing = [item for item in exchange.outgoing() if item.key in sizes]
    return batches.entries_to_hold(outgoing, on_server, sizes, limit=problem.limit, room=room)
