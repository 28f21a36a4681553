"""The prompt cache's accounting."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.clock import FakeClock
from tests.support.messages_cache import PromptCache, count

MARK = {"cache_control": {"type": "ephemeral"}}
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def block(words: str, **more: Any) -> dict[str, Any]:
    """Return a text block of a hundred tokens and a few."""
    return {"type": "text", "text": words.ljust(400), **more}


def ask(*blocks: Any, **more: Any) -> dict[str, Any]:
    """Return a request with one message."""
    return {"model": "m", "messages": [{"role": "user", "content": list(blocks)}], **more}


@pytest.fixture
def clock() -> FakeClock:
    """Return the cache's clock."""
    return FakeClock()


@pytest.fixture
def cache(clock: FakeClock) -> PromptCache:
    """Return a cache that takes anything of a hundred tokens."""
    return PromptCache(clock.now, lambda _: 100)


def test_one_byte_before_the_mark_spoils_it(cache: PromptCache) -> None:
    """Tools, system, model, format and order all stand before the messages."""
    base = ask(block("a", **MARK), tools=[{"name": "T", "x": 1}], system="s")
    cache.visit(base)
    assert cache.visit(base).read > 0
    others: list[dict[str, Any]] = [
        {"tools": [{"name": "T", "x": 2}]},
        {"tools": [{"x": 1, "name": "T"}]},
        {"system": "t"},
        {"model": "n"},
        {"tool_choice": {"type": "any"}},
        {"thinking": {"type": "adaptive"}},
        {"output_config": {"format": {"type": "json_schema"}}},
    ]
    assert [cache.visit({**base, **other}).read for other in others] == [0] * len(others)
    assert cache.visit({**base, "output_config": {"effort": "low"}}).read > 0


def test_an_entry_ends_with_its_life(cache: PromptCache, clock: FakeClock) -> None:
    """Five minutes after the last use an entry is gone; a use renews it; an hour is an hour."""
    short, long = ask(block("a", **MARK)), ask(block("b", **HOUR))
    cache.visit(short)
    assert cache.visit(long).created_1h > 0
    for _ in range(3):
        clock.advance(299)
        assert cache.visit(short).read > 0
    clock.advance(300)
    assert cache.visit(short).read == 0
    assert cache.visit(long).read > 0
    clock.advance(3600)
    assert cache.visit(long).read == 0


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=12))
def test_every_token_is_accounted_once(shape: list[tuple[int, bool]]) -> None:
    """Fresh, read and created tokens are the whole input, whatever came before."""
    cache = PromptCache(lambda: 0.0, lambda _: 100)
    blocks: list[dict[str, Any]] = []
    for word, marked in shape:
        blocks.append(block(str(word), **(MARK if marked else {})))
        results = cache.visit(ask(*blocks))
        assert results.fresh + results.read + results.created_5m == count(ask(*blocks))
        assert min(results.fresh, results.read, results.created_5m) >= 0
