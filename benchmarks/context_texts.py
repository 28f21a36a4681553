"""Made-up results of tools, in the sizes that agents really get: code, JSON, logs, pages, Chinese.

Each text is made of its own source of chance, so that a seed gives the same text everywhere.
"""

import json
from collections.abc import Callable, Iterator
from itertools import accumulate, count
from random import Random

_NOUNS = ("order", "invoice", "session", "cursor", "ledger", "parcel", "batch", "window", "index")
_VERBS = ("load", "merge", "apply", "check", "queue", "resolve", "render", "split", "verify")
_LEVELS = ("DEBUG", "INFO", "INFO", "INFO", "WARN", "ERROR")
_CHINESE = (
    "订单在写入账本之前必须经过校验。",
    "缓存失效时请求会直接读取主库。",
    "每个租户的配额按自然月重置。",
    "索引文件损坏后可以从快照重建。",
    "发布流程需要两位负责人确认。",
    "日志按天切分保留三十天。",
)


def source(seed: int) -> Random:
    """Return a source of chance that is the same every time."""
    return Random(seed)  # noqa: S311 - it makes texts, not secrets


def name(chance: Random) -> str:
    """Return an identifier."""
    return f"{chance.choice(_VERBS)}_{chance.choice(_NOUNS)}"


def path(chance: Random) -> str:
    """Return a path of a source file."""
    end = chance.choice(("py", "ts", "go"))
    return f"src/{chance.choice(_NOUNS)}/{name(chance)}.{end}"


def sentence(chance: Random) -> str:
    """Return a plain sentence about some code."""
    return (
        f"The {chance.choice(_NOUNS)} is taken from `{name(chance)}` before"
        f" `{name(chance)}` may {chance.choice(_VERBS)} the {chance.choice(_NOUNS)}."
    )


def _code(chance: Random) -> Iterator[str]:
    number = 0
    while True:
        first, second = chance.choice(_NOUNS), chance.choice(_NOUNS)
        for line in (
            f"def {name(chance)}({first}: str, {second}: int = {chance.randrange(99)}) -> bool:",
            f'    """{sentence(chance)}"""',
            f"    if {second} > {chance.randrange(1000)} and not {first}.endswith('{second}'):",
            f"        raise {first.title()}Error({first}, {second})",
            f"    return {name(chance)}({first})[{chance.randrange(9)}] == {second}",
            "",
        ):
            number += 1
            yield f"{number:6}\t{line}"


def _records(chance: Random) -> Iterator[str]:
    while True:
        record = {
            "id": f"{chance.randrange(16**8):08x}",
            "kind": chance.choice(_NOUNS),
            "amount": round(chance.random() * 900, 2),
            "tags": [name(chance) for _ in range(chance.randrange(4))],
            "note": sentence(chance) if chance.random() < 0.3 else None,
        }
        yield json.dumps(record) + ","


def _log(chance: Random) -> Iterator[str]:
    for second in accumulate(chance.randrange(7) for _ in count()):
        time = f"{second // 3600 % 24:02}:{second // 60 % 60:02}:{second % 60:02}"
        words = f"{name(chance)} id={chance.randrange(16**6):06x} took={chance.randrange(900)}ms"
        yield f"2026-10-01T{time}Z {chance.choice(_LEVELS)} {chance.choice(_NOUNS)} {words}"


def _matches(chance: Random) -> Iterator[str]:
    while True:
        yield f"{path(chance)}:{chance.randrange(900)}:    return {name(chance)}({name(chance)})"


def _tests(chance: Random) -> Iterator[str]:
    while True:
        end = "FAILED" if chance.random() < 0.02 else "PASSED"
        file = f"tests/test_{chance.choice(_NOUNS)}.py"
        yield f"{file}::test_{name(chance)} {end} [{chance.random():.2f}s]"


def _page(chance: Random) -> Iterator[str]:
    while True:
        yield f"## {name(chance).replace('_', ' ').title()}"
        yield " ".join(sentence(chance) for _ in range(chance.randrange(2, 7)))


def _chinese(chance: Random) -> Iterator[str]:
    while True:
        yield "".join(chance.choices(_CHINESE, k=chance.randrange(2, 8)))


KINDS: dict[str, Callable[[Random], Iterator[str]]] = {
    "code": _code,
    "json": _records,
    "log": _log,
    "matches": _matches,
    "tests": _tests,
    "page": _page,
    "chinese": _chinese,
}


def text(chance: Random, kind: str, characters: int, planted: str = "") -> str:
    """Return lines of a kind, about so many characters; a planted line stands in the middle."""
    lines, size = [], 0
    for line in KINDS[kind](chance):
        lines.append(line)
        size += len(line) + 1
        if size >= characters:
            break
    if planted:
        lines.insert(len(lines) * 3 // 5, planted)
    return "\n".join(lines)
