"""What a job did, for people."""

from typing import Any

from memd.cli import job_page, output

_RESULT: dict[str, Any] = {
    "status": "completed",
    "saved": ["a.md", "b.md"],
    "updated": [],
    "removed": [],
    "refused": 1,
    "refused_rules": ["aws-key"],
    "passed_over": {},
    "engine": "a-model",
    "usage": {"input": 10, "output": 20, "cache_read": 90, "cache_created": 0},
    "hit_rate": 0.9,
    "turns": 2,
    "prefix_changed": ["tools"],
    "change": "c4",
    "merged": [{"into": "a.md", "from": ["b.md"]}],
}
_TURN: dict[str, Any] = {
    "turn": 1,
    "model": "a-model",
    "stop": "tool_use",
    "seconds": 2.0,
    "usage": {"input": 10, "output": 20},
    "reply": [
        {"type": "thinking", "thinking": "first\nsecond"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "name": "Read", "input": {"file_path": "/m/a.md"}},
        "…",
    ],
    "results": [
        {"tool": "Read", "text": "x" * 1000},
        {"tool": "Bash", "text": "no", "fault": "denied"},
    ],
}


def test_a_result_is_a_fact_a_line() -> None:
    """Paths, engine, tokens and what is rare are named; nothing empty is shown."""
    assert output.facts(job_page.result(_RESULT)).splitlines() == [
        "status         completed",
        "engine         a-model",
        "turns          2",
        "change         c4",
        "saved          a.md, b.md",
        "tokens         10 input, 20 output, 90 cache read",
        "from cache     90% of the input",
        "new prefix     tools",
        "refused        1",
        "refused_rules  aws-key",
        'merged         [{"into": "a.md", "from": ["b.md"]}]',
    ]
    assert output.facts(job_page.result({})) == ""


def test_a_record_reads_turn_by_turn() -> None:
    """Each turn tells what was said, called and answered; long texts are cut."""
    lines = job_page.record([_TURN, {}]).splitlines()
    assert lines == [
        "",
        "turn 1  a-model · 2 s · 10 input, 20 output · stop: tool_use",
        "  [thinking] first",
        "    second",
        "  I look.",
        '  → Read {"file_path": "/m/a.md"}',
        "  ← Read: " + "x" * 600 + "… (1000 characters)",
        "  ← Bash (denied): no",
        "",
        "turn ?  0 ms · stop: ?",
    ]
    assert job_page.record(()) == ""
