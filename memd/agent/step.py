"""Decide the next action of a run from its conversation and the model's reply. Pure.

Rules of this file
- Messages keep the API's shapes. A reply is sent back unchanged, and all results of one reply are
  sent in one message, in the order of the calls.
- The messages that a run began with are never changed, since they are a prefix in a prompt cache.
- The tool list is part of that prefix too. A tool that memd does not offer is refused with a reason
  when it is called, and never taken out of the list.
- The budget is checked before more is spent, so a run ends below it or with the reply that exceeds
  it. A run also ends when the model repeats calls or sends invalid ones too often.
"""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from memd.model.port import Block, Reply, ToolCall, Usage

OPERATION = "operation"  # the one tool of a single shot (operations.py)
_WRITING_TOOLS = ("Write", "Edit", OPERATION)
_CUT_NOTE = "[this result was cut away to make room]"


class Reason(StrEnum):
    """Why a run ended before the model said that it was done."""

    TURNS = "turns"
    OUTPUT = "output_tokens"
    TOKENS = "total_tokens"
    TIME = "time"
    CALLS = "tool_calls"
    LOOP = "loop"
    MALFORMED = "malformed_calls"
    CUT_OFF = "reply_cut_off"
    REFUSED = "model_refused"
    JUNK = "reply_without_sense"
    TOO_LONG = "prompt_too_long"
    MODEL = "model_failed"


# A run that reaches one of these has ended like any other; after the other reasons its work is
# that of a model which failed.
BOUNDS = frozenset(
    {Reason.TURNS, Reason.OUTPUT, Reason.TOKENS, Reason.TIME, Reason.CALLS, Reason.LOOP}
)


class Budget(Struct, frozen=True):
    """The limits of a run.

    ``reply_tokens`` bounds one reply, ``output_tokens`` all of them, ``total_tokens`` everything
    that is read or written, cached or not. ``calls_per_turn`` and ``calls`` bound tool calls;
    ``same_call`` is how often one call may be made with the same input. ``repeats`` and
    ``malformed`` are how many calls may be refused for repeating themselves or for their input
    before the run ends. With ``ends_after_writes`` a reply whose calls all wrote successfully is
    the last one, so that no request is spent on a closing remark; in the last turn refused writes
    count too. With ``runs_last`` the run finishes with its last turn unless all its calls were
    malformed. Money is bounded elsewhere (``model/metered.py``).
    """

    turns: int = 5
    reply_tokens: int = 8_000
    output_tokens: int = 24_000
    total_tokens: int = 1_000_000
    calls_per_turn: int = 32
    calls: int = 200
    same_call: int = 2
    repeats: int = 6
    malformed: int = 6
    ends_after_writes: bool = False
    runs_last: bool = False


class ToolResult(Struct, frozen=True):
    """The result of one tool call: its text, and the kind of its fault.

    ``fault`` is "" for a success, ``failed`` for an ordinary error such as a missing file,
    ``denied`` for a call that is not allowed and ``malformed`` for an invalid input.
    """

    text: str
    fault: str = ""


FAILED, DENIED, MALFORMED = "failed", "denied", "malformed"


class PlannedToolCall(Struct, frozen=True):
    """A tool call, with its answer if that is known without running it."""

    call: ToolCall
    answer: ToolResult | None = None


class AskModel(Struct, frozen=True):
    """Ask the model with the run's messages for at most so many tokens."""

    max_tokens: int


class CallTools(Struct, frozen=True):
    """Run the calls that have no answer yet, then ``answer`` with one result for each."""

    calls: tuple[PlannedToolCall, ...]


class Finish(Struct, frozen=True):
    """The model is done; ``text`` is its last reply."""

    text: str


class Stop(Struct, frozen=True):
    """The run ends although the model is not done."""

    reason: Reason


Action = AskModel | CallTools | Finish | Stop


