"""Old results that make room: when, which, and what becomes of thinking."""

from typing import Any

import pytest
from msgspec.structs import replace

from memd.context import clearing
from memd.context.planning import KnownConversation, Resync, Settled
from memd.context.preview import cleared_text
from memd.context.requests import CONTEXT_MANAGEMENT, MANAGED, THINKING, THREAD
from memd.conversation import history
from tests.context.conversations import (
    Conversation,
    Message,
    assistant,
    call,
    edited,
    exchange,
    lines,
    settings,
    thinking,
    user,
)

CLEARS = settings(clear=True)
HOUR = 3_600.0


def _history(results: int, *blocks: Message, tool: str = "Bash") -> list[Message]:
    """Return a finished turn with so many results; the reply behind the third has more blocks."""
    messages = [user("go")]
    for number in range(results):
        messages += exchange(f"t{number}", lines(8_000), tool)
    messages[7]["content"] = [*blocks, *messages[7]["content"]]
    return [*messages, assistant("done")]


def _rested(messages: list[Message], **given: Any) -> tuple[Conversation, Settled | Resync]:
    """Return a conversation that rested for an hour, and what is planned when it goes on."""
    talk = Conversation(settings=CLEARS)
    talk.sent(*messages[:-1], **given)
    talk.now += HOUR
    return talk, talk.plan(messages[-1], user("on"), **given)


def test_old_results_are_cleared_after_an_hour() -> None:
    """Their text is asked for; sent again, all but the newest five make room, and stay so."""
    messages = _history(8)
    talk, wanted = _rested(messages)
    assert wanted == Resync("clear", 2)
    settled = talk.sent(*messages, user("on"), place=0, hash="")
    assert edited(settled) == ["t0", "t1", "t2"]
    assert settled.edits[0].content == cleared_text(f"{talk.base}/t0.txt")
    assert [talk.action(f"t{n}") for n in range(8)] == ["clear"] * 3 + ["keep"] * 5
    again = Conversation(KnownConversation(decisions=talk.known.decisions))
    assert again.sent(*messages, user("on")).edits == settled.edits


def test_a_conversation_goes_on_from_where_text_is_needed() -> None:
    """A client that sends its messages again from the place named gets the same plan."""
    messages = _history(8)
    talk, wanted = _rested(messages)
    assert isinstance(wanted, Resync)
    before = talk.known.hashes[wanted.most - 1].hex()
    settled = talk.sent(*messages[wanted.most :], user("on"), place=wanted.most, hash=before)
    assert edited(settled) == ["t0", "t1", "t2"]


def test_the_count_is_without_what_was_cleared() -> None:
    """What the server counted last is less what is cleared since."""
    messages = _history(8)
    messages[-1]["usage"] = {"input_tokens": 100_000}
    talk, _ = _rested(messages)
    settled = talk.sent(*messages, user("on"), place=0, hash="")
    saved = 3 * (2_000 - history.estimate_text(str(settled.edits[0].content)))
    assert settled.count.tokens == 100_000 - saved + 1


def test_what_cannot_be_stored_is_not_cleared() -> None:
    """A result whose file cannot be written stays as it was sent."""
    messages = _history(8)
    talk, _ = _rested(messages)
    talk.failing = {"t0": "the disk is full"}
    settled = talk.sent(*messages, user("on"), place=0, hash="")
    assert edited(settled) == ["t1", "t2"]
    assert settled.problems == ("t0: the disk is full",)
    assert talk.action("t0") == "keep"


@pytest.mark.parametrize(
    ("messages", "given", "more", "rest"),
    [
        (_history(8), {}, [user("on")], HOUR - 1),
        (_history(5), {}, [user("on")], HOUR),
        (_history(8, tool="mcp__x__y"), {}, [user("on")], HOUR),
        (_history(8)[:-1], {}, [assistant(call("x")), user("on")], HOUR),
        (_history(8)[:-1], {}, exchange("x", "short"), HOUR),
        (_history(8), {}, [], HOUR),
        (_history(8), {"reader": ""}, [user("on")], HOUR),
        (_history(8), {"supports": frozenset((MANAGED,))}, [user("on")], HOUR),
        (_history(8), {"supports": frozenset((THREAD,))}, [user("on")], HOUR),
        (_history(8), {"supports": frozenset((CONTEXT_MANAGEMENT,))}, [user("on")], HOUR),
        (_history(8, thinking()), {}, [user("on")], HOUR),
    ],
)
def test_nothing_is_cleared_in_doubt(
    messages: list[Message], given: dict[str, Any], more: list[Message], rest: float
) -> None:
    """No change before an hour, within a turn, of other tools, under others' care, or thinking."""
    talk = Conversation(settings=CLEARS)
    talk.sent(*messages[:-1], **given)
    talk.now += rest
    settled = talk.plan(messages[-1], *more, **given)
    assert isinstance(settled, Settled)
    assert settled.edits == ()


@pytest.mark.parametrize("change", [{"may_clear": False}, {"replied_at": 0.0}])
def test_nothing_is_cleared_of_what_others_share(change: dict[str, Any]) -> None:
    """A session with other conversations, and one of unknown age, stays as it is."""
    messages = _history(8)
    talk = Conversation(settings=CLEARS)
    talk.sent(*messages[:-1])
    talk.now += HOUR
    talk.known = replace(talk.known, **change)
    assert isinstance(talk.plan(messages[-1], user("on")), Settled)


