"""The record of a run."""

import json

from memd.agent import step
from memd.agent.record import RECORD_BYTES, TEXT_BYTES, RunRecord
from memd.agent.step import AskModel, Budget, PlannedToolCall, ToolResult
from memd.model.port import Reply, ToolCall, Usage
from tests.agent.home import TOKEN
from tests.scripted_model import calls, says

RUN = step.begin([], Budget(), frozenset())[0]


def test_a_turn_is_plain_data() -> None:
    """What was asked, said, called and answered is kept, as JSON."""
    record = RunRecord()
    call = ToolCall("t", "Read", {"file_path": "a.md"})
    results = [
        (PlannedToolCall(call), ToolResult("no", "denied")),
        (PlannedToolCall(call), ToolResult("text")),
    ]
    record.add(RUN, AskModel(50), calls(("Read", {"file_path": "a.md"})), results, 1.23456)
    turn = json.loads(json.dumps(record.turns))[0]
    assert turn["asked"] == {"messages": 0, "max_tokens": 50}
    assert turn["reply"][0]["input"] == {"file_path": "a.md"}
    assert turn["results"] == [
        {"tool": "Read", "text": "no", "fault": "denied"},
        {"tool": "Read", "text": "text"},
    ]
    assert (turn["denied"], turn["seconds"], turn["usage"]["input"]) == (1, 1.235, 100)


def test_credentials_are_not_kept() -> None:
    """What a model says of a credential is blanked before it is cut."""
    record = RunRecord()
    record.add(RUN, AskModel(5), says("x" * (TEXT_BYTES - 20) + " " + TOKEN), (), 0)
    assert TOKEN[:12] not in json.dumps(record.turns)


def test_a_record_is_bounded() -> None:
    """Long texts, wide and deep values and many turns stay small."""
    record = RunRecord()
    deep: object = "end"
    for _ in range(50):
        deep = [deep, {"k": deep}] if isinstance(deep, str) else [deep]
    wide = {
        "type": "tool_use",
        "input": {str(n): [1.5, None, True] for n in range(500)},
        "x": object(),
    }
    reply = Reply("", (), "end_turn", ({"d": deep}, wide, {"t": "é" * 5_000}), Usage(), "m")
    for _ in range(230):
        record.add(RUN, AskModel(5), reply, (), 0)
    assert len(json.dumps(record.turns[0])) < 12_000
    texts = [turn["reply"][2]["t"] for turn in record.turns]
    assert len(texts[0]) > len(texts[-1]) < 100
    assert sum(map(len, texts)) < RECORD_BYTES * 2
