"""What is stored of a conversation, and that it stays so."""

from typing import Any

import pytest
from msgspec.structs import replace

from memd.context.planning import CHANGED, KnownConversation, Resync
from memd.context.requests import ContextRequest, DueCompaction
from memd.context.spilling import character_limit, reason_to_stay
from memd.context.values import Decision
from memd.core.settings import NotesSettings, Settings
from tests.context.conversations import (
    Conversation,
    Message,
    assistant,
    call,
    edited,
    exchange,
    lines,
    result,
    settings,
    thinking,
    user,
)

LARGE = exchange("t1", lines(30_001))
HUGE = settings(limits={"Bash": 1_000_000})


def test_a_large_result_is_stored() -> None:
    """A result over its tool's limit is replaced by its beginning, in the answer and the count."""
    talk = Conversation()
    settled = talk.sent(user("go"), *LARGE)
    (edit,) = settled.edits
    assert (edit.message, edit.block, edit.tool_use_id) == (2, 0, "t1")
    assert str(edit.content).startswith("<persisted-output>\n30001 bytes")
    assert settled.count.tokens < 1_000


@pytest.mark.parametrize(
    ("tool", "most"),
    [
        ("Bash", 30_000),
        ("Grep", 20_000),
        ("mcp__x__y", 100_000),
        ("Other", 50_000),
        ("mine", 9_000),
    ],
)
def test_tools_have_limits(tool: str, most: int) -> None:
    """A result of as many characters as its tool may have is sent whole, one more is not."""
    own = settings(limits={"mine": 9_000})
    for size, edits in ((most, []), (most + 1, ["t1"])):
        talk = Conversation(settings=own)
        assert edited(talk.sent(user("go"), *exchange("t1", lines(size), tool))) == edits
        assert talk.action("t1") == ("spill" if edits else "keep")


def test_nothing_is_decided_about_short_results() -> None:
    """No limit reaches below 4,000 characters."""
    talk = Conversation(settings=settings(limits={"Bash": 0}))
    assert edited(talk.sent(user("go"), *exchange("t1", lines(3_999)))) == []
    assert talk.known.decisions == {}
    assert character_limit("Bash", talk.settings) == 3_999


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"reader": ""}, "no_reader"),
        ({"reader": "Bash"}, "reader"),
        ({"settings": settings(spill=False)}, "off"),
        ({"settings": HUGE}, "small"),
    ],
)
def test_a_result_that_stays_is_kept_for_good(change: dict[str, Any], reason: str) -> None:
    """What is sent whole once is sent whole under any later settings, after a restart too."""
    talk = Conversation(**change)
    settled = talk.sent(user("go"), *LARGE)
    assert edited(settled) == []
    assert reason_to_stay("Bash", 30_001, talk.request(())) == reason
    after = Conversation(KnownConversation(decisions=talk.known.decisions))
    assert edited(after.sent(user("go"), *LARGE)) == []


def test_what_was_stored_stays_so_whatever_comes() -> None:
    """A stored result is replaced by the same bytes without a reader, the setting or the disk."""
    talk = Conversation()
    first = talk.sent(user("go"), *LARGE).edits
    after = Conversation(
        KnownConversation(decisions=talk.known.decisions),
        settings=settings(spill=False),
        reader="",
        failing={"t1": "the disk is full"},
    )
    again = after.sent(user("go"), *LARGE)
    assert again.edits == first
    assert again.count == Conversation().sent(user("go"), *LARGE).count


@pytest.mark.parametrize(
    "answer",
    [
        result("t1", lines(90_000), is_error=True),
        result("t1", [{"type": "text", "text": lines(90_000)}, {"type": "image", "source": {}}]),
    ],
)
def test_errors_and_images_stay(answer: Message) -> None:
    """A failed result, and one that is not text alone, is sent as it is."""
    talk = Conversation()
    assert edited(talk.sent(user("go"), assistant(call("t1")), user(answer))) == []


def test_what_a_reply_followed_was_sent_whole() -> None:
    """A result that memd first sees behind a reply to it stays: that reply may hold thinking."""
    talk = Conversation()
    settled = talk.sent(
        user("go"), *LARGE, assistant(thinking(), "hm"), *exchange("t2", lines(30_001))
    )
    assert edited(settled) == ["t2"]
    assert talk.action("t1") == "keep"


def test_what_cannot_be_stored_stays() -> None:
    """Where storing fails the content stays for good, and the answer says why."""
    talk = Conversation(failing={"t1": "the disk is full"})
    settled = talk.sent(user("go"), *LARGE)
    assert (edited(settled), settled.problems) == ([], ("t1: the disk is full",))
    talk.failing = {}
    talk.known = KnownConversation(decisions=talk.known.decisions)
    assert edited(talk.sent(user("go"), *LARGE)) == []


def test_what_would_not_be_smaller_stays() -> None:
    """A result whose place-holder is as long, since its path is, stays."""
    talk = Conversation(settings=settings(limits={"Bash": 0}), base="/b" * 2_000)
    settled = talk.sent(user("go"), *exchange("t1", lines(4_100)))
    assert (edited(settled), settled.problems) == ([], ())
    assert talk.action("t1") == "keep"


