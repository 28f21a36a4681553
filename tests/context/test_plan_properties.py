"""What holds of every request that goes out by a plan, over random conversations.

Between two requests the settings, the window and the reader change, time passes, and the disk
refuses results; the client brings its decisions.
"""

from collections import Counter
from random import Random
from types import MappingProxyType
from typing import Any

import pytest
from msgspec import structs
from msgspec.structs import replace

from memd.base.settings import ContextSettings, Settings
from memd.base.values import Project
from memd.context.planning import Plan, ToStore, plan, settled_plan
from memd.context.preview import stored_preview
from memd.context.requests import ContextRequest, PlannedContext
from memd.context.values import CLEAR, DROP, KEEP, BlockKey, Decision, StoredResult
from memd.conversation.history import estimate, tool_kind
from tests.context.histories import READER, TOOLS, ConversationMaker, Message, open_calls
from tests.support.api_rules import broken

PARTS, EACH, ALL = 2, 12, 2_500  # stories of a sample, and of a part
_CLEARED = ("read", "shell", "search", "web_search", "web", "edit", "write")
_HOUR, _NEWEST = 3_600.0, 5
_PAUSES = (5.0, 5.0, 400.0, 4_000.0)
_WINDOWS = (0, 20_000, 200_000)
_PROJECT = Project("/p", "/p", "/m", "default", "/projects", enabled=True)


class Story:
    """A conversation whose client plans each request; ``counts`` says what happened in it."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)  # noqa: S311 - a story, not a secret
        self.maker = ConversationMaker(self.chance, large=self.chance.random() < 0.1)
        self.messages: list[Message] = []
        self.decisions: dict[BlockKey, Decision] = {}
        self.before: list[Message] = []  # as they were sent
        self.files: dict[str, str] = {}  # by path, the stored text
        self.counts: Counter[str] = Counter()
        self.settings, self.window, self.reader = self._settings(), 0, READER

    def go_on(self) -> None:
        """Have the conversation go on by one message of the client's, plan it and check it."""
        calls = open_calls(self.messages)
        self.messages += self.maker.answer(calls) if calls else self.maker.person()
        if self.chance.random() < 0.1:
            self.settings, self.window = self._settings(), self.chance.choice(_WINDOWS)
            self.reader = self.chance.choice(("", READER, READER))
        request = ContextRequest(
            _PROJECT,
            self.settings,
            "s",
            messages=self.messages,
            decisions=dict(self.decisions),
            reader=self.reader,
            window=self.window,
            may_drop_thinking=True,
            idle_seconds=self.chance.choice(_PAUSES),
        )
        made = plan(request)
        assert made == plan(request), "equal requests have other plans"
        self._check(made, settled_plan(made, {item.key: self._stored(item) for item in made.store}))
        replies = self.maker.reply()
        for block in _blocks(replies):
            if block["type"] == "thinking":
                block["signature"] = f"s{self.chance.random()}"
        self.messages += replies

    def _settings(self) -> Settings:
        limits = {name: self.chance.choice((4_000, 6_000, 10_000)) for name in TOOLS}
        context = ContextSettings(
            spill=self.chance.random() < 0.9, clear=True, limits=MappingProxyType(limits)
        )
        return replace(Settings(), context=context)

    def _stored(self, item: ToStore) -> StoredResult | str:
        """Store a result, unless the disk refuses it."""
        if self.chance.random() < 0.1:
            return "the disk is full"
        path = f"/projects/{item.tool_use_id}.txt"
        self.files[path] = item.text
        size = len(item.text.encode())
        return StoredResult(path, size, stored_preview(item.text, path), is_new=True)

    def _check(self, made: Plan, planned: PlannedContext) -> None:
        """Check all that holds of a request, and take over what it decided."""
        sent = _applied(self.messages, planned)
        unsent = ("id", "usage")
        listed = [{k: v for k, v in message.items() if k not in unsent} for message in sent]
        assert not broken({"model": "m", "messages": listed})
        fresh = {each.key: each for each in planned.decisions}
        removed = [each for each in fresh.values() if each.action in (CLEAR, DROP)]
        assert removed or sent[: len(self.before)] == self.before, "a sent prefix changed"
        if removed:
            self._check_clearing(made.request, removed)
        for key, decision in fresh.items():
            old = self.decisions.get(key)
            assert old is None or decision in removed, f"{old} became {decision}"
        self.decisions |= fresh
        for edit in planned.edits:
            block = self.messages[edit.message]["content"][edit.block]
            if edit.content is None:
                assert "thinking" in block["type"]
            else:
                self._check_replaced(block["content"], edit.content)
        again = structs.replace(made.request, decisions=dict(self.decisions), idle_seconds=0.0)
        repeated = plan(again)
        assert not repeated.store, "what is decided is decided again"
        assert settled_plan(repeated, {}).edits == planned.edits
        self.before = sent
        self.counts.update(decision.action for decision in fresh.values())

    def _check_clearing(self, request: ContextRequest, removed: list[Decision]) -> None:
        """Check that a break is declared only where it may be, for what may be cleared."""
        assert request.idle_seconds >= _HOUR
        assert request.reader
        names = {b["id"]: b["name"] for b in _blocks(self.messages) if b["type"] == "tool_use"}
        results = [b["tool_use_id"] for b in _blocks(self.messages) if b["type"] == "tool_result"]
        clearable = [each for each in results if tool_kind(names[each]) in _CLEARED]
        cleared = {each.tool_use_id for each in removed if each.action == CLEAR}
        assert cleared <= set(clearable[:-_NEWEST])

    def _check_replaced(self, content: Any, shown: str) -> None:
        """Check that a result is whole in the file that its replacement names, and larger."""
        (path,) = (path for path in self.files if path in shown)
        text = content if isinstance(content, str) else "\n".join(b["text"] for b in content)
        assert self.files[path] == text
        assert len(shown.encode()) < len(text.encode())
        assert estimate(shown) <= estimate(text)


def _blocks(messages: list[Message]) -> list[dict[str, Any]]:
    contents = [m["content"] for m in messages if isinstance(m["content"], list)]
    return [block for content in contents for block in content]


def _applied(messages: list[Message], planned: PlannedContext) -> list[Message]:
    """Return the messages as they are sent."""
    edits = {(edit.message, edit.block): edit.content for edit in planned.edits}
    sent = []
    for place, message in enumerate(messages):
        content = message["content"]
        if isinstance(content, list):
            pairs = [(block, edits.get((place, n), "")) for n, block in enumerate(content)]
            content = [{**b, "content": new} if new else b for b, new in pairs if new is not None]
        sent.append({**message, "content": content})
    return sent


def _play(seeds: range) -> Counter[str]:
    """Play stories and return what happened in them."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        story = Story(seed)
        for _ in range(story.chance.randrange(2, 30)):
            story.go_on()
        counts += story.counts
    return counts


def test_what_goes_out_holds() -> None:
    """Prefixes stay, nothing is lost, and the API takes all of it, whatever happens between."""
    counts = _play(range(EACH))
    assert min(counts[name] for name in (KEEP, "spill", CLEAR)) > 0


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
def test_the_same_for_ten_thousand(part: int) -> None:
    """Ten thousand stories hold as well."""
    assert _play(range(1_000 + part * ALL, 1_000 + (part + 1) * ALL))[CLEAR] >= ALL // 10
