"""What a conversation becomes when its notes take the place of what they cover."""

from random import Random
from typing import Any

import pytest

from memd.conversation.history import estimate, tail
from memd.conversation.pieces import message_id
from memd.notes.compaction import CompactionPlan, plan
from memd.testing.messages_checks import refused
from memd.text import tags
from tests.conversation.histories import HistoryMaker

NOTES = "# Current State\n_Where things are._\n\nThe tests are red.\n\n# Worklog\n_Steps._\n"
PATH = "/base/projects/-p/s/session-memory/summary.md"


def planned(messages: list[Any], covers: str = "", **more: Any) -> CompactionPlan | None:
    """Return a plan with the notes above."""
    return plan(messages, more.pop("notes", NOTES), covers, path=PATH, **more)


def talk(count: int, words: int = 2_000, **members: Any) -> list[dict[str, Any]]:
    """Return so many messages of the same size, with ids."""
    roles = ("user", "assistant")
    return [
        {"role": roles[n % 2], "id": f"m{n}", "content": "word" * words, **members}
        for n in range(count)
    ]


def check(messages: list[dict[str, Any]], covers: str) -> CompactionPlan | None:
    """Check what holds of each plan, and return it."""
    result = planned(messages, covers, window=1_000_000)
    if result is None:
        return None
    answer = refused({"model": "m", "max_tokens": 9, "messages": list(result.messages)})
    assert answer is None, answer
    first, *rest = result.messages
    assert first["role"] == "user"
    assert first["content"].startswith(tags.OPEN[:-1])
    assert tags.strip(first["content"]) == ""
    assert rest == list(getattr(tail(messages, result.keep_from), "messages", ()))
    kinds = {b["type"] for m in rest if isinstance(m["content"], list) for b in m["content"]}
    assert not kinds & {"thinking", "redacted_thinking"}
    sizes = [estimate([m["content"] for m in given]) for given in (messages, result.messages)]
    assert sizes[1] < sizes[0]
    preserved = result.boundary.preserved
    assert preserved.head == message_id(messages[result.keep_from], result.keep_from)
    assert preserved.tail == message_id(messages[-1], len(messages) - 1)
    assert preserved.anchor == message_id(first, 0)
    assert planned(list(result.messages), covers, window=1_000_000) is None
    return result


def histories(seeds: range) -> int:
    """Check generated histories with notes that cover any part of them; return the plans made."""
    plans = 0
    for seed in seeds:
        chance = Random(seed)  # noqa: S311 - a story, not a secret
        history = HistoryMaker(chance).make()
        ids = [message_id(message, n) for n, message in enumerate(history.messages)]
        covers = chance.choice(("", "unknown", chance.choice(ids), chance.choice(ids)))
        result = check(history.messages, covers)
        if result is not None:
            assert not history.open
            assert result.keep_from > history.floor
            last = max((n for n, name in enumerate(ids) if name == covers), default=len(ids))
            assert result.keep_from <= max(last + 1, history.floor)
        plans += result is not None
    return plans


@pytest.mark.parametrize("part", range(2))
def test_plans_hold_for_generated_histories(part: int) -> None:
    """The API takes the result, it is smaller, holds what is not covered, and is planned once."""
    assert histories(range(part * 150, part * 150 + 150)) > 50


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
def test_plans_hold_for_ten_thousand_histories(part: int) -> None:
    """The same for ten thousand."""
    histories(range(1_000 + part * 2_500, 1_000 + part * 2_500 + 2_500))
