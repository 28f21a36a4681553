"""Switch rules for tools, and answer tools' calls. The only file of the room that awaits.

Rules of this file
- A rule's state is computed from its memory and its row: it is on while the memory has the words
  that were consented to. The states ``changed`` and ``gone`` are never stored.
- The rules of a directory are cached. A call reads a memory again only if the store noticed a
  change; if no rule is on anywhere, ``any_on`` answers without leaving the event loop.
- An answer that is late allows the call. Nothing here runs the command that a check names.
"""

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

import msgspec
from anyio import move_on_after, to_thread
from msgspec import Struct

from memd.base.clock import Clock
from memd.base.errors import MemdError, Refused
from memd.base.recent import Recent
from memd.base.values import Draft, FileEdit, Tree
from memd.methods.callers import Callers, by_client
from memd.methods.method import method
from memd.rpc.call import Call
from memd.rules.check import normal
from memd.rules.consent import LoadedRule, candidates, load_rule, reason_against_rule, with_check
from memd.rules.stored import StoredRule, count_answer, stored_rules, switch_off, switch_on
from memd.rules.values import (
    RULES,
    PlannedCall,
    RuleAdded,
    RuleAnswer,
    RuleCounts,
    RuleList,
    ToolRule,
    not_arule,
    rule_not_found,
)
from memd.state.docs import Docs
from memd.store.check import no_memory
from memd.store.store import Store

_MOST_CANDIDATES = 500  # memories that a list tries as candidates, the newest ones
_TOO_MANY_RULES = f"{RULES} rules are the limit of a project"
_ALLOWED = RuleAnswer()
Words = Annotated[str, msgspec.Meta(max_length=10_000)]


class _CachedRules(Struct, frozen=True):
    """The rules of a directory, and the hashes that their memories had (``None`` for no file)."""

    hashes: tuple[str | None, ...]
    stored: tuple[StoredRule, ...]
    rules: tuple[LoadedRule, ...]


