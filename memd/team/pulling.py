"""Pull: write the changes on the server to the files here, page by page. Blocks.

A mark is the server's epoch and revision up to which the entries are here; the epoch is a new one
if the server was restored from a backup.

Rules of this file
- The mark moves behind complete pages. A page that comes twice changes nothing.
- If the server seems to be the wrong one or removes many files, a person has to accept it first.
- An entry that is refused here is left out, with the rule; the other entries of its page are not.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from memd.base.errors import MemdError, Unavailable
from memd.base.team import Base, LeftOut
from memd.base.values import TEAM_MATE, Actor, Provenance
from memd.remote.link import TOO_LONG, HttpResponse
from memd.team import planning, requests, wire
from memd.team.exchange import Exchange
from memd.team.page_plan import PagePlan, PlanKeys
from memd.team.planning import KeyPlan
from memd.team.values import Act, Bases, RemoteEntry
from memd.team.wire import Mark, RemotePage

BY = Provenance(Actor.TEAM, reason="pulled from the team's server", origin=TEAM_MATE)
_OK, _NOT_MODIFIED, _MARK_UNKNOWN = 200, 304, 410
_KEYS_PER_PULL = 25_000  # a repository has 5,000 entries, and tombstones of 400 days
# So many entries of 64 KiB always fit into an answer, also if JSON escapes all of their bytes.
_FEW_ENTRIES = 16
_REMOVED_FILES = 5  # a pull may always remove this many files
_REMOVED_SHARE = 5  # a pull may always remove one in five of the entries
_VERSIONS_SEARCHED = 10  # versions of a key in which one text is searched
_MOST_LEFT_OUT = 1_000  # at most so many refused entries are listed

# Why a person has to accept first, in words.
_NEW_EPOCH = "the server came back from a backup, or is another one"
_OLDER_REVISION = "the server knows less than it did: revision {} after {}"
_MANY_REMOVALS = "the server removes {} of {} memories at once"
_TOO_MANY_ENTRIES = "it has more entries than a repository may have"
_CHANGED_MEANWHILE = "the repository changed while it was read"

_EntryOrBase = TypeVar("_EntryOrBase", RemoteEntry, Base)
_PlanPage = Callable[[Mapping[str, str], Bases, Iterable[RemoteEntry]], tuple[KeyPlan, ...]]


def pull(exchange: Exchange, *, accepted: bool = False) -> None:
    """Write the changes on the server to the files here, or do nothing until a person accepts.

    ``accepted`` says that a person did. Raises Unavailable, Refused, and errors
    of the store and the state file.
    """
    if not exchange.state.waits or accepted:
        Pull(exchange, accepted=accepted).run()


def reason_for_doubt(before: Mark, now: Mark) -> str:
    """Return in words why a server with the mark ``now`` may be the wrong one, "" if it is not."""
    if not before.epoch or (before.epoch == now.epoch and before.revision <= now.revision):
        return ""
    return (
        _NEW_EPOCH
        if before.epoch != now.epoch
        else _OLDER_REVISION.format(now.revision, before.revision)
    )


class Pull:
    """One pull. ``accepted`` says that a person accepts it, whatever it removes or replaces."""

    def __init__(self, exchange: Exchange, *, accepted: bool) -> None:
        self._exchange = exchange
        self._table = exchange.table
        self._directory = exchange.directory
        self._accepted = accepted
        self._page_entries = wire.PAGE_ENTRIES  # how many entries a page may have
        # The mark behind which entries are pulled, "" for a full pull.
        self._since_mark = "" if exchange.pull_all else exchange.state.mark

    def run(self) -> None:
        """Pull all pages. Raises the errors of ``pull``."""
        first, doubt = self._fetch_first_page()
        if first is None:  # nothing changed on the server
            self._restore_deleted()
            now = self._exchange.ports.now()
            self._exchange.save(replace(self._exchange.state, pulled_at=now))
            return
        if not self._accepted:
            to_accept = doubt or self._too_many_removals(first)
            if to_accept:
                self._exchange.save(replace(self._exchange.state, waits=to_accept))
                return
        plan_page = planning.plan_after_accept if doubt else planning.plan_pull
        last = self._apply_pages(first, plan_page)
        self._restore_deleted()
        self._store_mark(last)

    def _fetch_first_page(self) -> tuple[RemotePage | None, str]:
        """Return the first page, ``None`` if nothing changed, and why the server may be wrong."""
        before = Mark.of(self._exchange.state.mark)
        expected = [_OK]
        if self._since_mark:
            expected.append(_MARK_UNKNOWN)
            held = self._table.held(self._directory).values()
            # If entries are held since the repository is full, its limits are needed from a page.
            if all(each.reason != "full" for each in held):
                expected.append(_NOT_MODIFIED)
        answer = self._request_page(expected)
        if answer.status == _NOT_MODIFIED:
            return None, ""
        if answer.status == _OK:
            first = self._read_page(answer)
            doubt = reason_for_doubt(before, first.mark)
            is_full_pull_needed = doubt and self._since_mark and self._accepted
            if not is_full_pull_needed:
                return first, doubt
        self._since_mark = ""
        first = self._read_page(self._request_page())
        return first, reason_for_doubt(before, first.mark)

    def _apply_pages(self, first: RemotePage, plan_page: _PlanPage) -> RemotePage:
        """Carry out the pages from ``first`` on; return the last page."""
        seen: set[str] = set()  # the keys of all pages
        last = first
        # A full pull on top of existing bases has to see all keys, so it cannot be resumed.
        can_resume = bool(self._since_mark) or not self._table.bases(self._directory)
        for last in self._pages(first):
            bases = self._table.bases(self._directory)
            seen.update(item.key for item in last.entries)
            seen.update(item.key for item in last.left_out)
            self._leave_out(last.left_out, bases)
            self._apply(last.entries, partial(_page_planner, plan_page, bases))
            if last.next and last.entries and can_resume:
                # An interrupted pull resumes here; the next page may have the newest revision too.
                newest = max(entry.revision for entry in last.entries)
                resume_mark = str(replace(last.mark, revision=newest - 1))
                self._exchange.save(replace(self._exchange.state, mark=resume_mark))
        if not self._since_mark:
            self._apply_missing(
                seen, accepted=self._accepted and plan_page is planning.plan_after_accept
            )
        return last

    def _apply_missing(self, seen: set[str], *, accepted: bool) -> None:
        """Carry out the plans for keys that no page of a full pull had."""
        bases = self._table.bases(self._directory)
        missing = {key: base for key, base in bases.items() if key not in seen}
        held = self._table.held(self._directory)
        plan_keys = partial(
            planning.plan_missing, bases=missing, held=held, seen=seen, accepted=accepted
        )
        self._commit(tuple(missing), plan_keys)

    def _store_mark(self, last: RemotePage) -> None:
        """Store the mark and the limits of the server, and release held entries."""
        exchange, before = self._exchange, self._exchange.state.limits
        limits = replace(
            last.limits,
            put_bytes=min(last.limits.put_bytes, before.put_bytes),
            put_entries=min(last.limits.put_entries, before.put_entries),
        )
        now = exchange.ports.now()
        state = replace(exchange.state, mark=str(last.mark), waits="", pulled_at=now)
        exchange.save(replace(state, limits=limits))
        exchange.pull_all = False
        self._table.prune(self._directory)
        has_room = limits.max_entries > before.max_entries or limits.max_bytes > before.max_bytes
        exchange.release(room=has_room)

    def _pages(self, first: RemotePage, *, hashes: bool = False) -> Iterator[RemotePage]:
        """Yield a page and the pages after it; fail if they are too many or the server changed."""
        exchange, page, total = self._exchange, first, 0
        yield page
        while page.next:
            page_keys = len(page.entries) + len(page.left_out)
            # Small pages count as _FEW_ENTRIES, so a hostile server cannot send pages for ever.
            total += max(page_keys, _FEW_ENTRIES)
            if not page_keys or total > _KEYS_PER_PULL:
                raise exchange.transient_error(_TOO_MANY_ENTRIES)
            answer = self._request_page(cursor=page.next, hashes=hashes)
            page = self._read_page(answer, hashes=hashes)
            if page.mark.epoch != first.mark.epoch:
                raise exchange.transient_error(_CHANGED_MEANWHILE)
            yield page

    def _request_page(
        self, expected: Collection[int] = (_OK,), cursor: str = "", *, hashes: bool = False
    ) -> HttpResponse:
        """Return the answer with a page; if it is too long, request a page of fewer entries."""
        exchange, entries = self._exchange, self._page_entries
        request = requests.page(
            exchange.repository,
            self._since_mark,
            cursor,
            entries,
            hashes=hashes,
            known=_NOT_MODIFIED in expected,
        )
        try:
            return exchange.answer(request, expected)
        except Unavailable as error:
            if error.facts["cause"] != TOO_LONG or entries == _FEW_ENTRIES:
                raise
        self._page_entries = _FEW_ENTRIES
        return self._request_page(expected, cursor, hashes=hashes)

    def _read_page(self, answer: HttpResponse, *, hashes: bool = False) -> RemotePage:
        """Return the page in an answer. Raises Unavailable if it is invalid."""
        return self._exchange.read(wire.page, answer.body, hashes=hashes)

    def _too_many_removals(self, first: RemotePage) -> str:
        """Return in words that the pull removes too many files, "" if it does not.

        If there are more pages, all of them are read once before, only with hashes.
        """
        exchange, bases = self._exchange, self._table.bases(self._directory)
        entry_count = sum(bool(base.hash) for base in bases.values())
        if not entry_count:
            return ""
        pages: Iterable[RemotePage] = (first,)
        if first.next:
            page = self._read_page(self._request_page(hashes=True), hashes=True)
            pages = self._pages(page, hashes=True)
        local = exchange.local()
        removed = 0
        for page in pages:
            plans = planning.plan_pull(local, bases, page.entries)
            removed += sum(plan.act is Act.REMOVE for plan in plans)
        if removed > _REMOVED_FILES and removed * _REMOVED_SHARE > entry_count:
            return _MANY_REMOVALS.format(removed, entry_count)
        return ""

    def _leave_out(self, entries: Iterable[LeftOut], bases: Bases) -> None:
        """Store entries that are refused, and list them in the result, if newer than the base."""
        room = _MOST_LEFT_OUT - len(self._exchange.effects.left_out)
        newer = [
            item
            for item in entries
            if item.key not in bases or bases[item.key].revision < item.revision
        ]
        new = newer[:room]
        if new:
            self._table.save(self._directory, *new)
            self._exchange.effects.left_out += new

    def _apply(
        self,
        entries: Sequence[_EntryOrBase],
        planner: Callable[[Sequence[_EntryOrBase]], PlanKeys],
    ) -> None:
        """Carry out entries as one change set; if the store refuses it, carry out each half."""
        try:
            self._commit(tuple(entry.key for entry in entries), planner(entries))
        except MemdError as error:
            if error.retryable or error.of_disk:  # no fault of an entry
                raise
            if len(entries) == 1:
                entry = entries[0]
                rule = error.sentence
                self._leave_out([LeftOut(entry.key, entry.revision, entry.hash, rule)], {})
                return
            half = len(entries) // 2
            self._apply(entries[:half], planner)
            self._apply(entries[half:], planner)

    def _restore_deleted(self) -> None:
        """Write the files again that were deleted here but not on the server."""
        bases, local = self._table.bases(self._directory), self._exchange.local()
        deleted = [base for key, base in bases.items() if base.hash and key not in local]
        for base in deleted:
            if self._table.body(self._directory, base.hash) is None:
                self._store_from_history(base)
        self._apply(deleted, _restores_of)

    def _store_from_history(self, base: Base) -> None:
        """Store the text of a base here, if the server's history has it."""
        exchange, before = self._exchange, base.revision + 1
        request = requests.history(
            exchange.repository, base.key, before=before, limit=_VERSIONS_SEARCHED
        )
        for version in exchange.read(wire.history, exchange.answer(request).body, base.key):
            if version.hash == base.hash and version.content is not None:
                self._table.keep(self._directory, {version.hash: version.content})

    def _commit(self, keys: tuple[str, ...], plan_keys: PlanKeys) -> None:
        """Carry out the plans for some keys as one change set, if there are keys."""
        if keys:
            commit(self._exchange, keys, plan_keys)


def commit(exchange: Exchange, keys: tuple[str, ...], plan_keys: PlanKeys) -> None:
    """Carry out the plans for some keys as one change set, and note what it did.

    Raises the errors of the store.
    """
    page = PagePlan(
        exchange.directory,
        keys,
        plan_keys,
        exchange.ports.now(),
        partial(exchange.table.body, exchange.directory),
        partial(exchange.table.keep, exchange.directory),
    )
    committed = exchange.ports.commit(page, BY)
    exchange.effects.pages.append(page)
    exchange.effects.change = committed.change or exchange.effects.change
    exchange.progress(sum(len(each.keys) for each in exchange.effects.pages))
    if page.left_out:
        exchange.table.save(exchange.directory, *page.left_out)
        exchange.effects.left_out += page.left_out


def _page_planner(plan_page: _PlanPage, bases: Bases, entries: Sequence[RemoteEntry]) -> PlanKeys:
    """Return the function that plans a page of entries for the hashes of the files here."""
    return lambda local: plan_page(local, bases, entries)


def _restores_of(deleted: Sequence[Base]) -> PlanKeys:
    """Return the function that plans to restore those of these bases that have no file here."""
    return partial(planning.plan_restores, bases={base.key: base for base in deleted})
