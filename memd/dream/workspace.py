"""The tools by which a dream's model chooses, beside the agent's own. Blocks; used by one thread.

``Merge``, ``Supersede``, ``Expire`` and ``Keep`` name memories, and memd writes. As with Write and
Edit nothing is written before the dream is judged (``check.py``); a call that cannot be right is
answered with the reason, so that the model can mend it.
"""

import copy
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from memd.agent import drafting, places, tools
from memd.agent.places import MEMORY, TRANSCRIPTS
from memd.agent.refusals import (
    ChangeRefusedError,
    EditFailedError,
    InputError,
    NotReachableError,
    PathMissingError,
    ToolError,
)
from memd.agent.step import FAILED, ToolResult
from memd.agent.view import AgentView
from memd.agent.workspace import FILES, Workspace
from memd.base import limits
from memd.base.errors import MemdError
from memd.base.names import INDEX, LOGS
from memd.base.package_files import read_text
from memd.base.text import decode, iso_time, one_line, said_line
from memd.base.values import ASSISTANT, PERSON, PERSONAL, MemoryType
from memd.dream import joining
from memd.dream.joining import CannotJoinError
from memd.dream.sources import Transcripts, log_statements, said_in
from memd.dream.values import Removal
from memd.model.port import Block
from memd.store import memory
from memd.store.memory import Memory, parse
from memd.text.statements import Statement, statements

_REASON_CHARACTERS = 450
_MEMORIES = 64  # that one call names
_TRANSCRIPTS = 4  # whose words of the person count as sources
_Path = Annotated[str, msgspec.Meta(max_length=4_096)]
_Paths = Annotated[tuple[_Path, ...], msgspec.Meta(min_length=1, max_length=_MEMORIES)]
_Text = Annotated[str, msgspec.Meta(max_length=20_000)]

_SAME = "it is named twice"
_INDEX = "the index is no memory"
_DAMAGED = "its frontmatter does not parse, and a person has to look at it"
_OTHER_TYPE = "only a memory of the same type goes into a person's own one, or takes it in"
_OTHER_ORIGIN = "its words are somebody else's, and the person's own would no longer be known"
_TOO_LARGE = f"together they would have more than {limits.SURFACED_BYTES} bytes; leave them apart"
_RUN_IS_FULL = f"a run may change {FILES} files"
_BY_TOOL = "a memory goes by Merge, Supersede or Expire"
_NOT_A_SENTENCE = "'{}' is no whole sentence of it"
_NO_LOG = "it is no daily log"
_NOT_IN_LOG = "the log does not say that"
_NOT_SAID = "no transcript of that day has these words of the person's"
_ONLY_SAID = 'a user or feedback memory needs a line `user said: "…"` of the log'
_NEW_RULE = "what the person said becomes a memory of its own: name a new path"


class MergeCall(Struct, forbid_unknown_fields=True, frozen=True):
    """Input of Merge."""

    into: _Path
    sources: _Paths = msgspec.field(name="from")


class SupersedeCall(Struct, forbid_unknown_fields=True, frozen=True):
    """Input of Supersede."""

    old: _Path
    by: _Path
    still_true: tuple[_Text, ...] = ()
    reason: _Text = ""


class ExpireCall(Struct, forbid_unknown_fields=True, frozen=True):
    """Input of Expire."""

    path: _Path
    reason: _Text


class KeepCall(Struct, forbid_unknown_fields=True, frozen=True):
    """Input of Keep."""

    log: _Path
    fact: _Text
    into: _Path
    type: MemoryType = MemoryType.PROJECT
    description: _Text = ""


Decision = MergeCall | SupersedeCall | ExpireCall | KeepCall
_INPUTS: Mapping[str, type[Decision]] = {
    "Merge": MergeCall,
    "Supersede": SupersedeCall,
    "Expire": ExpireCall,
    "Keep": KeepCall,
}
_AGENT_TOOLS = ("Read", "Grep", "Glob", "Write", "Edit")
NAMES = frozenset((*_AGENT_TOOLS, *_INPUTS))
_OWN_DEFINITIONS = [
    tool | {"description": tool["description"].strip()}
    for tool in tomllib.loads(read_text("dream/tools.toml"))["tool"]
]


def definitions() -> tuple[Block, ...]:
    """Return the tools of a dream in the shape of the Messages API, always in the same order."""
    agents = [tool for tool in tools.definitions() if tool["name"] in _AGENT_TOOLS]
    return (*agents, *copy.deepcopy(_OWN_DEFINITIONS))


class Decisions(Struct):
    """What a dream's model chose, by path.

    ``joined`` are the texts that Merge made of memories as they were, and ``of_person`` those that
    Keep made of the person's words. ``questions`` are pairs of
    rules of which the person has to say which one holds, with the model's reason.
    """

    removals: dict[str, Removal] = msgspec.field(default_factory=dict)
    joined: dict[str, bytes] = msgspec.field(default_factory=dict)
    of_person: dict[str, bytes] = msgspec.field(default_factory=dict)
    questions: dict[tuple[str, str], str] = msgspec.field(default_factory=dict)


