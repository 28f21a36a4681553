"""What a server's prompt cache gives back of each request, as the Messages API documents it."""

import json
from collections.abc import Callable
from typing import Any

from tests.support.api_rules import blocks

_LIFE = 300.0  # seconds that a cached prefix lives


class PromptCache:
    """Counts the input of requests; ``now`` returns the seconds that the cache goes by.

    A prefix that ended at a mark comes back for five minutes after its last use; a block of the
    prompt counts a token for each four bytes.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._kept: dict[tuple[str, ...], float] = {}  # prefixes and their last use

    def usage(self, body: Any) -> dict[str, int]:
        """Return the members of ``usage`` for the input of a request."""
        found = [*(body.get("tools") or ()), *blocks(body.get("system"))]
        found += [{"role": m["role"], **b} for m in body["messages"] for b in blocks(m["content"])]
        marked = [place for place, block in enumerate(found, 1) if "cache_control" in block]
        prompt = tuple(
            json.dumps({name: part for name, part in block.items() if name != "cache_control"})
            for block in found
        )
        alive = [p for p, used in self._kept.items() if self._now() - used < _LIFE]
        read = max((len(p) for p in alive if prompt[: len(p)] == p), default=0)
        written = max([read, *marked])
        for place in marked if not read else [read, *marked]:
            self._kept[prompt[:place]] = self._now()
        parts = (prompt[written:], prompt[:read], prompt[read:written])
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        tokens = (sum(len(part) // 4 for part in each) for each in parts)
        return dict(zip(names, tokens, strict=True))