class Run(Struct, frozen=True):
    """A run between two actions. ``retained`` is how many messages it began with.

    ``calls`` counts tool calls: ``denied`` those that were not allowed, ``malformed`` invalid ones
    and ``repeated`` those that repeated another. ``seen`` has how often each call was made, by
    ``_key``. ``last`` is the usage of the last reply. ``trimmed`` says that older results were cut.
    """

    budget: Budget
    tools: frozenset[str]
    messages: tuple[Block, ...]
    retained: int
    turn: int = 0
    usage: Usage = field(default_factory=Usage)
    last: Usage = field(default_factory=Usage)
    calls: int = 0
    denied: int = 0
    malformed: int = 0
    repeated: int = 0
    trimmed: bool = False
    seen: Mapping[str, int] = field(default_factory=dict)


def begin(
    messages: Sequence[Block], budget: Budget, tools: frozenset[str]
) -> tuple[Run, AskModel | Stop]:
    """Return a new run and its first action. ``tools`` are the names that may be run."""
    run = Run(budget, tools, tuple(messages), len(messages))
    return run, _next_request(run)


def step(run: Run, reply: Reply) -> tuple[Run, Action]:
    """Return the run with a reply's usage and messages added, and the next action."""
    run = replace(run, turn=run.turn + 1, usage=run.usage + reply.usage, last=reply.usage)
    stop_reason = _ENDING_STOP_REASONS.get(reply.stop)
    if stop_reason is not None:
        return run, Stop(stop_reason)
    if reply.calls:
        reason = _reason_not_to_run(run, reply)
        return (run, Stop(reason)) if reason else _plan_calls(run, reply)
    if reply.stop == "pause_turn":
        run = replace(run, messages=(*run.messages, _message(reply)))
        return run, _next_request(run)
    if reply.stop == "tool_use":
        return run, Stop(Reason.JUNK)  # it names a tool call that is not there
    return run, Finish(reply.text)


def answer(
    run: Run, results: Sequence[tuple[ToolCall, ToolResult]]
) -> tuple[Run, AskModel | Finish | Stop]:
    """Return the run with the results of the last reply's calls added, and the next action."""
    faults = [result.fault for _, result in results]
    blocks = [_result_block(call, result) for call, result in results]
    run = replace(
        run,
        denied=run.denied + faults.count(DENIED),
        malformed=run.malformed + faults.count(MALFORMED),
        messages=(*run.messages, {"role": "user", "content": blocks}),
    )
    if run.malformed > run.budget.malformed:
        return run, Stop(Reason.MALFORMED)
    if run.repeated > run.budget.repeats:
        return run, Stop(Reason.LOOP)
    is_last_turn = run.turn >= run.budget.turns
    ends_here = is_last_turn and run.budget.runs_last
    if ends_here and run.malformed >= run.calls:
        return run, Stop(Reason.MALFORMED)
    if run.budget.ends_after_writes and _all_wrote(results, refused=is_last_turn):
        ends_here = True
    return run, Finish("") if ends_here else _next_request(run)


def after_long_prompt(run: Run) -> tuple[Run, AskModel | Stop]:
    """Return the run without its older tool results, after the model refused a prompt as too long.

    The results in the last message stay, since the model has not seen them yet. Stops the run if
    that was done before or there is nothing to cut.
    """
    last = len(run.messages) - 1
    shorter = tuple(
        _without_results(message) if run.retained <= index < last else message
        for index, message in enumerate(run.messages)
    )
    if run.trimmed or shorter == run.messages:
        return run, Stop(Reason.TOO_LONG)
    run = replace(run, messages=shorter, trimmed=True)
    return run, _next_request(run)


def total(usage: Usage) -> int:
    """Return the number of all tokens of a usage, cached ones included."""
    return usage.input + usage.output + usage.cache_read + usage.cache_created


_ENDING_STOP_REASONS = {  # of the API; after any other the run may go on
    "max_tokens": Reason.CUT_OFF,
    "refusal": Reason.REFUSED,
    "model_context_window_exceeded": Reason.TOO_LONG,
}


