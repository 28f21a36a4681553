"""A run as a value: actions, budgets, and the shapes of its messages."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memd.agent import step
from memd.agent.step import (
    MALFORMED,
    AskModel,
    Budget,
    CallTools,
    Reason,
    Run,
    Stop,
    ToolResult,
)
from memd.model.port import Reply, ToolCall, Usage

TOOLS = frozenset({"Read", "Write"})
FIRST = {"role": "user", "content": "look"}


def said(*calls: ToolCall, stop: str = "", text: str = "", usage: Usage | None = None) -> Reply:
    """Return a reply with some tool calls."""
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}
        for call in calls
    ]
    stop = stop or ("tool_use" if calls else "end_turn")
    return Reply(text, calls, stop, tuple(content), usage or Usage(10, 5), "m")


def read(number: int, path: str | None = None) -> ToolCall:
    """Return a call that reads a file."""
    return ToolCall(f"t{number}", "Read", {"file_path": path or f"{number}.md"})


def begun(**budget: Any) -> Run:
    """Return a run that has asked once."""
    return step.begin([FIRST], Budget(**budget), TOOLS)[0]


def done(action: object) -> Sequence[tuple[ToolCall, ToolResult]]:
    """Return an answer to every call."""
    assert isinstance(action, CallTools)
    return [(item.call, item.answer or ToolResult("ok")) for item in action.calls]


def test_too_many_calls_in_one_turn_are_answered_but_not_run() -> None:
    """Every call has a result, but only so many are run."""
    _, action = step.step(begun(calls_per_turn=2), said(*(read(n) for n in range(5))))
    assert isinstance(action, CallTools)
    assert [item.answer is None for item in action.calls] == [True, True, False, False, False]


def test_a_model_that_repeats_itself_is_told_and_then_stopped() -> None:
    """The same call is refused from the third time on, and a few refusals later the run ends."""
    run = begun(turns=99, repeats=2)
    action: object = None
    for number in range(99):
        run, action = step.step(run, said(ToolCall(f"t{number}", "Read", {"file_path": "a.md"})))
        run, action = step.answer(run, done(action))
        if isinstance(action, Stop):
            break
    assert action == Stop(Reason.LOOP)
    assert (run.turn, run.repeated) == (5, 3)


@given(
    st.lists(st.lists(st.sampled_from(["Read", "Write", "Task", "junk"]), max_size=4), max_size=12),
    st.integers(1, 6),
)
def test_every_call_gets_exactly_one_result(turns: list[list[str]], budget: int) -> None:
    """Whatever a model calls, roles alternate, ids match in order, and the turns are kept."""
    run, _ = step.begin([FIRST], Budget(turns=budget), TOOLS)
    number = 0
    for names in turns:
        calls = []
        for name in names:
            number += 1
            calls.append(ToolCall(str(number), name, {"n": number} if name != "junk" else 1))
        run, action = step.step(run, said(*calls))
        if isinstance(action, CallTools):
            run, action = step.answer(run, done(action))
        if not isinstance(action, AskModel):
            break
    assert run.turn <= budget
    roles = [message["role"] for message in run.messages]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"] * (len(roles) % 2)
    for requested, answered in zip(run.messages[1::2], run.messages[2::2], strict=False):
        wanted = [block["id"] for block in requested["content"] if block["type"] == "tool_use"]
        assert [block["tool_use_id"] for block in answered["content"]] == wanted


def test_a_model_that_babbles_junk_is_stopped() -> None:
    """Malformed calls are counted, and a few of them end the run."""
    run, action = step.step(begun(malformed=1), said(read(1), read(2)))
    assert isinstance(action, CallTools)
    results = [(item.call, ToolResult("no", MALFORMED)) for item in action.calls]
    assert step.answer(run, results)[1] == Stop(Reason.MALFORMED)
