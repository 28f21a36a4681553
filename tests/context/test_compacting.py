"""What a conversation becomes with a summary, over histories that are generated."""

from random import Random
from typing import Any

import pytest

from memd.context import compacting, local, preview, summary
from memd.context.compacting import LOCAL, MODEL, SummarisedPart
from memd.conversation.history import CompactionPlan, ending, floor, summary_of, tail
from memd.conversation.pieces import own_words
from memd.conversation.turns import turns_of
from memd.testing.messages_checks import refused
from memd.text import quoting
from tests.conversation.histories import HistoryMaker, damage

FOLDER = "/base/projects/-p/s/tool-results"
WORDS = "It reads each record once. " * 2_000
SECTIONS = {"Request and intent": "Mend it.", "Next step": "Run the tests."}


def planned(messages: list[Any], cut: SummarisedPart, strategy: str = MODEL) -> Any:
    """Return a plan with the sections above, in a window that has room for anything."""
    return compacting.plan(
        messages,
        cut,
        SECTIONS,
        strategy=strategy,
        trigger="auto",
        window=1_000_000,
        transcript="/t.jsonl",
        folder=FOLDER,
    )


def applied(messages: list[Any], plan: CompactionPlan) -> list[dict[str, Any]]:
    """Return what a client has that does what a plan says."""
    gone = {(e.message, e.block) for e in compacting.thinking_removals(messages, plan.keep_from)}
    result = [*messages[: plan.keep_to], plan.messages[0]]
    for place, message in enumerate(messages[plan.keep_from :], plan.keep_from):
        content = message.get("content")
        if isinstance(content, list):
            content = [block for n, block in enumerate(content) if (place, n) not in gone]
        result += [{**message, "content": content}] if content or "output_config" in message else []
    return result


def rendered(messages: list[Any], start: int) -> list[dict[str, Any]]:
    """Return messages from a place on as the API sees them."""
    return [turn.rendered() for turn in turns_of(messages, start) or []]


def said(messages: list[Any]) -> list[str]:
    """Return the beginning of all that the person said, as a summary has it."""
    result = []
    for message in messages:
        persons = message.get("role") == "user" and not summary_of(message)
        content = message.get("content") if persons else []
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        texts = (own_words(b.get("text")) for b in blocks if b["type"] == "text")
        result += [quoting.neutralise(text)[:20].strip() for text in texts if text]
    return result


def check(messages: list[Any], cut: SummarisedPart, strategy: str) -> CompactionPlan | None:
    """Check what holds of each plan, and return it."""
    plan: CompactionPlan | None = planned(messages, cut, strategy)
    if plan is None:
        return None
    new = applied(messages, plan)
    first = {"role": "user", "content": "Before."}
    body = {"model": "m", "max_tokens": 9, "messages": [first, *rendered(new, floor(new))]}
    assert refused(body) is None
    assert plan.messages[1:] == cut.tail.messages
    assert rendered(new, plan.keep_to + 1) == rendered(messages, plan.keep_from)
    assert new[: plan.keep_to] == messages[: plan.keep_to]
    text = "\n" + plan.messages[0]["content"].replace("\n> ", "\n")
    for words in said(messages[cut.start : plan.keep_from]):
        assert words in text
    assert len(plan.messages[0]["content"].encode()) < 4 * 1.1 * summary.TOKENS
    return plan


def histories(seeds: range) -> int:
    """Check generated histories, cut somewhere; return how many plans were made."""
    plans = 0
    for seed in seeds:
        chance = Random(seed)  # noqa: S311 - a story, not a secret
        history = HistoryMaker(chance).make()
        messages = history.messages
        place = chance.randrange(len(messages) + 1)
        first, up_to = chance.choice(((None, None), (place, None), (None, place)))
        cut = compacting.part_to_summarise(messages, first=first, up_to=up_to)
        if history.open:
            assert cut is None
        if cut is None:
            continue
        assert history.floor <= (cut.keep_to or cut.tail.first)
        assert first is None or cut.keep_to <= first
        assert up_to is None or cut.tail.first <= up_to
        strategy = chance.choice((MODEL, LOCAL))
        if strategy == LOCAL and first is None and up_to is None:
            cut = compacting.without_newest(messages, cut) or cut
        plans += check(messages, cut, strategy) is not None
    return plans


