"""What a model answers: replies of both protocols, operations, selections, summaries, calls."""

import json
from typing import Any

from memd.agent import operations, step, tools
from memd.agent.refusals import ToolError
from memd.agent.service import RunEnd
from memd.base.errors import MemdError
from memd.context import summary
from memd.model import openai, wire
from memd.model.errors import ModelReplyError
from memd.model.port import Reply, ToolCall, Usage
from memd.recall import selector
from tests.fuzz.target import Target, plain

_TOOLS = frozenset({"Read", "Write", "Edit", "Bash", "Grep", "Glob", step.OPERATION})
_LIMIT = 3


def reply(data: bytes) -> None:
    """Check that a body is a reply or none, and that a run goes on with it or ends."""
    try:
        payload = json.loads(data)
    except (ValueError, RecursionError):
        payload = data.decode(errors="replace")
    wire.failure(wire.HttpAnswer(200, payload))
    wire.failure(wire.HttpAnswer(529, payload), ("secret",))
    for read in (wire.reply, _chat):
        try:
            answer = read(payload)
        except ModelReplyError:
            continue
        assert min(step.total(answer.usage), answer.usage.output) >= 0
        _run(answer)
        _run(operations.as_calls(answer))
        _texts(answer.text)


def _chat(payload: Any) -> Reply:
    return openai._reply(payload, openai._usage(payload))


def _run(answer: Reply) -> None:
    action: step.Action
    run, action = step.begin((), step.Budget(turns=3), _TOOLS)
    while isinstance(action, step.AskModel):
        run, action = step.step(run, answer)
        if isinstance(action, step.CallTools):
            assert len(action.calls) == len(answer.calls)
            results = [(each.call, each.answer or _called(each.call)) for each in action.calls]
            run, action = step.answer(run, results)
    json.dumps(run.messages)


def _called(call: ToolCall) -> step.ToolResult:
    assert call.name in _TOOLS
    if call.name != step.OPERATION:
        try:
            tools.parse(call.name, call.input)
        except ToolError as error:
            return step.ToolResult(error.sentence, error.fault)
    return step.ToolResult("done")


def text(data: bytes) -> None:
    """Words of a model are read as operations, a selection and a summary, or as none."""
    _texts(data.decode(errors="replace"))


def _texts(words: str) -> None:
    listed = operations.read(words)
    if listed:
        assert operations.read(json.dumps(listed)) == listed
        for item in listed:
            try:
                operations._operation(step.OPERATION, item)
            except (MemdError, ToolError):
                continue
    known = ("a.md", "b.md", "sub/c.md")
    counts: dict[str, Any] = {"turns": 1, "calls": 0, "denied": 0, "touched": (), "record": ()}
    ended = RunEnd(finished=True, reason=None, text=words, usage=Usage(), **counts)
    chosen, problem = selector.read(ended, known, _LIMIT)
    assert (chosen is None) == bool(problem)
    assert set(chosen or ()) <= set(known)
    assert len(chosen or ()) <= _LIMIT
    sections = summary.sections_of_reply(words)
    assert all(body.strip() for body in sections.values())


_USAGE = {"input_tokens": 9, "output_tokens": 5, "cache_read_input_tokens": 3}
_CALL = {
    "type": "tool_use",
    "id": "t1",
    "name": "Write",
    "input": {"file_path": "a", "content": ""},
}
_OPERATION = {
    "op": "create", "type": "user", "name": "n", "description": "d", "body": "b", "said": ["x"]
}  # fmt: skip
_LIST = json.dumps([_OPERATION, {"op": "delete", "path": "a.md", "reason": "r", "said": "s"}])
_MESSAGE = {
    "type": "message",
    "role": "assistant",
    "model": "m",
    "stop_reason": "tool_use",
    "content": [{"type": "text", "text": _LIST}, _CALL],
    "usage": _USAGE,
}
_CHOICE = {"index": 0, "message": {"role": "assistant", "content": _LIST}, "finish_reason": "stop"}
_COUNTS = {
    "prompt_tokens": 9,
    "completion_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 3},
}
_ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "too long"}}
_SUMMARY = (
    "<analysis>hm</analysis><summary>\n# Current work\n- a\n# Next step\n- b\n## x\n</summary>"
)
_SELECTED = 'Sure:\n```json\n{"selected_memories": ["a.md", "sub/c.md", "z.md"]}\n```'
_TEXTS = (_LIST, f"thoughts [1]\n```json\n{_LIST}\n```", _SELECTED, _SUMMARY, '{"operations": []}')
_TOKENS = (
    b'"op":', b'"create"', b'"update"', b'"delete"', b'"path":', b'"said":', b'"operations":',
    b'"selected_memories":', b"[", b"{", b"]", b"}", b"```json\n", b"```", b"<analysis>",
    b"</analysis>", b"<summary>", b"</summary>", b"# ", b"\\ud800", b"\n", b'"type":"text"',
    b'"type":"tool_use"', b'"content":', b'"usage":', b'"choices":', b'"error":', b"1e999",
)  # fmt: skip
TARGETS = {
    "model reply": Target(
        plain(reply),
        tuple(
            json.dumps(body).encode()
            for body in (_MESSAGE, {"choices": [_CHOICE], "usage": _COUNTS}, _ERROR)
        ),
        _TOKENS,
        json=True,
    ),
    "model text": Target(plain(text), tuple(map(str.encode, _TEXTS)), _TOKENS, json=True),
}
