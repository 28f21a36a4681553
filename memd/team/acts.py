"""Carry out a person's acts on team memory: remove, restore, resolve, accept. Blocks.

A key is the path of a file without ``team/``. A tombstone is the server's entry for a removed file.
Each act changes files or state here, and the sync that follows sends the change. Only a removal is
a request of its own, since a file that is missing here does not tell the server that it is removed.
"""

from memd.base.errors import Unavailable
from memd.base.names import TEAM
from memd.base.team import REMOVED, Conflict, HeldEntry
from memd.base.values import Actor, Draft, FileEdit, Plan, Provenance, Tree
from memd.remote.link import HttpRequest, HttpResponse
from memd.team import planning, requests, wire
from memd.team.errors import nothing_to_decide, team_refused
from memd.team.exchange import Exchange
from memd.team.pulling import commit, pull
from memd.team.pushing import end_from_history
from memd.team.values import RemoteEntry
from memd.team.wire import Mark

_RETRIES = 2  # of a removal without an answer; its request id lets the server carry it out once
_VERSIONS_SEARCHED = 100  # versions of a key in which one to restore is searched
_OK, _NO_SUCH_ENTRY, _ENTRY_CHANGED = 200, 404, 412
# Wrong reason, role or rate. They concern only this removal, so they do not pause the sync.
_REFUSALS = (400, 403, 422, 429)
_ANSWERS = (_OK, _NO_SUCH_ENTRY, _ENTRY_CHANGED, *_REFUSALS)

# Why something cannot be done, in words for the sentence of its error.
_NO_ENTRY = "the team has no such memory"
_HAS_UNSENT_CHANGES = "it has changes that are not sent yet"
_CHANGED_BY_OTHER = "somebody has just changed it; look at it again"
_NO_TEXT = "the text is not kept any more, or is for maintainers to see"


def remove(exchange: Exchange, path: str, reason: str) -> None:
    """Remove an entry on the server and then here.

    Raises Refused if the team has no such entry, if the file here has unsent changes, or
    if the server refuses.
    """
    key = path.removeprefix(TEAM)
    base = exchange.table.bases(exchange.directory).get(key)
    if base is None or base.hash == REMOVED:
        raise team_refused(path, _NO_ENTRY)
    if exchange.local().get(key) != base.hash:
        raise team_refused(path, _HAS_UNSENT_CHANGES)
    etag = Mark.of(exchange.state.mark).etag(base.revision)
    request = requests.remove(
        exchange.repository, key, etag, reason, request=exchange.ports.new_id()
    )
    answer = _send_removal(exchange, request)
    if answer.status in _REFUSALS:
        problem = wire.problem(answer.body)
        cause = ": ".join((problem.message, *problem.rules.values()))
        raise team_refused(path, cause, status=answer.status)
    if answer.status != _OK:  # the entry has changed or is gone
        pull(exchange)
        raise team_refused(path, _CHANGED_BY_OTHER, status=answer.status)
    revision = exchange.read(wire.removed, answer.body)
    member, now = exchange.membership.member, exchange.ports.now()
    tombstone = RemoteEntry(key, REMOVED, revision, member, at=now, reason=reason)
    commit(exchange, (key,), lambda local: planning.plan_pull(local, {key: base}, [tombstone]))


def restore(exchange: Exchange, path: str, revision: int | None) -> None:
    """Write a version from the server's history to the file here; the next sync sends it.

    ``revision`` is that of the version, ``None`` for the last one that was not a removal.
    """
    key = path.removeprefix(TEAM)
    before = None if revision is None else revision + 1
    request = requests.history(exchange.repository, key, before=before, limit=_VERSIONS_SEARCHED)
    versions = exchange.read(wire.history, exchange.answer(request).body, key)
    matching = [
        each for each in versions if each.hash != REMOVED and revision in (None, each.revision)
    ]
    if not matching:
        raise team_refused(path, _NO_ENTRY)
    version = matching[0]
    # The server sends removed texts of others only to maintainers, but the journal may have it.
    text = version.content or exchange.table.recorded(exchange.directory, version.hash)
    if text is None:
        raise team_refused(path, _NO_TEXT)
    exchange.table.drop(exchange.directory, HeldEntry, key)
    _commit_text(exchange, key, text, f"revision {version.revision} of the team's history")


def resolve(exchange: Exchange, path: str, how: str, text: str | None) -> None:
    """Write the text that ends a conflict or a hold; the next sync sends it.

    ``how`` is ``ours``, ``theirs`` (the server's state) or ``edit``, which writes ``text``. Raises
    NotFound.
    """
    key, table, directory = path.removeprefix(TEAM), exchange.table, exchange.directory
    conflict, held = table.conflicts(directory).get(key), table.held(directory).get(key)
    if conflict is None and held is None:
        raise nothing_to_decide(path)
    content = None
    if how == "edit":
        content = None if text is None else text.encode()
    elif conflict is not None:
        content = table.body(directory, conflict.ours if how == "ours" else conflict.theirs)
    elif how == "theirs":
        base = table.bases(directory).get(key)
        content = table.body(directory, base.hash) if base and base.hash else None
    if content is None and (conflict is not None or how == "edit"):
        raise team_refused(path, _NO_TEXT)
    if conflict is not None or how != "ours":  # what is held is sent as it is
        _commit_text(exchange, key, content, f"resolved: {how}")
    table.drop(directory, Conflict, key)
    table.drop(directory, HeldEntry, key)


def accept(exchange: Exchange) -> None:
    """Pull although the server seemed wrong or removes many files, as a person accepted that.

    A batch without an answer is ended before, since the server may not know it.
    """
    batch = exchange.table.batch(exchange.directory)
    if batch is not None:
        end_from_history(exchange, batch, [item.key for item in batch.entries])
    pull(exchange, accepted=True)


def _send_removal(exchange: Exchange, request: HttpRequest) -> HttpResponse:
    """Send a removal, up to three times if there is no answer, and return the answer."""
    for attempt in range(_RETRIES):
        try:
            return exchange.answer(request, _ANSWERS)
        except Unavailable:  # wait up to 1 s, then up to 2 s
            exchange.ports.wait(exchange.ports.random() * 2.0**attempt)
    return exchange.answer(request, _ANSWERS)


def _commit_text(exchange: Exchange, key: str, content: bytes | None, reason: str) -> None:
    """Write a file below ``team/`` as a person's change; ``None`` as content deletes it."""
    by = Provenance(Actor.CLIENT, reason=reason)
    committed = exchange.ports.commit(_write_plan(key, content), by)
    exchange.effects.change = committed.change or exchange.effects.change


def _write_plan(key: str, content: bytes | None) -> Plan:
    """Return a plan for the store that writes one file, or deletes it if it exists."""

    def plan(tree: Tree) -> Draft:
        live = tree.read(f"{TEAM}{key}")
        if content is None and live is None:
            return Draft()
        return Draft((FileEdit(f"{TEAM}{key}", content, live.hash if live else ""),))

    return plan