def _next_request(run: Run) -> AskModel | Stop:
    """Return the next request, or a stop if the budget does not allow another."""
    budget = run.budget
    if run.turn >= budget.turns:
        return Stop(Reason.TURNS)
    output = budget.output_tokens - run.usage.output
    # The next prompt is at least the last one with its reply.
    remaining = budget.total_tokens - total(run.usage) - total(run.last)
    if output <= 0:
        return Stop(Reason.OUTPUT)
    if remaining <= 0:
        return Stop(Reason.TOKENS)
    return AskModel(min(budget.reply_tokens, output, remaining))


def _reason_not_to_run(run: Run, reply: Reply) -> Reason | None:
    """Return why none of a reply's calls are run, or ``None`` if they are."""
    if len({call.id for call in reply.calls}) < len(reply.calls):
        return Reason.JUNK  # two calls with one id cannot both be answered
    if run.calls + min(len(reply.calls), run.budget.calls_per_turn) > run.budget.calls:
        return Reason.CALLS
    return None  # those of the last turn are run too, for a valid write counts


def _plan_calls(run: Run, reply: Reply) -> tuple[Run, CallTools]:
    """Return the run with a reply's calls, and which are run and which are refused at once."""
    seen = dict(run.seen)
    planned: list[PlannedToolCall] = []
    repeated = 0
    for index, call in enumerate(reply.calls):
        key = _key(call)
        seen[key] = seen.get(key, 0) + 1
        result = None
        if index >= run.budget.calls_per_turn:
            result = _too_many(run.budget.calls_per_turn)
        elif call.name not in run.tools:
            result = _not_offered(call.name, run.tools)
        elif not isinstance(call.input, Mapping):
            result = ToolResult("The input of a tool is an object with named members.", MALFORMED)
        elif seen[key] > run.budget.same_call:
            repeated += 1
            result = ToolResult(
                "This exact call was made before and was answered. Use that answer.", DENIED
            )
        planned.append(PlannedToolCall(call, result))
    run = replace(
        run,
        messages=(*run.messages, _message(reply)),
        calls=run.calls + min(len(reply.calls), run.budget.calls_per_turn),
        repeated=run.repeated + repeated,
        seen=seen,
    )
    return run, CallTools(tuple(planned))


def _all_wrote(results: Sequence[tuple[ToolCall, ToolResult]], *, refused: bool) -> bool:
    """Return whether all calls wrote successfully; with ``refused`` failed writes count too."""
    return all(
        call.name in _WRITING_TOOLS and (refused or not result.fault) for call, result in results
    )


def _too_many(limit: int) -> ToolResult:
    """Return the result of a call beyond the number that one reply may make."""
    return ToolResult(f"Not run: one reply may make {limit} tool calls.", DENIED)


def _not_offered(name: str, tools: frozenset[str]) -> ToolResult:
    """Return the result of a call of a tool that the run does not have."""
    shown = name[:60] if name.isprintable() else "of that name"
    offered = ", ".join(sorted(tools))
    return ToolResult(f"The tool {shown} cannot be used here. These can: {offered}.", DENIED)


def _key(call: ToolCall) -> str:
    """Return a key that is equal for equal calls: the tool's name and its input."""
    return f"{call.name}\0{json.dumps(call.input, sort_keys=True, default=str)}"


def _message(reply: Reply) -> dict[str, Any]:
    """Return a reply as a message of the Messages API."""
    return {"role": "assistant", "content": list(reply.content)}


def _result_block(call: ToolCall, result: ToolResult) -> dict[str, Any]:
    """Return a call's result as a block of the Messages API."""
    block = {"type": "tool_result", "tool_use_id": call.id, "content": result.text}
    return block | {"is_error": True} if result.fault else block


def _without_results(message: Block) -> Block:
    """Return a message in which a short note replaces each longer tool result."""
    content = message["content"]
    if message["role"] != "user" or isinstance(content, str):
        return message
    return {**message, "content": [_shortened(block) for block in content]}


def _shortened(block: Block) -> Block:
    """Return a block, with a short note in place of a longer tool result."""
    if block.get("type") != "tool_result" or len(block["content"]) <= len(_CUT_NOTE):
        return block
    return {**block, "content": _CUT_NOTE}
