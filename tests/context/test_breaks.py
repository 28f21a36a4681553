"""When a prompt cache was lost, and to what."""

from typing import Any

import pytest
from msgspec.structs import replace

from memd.context.breaks import CacheBaseline, SentRequest, cache_break_of, sent_request
from memd.context.requests import CacheBreak, ContextRequest
from memd.core.settings import Settings
from memd.core.values import Project

HASHES = (b"0", b"1", b"2")
SENT = SentRequest(1_000.0, "m", "s", ("a", "b"), ("x",), HASHES)
BEFORE = CacheBaseline(replace(SENT, at=900.0), 100_000, 300.0)


def usage(read: int, created: int = 0, **members: Any) -> dict[str, Any]:
    """Return what a server counted."""
    counted = {"cache_read_input_tokens": read, "cache_creation_input_tokens": created}
    return counted | members


def found(
    sent: SentRequest | None,
    read: int,
    diagnostics: Any = None,
    before: CacheBaseline | None = BEFORE,
) -> CacheBreak | None:
    """Return the break that a reply shows."""
    return cache_break_of(before, sent, usage(read), diagnostics, 1_000.0)[1]


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"model": "n", "system": "t"}, "model"),
        ({"tools": ("a", "c"), "system": "t"}, "tools"),
        ({"system": "t", "betas": ()}, "system"),
        ({"betas": ()}, "betas"),
        ({"messages": (b"0", b"9", b"8", b"7")}, "message 1"),
        ({"messages": (*HASHES, b"3")}, "server"),
    ],
)
def test_the_first_change_in_the_order_of_a_cache_is_the_cause(
    changed: dict[str, Any], cause: str
) -> None:
    """Where nothing changed, the server lost it by itself."""
    assert found(replace(SENT, **changed), 10_000) == CacheBreak(cause, 90_000)


@pytest.mark.parametrize(
    ("before", "read", "lost"),
    [
        (100_000, 95_001, False),
        (100_000, 95_000, False),
        (100_000, 94_999, True),
        (20_000, 18_001, False),
        (20_000, 18_000, True),
        (0, 0, False),
        (50_000, 90_000, False),
    ],
)
def test_a_small_fall_is_none(before: int, read: int, *, lost: bool) -> None:
    """Over 5 % and at least 2,000 tokens have to be missing."""
    assert bool(found(SENT, read, before=replace(BEFORE, tokens=before))) is lost


def test_a_cut_conversation_has_lost_nothing() -> None:
    """What is not sent any more is not paid for again."""
    assert found(replace(SENT, messages=HASHES[:1]), 30_000) is None


def test_a_server_that_clears_by_itself_has_lost_nothing() -> None:
    """Unless something else changed beside."""
    managed = replace(SENT, managed=True)
    assert found(managed, 30_000) is None
    assert found(replace(managed, model="n"), 30_000) == CacheBreak("model", 70_000)


def test_a_cache_that_has_ended_is_not_lost() -> None:
    """Five minutes, or an hour where the server said so last."""
    rested = replace(SENT, at=1_201.0)
    assert found(rested, 0) is None
    long, _ = cache_break_of(
        None, SENT, usage(9, 9, cache_creation={"ephemeral_1h_input_tokens": 9}), None, 0.0
    )
    again, _ = cache_break_of(long, SENT, usage(100_000), None, 0.0)
    assert (long.seconds, again.seconds) == (3_600.0, 3_600.0)
    assert cache_break_of(again, replace(SENT, at=4_600.0), usage(0), None, 0.0)[1] is not None
    assert cache_break_of(again, replace(SENT, at=4_601.0), usage(0), None, 0.0)[1] is None
    assert cache_break_of(again, SENT, usage(100_000, 9), None, 0.0)[0].seconds == 300.0


def miss(kind: str, tokens: Any) -> dict[str, Any]:
    """Return a server's own diagnosis."""
    return {"cache_miss_reason": {"type": kind, "cache_missed_input_tokens": tokens}}


def test_the_server_s_own_word_counts() -> None:
    """Its cause and its tokens, even where reads did not fall; a message is named if memd knows."""
    assert found(SENT, 100_000, miss("system_changed", 3_000)) == CacheBreak("system", 3_000)
    assert found(SENT, 0, miss("messages_changed", 3_000)) == CacheBreak("messages", 3_000)
    edited = replace(SENT, messages=(b"9",))
    assert found(edited, 0, miss("messages_changed", 3_000)) == CacheBreak("message 0", 3_000)
    assert found(SENT, 0, miss("tools_changed", 1_999)) is None


@pytest.mark.parametrize(
    "diagnostics",
    [
        None,
        {},
        {"cache_miss_reason": None},
        {"cache_miss_reason": "model_changed"},
        {"cache_miss_reason": {"type": ["model_changed"]}},
        miss("previous_message_not_found", 5_000),
        miss("unavailable", 5_000),
    ],
)
def test_a_diagnosis_that_says_nothing_is_passed_over(diagnostics: Any) -> None:
    """Then what memd compares counts."""
    assert found(SENT, 10_000, diagnostics) == CacheBreak("server", 90_000)


@pytest.mark.parametrize("wrong", [None, "many", -5, 1.5, True, 10**12])
def test_numbers_that_can_be_none_count_as_nothing(wrong: Any) -> None:
    """A server's numbers are input."""
    _, broken = cache_break_of(None, SENT, {"cache_read_input_tokens": wrong}, None, 0.0)
    assert broken is None
    assert found(SENT, 10_000, miss("model_changed", wrong)) is None


def test_a_reply_without_a_plan_is_like_the_one_before() -> None:
    """A client may tell of replies alone."""
    first, none = cache_break_of(None, None, usage(50_000), None, 100.0)
    assert (first.sent, none) == (SentRequest(100.0), None)
    assert cache_break_of(first, None, usage(10_000), None, 200.0)[1] == CacheBreak(
        "server", 40_000
    )


def test_marks_of_the_cache_are_no_change() -> None:
    """They move with each request, and the order of betas says nothing."""
    project = Project("/p", "/p", "/p/memory", "cwd", "/base", enabled=True)
    plain = ContextRequest(project, Settings(), "s", betas=("a", "b"))
    tool, mark = {"name": "Bash"}, {"cache_control": {"type": "ephemeral"}}
    text = {"type": "text", "text": "Be brief."}
    one = replace(plain, system=[text], tools=[tool])
    other = replace(plain, system=[text | mark], tools=[tool | mark], betas=("b", "a"))

    def made(request: ContextRequest) -> SentRequest:
        return sent_request(request, HASHES, 5.0, managed=False)

    assert made(one) == made(other)
    assert made(plain).system == ""
