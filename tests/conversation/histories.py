"""Generated conversations as lists of messages, and what is known of them by how they were made.

A history is made as the API sees it, turn by turn, and then written down as clients record it:
a reply in several records that share its id, results between its parallel calls, system messages
anywhere, empty records in between.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from memd.conversation.history import estimate

Block = dict[str, Any]
_WORDS = ("alpha ", "beta, ", "记忆文件。", "gamma\n", "`code` ", "ünï ", "🙂 ")


@dataclass
class Turn:
    """One message as the API sees it, without thinking; ``last`` is its last record's place."""

    role: str
    blocks: list[Block]
    last: int = 0
    tied: bool = False  # it cannot be without the turn before it
    pair: int | None = None  # the turn that holds a server's call whose result is here

    @property
    def tokens(self) -> int:
        """Its size."""
        return estimate(self.blocks)

    @property
    def speaks(self) -> bool:
        """Whether it has text."""
        return self.role != "system" and any(b["type"] == "text" for b in self.blocks)


@dataclass
class MadeHistory:
    """A list of messages, the turns behind its last boundary, and whether a call is open."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    floor: int = 0
    open: bool = False

    def first(self, turn: int) -> int:
        """Return the place of the first record of a turn."""
        return max((t.last + 1 for t in self.turns[:turn]), default=self.floor)

    def may_begin(self, turn: int) -> bool:
        """Tell whether the list may be cut before a turn."""
        pairs = (t.pair for t in self.turns[turn:] if t.pair is not None)
        return not self.turns[turn].tied and all(pair >= turn for pair in pairs)


class HistoryMaker:
    """Makes one history from one source of chance."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._made = MadeHistory()
        self._ids = 0
        self._large = chance.choice((300, 3_000, 30_000))

    def make(self) -> MadeHistory:
        """Return a history of up to 40 exchanges."""
        for _ in range(self._chance.randrange(1, 40)):
            if self._chance.random() < 0.04:
                self._boundary()
            self._exchange()
        if self._chance.random() < 0.15:
            self._user([self._text()])
            self._calls(answered=False)
            self._made.open = True
        return self._made

    def _exchange(self) -> None:
        chance = self._chance.random
        self._user([self._text(), *([_image()] if chance() < 0.1 else [])])
        for _ in range(self._chance.choice((0, 0, 1, 1, 2, 5))):
            self._calls(answered=True)
            if chance() < 0.1:
                self._user([self._text()])  # what was typed meanwhile
        if chance() < 0.15:
            self._thought_alone()
        elif chance() < 0.9:
            self._final()

    def _final(self) -> None:
        """End with a reply, which may use a server's tool, now and then across two replies."""
        blocks = [self._text()]
        if self._chance.random() < 0.15:
            call: Block = {"type": "server_tool_use", "id": self._id("s"), "name": "web_search"}
            call["input"] = {"query": self._words(5)}
            result = {"type": "web_search_tool_result", "tool_use_id": call["id"], "content": []}
            if self._chance.random() < 0.3:
                self._reply([self._text(), call])
                holder = len(self._made.turns) - 1
                if self._chance.random() < 0.5:
                    self._system()
                self._reply([result, *blocks])
                self._made.turns[-1].pair = holder
                return
            blocks = [call, result, *blocks]
        self._reply(blocks)

    def _calls(self, *, answered: bool) -> None:
        """Add a reply with parallel calls; its records, their results and others may be mixed."""
        chance = self._chance.random
        if chance() < 0.1:
            self._reply([self._text()])  # another reply stands before it, and nobody between
        calls: list[Block] = [self._call() for _ in range(self._chance.choice((1, 1, 2, 4)))]
        blocks = [*([self._text()] if chance() < 0.5 else []), *calls]
        results = [self._result(call) for call in calls]
        if not answered:
            results = results[: self._chance.randrange(len(calls))]
        records = self._records(blocks, self._id("msg"))
        answers = [{"role": "user", "content": [result]} for result in results]
        if chance() < 0.3:
            answers = [{"role": "user", "content": results}] if results else []
        elif chance() < 0.4 and len(records) > 2 and answers:
            answers = [*answers[1:], answers[0]]
        mixed: list[dict[str, Any]] = []
        ids: set[str] = set()
        for record in records:
            mixed.append(record)
            ids |= {b["id"] for b in record["content"] if b["type"] == "tool_use"}
            while answers and _answers(answers[0]) <= ids and len(records) > 1 and chance() < 0.4:
                mixed.append(answers.pop(0))
        typed = [{"role": "user", "content": [self._text()]}] if answers and chance() < 0.1 else []
        self._exchanged([*mixed, *typed, *answers], blocks)
        if chance() < 0.15:
            self._system()

    def _exchanged(self, records: list[dict[str, Any]], blocks: list[Block]) -> None:
        """Write a reply and what answers it, perhaps with a system message among the records."""
        speaking = [n for n, r in enumerate(records) if _said(r)]
        typed = any(b["type"] == "text" for r in records[1:] for b in r["content"])
        if not typed and self._chance.random() < 0.15:
            system = {"role": "system", "content": [self._text()]}
            records.insert(self._chance.randrange(speaking[0], len(records)) + 1, system)
        self._write(records)
        if not self._made.turns or self._made.turns[-1].role != "assistant":
            self._turn("assistant", [])
        turn = self._made.turns[-1]
        turn.blocks = [*turn.blocks, *blocks]
        answer: Turn | None = None
        for record in records:
            place = next(n for n, m in enumerate(self._made.messages) if m is record)
            if record["role"] == "assistant":
                turn.last = place
                continue
            if record["role"] == "system" or answer is None:
                made = self._turn(record["role"], [])
                made.tied = True
                answer = answer if record["role"] == "system" else made
            into = made if record["role"] == "system" else answer
            assert into is not None
            into.last, into.blocks = place, [*into.blocks, *record["content"]]
        if answer is not None:
            answer.blocks.sort(key=lambda block: block["type"] != "tool_result")

    def _thought_alone(self) -> None:
        """Add a reply that is nothing but thinking: without it, its neighbours are one message."""
        self._write([{"role": "assistant", "id": self._id("msg"), "content": [self._thinking()]}])

    def _reply(self, blocks: list[Block]) -> None:
        records = self._records(blocks, self._id("msg"))
        turns = self._made.turns
        if turns and turns[-1].role == "assistant":
            turns[-1].blocks = [*turns[-1].blocks, *blocks]
        else:
            self._turn("assistant", blocks)
        self._write(records)
        turns[-1].last = len(self._made.messages) - 1

    def _user(self, blocks: list[Block]) -> None:
        content: Any = blocks
        if len(blocks) == 1 and self._chance.random() < 0.5:
            content = blocks[0]["text"]
        self._write([{"role": "user", "id": self._id("u"), "content": content}])
        turns = self._made.turns
        if turns and turns[-1].role == "user":
            turns[-1].blocks = [*turns[-1].blocks, *blocks]
        else:
            self._turn("user", blocks)
        turns[-1].last = len(self._made.messages) - 1
        if self._chance.random() < 0.1:
            self._system()

    def _system(self) -> None:
        message: dict[str, Any] = {"role": "system", "content": [self._text()]}
        if self._chance.random() < 0.3:
            message = {"role": "system", "content": [], "output_config": {"effort": "high"}}
        self._made.messages.append(message)
        turn = self._turn("system", message["content"])
        turn.last, turn.tied = len(self._made.messages) - 1, len(self._made.turns) > 1

    def _boundary(self) -> None:
        """Add a summary in one of the shapes that clients and the API have."""
        summary = self._words(200)
        shapes: list[dict[str, Any]] = [
            {"role": "user", "content": summary, "isCompactSummary": True},
            {"role": "user", "content": f'<memd-context covers="msg 1">\n{summary}'},
            {"role": "assistant", "content": [{"type": "compaction", "content": summary}]},
        ]
        self._made.messages.append(self._chance.choice(shapes))
        self._made.turns.clear()
        self._made.floor = len(self._made.messages)

    def _turn(self, role: str, blocks: list[Block]) -> Turn:
        turn = Turn(role, blocks)
        self._made.turns.append(turn)
        return turn

    def _records(self, blocks: Sequence[Block], reply: str) -> list[dict[str, Any]]:
        """Return a reply as one record, or as one for each block, with thinking and a count."""
        listed = [*([self._thinking()] if self._chance.random() < 0.5 else []), *blocks]
        parts = [listed] if self._chance.random() < 0.3 else [[block] for block in listed]
        usage = {"input_tokens": 12, "cache_read_input_tokens": 90_000, "output_tokens": 50}
        return [
            {"role": "assistant", "id": reply, "usage": usage, "content": part} for part in parts
        ]

    def _write(self, records: Sequence[dict[str, Any]]) -> None:
        for record in records:
            if self._chance.random() < 0.03:
                empty: Any = self._chance.choice(("", [], [{"type": "text", "text": " \n"}], None))
                self._made.messages.append({"role": "user", "content": empty})
            self._made.messages.append(record)

    def _call(self) -> Block:
        given = {"command": self._words(self._chance.randrange(40))}
        return {"type": "tool_use", "id": self._id("t"), "name": "Bash", "input": given}

    def _result(self, call: Block) -> Block:
        content: Any = self._words(self._chance.randrange(self._large))
        if self._chance.random() < 0.2:
            content = [{"type": "text", "text": content or "-"}, _image()]
        return {"type": "tool_result", "tool_use_id": call["id"], "content": content}

    def _thinking(self) -> Block:
        if self._chance.random() < 0.3:
            return {"type": "redacted_thinking", "data": "c2VjcmV0"}
        return {"type": "thinking", "thinking": self._words(50), "signature": "c2ln"}

    def _text(self) -> Block:
        return {
            "type": "text",
            "text": "a " + self._words(self._chance.randrange(self._large // 3)),
        }

    def _words(self, count: int) -> str:
        return self._chance.choice(_WORDS) * count

    def _id(self, kind: str) -> str:
        self._ids += 1
        return f"{kind}_{self._ids}"


def _image() -> Block:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x"}}


def _said(record: Mapping[str, Any]) -> bool:
    return any("thinking" not in block["type"] for block in record["content"])


def _answers(record: Mapping[str, Any]) -> set[str]:
    return {block["tool_use_id"] for block in record["content"]}


_ODD: tuple[Any, ...] = (None, 5, "x", [], {}, True, ["a"], {"a": 1}, "", "\ud800", [[]])
_KINDS = ("tool_use", "tool_result", "server_tool_use", "x_tool_result", "thinking", "compaction")


def damage(messages: list[Any], chance: Random) -> None:
    """Change one thing in a list of messages: a member, a block, an id, or the order."""
    place = chance.randrange(len(messages))
    message = messages[place]
    content = message.get("content") if isinstance(message, dict) else None
    what = chance.randrange(8)
    if what == 0:
        messages[place] = chance.choice(_ODD)
    elif what == 1:
        messages.insert(chance.randrange(len(messages)), messages.pop(place))
    elif what == 2:
        messages.insert(chance.randrange(len(messages)), message)
    elif what == 3 and isinstance(message, dict):
        member = chance.choice(("role", "content", "id", "usage"))
        messages[place] = {**message, member: chance.choice((*_ODD, "msg_9", "system"))}
    elif isinstance(content, list) and content and isinstance(content[0], dict):
        block: dict[str, Any] = {**content[0]}
        member = chance.choice(("type", "id", "tool_use_id", "text", "input"))
        block[member] = chance.choice((*_ODD, *_KINDS, "t_1"))
        if chance.random() < 0.3:
            del block[member]
        messages[place] = {**message, "content": [block, *content[chance.randrange(2) :]]}
