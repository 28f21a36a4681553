"""Generated conversations as a program sends them to the Messages API, one exchange at a time.

Each reply is made when it is due, so that a client may be restarted, forked or cut back between
any two of them.
"""

import json
import re
from collections.abc import Mapping
from random import Random
from typing import Any

Block = dict[str, Any]
Message = dict[str, Any]
READER = "read_stored_result"
TOOLS = ("Bash", "Read", "Grep", "WebFetch", "Edit", "mcp__db__query", "deploy", READER)
_WORDS = ("alpha ", "beta, ", "记忆文件。", "gamma\n", "`code` ", "ünï ", "🙂 ")
_SMALL = ((0, 300), (3_900, 4_200), (4_500, 7_000), (8_000, 14_000))
_LARGE = ((19_000, 22_000), (29_000, 31_000), (49_000, 60_000), (95_000, 120_000))
_PARALLEL = {False: (0, 1, 1, 2, 4), True: (0, 1, 2, 4, 6)}  # calls of a reply
_CLOSINGS = ("</persisted-output>", "[cut]", "</system-reminder>", "line\n", "")


class ConversationMaker:
    """Makes the messages of one conversation from one source of chance.

    ``large`` results pass the limits that hold without settings. ``thinks`` is whether replies have
    thinking.
    """

    def __init__(self, chance: Random, *, large: bool) -> None:
        self.large = large
        self.thinks = chance.random() < 0.6
        self._chance = chance
        self._ids = 0

    def branch(self, chance: Random) -> "ConversationMaker":
        """Return a maker that goes on by itself, with the ids that this one would give next."""
        made = ConversationMaker(chance, large=self.large)
        made.thinks, made._ids = self.thinks, self._ids
        return made

    def number_from(self, messages: list[Message]) -> None:
        """Give the next ids as if these messages were all there ever was."""
        numbers = re.findall(r'"(?:toolu|srvtoolu|msg)_([0-9]+)"', json.dumps(messages))
        self._ids = max(map(int, numbers), default=0)

    def person(self) -> list[Message]:
        """Return what the person says, now and then with a system message behind it."""
        blocks = [self._text(), *([_image()] if self._chance.random() < 0.1 else [])]
        content: Any = blocks
        if len(blocks) == 1 and self._chance.random() < 0.5:
            content = blocks[0]["text"]
        return [{"role": "user", "content": content}, *self._systems()]

    def reply(self) -> list[Message]:
        """Return a reply: text, calls, a server's tool; now and then as two records of one id."""
        chance = self._chance.random
        blocks: list[Block] = []
        if self.thinks and chance() < 0.7:
            blocks = [self._thinking() for _ in range(self._chance.choice((1, 1, 2)))]
        calls = [self._call() for _ in range(self._chance.choice(_PARALLEL[self.large]))]
        if chance() < 0.15:
            server = self._id("srvtoolu")
            blocks += [
                {"type": "server_tool_use", "id": server, "name": "web_search", "input": {}},
                {"type": "web_search_tool_result", "tool_use_id": server, "content": []},
            ]
        if not calls or chance() < 0.5:
            blocks.append(self._text())
        name, blocks = self._id("msg"), [*blocks, *calls]
        cut = self._chance.randrange(1, len(blocks) + 1) if chance() < 0.15 else len(blocks)
        parts = [part for part in (blocks[:cut], blocks[cut:]) if part]
        return [{"role": "assistant", "id": name, "content": part} for part in parts]

    def answer(self, calls: list[Block]) -> list[Message]:
        """Return the results of calls, in any order, now and then with words behind them."""
        results = [self._result(call) for call in calls]
        self._chance.shuffle(results)
        if self._chance.random() < 0.1:
            results.append(self._text())
        return [{"role": "user", "content": results}, *self._systems()]

    def summary(self) -> Message:
        """Return what a client puts in the place of what it compacted."""
        text = f'<memd-context covers="msg 1">\n{self._words(20)}\n</memd-context>'
        return {"role": "user", "content": text}

    def _thinking(self) -> Block:
        """Return thinking that nobody signed yet."""
        return {"type": "thinking", "thinking": self._words(5)}

    def _text(self) -> Block:
        return {"type": "text", "text": "a " + self._words(self._chance.randrange(20))}

    def _words(self, count: int) -> str:
        return self._chance.choice(_WORDS) * count

    def _id(self, kind: str) -> str:
        self._ids += 1
        return f"{kind}_{self._ids}"

    def _systems(self) -> list[Message]:
        if self._chance.random() > 0.1:
            return []
        if self._chance.random() < 0.3:
            return [{"role": "system", "content": [], "output_config": {"effort": "high"}}]
        return [{"role": "system", "content": [self._text()]}]

    def _call(self) -> Block:
        name = self._chance.choice(TOOLS)
        given = {"command": self._words(self._chance.randrange(9))}
        return {"type": "tool_use", "id": self._id("toolu"), "name": name, "input": given}

    def _result(self, call: Block) -> Block:
        chance = self._chance.random
        content: Any = self._output()
        if chance() < 0.15:
            content = [{"type": "text", "text": content or "-"}]
            if chance() < 0.5:
                content.append({"type": "text", "text": self._output() or "-"})
            if chance() < 0.4:
                content.insert(self._chance.randrange(2), _image())
        block = {"type": "tool_result", "tool_use_id": call["id"], "content": content}
        if chance() < 0.1:
            block["is_error"] = chance() < 0.8
        return block

    def _output(self) -> str:
        """Return what a tool gave: short, about a limit, or far above one."""
        sizes = _LARGE if self.large and self._chance.random() < 0.5 else _SMALL
        size = self._chance.randrange(*self._chance.choice(sizes))
        unit = self._words(7) + self._chance.choice(_CLOSINGS)
        # Two calls may give the same bytes; mostly they do not.
        head = f"{self._chance.randrange(10**6)} " if self._chance.random() < 0.9 else ""
        text = head + unit * (1 + size // len(unit))
        return text[:size]


def _image() -> Block:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x"}}


def calls_of(message: Mapping[str, Any]) -> list[Block]:
    """Return the calls of a message that its client has to answer."""
    content = message["content"]
    return [b for b in content if b["type"] == "tool_use"] if isinstance(content, list) else []


def open_calls(messages: list[Message]) -> list[Block]:
    """Return the calls of the newest reply that nobody answered yet."""
    calls: list[Block] = []
    for message in reversed(messages):
        if message["role"] == "user":
            break
        calls = [*calls_of(message), *calls]
    return calls


def text_of(content: Any) -> str | None:
    """Return the text of a result, ``None`` where it holds anything else."""
    if isinstance(content, str):
        return content
    if not all(block["type"] == "text" for block in content):
        return None
    return "\n".join(block["text"] for block in content)
