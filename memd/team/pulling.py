"""Pull: write the changes on the server to the files here, page by page. Blocks.

A mark is the server's epoch and revision up to which the entries are here; the epoch is a new one
if the server was restored from a backup.

Rules of this file
- The mark moves behind complete pages. A page that comes twice changes nothing.
- If the server seems to be the wrong one or removes many files, a person has to accept it first.
- An entry that is refused here is left out, with the rule; the other entries of its page are not.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from memd.core.errors import MemdError
from memd.core.team import Base, LeftOut
from memd.core.values import TEAM_MATE, Actor, Provenance
from memd.remote.link import TOO_LONG, HttpResponse
from memd.team import planning, requests, wire
from memd.team.errors import TeamUnreachableError
from memd.team.exchange import Exchange
from memd.team.page_plan import PagePlan, Planned
from memd.team.planning import KeyPlan
from memd.team.values import Act, Bases, RemoteEntry
from memd.team.wire import Mark, RemotePage

BY = Provenance(Actor.TEAM, reason="pulled from the team's server", origin=TEAM_MATE)
_OK, _SAME, _GONE = 200, 304, 410
_KEYS_PER_PULL = 25_000  # a repository has 5,000 entries, and tombstones of 400 days
_FEW_ENTRIES = (
    16  # so many entries of 64 KiB always fit into an answer, also with all bytes escaped
)
_VERSIONS_SEARCHED = 10  # versions of a key in which one text is searched
_LEFT_OUT = 1_000  # at most so many refused entries are listed

# Why a person has to accept first, in words.
_EPOCH = "the server came back from a backup, or is another one"
_BEHIND = "the server knows less than it did: revision {} after {}"
_REMOVES = "the server removes {} of {} memories at once"
_TOO_MANY = "it has more entries than a repository may have"
_MOVED = "the repository changed while it was read"

_EntryOrBase = TypeVar("_EntryOrBase", RemoteEntry, Base)
_PlanPage = Callable[[Mapping[str, str], Bases, Iterable[RemoteEntry]], tuple[KeyPlan, ...]]


def pull(exchange: Exchange, *, accepted: bool = False) -> None:
    """Write the changes on the server to the files here, or do nothing until a person accepts.

    ``accepted`` says that a person did. Raises TeamUnreachableError, TeamRefusedError, and errors
    of the store and the state file.
    """
    if not exchange.state.waits or accepted:
        Pull(exchange, accepted=accepted).run()


def suspicion(before: Mark, now: Mark) -> str:
    """Return in words why a server with the mark ``now`` may be the wrong one, "" if it is not."""
    if not before.epoch or (before.epoch == now.epoch and before.revision <= now.revision):
        return ""
    return _EPOCH if before.epoch != now.epoch else _BEHIND.format(now.revision, before.revision)


class Pull:
    """One pull. ``accepted`` says that a person accepts it, whatever it removes or replaces."""

    def __init__(self, exchange: Exchange, *, accepted: bool) -> None:
        self._exchange = exchange
        self._table = exchange.table
        self._directory = exchange.directory
        self._accepted = accepted
        self._entries = wire.PAGE_ENTRIES
        self._since = "" if exchange.everything else exchange.state.mark

    def run(self) -> None:
        """Pull all pages. Raises the errors of ``pull``."""
        first, suspicious = self._fetch_first_page()
        if first is None:
            self._restore_deleted()
            now = self._exchange.ports.now()
            self._exchange.save(replace(self._exchange.state, pulled_at=now))
            return
        waits = "" if self._accepted else suspicious or self._too_many_removals(first)
        if waits:
            self._exchange.save(replace(self._exchange.state, waits=waits))
            return
        last = self._apply_pages(first, planning.after_accept if suspicious else planning.pulled)
        self._restore_deleted()
        self._save_mark(last)

    def _fetch_first_page(self) -> tuple[RemotePage | None, str]:
        """Return the first page, ``None`` if nothing changed, and why the server may be wrong.

        If the mark is unknown to the server, or a person accepted another server, all entries are
        pulled.
        """
        before = Mark.of(self._exchange.state.mark)
        expected: tuple[int, ...] = (_OK, _GONE) if self._since else (_OK,)
        held = self._table.held(self._directory).values()
        # If entries are held since the repository is full, its limits are needed from a page.
        if self._since and all(each.reason != "full" for each in held):
            expected = (_OK, _SAME, _GONE)
        answer = self._request_page(expected)
        if answer.status == _SAME:
            return None, ""
        first = self._read_page(answer) if answer.status == _OK else None
        suspicious = suspicion(before, first.mark) if first else ""
        if first is None or (suspicious and self._since and self._accepted):
            self._since = ""
            first = self._read_page(self._request_page())
            suspicious = suspicion(before, first.mark)
        return first, suspicious

    def _apply_pages(self, first: RemotePage, planned: _PlanPage) -> RemotePage:
        """Carry out the pages from ``first`` on; return the last page.

        After a full pull (without a mark) the keys that no page had are handled too.
        """
        seen: set[str] = set()
        last = first
        # A full pull on top of existing bases has to see all keys, so it cannot be resumed.
        can_resume = bool(self._since) or not self._table.bases(self._directory)
        for last in self._pages(first):
            bases = self._table.bases(self._directory)
            seen.update(item.key for item in last.entries)
            seen.update(item.key for item in last.left_out)
            self._leave_out(last.left_out, bases)
            self._apply(last.entries, partial(_plan_page, planned, bases))
            if last.next and last.entries and can_resume:
                # An interrupted pull resumes here; the next page may have the newest revision too.
                newest = max(entry.revision for entry in last.entries)
                complete = str(replace(last.mark, revision=newest - 1))
                self._exchange.save(replace(self._exchange.state, mark=complete))
        if not self._since:
            bases = self._table.bases(self._directory)
            lacking = {key: base for key, base in bases.items() if key not in seen}
            restored = self._accepted and planned is planning.after_accept
            held = self._table.held(self._directory)
            plans = partial(
                planning.missing_on_server, bases=lacking, held=held, seen=seen, accepted=restored
            )
            self._commit(tuple(lacking), plans)
        return last

    def _save_mark(self, last: RemotePage) -> None:
        """Store the mark and the limits of the server, and release held entries.

        Limits of a batch that were lowered after a refusal stay lower.
        """
        exchange, before = self._exchange, self._exchange.state.limits
        limits = replace(
            last.limits,
            put_bytes=min(last.limits.put_bytes, before.put_bytes),
            put_entries=min(last.limits.put_entries, before.put_entries),
        )
        now = exchange.ports.now()
        state = replace(exchange.state, mark=str(last.mark), waits="", pulled_at=now)
        exchange.save(replace(state, limits=limits))
        exchange.everything = False
        self._table.prune(self._directory)
        more = limits.max_entries > before.max_entries or limits.max_bytes > before.max_bytes
        exchange.release(room=more)

    def _pages(self, first: RemotePage, *, hashes: bool = False) -> Iterator[RemotePage]:
        """Yield a page and the pages after it; fail if they are too many or the server changed."""
        exchange, page, keys = self._exchange, first, 0
        yield page
        while page.next:
            on_page = len(page.entries) + len(page.left_out)
            # Small pages count as _FEW_ENTRIES, so a hostile server cannot send pages for ever.
            keys += max(on_page, _FEW_ENTRIES)
            if not on_page or keys > _KEYS_PER_PULL:
                raise exchange.failed(_TOO_MANY)
            page = self._read_page(
                self._request_page(cursor=page.next, hashes=hashes), hashes=hashes
            )
            if page.mark.epoch != first.mark.epoch:
                raise exchange.failed(_MOVED)
            yield page

    def _request_page(
        self, expected: tuple[int, ...] = (_OK,), cursor: str = "", *, hashes: bool = False
    ) -> HttpResponse:
        """Return the answer with a page; if it is too long, ask for a page of fewer entries.

        A text that JSON has to escape may take six times its bytes.
        """
        exchange, entries = self._exchange, self._entries
        request = requests.page(
            exchange.repository,
            self._since,
            cursor,
            entries,
            hashes=hashes,
            known=_SAME in expected,
        )
        try:
            return exchange.answer(request, expected)
        except TeamUnreachableError as error:
            if error.facts["cause"] != TOO_LONG or entries == _FEW_ENTRIES:
                raise
        self._entries = _FEW_ENTRIES
        return self._request_page(expected, cursor, hashes=hashes)

    def _read_page(self, answer: HttpResponse, *, hashes: bool = False) -> RemotePage:
        """Return the page in an answer. Raises TeamUnreachableError if it is invalid."""
        return self._exchange.read(wire.page, answer.body, hashes=hashes)

    def _too_many_removals(self, first: RemotePage) -> str:
        """Return in words that the pull removes too many files, "" if it does not.

        If there are more pages, all of them are read once before, only with hashes.
        """
        exchange, bases = self._exchange, self._table.bases(self._directory)
        entries = sum(bool(base.hash) for base in bases.values())
        if not entries:
            return ""
        pages: Iterable[RemotePage] = (first,)
        if first.next:
            page = self._read_page(self._request_page(hashes=True), hashes=True)
            pages = self._pages(page, hashes=True)
        local = exchange.local()
        removed = sum(
            plan.act is Act.REMOVE
            for page in pages
            for plan in planning.pulled(local, bases, page.entries)
        )
        too_much = planning.removes_too_much(removed, entries)
        return _REMOVES.format(removed, entries) if too_much else ""

    def _leave_out(self, entries: Iterable[LeftOut], bases: Bases) -> None:
        """Store entries that are refused, and list them in the result, if newer than the base."""
        room = _LEFT_OUT - len(self._exchange.done.left_out)
        new = [
            item
            for item in entries
            if item.key not in bases or bases[item.key].revision < item.revision
        ][:room]
        if new:
            self._table.save(self._directory, *new)
            self._exchange.done.left_out += new

    def _apply(
        self, entries: Sequence[_EntryOrBase], planned: Callable[[Sequence[_EntryOrBase]], Planned]
    ) -> None:
        """Carry out entries as one change set; if the store refuses it, carry out each half.

        So one entry that cannot be written, such as one below a file's path, is left out alone.
        """
        try:
            self._commit(tuple(entry.key for entry in entries), planned(entries))
        except MemdError as error:
            if error.retryable or error.of_disk:
                raise
            if len(entries) == 1:
                entry = entries[0]
                rule = error.sentence
                self._leave_out([LeftOut(entry.key, entry.revision, entry.hash, rule)], {})
                return
            half = len(entries) // 2
            self._apply(entries[:half], planned)
            self._apply(entries[half:], planned)

    def _restore_deleted(self) -> None:
        """Write the files again that were deleted here but not on the server."""
        bases, local = self._table.bases(self._directory), self._exchange.local()
        deleted = [base for key, base in bases.items() if base.hash and key not in local]
        for base in deleted:
            if self._table.body(self._directory, base.hash) is None:  # e.g. a text before a backup
                self._store_from_history(base)
        self._apply(deleted, _plan_restores)

    def _store_from_history(self, base: Base) -> None:
        """Store the text of a base here, if the server's history has it."""
        exchange, before = self._exchange, base.revision + 1
        request = requests.history(
            exchange.repository, base.key, before=before, limit=_VERSIONS_SEARCHED
        )
        for version in exchange.read(wire.history, exchange.answer(request).body, base.key):
            if version.hash == base.hash and version.content is not None:
                self._table.keep(self._directory, {version.hash: version.content})

    def _commit(self, keys: tuple[str, ...], planned: Planned) -> None:
        """Carry out the plans for some keys as one change set, if there are keys."""
        if keys:
            commit(self._exchange, keys, planned)


def commit(exchange: Exchange, keys: tuple[str, ...], planned: Planned) -> None:
    """Carry out the plans for some keys as one change set, and note what it did.

    Raises the errors of the store.
    """
    page = PagePlan(
        keys,
        planned,
        exchange.ports.now(),
        partial(exchange.table.body, exchange.directory),
        partial(exchange.table.keep, exchange.directory),
    )
    committed = exchange.ports.commit(page, BY)
    exchange.done.pages.append(page)
    exchange.done.change = committed.change or exchange.done.change
    exchange.progress(sum(len(done.keys) for done in exchange.done.pages))
    if page.left_out:
        exchange.table.save(exchange.directory, *page.left_out)
        exchange.done.left_out += page.left_out


def _plan_page(planned: _PlanPage, bases: Bases, entries: Sequence[RemoteEntry]) -> Planned:
    """Return the function that plans a page of entries for the hashes of the files here."""
    return lambda local: planned(local, bases, entries)


def _plan_restores(deleted: Sequence[Base]) -> Planned:
    """Return the function that plans to restore those of these bases that have no file here."""
    return partial(planning.deleted, bases={base.key: base for base in deleted})
