"""``make bench-counting``: how far memd's estimate of tokens is from two counters.

200 messages of code, JSON, calls, prose and Chinese, 40 of each, cut out of this project's own
files, are counted by the scripted server, which counts four bytes of JSON a token, and by a
tokenizer that nobody here wrote: that of Claude 2, which old releases of the anthropic package
shipped. TOKENIZER is its file. Below stand 20 conversations of 200 messages with the ``usage`` of
their newest reply, where only what came after it is estimated.
"""

import ast
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from tokenizers import Tokenizer

from benchmarks.measures import Series
from memd.conversation.history import count, estimate
from tests.support import messages_cache

ROOT = Path(__file__).resolve().parents[1]
SORTS = ("code", "JSON", "calls", "prose", "Chinese")
EACH, SHORTEST, LONGEST = 40, 200, 20_000  # messages of a sort, and their characters
CONVERSATIONS, AFTER = 20, 10  # and messages behind the newest reply that was counted

Counter = Callable[[Sequence[dict[str, Any]]], int]


def main(path: str) -> int:
    """Print both tables; return the exit status."""
    tokenizer = Tokenizer.from_file(path)
    counters: dict[str, Counter] = {
        "scripted server": lambda listed: messages_cache.count({"messages": listed}),
        "Claude 2": lambda listed: sum(_tokens(tokenizer, message) for message in listed),
    }
    chance = Random(15)  # noqa: S311 - a sample, not a secret
    messages = {sort: list(_messages(sort, chance)) for sort in SORTS}
    print(f"{'error of the estimate':<22}" + "".join(f"{name:>24}" for name in counters))
    print(f"{'':<22}" + f"{'median':>12}{'p95':>12}" * len(counters))
    for sort, listed in messages.items():
        _line(sort, [_errors(listed, counter) for counter in counters.values()])
    every = [message for listed in messages.values() for message in listed]
    _line("all", [_errors(every, counter) for counter in counters.values()])
    chance.shuffle(every)
    _line("with usage", [list(_running(every, chance, counter)) for counter in counters.values()])
    return 0


def _errors(messages: Sequence[dict[str, Any]], counter: Counter) -> list[float]:
    """Return the relative error of the estimate of each message."""
    return [estimate(m["content"]) / counter([m]) - 1 for m in messages]


def _running(messages: list[dict[str, Any]], chance: Random, counter: Counter) -> Iterator[float]:
    """Yield the relative error of the count of whole conversations."""
    for number in range(CONVERSATIONS):
        chance.shuffle(messages)
        known = len(messages) - AFTER
        usage = {"input_tokens": counter(messages[:known])}
        reply = {"role": "assistant", "id": str(number), "usage": usage, "content": []}
        counted = count([*messages[: known - 1], reply, *messages[known:]])
        yield counted.tokens / counter(messages) - 1


def _line(name: str, columns: list[list[float]]) -> None:
    cells = (
        f"{Series(tuple(errors)).p50:>+12.1%}{Series(tuple(map(abs, errors))).at(0.95):>12.1%}"
        for errors in columns
    )
    print(f"{name:<22}" + "".join(cells))


def _tokens(tokenizer: Any, message: dict[str, Any]) -> int:
    """Return what a tokenizer counts of a message's texts, and of calls as compact JSON."""
    texts = (
        block.get("content") or json.dumps(block["input"], ensure_ascii=False)
        for block in message["content"]
    )
    return sum(len(tokenizer.encode(text).ids) for text in texts)


def _messages(sort: str, chance: Random) -> Iterator[dict[str, Any]]:
    """Yield messages of a sort, of lengths that are even on a logarithmic scale."""
    texts = _TEXTS[sort]()
    whole = "\n".join(chance.sample(texts, len(texts)))
    for number in range(EACH):
        size = round(SHORTEST * (LONGEST / SHORTEST) ** chance.random())
        begin = chance.randrange(max(1, len(whole) - size))
        text = whole[begin : begin + size]
        if sort == "calls":
            given = {"file_path": f"/srv/app/{number}.py", "content": text}
            block: dict[str, Any] = {"type": "tool_use", "id": "t", "name": "Write", "input": given}
            yield {"role": "assistant", "content": [block]}
        else:
            block = {"type": "tool_result", "tool_use_id": "t", "content": text}
            yield {"role": "user", "content": [block]}


def _code() -> list[str]:
    return [path.read_text("utf-8") for path in sorted((ROOT / "memd").rglob("*.py"))]


def _json() -> list[str]:
    """Return the outlines of the program's files, as a tool would list them."""
    texts = []
    for path in sorted((ROOT / "memd").rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        rows = [
            {"name": node.name, "line": node.lineno, "doc": ast.get_docstring(node)}
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        ]
        texts.append(json.dumps({"path": str(path.relative_to(ROOT)), "symbols": rows}, indent=2))
    return texts


def _prose() -> list[str]:
    return [path.read_text("utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))]


def _chinese() -> list[str]:
    """Return the Chinese sentences of the benchmarks."""
    lines: list[list[str]] = [
        json.loads(line)
        for name in ("sentences.jsonl", "statements.jsonl")
        for line in (ROOT / "benchmarks" / name).read_text("utf-8").splitlines()
    ]
    return [line[-1] for line in lines if line[2] == "zh"]


_TEXTS: dict[str, Callable[[], list[str]]] = {
    "code": _code,
    "JSON": _json,
    "calls": _code,
    "prose": _prose,
    "Chinese": _chinese,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
