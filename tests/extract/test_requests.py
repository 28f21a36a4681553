"""Gates, cursors over messages, and what an extraction answers."""

import pytest

from memd.core.values import CursorMove, Message
from memd.extract.requests import ExtractionResult, last_said, unread, wrote_memory


def said(*texts: str) -> tuple[Message, ...]:
    """Return the person's messages."""
    return tuple(Message(f"m{n}", "user", text, "user") for n, text in enumerate(texts))


def test_a_cursor_tells_calls_apart() -> None:
    """Messages that hold nothing but tool calls are known by their calls."""
    called = [Message("a", "assistant", "", "assistant", calls=(f"Read {n}",)) for n in range(4)]
    cursor = unread(called[:2], "s", None).cursor
    assert unread(called[1:], "s", cursor).messages == tuple(called[2:])


def test_a_cursor_finds_its_message_elsewhere() -> None:
    """When earlier messages are gone, the last like it counts; the same words twice are two."""
    cursor = unread(said("a", "yes", "yes"), "s", None).cursor
    assert [m.text for m in unread(said("a", "yes", "yes", "c"), "s", cursor).messages] == ["c"]
    assert [m.text for m in unread(said("yes", "c"), "s", cursor).messages] == ["c"]


def test_a_vanished_message_falls_back_to_all() -> None:
    """After a compaction everything that is there is looked at."""
    cursor = unread(said("a", "b"), "s", None).cursor
    assert len(unread(said("x", "y"), "s", cursor).messages) == 2
    assert unread((), "s", cursor).messages == ()


def test_a_cursor_of_a_transcript_says_nothing_here() -> None:
    """Bytes of a file are no count of messages."""
    cursor = CursorMove("s", "/t/s.jsonl", 1, "x")
    assert len(unread(said("a"), "s", cursor).messages) == 1


@pytest.mark.parametrize(
    ("path", "wrote"),
    [("/m/a.md", True), ("/memories/a.md", True), ("/m2/a.md", False), ("/r/m/a.md", False)],
)
def test_writes_below_the_memory_count(path: str, wrote: object) -> None:
    """A write below the directory or by the memory tool is the assistant's own memory."""
    assert wrote_memory([path], ["/m/"], "/memories") == wrote


def test_the_persons_last_message_is_named() -> None:
    """The cursor tells from which message the newest memories come."""
    answer = Message("a", "assistant", "Yes.", "assistant")
    assert unread((*said("x", "y"), answer), "s", None).cursor.message == "m1"
    assert last_said((answer,)) == ""


def test_facts_hold_what_the_wire_shows() -> None:
    """Empty members are left out; refusals are a count with the rules' names."""
    facts = ExtractionResult("completed", saved=("a.md",), refused=("jwt", "jwt")).facts()
    assert facts["refused"] == 2
    assert facts["refused_rules"] == ["jwt"]
    assert facts["passed_over"] == {}
    assert "reason" not in facts
    over = ExtractionResult("completed", passed_over=("structure", "code", "structure")).facts()
    assert over["passed_over"] == {"code": 1, "structure": 2}
    assert ExtractionResult("skipped", "nothing_new", change="c").facts()["change"] == "c"
