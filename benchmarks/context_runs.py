"""Plays a recorded session against the caching server, and accounts what the model was sent.

The model says what was recorded, whatever it is sent; time passes on the server's clock. At the end
the person asks for the planted facts. An answer is *shown* where the prompt of that request holds
it, *read* where a stored result that the prompt names holds it, else it is lost.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import anthropic

from benchmarks.context_sessions import SYSTEM, TOOLS, Fact, Session
from memd.core.prices import price
from tests.support.clock import FakeClock
from tests.support.messages import MessagesServer, ScriptedReply, messages_server, text
from tests.support.messages_cache import blocks
from tests.support.messages_edits import shown
from tests.support.messages_request import ReceivedMessage

MODEL = "claude-sonnet-5-5"
MARK = {"type": "ephemeral"}
_SORTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
_STORED = re.compile(r'/[^\s"\\]+/tool-results/[^\s"\\]+')

Message = dict[str, Any]


class Way:
    """How a program deals with its context; this one sends it all, always."""

    middleware: Sequence[Any] = ()
    tools: Sequence[Any] = ()

    def route(self, url: str) -> AbstractContextManager[str]:
        """Return a context manager for the address to which requests go."""
        return nullcontext(url)

    def sent(self, history: list[Message]) -> list[Message]:
        """Return what is sent of a history."""
        return history

    def after(self, history: list[Message], tokens: int) -> list[Message]:
        """Return the history to go on with, after a reply that left so many tokens."""
        del tokens
        return history

    def read(self, path: str) -> str:
        """Return a stored result."""
        raise FileNotFoundError(path)


class ClearByAge(Way):
    """What proxies do that know nothing of caches: all results but the newest become a line."""

    def __init__(self, newest: int = 10) -> None:
        self._newest = newest

    def sent(self, history: list[Message]) -> list[Message]:
        """Return a history with its newest results alone."""
        results = [b for m in history for b in blocks(m["content"]) if b["type"] == "tool_result"]
        old = {block["tool_use_id"] for block in results[: -self._newest]}

        def change(block: Message) -> Message:
            gone = block["type"] == "tool_result" and block["tool_use_id"] in old
            return {**block, "content": "[cleared]"} if gone else block

        return [
            {**m, "content": [change(block) for block in blocks(m["content"])]} for m in history
        ]


@dataclass(slots=True)
class Played:
    """What one or more sessions came to."""

    tokens: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    refused: int = 0
    largest: int = 0
    dollars: float = 0.0
    answers: Counter[str] = field(default_factory=Counter)
    reread: list[float] = field(default_factory=list)  # of each prompt by the request after it
    edits: int = 0  # how often the API cleared more than before

    def add(self, other: "Played") -> None:
        """Count another session in."""
        self.tokens += other.tokens
        self.answers += other.answers
        self.requests += other.requests
        self.refused += other.refused
        self.largest = max(self.largest, other.largest)
        self.dollars += other.dollars
        self.reread += other.reread
        self.edits += other.edits


def play(session: Session, way: Way, *, model: str = MODEL) -> Played:
    """Play a session one way and ask for its facts."""
    clock = FakeClock()
    script = [
        ScriptedReply(each.reply, "tool_use" if each.results else "end_turn")
        for each in session.exchanges
    ]
    with (
        messages_server([*script, text("Thanks.")], now=clock.now) as server,
        way.route(server.url) as url,
        anthropic.Anthropic(
            api_key="none", base_url=url, max_retries=0, middleware=way.middleware
        ) as client,
    ):
        agent = _Agent(client, way, model)
        for exchange in session.exchanges:
            clock.advance(exchange.seconds)
            agent.step(exchange.prompt, exchange.results)
        clock.advance(30)
        agent.step(" ".join(fact.question for fact in session.facts), ())
        result = _account(server, model)
        result.answers = _answers(session.facts, server.messages[-1], way)
    return result


class _Agent:
    """A plain agent loop: it holds its history and sends it, one way.

    A request that is refused is sent again without any thinking, and so are all that follow.
    """

    def __init__(self, client: anthropic.Anthropic, way: Way, model: str) -> None:
        self._client, self._way, self._model = client, way, model
        self._history: list[Message] = []

    def step(self, prompt: str, results: Sequence[Message]) -> None:
        """Send one request and take its reply, with what the tools answer to it."""
        if prompt:
            self._history.append({"role": "user", "content": prompt})
        try:
            reply = self._asked()
        except anthropic.BadRequestError:
            self._history = [_thoughtless(message) for message in self._history]
            reply = self._asked()
        content = [block.to_dict() for block in reply.content]
        self._history.append({"role": "assistant", "content": content})
        if results:
            self._history.append({"role": "user", "content": list(results)})
        usage = reply.usage
        cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
        tokens = usage.input_tokens + cached + usage.output_tokens
        self._history = self._way.after(self._history, tokens)

    def _asked(self) -> Any:
        asked: dict[str, Any] = {
            "model": self._model,
            "max_tokens": 8_000,
            "system": SYSTEM,
            "tools": [*TOOLS, *self._way.tools],
            "cache_control": MARK,
            "messages": self._way.sent(self._history),
        }
        return self._client.beta.messages.create(**asked)


def _thoughtless(message: Message) -> Message:
    content = [block for block in blocks(message["content"]) if block["type"] != "thinking"]
    return {**message, "content": content}


def _account(server: MessagesServer, model: str) -> Played:
    """Return what all requests of a server came to."""
    result, before, cleared = Played(), 0, 0
    costs = price(model)
    for request in server.messages:
        usage = {name: request.usage.get(name, 0) for name in _SORTS}
        fresh, written, read, created = usage.values()
        size = fresh + read + created
        result.requests += 1
        if request.status != 200:
            result.refused += 1
            continue
        result.tokens.update(usage)
        result.largest = max(result.largest, size)
        result.dollars += costs.money(fresh, written, read, created)
        if before:
            result.reread.append(read / before)
        before = size
        managed = shown(request.whole).report.get("context_management", {})
        uses = sum(edit.get("cleared_tool_uses", 0) for edit in managed.get("applied_edits", ()))
        result.edits += uses > cleared
        cleared = uses
    return result


def _answers(facts: Sequence[Fact], request: ReceivedMessage, way: Way) -> Counter[str]:
    """Return how many answers are shown, can be read, or are lost."""
    prompt = str(shown(request.whole).body["messages"])
    stored = [_tried(way.read, path) for path in sorted(set(_STORED.findall(prompt)))]
    result: Counter[str] = Counter()
    for fact in facts:
        readable = any(fact.answer in content for content in stored)
        result["shown" if fact.answer in prompt else "read" if readable else "lost"] += 1
    return result


def _tried(read: Callable[[str], str], path: str) -> str:
    try:
        return read(path)
    except OSError:
        return ""
