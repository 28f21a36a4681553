"""What a person does about team memory: remove, restore, decide, accept. Blocks.

Each act changes what stands here or what is remembered; the sync that follows makes it true on the
server. Only a removal is a request of its own, since nothing else tells "removed" from "not here".
"""

from memd.core.names import TEAM
from memd.core.team import REMOVED, Conflict, HeldEntry
from memd.core.values import Actor, Draft, FileEdit, Plan, Provenance, Tree
from memd.remote.link import HttpRequest, HttpResponse
from memd.team import planning, requests, wire
from memd.team.errors import TeamHeldError, TeamRefusedError, TeamUnreachableError
from memd.team.exchange import Exchange
from memd.team.pulling import commit, pull
from memd.team.pushing import end_from_history
from memd.team.values import RemoteEntry
from memd.team.wire import Mark

_TRIES = 2  # more, of a removal whose answer is lost; its id makes them one
_VERSIONS = 100
_OK, _UNKNOWN, _CHANGED = 200, 404, 412
# Of the reason, the role, the rate: what is wrong with a removal keeps nothing else from going on.
_OF_THE_ACT = (400, 403, 422, 429)
_ANSWERS = (_OK, _UNKNOWN, _CHANGED, *_OF_THE_ACT)

# Why something cannot be done, in words for the sentence of its error.
_NO_ENTRY = "the team has no such memory"
_UNSENT = "it has changes that are not sent yet"
_NEWER = "somebody has just changed it; look at it again"
_NO_CONFLICT = "it is in no conflict"
_NOT_HELD = "it is not held"
_NO_TEXT = "the text is not kept any more, or is for maintainers to see"


def remove(exchange: Exchange, path: str, reason: str) -> None:
    """Put a tombstone in an entry's place, on the server and then here."""
    key = path.removeprefix(TEAM)
    base = exchange.table.bases(exchange.directory).get(key)
    if base is None or base.hash == REMOVED:
        raise TeamRefusedError(path, _NO_ENTRY)
    if exchange.local().get(key) != base.hash:
        raise TeamRefusedError(path, _UNSENT)
    etag = Mark.of(exchange.state.mark).etag(base.revision)
    request = requests.remove(
        exchange.repository, key, etag, reason, request=exchange.ports.new_id()
    )
    answer = _sent(exchange, request)
    if answer.status in _OF_THE_ACT:
        problem = wire.problem(answer.body)
        why = ": ".join((problem.message, *problem.rules.values()))
        raise TeamRefusedError(path, why, status=answer.status)
    if answer.status != _OK:
        pull(exchange)
        raise TeamRefusedError(path, _NEWER, status=answer.status)
    revision = exchange.read(wire.removed, answer.body)
    member, now = exchange.membership.member, exchange.ports.now()
    tombstone = RemoteEntry(key, REMOVED, revision, member, at=now, reason=reason)
    commit(exchange, (key,), lambda local: planning.pulled(local, {key: base}, [tombstone]))


def restore(exchange: Exchange, path: str, revision: int | None) -> None:
    """Write a version of the server's history here, by default the last text; it is sent then."""
    key = path.removeprefix(TEAM)
    before = None if revision is None else revision + 1
    request = requests.history(exchange.repository, key, before=before, limit=_VERSIONS)
    versions = exchange.read(wire.history, exchange.answer(request).body, key)
    wanted = [
        each for each in versions if each.hash != REMOVED and revision in (None, each.revision)
    ]
    if not wanted:
        raise TeamRefusedError(path, _NO_ENTRY)
    # Who is no maintainer gets no removed text of others; one's own is in the journal here.
    text = wanted[0].content or exchange.table.recorded(exchange.directory, key, wanted[0].hash)
    if text is None:
        raise TeamRefusedError(path, _NO_TEXT)
    exchange.table.drop(exchange.directory, HeldEntry, key)
    _write(exchange, key, text, f"revision {wanted[0].revision} of the team's history")


def resolve(exchange: Exchange, path: str, how: str, text: str | None) -> None:
    """Decide a conflict: what is put on top of the server's text is sent then."""
    key = path.removeprefix(TEAM)
    conflict = exchange.table.conflicts(exchange.directory).get(key)
    if conflict is None:
        raise TeamRefusedError(path, _NO_CONFLICT)
    wanted = None if text is None else text.encode()
    if how != "edit":
        chosen = conflict.ours if how == "ours" else conflict.theirs
        wanted = exchange.table.body(exchange.directory, chosen)
    if wanted is None:
        raise TeamRefusedError(path, _NO_TEXT)
    _write(exchange, key, wanted, f"a conflict resolved: {how}")
    exchange.table.drop(exchange.directory, Conflict, key)


def keep(exchange: Exchange, path: str) -> None:
    """Hold a file no longer: it is sent, unless a rule is still against it."""
    key = path.removeprefix(TEAM)
    if key not in exchange.table.held(exchange.directory):
        raise TeamRefusedError(path, _NOT_HELD)
    exchange.table.drop(exchange.directory, HeldEntry, key)


def drop(exchange: Exchange, path: str) -> None:
    """Delete a held file here; its text stays in the journal."""
    key = path.removeprefix(TEAM)
    if key not in exchange.table.held(exchange.directory):
        raise TeamRefusedError(path, _NOT_HELD)
    _write(exchange, key, None, "held and dropped")
    exchange.table.drop(exchange.directory, HeldEntry, key)


def accept(exchange: Exchange) -> None:
    """Go on with a server that a pull waits for."""
    batch = exchange.table.batch(exchange.directory)
    if batch is not None:
        end_from_history(exchange, batch, [item.key for item in batch.entries])
    pull(exchange, accepted=True)


def check_sent(exchange: Exchange, path: str) -> None:
    """Raise TeamHeldError where a rule is still against a file that was to be sent."""
    key = path.removeprefix(TEAM)
    held = exchange.table.held(exchange.directory).get(key)
    if held is not None:
        raise TeamHeldError(path, held.detail or held.reason)


def _sent(exchange: Exchange, request: HttpRequest) -> HttpResponse:
    """Return the answer to a removal, asked for again where it is lost."""
    for turn in range(_TRIES):
        try:
            return exchange.answer(request, _ANSWERS)
        except TeamUnreachableError:
            exchange.ports.wait(exchange.ports.random() * 2.0**turn)
    return exchange.answer(request, _ANSWERS)


def _write(exchange: Exchange, key: str, content: bytes | None, reason: str) -> None:
    """Write or delete a file as a person's own change."""
    by = Provenance(Actor.CLIENT, reason=reason)
    committed = exchange.ports.commit(_plan(key, content), by)
    exchange.done.change = committed.change or exchange.done.change


def _plan(key: str, content: bytes | None) -> Plan:
    def plan(tree: Tree) -> Draft:
        live = tree.read(f"{TEAM}{key}")
        if content is None and live is None:
            return Draft()
        return Draft((FileEdit(f"{TEAM}{key}", content, live.hash if live else ""),))

    return plan
