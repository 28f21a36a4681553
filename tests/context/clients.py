"""A client that plays a generated conversation through a planner, and what went out of it.

The client does what any client of ``context.plan`` does: it sends what is new, applies the edits
that come back, sends again from a checkpoint when it is told to, and remembers what it sent.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any, Protocol

from msgspec.structs import replace

from memd.context.requests import Checkpoint, ContextEdit, ContextRequest, PlannedContext
from memd.context.values import CLEAR, KEEP, SPILL, BlockKey, Decision
from memd.conversation.history import estimate
from memd.core.canonical import LEAST_CHARACTERS, START, canonical, chained, content_hash
from tests.context.histories import ConversationMaker, Message, calls_of, open_calls, text_of
from tests.support.api_rules import signed
from tests.support.clock import FakeClock

Edits = dict[int, dict[int, str | None]]
BOUND_MODEL = "claude-opus-5-5"  # refuses thinking behind a changed prefix
_MOST_TRIES = 4  # of one plan: a message that changed, a clearing that needs text, and the plan


class Planner(Protocol):
    """What stands for memd: the rooms alone, or the service with its state file."""

    clock: FakeClock
    failing: float  # the share of results that the disk refuses
    unstored: set[str]  # calls whose results it refused

    def plan(self, request: ContextRequest) -> PlannedContext:
        """Return what to send of a conversation."""

    def spill(self, request: ContextRequest, tool: str, call: str, text: str) -> Decision | None:
        """Store a result as it is born, where it is large, and return what was decided."""

    def restore(self, request: ContextRequest, decisions: Sequence[Decision], fork: str) -> None:
        """Take in what a client sent, and the decisions of the session that it was forked from."""

    def restart(self) -> None:
        """Forget what a daemon has in memory alone."""

    def stored(self, path: str) -> str | None:
        """Return the text of a stored result, ``None`` where there is none."""


@dataclass(frozen=True)
class Result:
    """One tool result of a conversation, and how it went out."""

    message: int
    block: int
    key: BlockKey
    tool: str
    text: str | None
    characters: int
    failed: bool
    edit: str | None

    @property
    def whole(self) -> bool:
        """Whether it went out as it is."""
        return self.edit is None


@dataclass(frozen=True)
class Step:
    """One request as it went out: what was asked, answered, and sent.

    ``before`` are the messages of the request before, as they were sent. ``known`` are the
    session's decisions up to then, and ``known_now`` those after it. ``applied`` are all edits that
    hold, ``members`` those that the conversation's requests had, ``None`` before its first.
    ``missed`` says that the answer came too late.
    """

    planner: Planner
    request: ContextRequest
    answer: PlannedContext
    originals: Sequence[Message]
    sent: Sequence[Message]
    before: Sequence[bytes]
    known: Mapping[BlockKey, Decision]
    known_now: Mapping[BlockKey, Decision]
    applied: Mapping[int, Mapping[int, str | None]]
    members: Mapping[str, Any] | None
    missed: bool
    last_reply: float

    @cached_property
    def lines(self) -> list[bytes]:
        """Each message that went out in its one form."""
        return [canonical(message) for message in self.sent]

    @cached_property
    def results(self) -> list[Result]:
        """The results of the conversation."""
        tools: dict[str, str] = {}
        found = []
        for place, message in enumerate(self.originals):
            tools |= {call["id"]: call["name"] for call in calls_of(message)}
            edits = self.applied.get(place, {})
            for number, block, key in results(message):
                failed, content = bool(block.get("is_error")), block["content"]
                tool, text, size = tools[key.tool_use_id], text_of(content), characters(content)
                edit = edits.get(number)
                found.append(Result(place, number, key, tool, text, size, failed, edit))
        return found


@dataclass
class Ledger:
    """Every decision that memd gave away, session by session, however often it was restarted."""

    planner: Planner
    check: Callable[[Step], None]
    sessions: dict[str, dict[BlockKey, Decision]] = field(default_factory=dict)
    shared: bool = False  # two clients have one conversation

    def of(self, session: str) -> dict[BlockKey, Decision]:
        """Return the decisions of a session."""
        return self.sessions.setdefault(session, {})

    def spill(self, request: ContextRequest, tool: str, call: str, text: str) -> None:
        """Have memd store a result."""
        decision = self.planner.spill(request, tool, call, text)
        if decision is not None:
            self.of(request.session)[decision.key] = decision

    def restore(
        self, request: ContextRequest, decisions: Sequence[Decision], fork: str = ""
    ) -> None:
        """Tell memd what was sent, or where a session comes from."""
        self.planner.restore(request, decisions, fork)
        copied = self.of(fork) if fork else {}
        self.of(request.session).update(copied | {item.key: item for item in decisions})


@dataclass
class Client:
    """One conversation of one client."""

    ledger: Ledger
    chance: Random
    maker: ConversationMaker
    request: ContextRequest  # what stays the same from call to call
    messages: list[Message] = field(default_factory=list)
    edits: Edits = field(default_factory=dict)
    decisions: dict[BlockKey, Decision] = field(default_factory=dict)
    reports: dict[BlockKey, Decision] = field(default_factory=dict)
    have: int = 0
    hash: bytes = START
    before: list[bytes] = field(default_factory=list)
    sent: list[Message] = field(default_factory=list)
    members: Mapping[str, Any] | None = None
    last_reply: float = 0.0
    tokens: int = 0

    def talk(
        self,
        *,
        missed: bool = False,
        alone: bool = False,
        failed: Callable[[], None] | None = None,
    ) -> None:
        """Let somebody speak, send a request, and get the reply.

        With ``missed`` the plan comes too late for the request; ``alone`` nobody is asked for one.
        With ``failed`` the server has no reply at first; that happens, and the client sends again.
        """
        calls = open_calls(self.messages)
        self.messages += self.maker.answer(calls) if calls else self.maker.person()
        if calls and not alone and self.chance.random() < 0.1:
            self._store_at_birth({call["id"]: call["name"] for call in calls})
        if alone:
            self._note_sent(list(self.messages))
        else:
            self._send(missed=missed)
        if failed is not None:
            failed()
            self._send(missed=False)
        body = {"model": BOUND_MODEL, "messages": self.sent}
        usage = {"input_tokens": 9, "cache_read_input_tokens": self.tokens, "output_tokens": 50}
        for reply in self.maker.reply():
            content = signed(body, reply["content"])
            self.messages.append({**reply, "usage": usage, "content": content})
            body["messages"] = [*body["messages"], {**reply, "content": content}]
        self.last_reply = self.ledger.planner.clock.now()

    def _store_at_birth(self, tools: Mapping[str, str]) -> None:
        """Ask about the newest results before they are in a request."""
        for message in self.messages[-2:]:
            for _, block, key in results(message):
                text, call = block["content"], key.tool_use_id
                if call in tools and isinstance(text, str) and "is_error" not in block:
                    self.ledger.spill(self.request, tools[call], call, text)

    def _send(self, *, missed: bool) -> None:
        """Ask for a plan, apply it, and send the request."""
        self.report()
        of_session = self.ledger.of(self.request.session)
        known = dict(of_session)
        request, answer = self._planned()
        if missed:
            self._go_without()
        else:
            self._take(request, answer)
            of_session |= {decision.key: decision for decision in answer.decisions}
        sent = [applied(m, self.edits.get(n, {})) for n, m in enumerate(self.messages)]
        step = Step(
            planner=self.ledger.planner,
            request=request,
            answer=answer,
            originals=self.messages,
            sent=sent,
            before=self.before,
            known=known,
            known_now=dict(of_session),
            applied=self.edits,
            members=self.members,
            missed=missed,
            last_reply=self.last_reply,
        )
        self.ledger.check(step)
        self.members = answer.request
        self._note_sent(sent)

    def _note_sent(self, sent: list[Message]) -> None:
        self.sent, self.before = sent, [canonical(message) for message in sent]
        self.tokens = sum(estimate(message["content"]) for message in sent)

    def report(self) -> None:
        """Tell memd what was sent without it."""
        if self.reports:
            self.ledger.restore(self.request, list(self.reports.values()))
            self.reports = {}

    def _planned(self) -> tuple[ContextRequest, PlannedContext]:
        """Ask until the answer is a plan."""
        place, behind = self.have, self.hash
        for _ in range(_MOST_TRIES):
            new = self._marked(self.messages[place:])
            request = replace(self.request, place=place, hash=behind.hex(), messages=new)
            copy = deepcopy(new)
            answer = self.ledger.planner.plan(request)
            assert copy == new, "unchanged: what a client handed in was written into"
            if answer.status == "ok":
                if self.chance.random() < 0.15 and not answer.problems:
                    again = self.ledger.planner.plan(request)
                    assert again.edits == answer.edits, "idempotent: other edits"
                    assert again.hash == answer.hash, "idempotent: another hash"
                return request, answer
            place, behind = self._common(answer.checkpoints)
        message = f"ends: a plan was not there after {_MOST_TRIES} answers: {answer}"
        raise AssertionError(message)

    def _common(self, checkpoints: Sequence[Checkpoint]) -> tuple[int, bytes]:
        """Return the last place up to which memd has what the client has, and the hash there."""
        hashes = [START]
        for message in self.messages:
            hashes.append(chained(hashes[-1], message))
        places = [
            item.messages
            for item in checkpoints
            if item.messages < len(hashes) and hashes[item.messages].hex() == item.hash
        ]
        place = max(places, default=0)
        return place, hashes[place]

    def _marked(self, messages: list[Message]) -> list[Message]:
        """Return messages with a mark of the prompt cache on the newest block, as clients do."""
        if not messages or not isinstance(messages[-1]["content"], list):
            return messages
        blocks = messages[-1]["content"]
        if not blocks or self.chance.random() < 0.5:
            return messages
        marked = {**blocks[-1], "cache_control": {"type": "ephemeral"}}
        return [*messages[:-1], {**messages[-1], "content": [*blocks[:-1], marked]}]

    def _take(self, request: ContextRequest, answer: PlannedContext) -> None:
        """Apply a plan: the edits of what was sent are new, older ones stay or are changed."""
        self.edits = {n: edits for n, edits in self.edits.items() if n < request.place}
        for edit in answer.edits:
            self._apply(edit)
        self.decisions |= {decision.key: decision for decision in answer.decisions}
        self.have, self.hash = answer.have, bytes.fromhex(answer.hash)

    def _apply(self, edit: ContextEdit) -> None:
        block = self.messages[edit.message]["content"][edit.block]
        if edit.content is not None:
            assert block["type"] == "tool_result", f"edits: {edit} is of no result"
            assert block["tool_use_id"] == edit.tool_use_id, f"edits: {edit} is of another call"
        self.edits.setdefault(edit.message, {})[edit.block] = edit.content

    def _go_without(self) -> None:
        """Send what the client knows by itself, the rest as it is, and note all of that."""
        for place, message in enumerate(self.messages):
            for number, block, key in [*results(message), *thinking(message)]:
                if block["type"] == "tool_result" and characters(block["content"]) < (
                    LEAST_CHARACTERS
                ):
                    continue
                keep = Decision(key.tool_use_id, key.content_hash, KEEP)
                decision = self.reports[key] = self.decisions.setdefault(key, keep)
                if decision.action in (SPILL, CLEAR) and place >= len(self.before):
                    self.edits.setdefault(place, {})[number] = decision.content

    def forget(self) -> None:
        """Be a new process with the old transcript: nothing of the plans is known any more."""
        self.report()
        self.edits, self.decisions = {}, {}
        self.have, self.hash = 0, START

    def cut(self, place: int) -> None:
        """Go back to a place of the conversation, from which it goes on otherwise."""
        del self.messages[place:], self.before[place:]
        self.edits = {n: edits for n, edits in self.edits.items() if n < place}
        if self.have > place:
            self.have, self.hash = 0, START
        if self.chance.random() < 0.5:
            self.maker.number_from(self.messages)

    def compact(self) -> None:
        """Put a summary in the place of all messages: nothing before it is sent any more."""
        self.messages, self.before = [self.maker.summary()], []
        self.edits = {}
        self.have, self.hash, self.tokens = 0, START, 0

    def fork(self, session: str, conversation: str) -> "Client":
        """Return a client that goes on from the same messages by itself."""
        self.report()
        request = replace(self.request, session=session, conversation=conversation)
        if session != self.request.session:
            self.ledger.restore(request, [], self.request.session)
        chance = Random(self.chance.random())  # noqa: S311 - a story, not a secret
        return Client(
            ledger=self.ledger,
            chance=chance,
            maker=self.maker.branch(chance),
            request=request,
            messages=list(self.messages),
            decisions=dict(self.decisions) if self.chance.random() < 0.5 else {},
            before=list(self.before),
            last_reply=self.last_reply,
            tokens=self.tokens,
        )


def applied(message: Message, edits: Mapping[int, str | None]) -> Message:
    """Return a message with its edits in place."""
    if not edits:
        return message
    blocks = [
        block if number not in edits else {**block, "content": edits[number]}
        for number, block in enumerate(message["content"])
        if edits.get(number, "") is not None
    ]
    return {**message, "content": blocks}


def results(message: Message) -> list[tuple[int, dict[str, Any], BlockKey]]:
    """Return the results in a message: place, block, and what a decision knows it by."""
    content = message["content"] if isinstance(message["content"], list) else []
    return [
        (number, block, BlockKey(block["tool_use_id"], content_hash(block["content"])))
        for number, block in enumerate(content)
        if block["type"] == "tool_result"
    ]


def thinking(message: Message) -> list[tuple[int, dict[str, Any], BlockKey]]:
    """Return the thinking in a message: place, block, and what a decision knows it by."""
    content = message["content"] if isinstance(message["content"], list) else []
    return [
        (number, block, BlockKey("", content_hash([block])))
        for number, block in enumerate(content)
        if "thinking" in block["type"]
    ]


def characters(content: Any) -> int:
    """Return how much text a result holds."""
    if isinstance(content, str):
        return len(content)
    return sum(len(block.get("text", "")) for block in content)