def test_going_back_in_a_live_conversation_clears_nothing() -> None:
    """The hour begins with the last plan, however old the messages are that the client goes on."""
    messages = _history(8)
    talk = Conversation(settings=CLEARS)
    hashes = talk.sent(*messages).hashes
    talk.now += HOUR - 1
    talk.sent(user("on"))
    talk.now += 60
    given = {"place": len(hashes), "hash": hashes[-1].hex()}
    assert isinstance(talk.plan(user("rather"), **given), Settled)


def test_thinking_goes_with_what_stood_before_it() -> None:
    """Where the client lets it go, all thinking behind the first cleared result is dropped."""
    messages = _history(8, thinking())
    messages[1]["content"] = [thinking("before"), *messages[1]["content"]]
    talk, wanted = _rested(messages, may_drop_thinking=True)
    assert wanted == Resync("clear", 2)
    given = {"place": 0, "hash": "", "may_drop_thinking": True}
    settled = talk.sent(*messages, user("on"), **given)
    dropped = [(edit.message, edit.block) for edit in settled.edits if edit.content is None]
    assert dropped == [(7, 0)]
    again = Conversation(KnownConversation(decisions=talk.known.decisions))
    assert again.sent(*messages, user("on")).edits == settled.edits


def test_thinking_that_is_a_message_keeps_all() -> None:
    """Nothing is cleared where a message would have nothing left."""
    messages = [*_history(8)[:-1], assistant(thinking()), user("well?"), assistant("done")]
    _, settled = _rested(messages, may_drop_thinking=True)
    assert isinstance(settled, Settled)
    assert settled.edits == ()


def test_thinking_stays_where_nothing_was_cleared() -> None:
    """Where no result could be stored, no thinking goes either."""
    messages = _history(8, thinking())
    talk, _ = _rested(messages, may_drop_thinking=True)
    talk.failing = {f"t{n}": "the disk is full" for n in range(3)}
    settled = talk.sent(*messages, user("on"), place=0, hash="", may_drop_thinking=True)
    assert settled.edits == ()


TOOLS = [{"name": name} for name in ("Bash", "Read", "mcp__x__y", "read_stored")]
ABLE = {"supports": frozenset((CONTEXT_MANAGEMENT, THINKING)), "tools": TOOLS}


def test_a_server_that_can_clears_by_itself() -> None:
    """The request's members name when, how much, what stays and which tools are left alone."""
    settled = Conversation().sent(user("go"), **ABLE)
    assert settled.request["betas"] == [clearing.BETA]
    keep, uses = settled.request["context_management"]["edits"]
    assert keep == {"type": "clear_thinking_20251015", "keep": "all"}
    assert uses == {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": 147_000},
        "keep": {"type": "tool_uses", "value": 5},
        "clear_at_least": {"type": "input_tokens", "value": 107_000},
        "exclude_tools": ["mcp__x__y", "read_stored"],
    }


@pytest.mark.parametrize(
    ("change", "given", "trigger", "least"),
    [
        ({"compact": False}, {}, 180_000, 140_000),
        ({}, {"conversation": "agent-1"}, 180_000, 140_000),
        ({"compact": False}, {"window": 1_000_000}, 180_000, 140_000),
        ({"compact": False}, {"window": 100_000}, 90_000, 70_000),
        ({}, {"window": 100_000}, 73_500, 53_500),
    ],
)
def test_the_server_s_trigger_fits_the_window(
    change: dict[str, bool], given: dict[str, Any], trigger: int, least: int
) -> None:
    """It clears at 180,000 tokens, or earlier where compaction or the window come first."""
    settled = Conversation(settings=settings(**change)).sent(user("go"), **ABLE, **given)
    uses = settled.request["context_management"]["edits"][-1]
    assert (uses["trigger"]["value"], uses["clear_at_least"]["value"]) == (trigger, least)


@pytest.mark.parametrize(
    "given",
    [
        {"supports": frozenset()},
        {"supports": frozenset((CONTEXT_MANAGEMENT, MANAGED))},
        {"supports": frozenset((CONTEXT_MANAGEMENT, THREAD))},
        {"tools": None},
    ],
)
def test_no_members_in_doubt(given: dict[str, Any]) -> None:
    """Without the capability, under others' care, or with tools unknown, the request stays."""
    assert Conversation().sent(user("go"), **{**ABLE, **given}).request == {}


def test_members_stay_as_they_were_first() -> None:
    """What a conversation's first request said of clearing stands, whatever the settings say."""
    talk = Conversation()
    first = talk.sent(user("go"), **ABLE).request
    talk.settings = settings(compact=False)
    assert talk.sent(user("on"), **{**ABLE, "tools": TOOLS[:1]}).request == first
    without = talk.sent(user("and"), **{**ABLE, "supports": frozenset((CONTEXT_MANAGEMENT,))})
    assert (
        without.request["context_management"]["edits"] == first["context_management"]["edits"][1:]
    )
    other = Conversation()
    other.sent(user("go"))
    assert other.sent(user("on"), **ABLE).request == {}


def test_thinking_that_may_go_is_cleared_by_the_server_too() -> None:
    """Where the client lets thinking go, the server keeps that of one turn."""
    settled = Conversation().sent(user("go"), **ABLE, may_drop_thinking=True)
    edits = settled.request["context_management"]["edits"]
    assert edits[0]["keep"] == {"type": "thinking_turns", "value": 1}
