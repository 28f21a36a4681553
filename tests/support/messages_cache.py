"""Simulate the prompt cache of the Messages API as documented, and count tokens.

Rules of this file
- The prompt is a row of blocks: tools, then system, then messages. An entry stands for the whole
  row up to a block; one byte that differs before it, and it does not fit. The marks themselves are
  no part of the row, and a plain string is the same as one text block.
- What changes how the row is read stands before it: the model and the output's format before
  everything, ``tool_choice`` and ``thinking`` before the messages.
- Entries are written at breakpoints alone, when the reply begins. From each breakpoint the server
  looks back over at most 20 blocks, its own the first, for an entry that is still alive.
- A read renews an entry. It lives 5 minutes or an hour after its last use.
- What is shorter than the model's minimum is never cached, without a word.
- Tokens are a deterministic approximation: one for each four bytes of a block as compact JSON,
  rounded up; an image or a document counts 1,600.
"""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate, pairwise
from typing import Any

from msgspec import Struct

MOST_BREAKPOINTS = 4
LOOK_BACK = 20
LIFE = {"5m": 300.0, "1h": 3600.0}  # seconds
_MEDIA_TOKENS = 1600
_BYTES_A_TOKEN = 4

# The first name that is in the model's decides; the documentation of late 2026. Families that it
# does not name take the greatest minimum of their line, so that nobody relies on a smaller one.
_MINIMA = (
    ("opus-4-8", 1024),
    ("opus-4-7", 2048),
    ("opus-4-6", 4096),
    ("opus-4-5", 4096),
    ("opus-4", 1024),
    ("opus-5", 512),
    ("fable-5", 512),
    ("mythos-5", 512),
    ("sonnet", 1024),
    ("haiku", 4096),
)
_MINIMUM = 1024  # of a model that the table does not name


class Part(Struct, frozen=True):
    """One block of the row: its bytes, its tokens, and the life that a mark on it asks for."""

    content: bytes
    tokens: int
    ttl: str = ""


class CacheUse(Struct, frozen=True):
    """What the cache did for one request, in tokens."""

    fresh: int
    read: int
    created_5m: int
    created_1h: int

    def usage(self) -> dict[str, Any]:
        """Return the members of a reply's usage that tell of the input."""
        return {
            "input_tokens": self.fresh,
            "cache_read_input_tokens": self.read,
            "cache_creation_input_tokens": self.created_5m + self.created_1h,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.created_5m,
                "ephemeral_1h_input_tokens": self.created_1h,
            },
        }


def minimum(model: str) -> int:
    """Return how many tokens a prefix needs to be cached with a model."""
    return next((least for name, least in _MINIMA if name in model), _MINIMUM)