class ToolRules:
    """The rules of all projects. Use it on the event loop."""

    def __init__(self, store: Store, table: Docs, clock: Clock, callers: Callers) -> None:
        self._store = store
        self._callers = callers
        self._table = table
        self._clock = clock
        self._rows: tuple[StoredRule, ...] | None = None  # of all projects, None until read
        self._cache: Recent[str, _CachedRules] = Recent()  # by directory
        self._read_lock = threading.Lock()  # so that older rows never replace newer ones

    async def any_on(self) -> bool:
        """Return whether a rule of any project is switched on. Raises StateUnusableError."""
        rows = self._rows
        if rows is None:
            rows = await to_thread.run_sync(self._reload_rows)
        return any(row.enabled for row in rows)

    async def answer(
        self, directories: Callable[[], Sequence[str]], call: PlannedCall, seconds: float
    ) -> RuleAnswer:
        """Return the answer of some directories' rules to a tool's call, and count it.

        ``directories`` is a blocking function that returns them. A rule that refuses wins over one
        that asks. Raises nothing: on an error or after ``seconds`` the call is allowed.
        """
        with move_on_after(seconds), suppress(MemdError):
            return await to_thread.run_sync(self._answer, directories, call, abandon_on_cancel=True)
        return _ALLOWED

    @method("rule.test", "read")
    def test(self, call: Call, *, cwd: str, tool: str, input_: dict[str, Any]) -> RuleAnswer:
        """The answer of a project's rules to a tool call. Nothing is run and nothing is counted.

        ``input`` is what an assistant gives the tool, such as ``{"command": "git push"}`` for Bash.
        """
        directory = self._callers.place(call, cwd).memory_dir
        return _answer_of(self._broken_rule((directory,), PlannedCall(tool, input_, cwd)))

    @method("rule.list", "read")
    def list(self, call: Call, *, cwd: str) -> RuleList:
        """The rules of a project, and memories that could be made rules.

        A rule holds while its ``state`` is ``on``; it changes when its memory's text differs from
        the one that the person consented to. A candidate is a memory with a line ``check:``.
        """
        return self.list_in(self._callers.place(call, cwd).memory_dir)

    async def counts(self) -> RuleCounts:
        """Return how many rules of all projects are in which state. Raises StateUnusableError."""
        return await to_thread.run_sync(self._counts)

    @method("rule.add", "write")
    async def add(
        self,
        call: Call,
        *,
        cwd: str,
        path: str,
        check: Words = "",
        answer: Literal["ask", "deny"] = "ask",
        request_id: str = "",
    ) -> RuleAdded:
        """Switch the rule of a memory on, with the memory's present text.

        If ``check`` is given, it is written into the memory first. A program that an assistant
        started is refused.
        """
        check, digest = normal(check), ""

        def begin() -> str:
            """Return the directory once the caller may add a rule there. Blocks."""
            directory = self._callers.writable(call, cwd).memory_dir
            if self._callers.started_by_an_assistant(call):
                raise _rule_refused()
            self._check_limit(directory, path)
            return directory

        directory = await to_thread.run_sync(begin)

        def plan(tree: Tree) -> Draft:
            """Return the change that writes the line ``check:``, none if the memory has it."""
            nonlocal digest
            file = tree.read(path)
            if file is None:
                raise no_memory(path)
            content, words = with_check(file, check)
            digest = words.digest
            if content == file.content:
                return Draft()
            return Draft((FileEdit(path, content, file.hash, file.header.mtime_ns),))

        committed = await self._store.commit(
            directory, plan, by_client(call, "rule.add"), request_id=request_id
        )
        if digest:  # empty for a repeated request, whose rule is on already
            at = self._clock.now()
            consent = StoredRule(0, directory, path, digest, answer, enabled=True, at=at)
            await to_thread.run_sync(switch_on, self._table, consent)
        rules = await to_thread.run_sync(self._reloaded_rules, directory)
        rule = next((each for each in rules if each.stored.path == path), None)
        if rule is None:  # the rules were changed meanwhile
            raise no_memory(path)
        return RuleAdded(rule.shown(), committed.change)

    @method("rule.off", "write")
    def off(self, call: Call, *, cwd: str, rule: str) -> ToolRule:
        """Switch a rule off; its line stays in the memory. Programs that assistants start are
        refused.

        A rule whose memory is gone is deleted.
        """
        directory = self._callers.place(call, cwd).memory_dir
        if self._callers.started_by_an_assistant(call):
            raise _rule_refused()
        for each in self._reloaded_rules(directory):
            if each.id == rule:
                switch_off(self._table, each.stored, forget=each.state == "gone")
                updated = (new for new in self._reloaded_rules(directory) if new.id == rule)
                return next(updated, each).shown()  # a deleted rule is returned as it was
        raise rule_not_found(rule)

    def _reload_rows(self) -> tuple[StoredRule, ...]:
        """Read all rows again and return them; rules of changed rows are no longer cached."""
        with self._read_lock:
            rows = self._rows = stored_rules(self._table)
        return rows

    def _stored_rules(self, directory: str) -> tuple[StoredRule, ...]:
        """Return the rows of a directory's rules, read from the state file if needed."""
        real_directory = os.path.realpath(directory)
        rows = self._reload_rows() if self._rows is None else self._rows
        return tuple(row for row in rows if row.directory == real_directory)

    def _current_rules(self, directory: str) -> tuple[LoadedRule, ...]:
        """Return the rules of a directory, reading their memories again if one changed."""
        stored = self._stored_rules(directory)
        if not stored:
            return ()
        real_directory = stored[0].directory
        cached = self._cache.get(real_directory)
        if cached is not None and cached.stored != stored:
            cached = None
        rows = self._store.reading.rows(real_directory)
        rows_of_rules = (rows.get(rule.path) for rule in stored)
        hashes = tuple(row.header.hash if row else None for row in rows_of_rules)
        if cached is not None and cached.hashes == hashes:
            return cached.rules
        paths = sorted({rule.path for rule in stored})
        files = self._store.reading.read_many(real_directory, paths)
        file_of = {file.header.path: file for file in files}
        rules = tuple(load_rule(rule, file_of.get(rule.path)) for rule in stored)
        self._cache[real_directory] = _CachedRules(hashes, stored, rules)
        return rules

    def _reloaded_rules(self, directory: str) -> tuple[LoadedRule, ...]:
        """Return the rules of a directory with their rows read again."""
        self._reload_rows()
        return self._current_rules(directory)

    def _broken_rule(self, directories: Sequence[str], call: PlannedCall) -> LoadedRule | None:
        """Return the rule that a call breaks: the first that refuses, else the first that asks."""
        broken: list[LoadedRule] = []
        for directory in directories:
            with suppress(MemdError):  # an unreadable directory must not stop the rules of another
                rules = self._current_rules(directory)
                broken += [rule for rule in rules if rule.check and rule.check.fits(call)]
        return min(broken, key=lambda rule: rule.answer != "deny", default=None)

    def _answer(
        self, find_directories: Callable[[], Sequence[str]], call: PlannedCall
    ) -> RuleAnswer:
        """Return the answer of the rules to a call, and count it. Blocks."""
        directories = find_directories()
        rule = self._broken_rule(directories, call)
        if rule is None:
            return _ALLOWED
        with suppress(MemdError):  # the rule also answers if the count cannot be written
            if not count_answer(self._table, rule.stored, self._clock.now()):
                self._reload_rows()  # the row is gone: the state file was replaced
                return _answer_of(self._broken_rule(directories, call))
        return _answer_of(rule)

    def list_in(self, directory: str) -> RuleList:
        """Return the rules of a directory and the memories that could be rules. Blocks."""
        rules = self._reloaded_rules(directory)
        listed = {rule.stored.path for rule in rules if rule.state != "gone"}
        headers = self._store.reading.headers(directory)
        paths = [
            each.path
            for each in headers
            if not reason_against_rule(each) and each.path not in listed
        ]
        files = self._store.reading.read_many(directory, paths[:_MOST_CANDIDATES])
        return RuleList(tuple(rule.shown() for rule in rules), candidates(files))

    def _counts(self) -> RuleCounts:
        """Return how many rules are in each state. Blocks."""
        states: list[str] = []
        for directory in {rule.directory for rule in self._reload_rows()}:
            with suppress(MemdError):  # the doctor reports a directory that cannot be read
                states += (rule.state for rule in self._current_rules(directory))
        names = ("on", "off", "changed", "gone")
        return RuleCounts(**{name: states.count(name) for name in names})

    def _check_limit(self, directory: str, path: str) -> None:
        """Raise Invalid if the directory would have more than ``RULES`` rules on."""
        enabled = {rule.path for rule in self._stored_rules(directory) if rule.enabled}
        if len(enabled | {path}) > RULES:
            raise not_arule(path, _TOO_MANY_RULES)


def _answer_of(rule: LoadedRule | None) -> RuleAnswer:
    """Return the answer to a call that breaks ``rule``, or that breaks none (``None``)."""
    if rule is None or rule.words is None:
        return _ALLOWED
    return RuleAnswer(rule.answer, rule.id, rule.words.reason)


def _rule_refused() -> Refused:
    """Return the error that a program that an assistant started tried to switch a rule."""
    return Refused(
        "which rules hold is for the person to say",
        hint="run memctl rule in a terminal of your own",
    )