class DreamWorkspace(Workspace):
    """A workspace with the tools of a dream; ``transcripts_of`` has the person's words."""

    def __init__(
        self, directory: str, *, transcripts_of: Transcripts, session: str = "", **more: Any
    ) -> None:
        super().__init__(directory, origin=ASSISTANT, **more)
        self._persons_words = transcripts_of
        self._session = session
        self.decisions = Decisions()
        # By name: the whole text of each daily log that a tool showed. Those that were read, and
        # the paths of transcripts that a tool showed, in order.
        self.logs: dict[str, str] = {}
        self.read_logs: set[str] = set()
        self.read_transcripts: dict[str, None] = {}

    def _parse(self, name: str, given: Mapping[str, Any]) -> Any:
        if name not in _INPUTS:
            return super()._parse(name, given)
        try:
            return msgspec.convert(given, type=_INPUTS[name], strict=False)
        except tools.NO_INPUT as error:
            raise InputError(name, str(error)) from error

    def _run(self, given: tools.Input | Decision, agent_view: AgentView) -> ToolResult:
        if isinstance(given, Decision):
            agent_view.meter.tick()
            try:
                return self._choose(given, agent_view.now)
            except CannotJoinError as error:
                return ToolResult(f"Not done: {error}.", FAILED)
        result = super()._run(given, agent_view)
        for place in (entry.place for entry in agent_view.read):
            if place.root.kind == MEMORY and place.name.startswith(f"{LOGS}/"):
                with suppress(MemdError, ToolError):  # a log that is too large is no source
                    self._log(place.name)
                    if isinstance(given, tools.Read):
                        self.read_logs.add(place.name)
            elif place.root.kind == TRANSCRIPTS and len(self.read_transcripts) < _TRANSCRIPTS:
                self.read_transcripts[place.path] = None
        return result

    def _choose(self, decision: Decision, now: float) -> ToolResult:
        """Carry out a decision. Raises ToolError, CannotJoinError and the errors of documents."""
        match decision:
            case MergeCall():
                return self._merge(decision)
            case SupersedeCall():
                return self._supersede(decision)
            case ExpireCall():
                return self._expire(decision)
        return self._keep(decision, now)

    def _merge(self, given: MergeCall) -> ToolResult:
        into, content = self._memory(given.into)
        sources = [self._memory(path) for path in given.sources]
        if len({into, *(name for name, _ in sources)}) <= len(sources):
            raise ChangeRefusedError(given.into, _SAME)
        target, result = parse(content, into), content
        for name, text in sources:
            source = parse(text, name)
            if target.type != source.type and {target.type, source.type} & {None, *PERSONAL}:
                raise ChangeRefusedError(name, _OTHER_TYPE)
            taken_in = joining.joined(result, text)
            is_copy = taken_in == result and target.origin == PERSON
            is_rule = target.type in (None, *PERSONAL)
            if is_rule and not is_copy and target.origin != source.origin:
                raise ChangeRefusedError(name, _OTHER_ORIGIN)
            result = taken_in
        self._check_room(into, *(name for name, _ in sources))
        is_as_it_was = all(self._is_as_it_was(*each) for each in ((into, content), *sources))
        self._put(into, content, result)
        self.decisions.joined.pop(into, None)
        if is_as_it_was:
            self.decisions.joined[into] = result
        for name, _ in sources:
            self._remove_for(name, Removal(f"merged into {into}", into=into))
            for path, removal in self.decisions.removals.items():
                if removal.into == name:  # it went into a memory that goes on into this one
                    self._remove_for(path, Removal(f"merged into {into}", into=into))
        return ToolResult(f"{into} now says what {', '.join(n for n, _ in sources)} said.")

    def _supersede(self, given: SupersedeCall) -> ToolResult:
        old, old_text = self._memory(given.old)
        by, content = self._memory(given.by)
        if old == by:
            raise ChangeRefusedError(given.old, _SAME)
        reason = one_line(given.reason, _REASON_CHARACTERS)
        if parse(old_text, old).type in (None, *PERSONAL):
            self.decisions.questions[old, by] = reason
            return ToolResult(f"The person is asked which holds, {old} or {by}; both stay.")
        there = {each.key: each.raw for each in _statements(old_text)}
        added: list[str] = []
        for sentence in given.still_true:
            key = Statement(sentence.strip()).key
            if key not in there:
                raise EditFailedError(old, _NOT_A_SENTENCE.format(one_line(sentence, 80)))
            added.append(there[key])
        self._check_room(old, by)
        self._put(by, content, joining.with_sentences(content, "\n\n".join(added)))
        why = f"{by} is newer and says otherwise" + (f": {reason}" if reason else "")
        self._remove_for(old, Removal(why, by=by))
        return ToolResult(f"{old} goes, as {by} is newer.")

    def _expire(self, given: ExpireCall) -> ToolResult:
        name, _ = self._memory(given.path)
        self._check_room(name)
        self._remove_for(name, Removal(one_line(given.reason, _REASON_CHARACTERS)))
        return ToolResult(f"{name} goes.")

    def _keep(self, given: KeepCall, now: float) -> ToolResult:
        log, text = self._log(given.log)
        name = self._name(given.into)
        if name == INDEX:
            raise ChangeRefusedError(given.into, _INDEX)
        before = self._read_memory(name)
        key = f" {Statement(given.fact.strip()).key} "
        matching = [each for each in log_statements(text) if key in f" {each.key} " and key.strip()]
        if not matching:
            raise EditFailedError(log, _NOT_IN_LOG)
        self.read_logs.add(log)
        fact = matching[0].raw
        if before is not None:
            old = parse(before, name)
            if old.type in (None, *PERSONAL):
                raise ChangeRefusedError(name, _NEW_RULE if said_in(fact) else _ONLY_SAID)
            self._put(name, before, joining.with_sentences(before, fact))
            return ToolResult(f"{name} has it now.")
        description = one_line(given.description or fact, limits.INDEX_HOOK_CHARACTERS)
        origin, session = ASSISTANT, self._session
        if given.type in PERSONAL:
            fact, session = self._persons_fact(fact, log)
            description, origin = fact.partition("\n")[0], PERSON
        slug = memory.slug(name.rpartition("/")[2].removesuffix(".md"))
        content = memory.new(
            *(slug, one_line(description, limits.INDEX_HOOK_CHARACTERS), given.type, fact),
            session=session,
            modified=iso_time(now),
            origin=origin,
        )
        self._accept_change(name, decode(content), "written")
        if given.type in PERSONAL:
            self.decisions.of_person[name] = self._written[name] or b""
        return ToolResult(f"{name} is written.")

    def _persons_fact(self, line: str, log: str) -> tuple[str, str]:
        """Return the body of a memory of the person's words, and the session that has them."""
        words = said_in(line)
        if not words:
            raise ChangeRefusedError(log, _ONLY_SAID)
        sentence = self._persons_words.sentence_with(words, log)
        if sentence is None:
            raise ChangeRefusedError(log, _NOT_SAID)
        typed = one_line(sentence.text, limits.SURFACED_BYTES // 4)
        return f"{typed}\n\n{said_line(typed, sentence.at)}", sentence.session

    def _write(self, given: tools.Write) -> ToolResult:
        if drafting.removal(given.content):
            raise ChangeRefusedError(given.file_path, _BY_TOOL)
        return super()._write(given)

    def _is_as_it_was(self, name: str, content: bytes) -> bool:
        """Return whether nothing but Merge changed a memory in this run."""
        return content in (self._base.get(name), self.decisions.joined.get(name))

    def _put(self, name: str, before: bytes, content: bytes) -> None:
        """Write a memory that memd put together, unless nothing was added to it."""
        if content == before:
            return
        if len(content) > limits.SURFACED_BYTES:
            raise ChangeRefusedError(name, _TOO_LARGE)
        self._accept_change(name, decode(content), "changed")

    def _check_room(self, *names: str) -> None:
        """Refuse a decision if the run would change too many files."""
        if len({*self._written, *names}) > FILES:
            raise ChangeRefusedError(names[0], _RUN_IS_FULL)

    def _remove_for(self, name: str, removal: Removal) -> None:
        """Mark a memory as removed."""
        self._written[name] = None
        self.decisions.removals[name] = removal

    def _accept_change(self, name: str, text: str, verb: str) -> ToolResult:
        result = super()._accept_change(name, text, verb)
        removal = self.decisions.removals.pop(name, None)  # it is there again
        self.decisions.joined.pop(removal.into if removal else name, None)
        return result

    def _memory(self, path: str) -> tuple[str, bytes]:
        """Return name and content of an existing memory that may change. Raises ToolError."""
        name = self._name(path)
        if name == INDEX:
            raise ChangeRefusedError(path, _INDEX)
        content = self._read_memory(name)
        if content is None:
            raise PathMissingError(path)
        if parse(content, name).damaged:
            raise ChangeRefusedError(path, _DAMAGED)
        return name, content

    def _log(self, path: str) -> tuple[str, str]:
        """Return name and text of a daily log. Raises ToolError."""
        place = places.locate(path, self._roots)
        if place.root.kind != MEMORY or not place.name.startswith(f"{LOGS}/"):
            raise NotReachableError(path, _NO_LOG)
        if place.name not in self.logs:
            opened = self._directory and self._directory.read(place.name, limits.LOG_BYTES)
            if not opened or opened[1].st_nlink > 1:
                raise PathMissingError(path)
            self.logs[place.name] = decode(opened[0])
        return place.name, self.logs[place.name]

    def persons_sentences(self) -> list[str]:
        """Return the person's sentences in the transcripts that a tool showed."""
        sentences = self._persons_words.sentences(self.read_transcripts)
        return [sentence.text for sentence in sentences]

    def memories_read(self) -> dict[str, bytes | None]:
        """Return the memories that the run read, as they were when it read them first."""
        return dict(self._base)


def _statements(content: bytes) -> list[Statement]:
    """Return the statements of a memory's body."""
    read: Memory = parse(content, "")
    return [each for each in statements(read.body) if each.key]