def test_results_of_one_message_have_a_budget() -> None:
    """Of results that are too many together, the largest are stored until the rest fits."""
    sizes = {"a": 60_000, "b": 70_000, "c": 80_000}
    calls = assistant(*map(call, sizes), id="msg_1")
    answers = [result(name, lines(size)) for name, size in sizes.items()]
    whole, parts = Conversation(settings=HUGE), Conversation(settings=HUGE)
    assert edited(whole.sent(user("go"), calls, user(*answers))) == ["c"]
    # In parts, what was decided first stands.
    assert edited(parts.sent(user("go"), calls, user(answers[2]))) == []
    assert edited(parts.sent(*(user(answer) for answer in answers[:2]))) == ["b"]


def test_the_budget_shrinks_to_what_is_left_of_the_window() -> None:
    """Results that would fill the window are stored, the largest first, until it is not full."""
    calls = assistant(call("a"), call("b"), usage={"input_tokens": 163_000})
    for second, edits in ((28_000, ["a"]), (20_000, [])):
        answers = user(result("a", lines(30_000)), result("b", lines(second)))
        assert edited(Conversation().sent(user("go"), calls, answers)) == edits
    talk = Conversation()
    full = assistant(call("a"), call("b"), usage={"input_tokens": 190_000})
    settled = talk.sent(user("go"), full, user(result("a", lines(9_000)), result("b", "short")))
    assert (edited(settled), settled.level) == (["a"], "block")


def test_a_history_that_was_cut_goes_on() -> None:
    """A client that goes back to an earlier message goes on from there."""
    talk = Conversation()
    hashes = talk.sent(user("go"), assistant("done"), user("other")).hashes
    settled = talk.sent(user("new"), place=2, hash=hashes[1].hex())
    assert len(settled.facts) == 3
    assert settled.hashes[:2] == hashes[:2]


def test_another_history_is_asked_for() -> None:
    """Where memd has other messages than the client, it wants them again."""
    talk = Conversation()
    talk.sent(user("go"))
    for given in ({"hash": "00" * 32}, {"hash": ""}, {"place": 2}):
        assert talk.plan(user("on"), **given) == Resync(CHANGED, 1)


@pytest.mark.parametrize("action", ["spill", "drop", "clear", "other"])
def test_a_decision_without_content_changes_nothing(action: str) -> None:
    """No decision that a client reports can empty a result."""
    talk = Conversation(settings=HUGE)
    talk.sent(user("go"), *LARGE)
    (known,) = talk.known.decisions.values()
    wrong = replace(known, action=action)
    again = Conversation(KnownConversation(decisions={wrong.key: wrong}))
    assert edited(again.sent(user("go"), *LARGE)) == []


def test_thinking_that_was_dropped_stays_away() -> None:
    """A dropped block of thinking is dropped whenever its message comes again."""
    talk = Conversation()
    (first, digest), *_ = talk.sent(user("go"), assistant(thinking(), "x")).facts[1].thinking
    drop = Decision("", digest, "drop")
    again = Conversation(KnownConversation(decisions={drop.key: drop}))
    (edit,) = again.sent(user("go"), assistant(thinking(), "x")).edits
    assert (edit.message, edit.block, edit.content, first) == (1, 0, None, 0)
    alone = Conversation(KnownConversation(decisions={drop.key: drop}))
    assert alone.sent(user("go"), assistant(thinking())).edits == ()


FULL = {"usage": {"input_tokens": 170_000}}


@pytest.mark.parametrize(
    ("given", "change", "due"),
    [
        ({}, Settings(), DueCompaction(due=True, strategy="notes")),
        (
            {"supports": frozenset(("compaction",))},
            Settings(notes=NotesSettings(enabled=False)),
            DueCompaction(due=True, strategy="api"),
        ),
        ({}, Settings(notes=NotesSettings(enabled=False)), DueCompaction(True, "model")),  # noqa: FBT003
        ({"conversation": "agent-1"}, Settings(), DueCompaction(due=False)),
        ({"supports": frozenset(("managed",))}, Settings(), DueCompaction(due=False)),
        ({"supports": frozenset(("thread",))}, Settings(), DueCompaction(due=False)),
        ({"window": 400_000}, Settings(), DueCompaction(due=False)),
        ({}, settings(compact=False), DueCompaction(due=False)),
    ],
)
def test_compaction_is_due_at_its_threshold(
    given: dict[str, Any], change: Settings, due: DueCompaction
) -> None:
    """A full conversation is to be compacted, unless it is a part, managed, or must not be."""
    talk = Conversation(settings=change)
    settled = talk.sent(user("go"), assistant("done"), user("on"), **FULL, **given)
    assert settled.compact == due


def test_a_request_of_a_born_result_is_measured_alike() -> None:
    """The same rule holds for a result that is asked about before it is in a conversation."""
    request: ContextRequest = Conversation().request(())
    assert reason_to_stay("Bash", 30_000, request) == "small"
    assert reason_to_stay("Bash", 30_001, request) == ""