def tokens(block: Any) -> int:
    """Return the tokens of one block; marks do not count."""
    if isinstance(block, Mapping) and block.get("type") in ("image", "document"):
        return _MEDIA_TOKENS
    return -(-len(_bytes(block)) // _BYTES_A_TOKEN)


def count(request: Mapping[str, Any]) -> int:
    """Return the tokens of a whole request's input."""
    return sum(part.tokens for part in row(request))


def row(request: Mapping[str, Any]) -> list[Part]:
    """Return the blocks of a request in the order in which they are cached.

    A mark on the request itself stands at the last block.
    """
    parts = list(_row(request))
    mark = request.get("cache_control")
    if mark and parts and not parts[-1].ttl:
        parts[-1] = Part(parts[-1].content, parts[-1].tokens, _ttl(mark))
    return parts


class PromptCache:
    """The entries of one server. ``now`` tells the time in seconds; any thread may use it."""

    def __init__(self, now: Callable[[], float], least: Callable[[str], int] = minimum) -> None:
        self._now = now
        self._least = least  # the shortest prefix in tokens that is cached, by the model's name
        self._lock = threading.Lock()  # guards the entries
        # By the hash of a prefix, when its life ends in seconds, and how long that is ("5m", "1h").
        self._entries: dict[str, tuple[float, str]] = {}

    def visit(self, request: Mapping[str, Any]) -> CacheUse:
        """Return what a request reads and creates, and note it; the reply begins now."""
        parts = row(request)
        least = self._least(str(request.get("model")))
        sums = list(accumulate(part.tokens for part in parts))  # the tokens up to each part
        marked = [n for n, part in enumerate(parts) if part.ttl and sums[n] >= least]
        hashes = list(_prefix_hashes(request, parts))
        with self._lock:
            last_read = self._read(marked, hashes)
            self._write(marked, hashes, parts)
        return _cache_use(marked, sums, parts, last_read)

    def _read(self, marked: list[int], hashes: list[str]) -> int:
        """Return the index of the last part that an entry covers, -1 if none does.

        ``marked`` are the indices of the marked parts, ``hashes`` those of the prefix up to each.
        The entry is renewed.
        """
        now = self._now()
        for mark in reversed(marked):
            for index in range(mark, max(-1, mark - LOOK_BACK), -1):
                until, ttl = self._entries.get(hashes[index], (0.0, ""))
                if until > now:
                    self._entries[hashes[index]] = (now + LIFE[ttl], ttl)
                    return index
        return -1

    def _write(self, marked: list[int], hashes: list[str], parts: list[Part]) -> None:
        """Store the prefixes up to the marked parts, each with the end of its life."""
        now = self._now()
        for mark in marked:
            until, ttl = self._entries.get(hashes[mark], (0.0, ""))
            # A longer life that was paid for is not cut short by a shorter mark.
            if until <= now or parts[mark].ttl == "1h":
                ttl = parts[mark].ttl
            self._entries[hashes[mark]] = (now + LIFE[ttl], ttl)


def _cache_use(marked: list[int], sums: list[int], parts: list[Part], last_read: int) -> CacheUse:
    """Return the tokens of a request that were read from the cache, written to it, and neither.

    ``sums`` are the tokens up to each part, ``last_read`` is the index of the last part that was
    read, -1 for none.
    """
    total = sums[-1] if sums else 0
    read = sums[last_read] if last_read >= 0 else 0
    created = {"5m": 0, "1h": 0}
    edges = [last_read, *(mark for mark in marked if mark > last_read)]
    for before, mark in pairwise(edges):
        tokens_before = sums[before] if before >= 0 else 0
        created[parts[mark].ttl] += sums[mark] - tokens_before
    fresh = total - read - created["5m"] - created["1h"]
    return CacheUse(fresh, read, created["5m"], created["1h"])


def _row(request: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the parts of a request in the order in which the cache compares them."""
    for tool in request.get("tools") or ():
        yield _part(tool, "tool")
    for block in blocks(request.get("system")):
        yield _part(block, "system")
    # A change of these changes how the messages are read, but nothing that stands before them.
    options = _bytes([request.get(name) for name in ("tool_choice", "thinking")])
    for message in request.get("messages") or ():
        for block in blocks(message.get("content")):
            part = _part(block, str(message.get("role")))
            yield Part(options + part.content, part.tokens, part.ttl)


def _part(block: Any, place: str) -> Part:
    """Return a block as a part, with the life that its cache mark asks for.

    ``place`` is "tool", "system" or the role of the block's message.
    """
    mark = block.get("cache_control") if isinstance(block, Mapping) else None
    content = place.encode() + b" " + _bytes(block)
    return Part(content, tokens(block), _ttl(mark) if mark else "")


def blocks(content: Any) -> list[Any]:
    """Return the blocks of a content; a text is one block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content or ())


def _ttl(mark: Mapping[str, Any]) -> str:
    """Return the life that a cache mark asks for."""
    return str(mark.get("ttl") or "5m")


def _bytes(value: Any) -> bytes:
    """Return JSON with its members in the order they came: another order is another prompt."""
    plain = json.dumps(_unmarked(value), ensure_ascii=False, separators=(",", ":"), default=dict)
    return plain.encode("utf-8", "surrogatepass")


def _unmarked(value: Any) -> Any:
    """Return a value without cache marks, at any depth."""
    if isinstance(value, Mapping):
        return {k: _unmarked(v) for k, v in value.items() if k != "cache_control"}
    if isinstance(value, list | tuple):
        return [_unmarked(item) for item in value]
    return value


def _prefix_hashes(request: Mapping[str, Any], parts: list[Part]) -> Iterator[str]:
    """Yield the hash of the row up to each part."""
    output_format = (request.get("output_config") or {}).get("format")
    state = hashlib.sha256(_bytes([request.get("model"), output_format]))
    for part in parts:
        state.update(b"%d:" % len(part.content) + part.content)
        yield state.hexdigest()