@pytest.mark.parametrize("part", range(2))
def test_plans_hold_for_generated_histories(part: int) -> None:
    """The API takes the result, what stays is as it was, and all that the person said is there."""
    assert histories(range(part * 150, part * 150 + 150)) > 50


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
def test_plans_hold_for_ten_thousand_histories(part: int) -> None:
    """The same for ten thousand."""
    histories(range(1_000 + part * 2_500, 1_000 + part * 2_500 + 2_500))


def test_what_is_damaged_is_left_alone_or_planned_whole() -> None:
    """Wrong shapes, missing and repeated ids never raise, wherever a conversation is cut."""
    for seed in range(200):
        chance = Random(seed)  # noqa: S311 - a story, not a secret
        messages: list[Any] = HistoryMaker(chance).make().messages
        for _ in range(chance.choice((1, 2, 5))):
            damage(messages, chance)
        messages = [message for message in messages if isinstance(message, dict)]
        cut = compacting.part_to_summarise(
            messages, up_to=chance.choice((None, len(messages) // 2))
        )
        if cut is not None:
            summary.quoted_rounds(messages, cut.start, cut.tail.first)
            local.sections(messages[: cut.tail.first], {})
            planned(messages, cut)


def talk(count: int) -> list[dict[str, Any]]:
    """Return so many questions and answers."""
    return [
        message
        for n in range(count)
        for message in (
            {"role": "user", "content": f"Question {n}?"},
            {"role": "assistant", "id": f"a{n}", "content": "word " * 400},
        )
    ]


def test_what_nobody_answered_stays() -> None:
    """The person's last message is the first one that the next reply sees."""
    asked = {"role": "user", "content": "And now?"}
    messages = talk(4)
    end, waiting = ending(messages), ending([*messages, asked])
    assert end is not None
    assert waiting is not None
    assert (end.first, end.messages) == (8, ())
    assert (waiting.first, waiting.messages) == (8, (asked,))
    assert compacting.part_to_summarise([asked]) is None
    assert compacting.part_to_summarise([]) is None


def test_a_part_begins_with_a_round() -> None:
    """A place within a round is moved back, and without one there is no part."""
    messages = talk(4)
    before, behind = (
        compacting.part_to_summarise(messages, up_to=4),
        compacting.part_to_summarise(messages, first=4),
    )
    assert before is not None
    assert behind is not None
    assert (before.start, before.tail.first, before.keep_to) == (0, 3, 0)
    assert (behind.start, behind.tail.first, behind.keep_to) == (3, 8, 3)
    assert compacting.part_to_summarise(messages, up_to=0) is None
    assert compacting.part_to_summarise(messages, first=0) is None


def test_a_part_that_is_summarised_hides_nothing_before_it() -> None:
    """A summary in the middle is no boundary: the next compaction takes in what is before it."""
    messages = talk(12)
    cut = compacting.part_to_summarise(messages, first=14)
    assert cut is not None
    plan = planned(messages, cut)
    new = [*applied(messages, plan), *talk(2)]
    assert floor(new) == 0
    whole = compacting.part_to_summarise(new)
    assert whole is not None
    assert whole.start == 0
    shown = "\n".join(summary.quoted_rounds(new, 0, len(new)))
    assert 'by="summary"' in shown
    assert "Mend it." in shown
    text = planned(new, whole).messages[0]["content"]
    assert all(f"> Question {n}?" in text for n in range(12))


def test_a_summary_names_the_stored_results_that_it_replaces() -> None:
    """What can be read is named, over two summaries; a path elsewhere that a tool names is not."""
    stored = preview.stored_preview("x" * 9_000, f"{FOLDER}/toolu_1.txt")
    hostile = stored.replace(FOLDER, "/etc")
    messages: list[Any] = [{"role": "user", "content": "Look. " * 4_000}]
    for number, content in enumerate((stored, hostile, [{"type": "text", "text": "fine"}])):
        call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": content}
        messages += [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
    for _ in range(2):
        cut = compacting.part_to_summarise(messages, up_to=len(messages))
        assert cut is not None
        plan = planned(messages, cut)
        text = plan.messages[0]["content"]
        assert f"\n9000 bytes, 1 lines, whole at: {FOLDER}/toolu_1.txt\n" in text
        assert "/etc" not in text
        messages = [*applied(messages, plan), {"role": "assistant", "content": WORDS}]
        messages += [{"role": "user", "content": WORDS}]


def test_a_summary_that_saves_nothing_is_no_plan() -> None:
    """A short conversation is left as it is."""
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    cut = compacting.part_to_summarise(messages)
    assert cut is not None
    assert planned(messages, cut) is None
    assert tail(messages, 2) is not None
