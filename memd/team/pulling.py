"""The pull: what changed on the server is brought here, page by page. Blocks.

Rules of this file
- The mark moves behind what is complete. A page that comes twice changes nothing then.
- Nothing is done about a server that may be wrong, or that removes much, before a person accepts.
- What is refused of a page is left out alone, with the rule against it.
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
_MOST_KEYS = 25_000  # of one pull; a repository has 5,000 entries, and tombstones of 400 days
_FEW_ENTRIES = 16  # of 64 KiB: no more than an answer may have, however they are escaped
_FETCHED = 10  # versions of a key that are looked through for one text
_LEFT_OUT = 1_000  # of a server's entries that are listed with a reason

# Why a person has to accept first, in words.
_EPOCH = "the server came back from a backup, or is another one"
_BEHIND = "the server knows less than it did: revision {} after {}"
_REMOVES = "the server removes {} of {} memories at once"
_TOO_MANY = "it has more entries than a repository may have"
_MOVED = "the repository changed while it was read"

_Each = TypeVar("_Each", RemoteEntry, Base)
_OfPage = Callable[[Mapping[str, str], Bases, Iterable[RemoteEntry]], tuple[KeyPlan, ...]]


def pull(exchange: Exchange, *, accepted: bool = False) -> None:
    """Bring here what changed on the server.

    Nothing, while a person has to accept; ``accepted`` says that one did. Raises
    TeamUnreachableError, TeamRefusedError, and what the store and the state file raise.
    """
    if not exchange.state.waits or accepted:
        Pull(exchange, accepted=accepted).run()


def suspicion(before: Mark, now: Mark) -> str:
    """Return why a server at a mark may be wrong after another one, "" if it is not."""
    if not before.epoch or (before.epoch == now.epoch and before.revision <= now.revision):
        return ""
    return _EPOCH if before.epoch != now.epoch else _BEHIND.format(now.revision, before.revision)


class Pull:
    """One pull. ``accepted``: a person wants it, whatever it does."""

    def __init__(self, exchange: Exchange, *, accepted: bool) -> None:
        self._exchange = exchange
        self._table = exchange.table
        self._directory = exchange.directory
        self._accepted = accepted
        self._entries = wire.PAGE_ENTRIES
        self._since = "" if exchange.everything else exchange.state.mark

    def run(self) -> None:
        """Pull all pages. Raises what ``pull`` does."""
        first, wrong = self._first()
        if first is None:
            self._restore_deleted()
            now = self._exchange.ports.now()
            self._exchange.save(replace(self._exchange.state, pulled_at=now))
            return
        waits = "" if self._accepted else wrong or self._removes_too_much(first)
        if waits:
            self._exchange.save(replace(self._exchange.state, waits=waits))
            return
        last = self._take(first, planning.after_accept if wrong else planning.pulled)
        self._restore_deleted()
        self._finish(last)

    def _first(self) -> tuple[RemotePage | None, str]:
        """Return the first page, ``None`` for no change, and why the server may be wrong."""
        before = Mark.of(self._exchange.state.mark)
        expected: tuple[int, ...] = (_OK, _GONE) if self._since else (_OK,)
        held = self._table.held(self._directory).values()
        if self._since and all(each.reason != "full" for each in held):
            expected = (_OK, _SAME, _GONE)  # else whether there is room by now is wanted, too
        answer = self._answer(expected)
        if answer.status == _SAME:
            return None, ""
        first = self._page(answer) if answer.status == _OK else None
        wrong = suspicion(before, first.mark) if first else ""
        if first is None or (wrong and self._since and self._accepted):
            self._since = ""
            first = self._page(self._answer())
            wrong = suspicion(before, first.mark)
        return first, wrong

    def _take(self, first: RemotePage, planned: _OfPage) -> RemotePage:
        """Carry out the pages from ``first`` on; return the last one."""
        seen: set[str] = set()
        last = first
        goes_on = bool(self._since) or not self._table.bases(self._directory)
        for last in self._pages(first):
            bases = self._table.bases(self._directory)
            seen.update(item.key for item in last.entries)
            seen.update(item.key for item in last.left_out)
            self._leave_out(last.left_out, bases)
            self._apply(last.entries, partial(_of_page, planned, bases))
            if last.next and last.entries and goes_on:
                # A pull that breaks goes on here: the next page may have the same revision again.
                newest = max(entry.revision for entry in last.entries)
                complete = str(replace(last.mark, revision=newest - 1))
                self._exchange.save(replace(self._exchange.state, mark=complete))
        if not self._since:
            bases = self._table.bases(self._directory)
            lacking = {key: base for key, base in bases.items() if key not in seen}
            restored = self._accepted and planned is planning.after_accept
            held = self._table.held(self._directory)
            plans = partial(
                planning.all_pulled, bases=lacking, held=held, seen=seen, accepted=restored
            )
            self._commit(tuple(lacking), plans)
        return last

    def _finish(self, last: RemotePage) -> None:
        """Move the mark, and learn what the server takes."""
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
        """Yield a page and those that follow it."""
        exchange, page, keys = self._exchange, first, 0
        yield page
        while page.next:
            here = len(page.entries) + len(page.left_out)
            keys += max(here, _FEW_ENTRIES)
            if not here or keys > _MOST_KEYS:
                raise exchange.failed(_TOO_MANY)
            page = self._page(self._answer(cursor=page.next, hashes=hashes), hashes=hashes)
            if page.mark.epoch != first.mark.epoch:
                raise exchange.failed(_MOVED)
            yield page

    def _answer(
        self, expected: tuple[int, ...] = (_OK,), cursor: str = "", *, hashes: bool = False
    ) -> HttpResponse:
        """Return the answer with a page, with a small one where a large one is too long.

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
        return self._answer(expected, cursor, hashes=hashes)

    def _page(self, answer: HttpResponse, *, hashes: bool = False) -> RemotePage:
        return self._exchange.read(wire.page, answer.body, hashes=hashes)

    def _removes_too_much(self, first: RemotePage) -> str:
        """Return why a person has to accept what the pull removes, "" where it is little."""
        exchange, bases = self._exchange, self._table.bases(self._directory)
        entries = sum(bool(base.hash) for base in bases.values())
        if not entries:
            return ""
        pages: Iterable[RemotePage] = (first,)
        if first.next:
            page = self._page(self._answer(hashes=True), hashes=True)
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
        """Note entries that are refused and newer than what stands here."""
        room = _LEFT_OUT - len(self._exchange.done.left_out)
        new = [
            item
            for item in entries
            if not ((base := bases.get(item.key)) and base.revision >= item.revision)
        ][:room]
        if new:
            self._table.save(self._directory, *new)
            self._exchange.done.left_out += new

    def _apply(
        self, entries: Sequence[_Each], planned: Callable[[Sequence[_Each]], Planned]
    ) -> None:
        """Carry out entries as one change set; where that is refused, halves of them.

        A file may stand in a folder's place.
        """
        try:
            self._commit(tuple(entry.key for entry in entries), planned(entries))
        except MemdError as error:
            if error.retryable or error.of_disk:
                raise
            if len(entries) == 1:
                one = entries[0]
                self._leave_out([LeftOut(one.key, one.revision, one.hash, error.sentence)], {})
                return
            half = len(entries) // 2
            self._apply(entries[:half], planned)
            self._apply(entries[half:], planned)

    def _restore_deleted(self) -> None:
        """Write again what was deleted here and not on the server."""
        bases, local = self._table.bases(self._directory), self._exchange.local()
        gone = [base for key, base in bases.items() if base.hash and key not in local]
        for base in gone:
            if self._table.body(self._directory, base.hash) is None:  # a text from before a backup
                self._fetch(base)
        self._apply(gone, _of_deleted)

    def _fetch(self, base: Base) -> None:
        """Keep the text of a base that is not kept here, where the server's history has it."""
        exchange, before = self._exchange, base.revision + 1
        request = requests.history(exchange.repository, base.key, before=before, limit=_FETCHED)
        for version in exchange.read(wire.history, exchange.answer(request).body, base.key):
            if version.hash == base.hash and version.content is not None:
                self._table.keep(self._directory, {version.hash: version.content})

    def _commit(self, keys: tuple[str, ...], planned: Planned) -> None:
        """Carry out the plans of some keys as one change set."""
        if keys:
            commit(self._exchange, keys, planned)


def commit(exchange: Exchange, keys: tuple[str, ...], planned: Planned) -> None:
    """Carry out the plans of some keys as one change set. Raises what the store does."""
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
    exchange.progress(sum(len(each.keys) for each in exchange.done.pages))
    if page.left_out:
        exchange.table.save(exchange.directory, *page.left_out)
        exchange.done.left_out += page.left_out


def _of_page(planned: _OfPage, bases: Bases, entries: Sequence[RemoteEntry]) -> Planned:
    return lambda local: planned(local, bases, entries)


def _of_deleted(gone: Sequence[Base]) -> Planned:
    return partial(planning.deleted, bases={base.key: base for base in gone})
