"""Rules for tools: switched on by a person, and answered with. The only file here that waits.

Rules of this file
- What holds is read from the memories and the rows alone: a rule is on while its memory says what
  was consented to. Nothing here writes ``changed`` or ``gone`` down.
- The rules of a directory are in memory. A call looks whether the store has noticed a change, and
  reads a memory again only then; where no rule is on anywhere it does not even leave the loop.
- An answer that is not ready in its time is none. Nothing here runs what a check names.
"""

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from anyio import move_on_after, to_thread

from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.core.recent import Recent
from memd.core.values import Draft, FileEdit, Provenance, Tree
from memd.rules.check import normal
from memd.rules.consent import LoadedRule, candidates, consented, loaded, why_not
from memd.rules.values import (
    RULES,
    Answer,
    NotARuleError,
    PlannedCall,
    RuleAdded,
    RuleAnswer,
    RuleCounts,
    RuleList,
    RuleNotFoundError,
    ToolRule,
)
from memd.state.tables import RuleTable, StoredRule
from memd.store.service import MemoryNotFoundError, Store

_READ = 500  # memories of the type feedback, the newest, that a list looks at
_FULL = f"{RULES} rules are the limit of a project"
_ALLOWED = RuleAnswer()


@dataclass(frozen=True, slots=True)
class _Cached:
    """The rules of a directory that are not switched off, as of a mark of its catalogue."""

    mark: int
    stored: tuple[StoredRule, ...]
    rules: tuple[LoadedRule, ...]


