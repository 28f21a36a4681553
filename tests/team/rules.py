"""What a server and a client of team memory do, and what no step of theirs may do.

The client decides by the product's own functions; what it would wait for is a step of its own here.
"""

from collections.abc import Iterable
from functools import reduce
from operator import or_

from memd.core.team import REMOVED, Base, HeldEntry, Limits, PushBatch
from memd.team import batches, planning
from memd.team.planning import KeyPlan
from memd.team.values import Act, RemoteEntry
from tests.team.model import (
    COMMON,
    KEYS,
    Answer,
    Client,
    Fault,
    Page,
    Server,
    change,
    edits,
    is_in,
    known,
    never,
    replaced,
)

_GAP = 1_000  # how far a restored server's revisions are beyond its backup's
_REASON = "asked"  # what a person's tombstone has


class Rules:
    """The steps of server and client, one fault among them or none."""

    def __init__(self, fault: Fault | None = None) -> None:
        self.fault = fault

    # What a person does. ``bit`` is a new edit's.

    def edit(self, client: Client, at: int, bit: int) -> Client:
        """Write on top of what was known of the key here."""
        return change(client, at, files=str(self._last(client, at) | bit))

    @staticmethod
    def _last(client: Client, at: int) -> int:
        """Return the edits that a person here knows of, in the file or before it was deleted."""
        if client.files[at]:
            return edits(client.files[at])
        out = client.batch.entries if client.batch else ()
        sent = (edits(entry.hash) for entry in out if entry.key == KEYS[at])
        return reduce(or_, sent, edits(known(client.bases[at])))

    def delete(self, client: Client, at: int) -> Client:
        """Delete a file, which removes it for nobody."""
        return change(client, at, files="")

    def remove(self, server: Server, client: Client, at: int, bit: int) -> Server | None:
        """Remove a key for all: a tombstone on the text that is known here."""
        head, base = server.heads[at], client.bases[at]
        if not (head and base and base.hash and head.revision == base.revision):
            return None
        return self._buried(server, head, at, bit, _REASON)

    def miss(self, server: Server, client: Client, at: int, bit: int) -> Server | None:
        """Remove a key for all since its file is not there: the fault of absence."""
        head, base = server.heads[at], client.bases[at]
        if not (head and base and base.hash and head.revision == base.revision):
            return None
        return None if client.files[at] else self._buried(server, head, at, bit, "")

    def keep(self, client: Client, at: int) -> Client:
        """Send what was held, on top of the tombstone."""
        text = str(edits(client.files[at]) | edits(known(client.bases[at])))
        return change(client, at, held=None, files=text)

    def drop(self, client: Client, at: int) -> Client:
        """Delete what was held."""
        return change(client, at, held=None, files="")

    def resolve(self, client: Client, at: int, *, ours: bool) -> Client:
        """End a conflict with their text, or put ours on top."""
        both = str(self._last(client, at) | edits(client.conflicts[at]))
        return change(client, at, conflicts="", files=both if ours else client.files[at])

    # The server.

    def put(self, server: Server, batch: PushBatch) -> tuple[Server, Answer]:
        """Return the server after a batch, and its answer."""
        for batch_id, revisions, written in server.answers:
            if batch_id == batch.id:
                return server, Answer(revisions, written)
        pairs = [(entry, server.heads[KEYS.index(entry.key)]) for entry in batch.entries]
        for entry, head in pairs:
            if head and self.fault is Fault.NO_TOMBSTONE and head.hash == REMOVED:
                continue
            if (head and head.revision) != entry.base and (head and head.hash) != entry.hash:
                versions = {key: self._history(server, at) for at, key in enumerate(KEYS)}
                settled = batches.bases_from_history(batch, versions)
                return server, Answer((), 0, settled, any(there is None for _, there in pairs))
        taken = server.open[1] if server.open else 0
        return self._commit(server, batch, max(server.revision, taken) + 1)

    @staticmethod
    def _history(server: Server, at: int) -> list[RemoteEntry]:
        """Return the versions of a key; with a tombstone all before it are forgotten."""
        gone = [e.revision for e in server.versions[at] if not e.hash]
        after = max((each for each in gone if each <= server.horizon), default=0)
        return [entry for entry in server.versions[at] if entry.revision > after]

    def _commit(self, server: Server, batch: PushBatch, revision: int) -> tuple[Server, Answer]:
        revisions = []
        for entry in batch.entries:
            at = KEYS.index(entry.key)
            head = server.heads[at]
            if head and head.hash == entry.hash:
                revisions.append(head.revision)
                continue
            if head:
                what = "a batch takes back a text" if head.hash else "a removed key comes back"
                never(not is_in(head.hash or head.member, entry.hash), what, head, entry)
            # What was removed so long ago that nobody remembers may be written anew.
            former = head.member if head and head.hash else ""
            if head is None:
                former = str(reduce(or_, (edits(known(v)) for v in server.versions[at]), 0) or "")
            new = RemoteEntry(entry.key, entry.hash, revision, member=former)
            revisions.append(revision)
            server = self._written(server, at, new)
        revision = max(server.revision, *revisions)
        wrote = revision > server.revision or self.fault is Fault.EARLY_MARK
        answer = Answer(tuple(revisions), revision if wrote else 0)
        answers = server.answers | {(batch.id, answer.revisions, answer.written)}
        return server._replace(revision=revision, answers=answers), answer

    def take_number(self, server: Server, batch: PushBatch) -> Server:
        """Give a batch a revision that is committed later: the fault of a sequence."""
        return server._replace(open=(batch, server.revision + 1))

    def commit_open(self, server: Server) -> Server:
        """Commit what has its number already."""
        assert server.open
        batch, revision = server.open
        server = server._replace(open=None)
        taken = self.put(server, batch)[0] != server
        return self._commit(server, batch, revision)[0] if taken else server

    def restore(self, server: Server) -> Server:
        """Go back to the backup, under another epoch and with revisions never given."""
        assert server.backup
        return server.backup._replace(
            epoch=server.epoch + 1, revision=server.backup.revision + _GAP, open=None
        )

    def expire(self, server: Server) -> Server:
        """Forget tombstones and ids; nobody restores a backup that is so old."""
        heads = tuple(head if head and head.hash else None for head in server.heads)
        return server._replace(
            heads=heads, answers=frozenset(), horizon=server.revision, backup=None
        )

    def _buried(self, server: Server, head: RemoteEntry, at: int, bit: int, reason: str) -> Server:
        member = str(edits(head.hash) | bit)
        revision = server.revision + 1
        tombstone = RemoteEntry(KEYS[at], REMOVED, revision, member=member, reason=reason)
        return self._written(server, at, tombstone)._replace(revision=revision)

    @staticmethod
    def _written(server: Server, at: int, entry: RemoteEntry) -> Server:
        versions = replaced(server.versions, at, (*server.versions[at], entry))
        heads = replaced(server.heads, at, entry)
        return server._replace(heads=heads, versions=versions)  # type: ignore[arg-type]

    # The client's sync.

    def begin(self, client: Client) -> Client | None:
        """Save a batch and send it, ``None`` where nothing is to be sent."""
        client = self._released(client)
        entries = planning.entries_to_send(
            client.local, client.bases_by_key, client.held_by_key, {}
        )
        name = " ".join(f"{entry.key}={entry.hash}@{entry.base}" for entry in entries)
        sizes = dict.fromkeys(KEYS, 1)
        batch = batches.next_batch(entries, sizes, Limits(), id=name, at=0.0)
        if batch and self.fault is Fault.EARLY_BASE:
            for entry in batch.entries:
                base = Base(entry.key, entry.hash, entry.base or 0)
                client = change(client, KEYS.index(entry.key), bases=base)
        return client._replace(batch=batch, request=True) if batch else None

    def resend(self, client: Client) -> Client:
        """Send the batch that is out again, under its id."""
        assert client.batch
        batch = client.batch
        if self.fault is Fault.NEW_ID:
            batch = PushBatch(batch.id + "'", batch.at, batch.entries)
        return client._replace(batch=batch, request=True)

    def fetch(self, client: Client, server: Server) -> Client:
        """Ask for a page; a server that may be wrong is waited with."""
        epoch, revision = client.mark
        accepted = client.accepted == server.epoch != epoch
        if (epoch != server.epoch or revision > server.revision) and not accepted:
            return self.crash(client)._replace(waits=True)
        cursor, old = client.cursor, revision < server.horizon and not accepted
        if cursor is None or (old and not client.everything):
            everything = client.everything or accepted or old
            cursor = (0, "") if everything else (revision, KEYS[-1])
            client = client._replace(everything=everything, seen=frozenset())
        after = sorted(
            (head for head in server.heads if head and (head.revision, head.key) > cursor),
            key=lambda head: (head.revision, head.key),
        )
        page = Page(server.epoch, server.revision, tuple(after[:1]), len(after) <= 1)
        return client._replace(cursor=cursor, inbox=page)

    def crash(self, client: Client) -> Client:
        """Start anew with what lasts."""
        return client._replace(request=False, inbox=None, cursor=None, seen=frozenset())

    def deliver(self, client: Client) -> Client:
        """Carry out what arrived."""
        arrived, client = client.inbox, client._replace(inbox=None)
        if isinstance(arrived, Page):
            return self._pulled(client, arrived)
        assert client.batch
        assert arrived
        bases = () if self.fault is Fault.NEW_ID else arrived.settled
        if arrived.revisions:
            keys = (entry.key for entry in client.batch.entries)
            revisions = dict(zip(keys, arrived.revisions, strict=False))
            bases = batches.bases_of_accepted(client.batch, revisions)
        for base in bases:
            client = change(client, KEYS.index(base.key), bases=base)
        epoch, revision = client.mark
        if arrived.written == revision + 1:  # nobody else wrote since the last pull
            client = client._replace(mark=(epoch, arrived.written))
        return client._replace(batch=None, everything=arrived.forgotten)

    def _pulled(self, client: Client, page: Page) -> Client:
        accepted = page.epoch != client.mark[0]
        plan = planning.plan_after_accept if accepted else planning.plan_pull
        plans = plan(client.local, client.bases_by_key, page.entries)
        client = self._applied(client, plans, accepted=accepted)
        seen = client.seen | {entry.key for entry in page.entries}
        if not page.last:
            entry = page.entries[-1]
            return client._replace(seen=seen, cursor=(entry.revision, entry.key))
        if client.everything:
            plans = planning.plan_missing(
                client.local, client.bases_by_key, client.held_by_key, seen, accepted=accepted
            )
            client = self._applied(client, plans, accepted=accepted)
        plans = planning.plan_restores(client.local, client.bases_by_key)
        client = self._released(self._applied(client, plans, accepted=accepted))
        mark = (page.epoch, page.revision)
        return self.crash(client)._replace(mark=mark, everything=False, accepted=0)

    @staticmethod
    def _released(client: Client) -> Client:
        bases, held = client.bases_by_key, client.held_by_key
        for key in planning.keys_to_release(client.local, bases, held):
            client = change(client, KEYS.index(key), held=None)
        return client

    def _applied(self, client: Client, plans: Iterable[KeyPlan], *, accepted: bool) -> Client:
        for plan in plans:
            at = KEYS.index(plan.key)
            before, text = client.files[at], self._text(plan)
            conflict = ""
            if plan.act is Act.CONFLICT or (plan.act is Act.MERGE and at):  # b.md never merges
                conflict = str(edits(client.conflicts[at]) | edits(before))
                text = plan.remote.hash if plan.remote else ""
            self._loses_nothing(plan, before, text, conflict, accepted=accepted)
            # After a restore it is chance who offers first, and a held file waits for a person.
            if before and not (accepted or client.held[at] or client.mark[0]):
                self._is_due(plan, before, conflict)
            held = HeldEntry(plan.key, before, plan.reason) if plan.act is Act.HOLD else None
            if plan.base_after == plan.base:
                held = held or client.held[at]
            conflict = conflict or client.conflicts[at]
            client = change(
                client, at, files=text, bases=plan.base_after, held=held, conflicts=conflict
            )
        return client

    @staticmethod
    def _text(plan: KeyPlan) -> str:
        """Return the file's text after an act that is no conflict."""
        if plan.act in (Act.TAKE, Act.RESTORE):
            return plan.remote.hash if plan.remote else plan.base.hash if plan.base else ""
        if plan.act in (Act.REMOVE, Act.FORGET):
            return ""
        if plan.act is Act.MERGE:
            return str(edits(plan.local or "") | edits(plan.remote.hash if plan.remote else ""))
        return plan.local or ""

    @staticmethod
    def _loses_nothing(
        plan: KeyPlan, before: str, text: str, conflict: str, *, accepted: bool
    ) -> None:
        """Raise BrokenError where an act loses a text."""
        there = known(plan.remote)
        if plan.act is Act.REMOVE:
            asked = plan.remote and plan.remote.reason == _REASON
            never(not asked, "a file is removed that nobody removed", plan)
            never(not (is_in(before, there) or accepted), "a file is removed unseen", plan)
        else:
            taken = plan.act is Act.TAKE and is_in(before, there)
            never(not (is_in(before, text) or conflict or taken), "a local text is lost", plan)

    @staticmethod
    def _is_due(plan: KeyPlan, before: str, conflict: str) -> None:
        """Raise BrokenError where a person is to decide about a text that is no other's."""
        if plan.remote is None or (plan.remote.hash and plan.remote.member):
            return  # what is there came after a removal that nobody remembers
        there = known(plan.remote)
        if edits(before) & edits(there) & COMMON:
            return  # both wrote the same, and that neither on top of the other's
        false = is_in(before, there) or is_in(there, before)
        never(conflict and false, "a conflict is none", plan)
        held = plan.act is Act.HOLD and plan.base and is_in(before, there)
        never(held, "a file is held that has nothing unsent", plan)

    # What holds between a client and the server at any time.

    def check_pair(self, client: Client, server: Server) -> bool:
        """Return whether the client is at rest. Raises BrokenError where it missed something."""
        epoch, revision = client.mark
        if client.waits or client.accepted or epoch != server.epoch:
            return False
        for head, base in zip(server.heads, client.bases, strict=True):
            if head and head.revision <= revision:
                missed = base is None or base.revision < head.revision
                never(missed, "a mark is beyond what was pulled", head)
        busy = client.batch or client.cursor or client.everything or revision != server.revision
        if busy or self.begin(client) or planning.plan_restores(client.local, client.bases_by_key):
            return False
        for file, held, head in zip(client.files, client.held, server.heads, strict=True):
            other = not held and file != (head.hash if head else REMOVED)
            never(other, "at rest a file is not what the server has", file, head)
        return True