class ToolRules:
    """The rules of all projects. Use it on the event loop.

    ``acted`` counts a use of the memory of a rule that answered: its directory and path, the
    session, and when. It blocks and may raise StateUnusableError.
    """

    def __init__(
        self,
        store: Store,
        table: RuleTable,
        clock: Clock,
        *,
        acted: Callable[[str, str, str, float], None] = lambda *_: None,
    ) -> None:
        self._store = store
        self._table = table
        self._clock = clock
        self._acted = acted
        self._stored: tuple[StoredRule, ...] | None = None
        self._cached: Recent[str, _Cached] = Recent()
        self._reading = threading.Lock()  # so that no older rows take the place of newer ones

    async def any_on(self) -> bool:
        """Say whether a rule of any project is switched on. Raises StateUnusableError."""
        stored = self._stored
        if stored is None:
            stored = await to_thread.run_sync(self._rows)
        return any(rule.enabled for rule in stored)

    async def answer(
        self, directories: Callable[[], Sequence[str]], call: PlannedCall, seconds: float
    ) -> RuleAnswer:
        """Return what the rules of some directories say to a tool's call, and count it.

        ``directories`` finds them, and blocks. A rule that refuses comes before one that asks.
        Raises nothing: what cannot be read in so much time says nothing.
        """
        with move_on_after(seconds), suppress(MemdError):
            return await to_thread.run_sync(self._answer, directories, call, abandon_on_cancel=True)
        return _ALLOWED

    async def test(self, directory: str, call: PlannedCall) -> RuleAnswer:
        """Return what the rules say to a call that nobody makes. Raises nothing."""
        rule = await to_thread.run_sync(self._broken, (directory,), call)
        return _said(rule)

    async def list(self, directory: str) -> RuleList:
        """Return the rules of a directory, and memories that could be some.

        Raises StateUnusableError and what reading the directory raises.
        """
        return await to_thread.run_sync(self._list, directory)

    async def counts(self) -> RuleCounts:
        """Return how many rules of all projects are in which state. Raises StateUnusableError."""
        return await to_thread.run_sync(self._counts)

    async def add(
        self,
        directory: str,
        path: str,
        check: str,
        answer: Answer,
        by: Provenance,
        *,
        request_id: str = "",
    ) -> RuleAdded:
        """Switch the rule of a memory on, with the words that it has now; the person asked for it.

        A ``check`` is written into the memory, "" takes the one that it has. Raises
        CheckRefusedError, NotARuleError, MemoryNotFoundError and what ``Store.commit`` raises.
        """
        check = normal(check)
        await to_thread.run_sync(self._check_room, directory, path)
        digest = ""

        def plan(tree: Tree) -> Draft:
            nonlocal digest
            file = tree.read(path)
            if file is None:
                raise MemoryNotFoundError(path)
            content, words = consented(file, check)
            digest = words.digest
            if content == file.content:
                return Draft()
            return Draft((FileEdit(path, content, file.hash, file.header.mtime_ns),))

        committed = await self._store.commit(directory, plan, by, request_id=request_id)
        if digest:  # no repeated request, which was done
            at = self._clock.now()
            await to_thread.run_sync(self._table.switch_on, directory, path, digest, answer, at)
        rules = await to_thread.run_sync(self._renewed, directory)
        rule = next((each for each in rules if each.stored.path == path), None)
        if rule is None:
            raise MemoryNotFoundError(path)
        return RuleAdded(rule.shown(), committed.change)

    async def off(self, directory: str, rule: str) -> ToolRule:
        """Switch a rule off and return it; one whose memory is gone is forgotten.

        Raises RuleNotFoundError and StateUnusableError.
        """
        return await to_thread.run_sync(self._off, directory, rule)

    def _off(self, directory: str, id_: str) -> ToolRule:
        for rule in self._renewed(directory):
            if rule.id == id_:
                self._table.switch_off(rule.stored.number, forget=rule.state == "gone")
                again = (each for each in self._renewed(directory) if each.id == id_)
                return next(again, rule).shown()
        raise RuleNotFoundError(id_)

    def _rows(self) -> tuple[StoredRule, ...]:
        """Read all rows again; what was cached of them is looked at anew."""
        with self._reading:
            stored = self._stored = self._table.all()
        return stored

    def _of(self, directory: str) -> tuple[StoredRule, ...]:
        real = os.path.realpath(directory)
        stored = self._rows() if self._stored is None else self._stored
        return tuple(rule for rule in stored if rule.directory == real)

    def _all(self, directory: str) -> tuple[LoadedRule, ...]:
        """Return the rules of a directory as they are now."""
        stored = self._of(directory)
        if not stored:
            return ()
        real = stored[0].directory
        cached = self._cached.get(real)
        if cached is not None and cached.stored != stored:
            cached = None
        paths = {rule.path for rule in stored}
        news = self._store.reading.catalogue(real, cached.mark if cached else -1)
        named = paths.intersection((*(header.path for header in news.changed), *news.gone))
        rules = cached.rules if cached else ()
        if cached is None or news.whole or named:
            files = self._store.reading.read_many(real, sorted(paths))
            by_path = {file.header.path: file for file in files}
            rules = tuple(loaded(rule, by_path.get(rule.path)) for rule in stored)
        self._cached[real] = _Cached(news.mark, stored, rules)
        return rules

    def _renewed(self, directory: str) -> tuple[LoadedRule, ...]:
        """Return the rules of a directory with their rows read again, for a person who looks."""
        self._rows()
        return self._all(directory)

    def _broken(self, directories: Sequence[str], call: PlannedCall) -> LoadedRule | None:
        """Return the rule that a call breaks: the first that refuses, else the first that asks."""
        broken: list[LoadedRule] = []
        for directory in directories:
            with suppress(MemdError):  # one that cannot be read must not silence another
                rules = self._all(directory)
                broken += [rule for rule in rules if rule.check and rule.check.fits(call)]
        return min(broken, key=lambda rule: rule.answer != "deny", default=None)

    def _answer(self, find: Callable[[], Sequence[str]], call: PlannedCall) -> RuleAnswer:
        directories = find()
        rule = self._broken(directories, call)
        if rule is None:
            return _ALLOWED
        with suppress(MemdError):  # a full disk switches no rule off
            stored, at = rule.stored, self._clock.now()
            if not self._table.answered(stored.number, at):
                self._rows()  # the state file was lost
                return _said(self._broken(directories, call))
            self._acted(stored.directory, stored.path, call.session, at)
        return _said(rule)

    def _list(self, directory: str) -> RuleList:
        rules = self._renewed(directory)
        listed = {rule.stored.path for rule in rules if rule.state != "gone"}
        headers = self._store.reading.snapshot(directory).snapshot.headers
        own = [each.path for each in headers if not why_not(each) and each.path not in listed]
        files = self._store.reading.read_many(directory, own[:_READ])
        repeated = self._table.repeated(directory)
        return RuleList(tuple(rule.shown() for rule in rules), candidates(files, repeated))

    def _counts(self) -> RuleCounts:
        states: list[str] = []
        for place in {rule.directory for rule in self._rows()}:
            with suppress(MemdError):  # a directory that cannot be read is the doctor's
                states += (rule.state for rule in self._all(place))
        names = ("on", "off", "changed", "gone")
        return RuleCounts(**{name: states.count(name) for name in names})

    def _check_room(self, directory: str, path: str) -> None:
        enabled = {rule.path for rule in self._of(directory) if rule.enabled}
        if len(enabled | {path}) > RULES:
            raise NotARuleError(path, _FULL)


def _said(rule: LoadedRule | None) -> RuleAnswer:
    """Return what a call is answered with that breaks a rule."""
    if rule is None or rule.words is None:
        return _ALLOWED
    return RuleAnswer(rule.answer, rule.id, rule.words.said)
