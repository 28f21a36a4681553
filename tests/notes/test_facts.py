"""What is told of a session: the same of the same transcript, in the shapes of three clients."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.conversation.pieces import BOUNDARY, TITLE, TranscriptPiece
from memd.notes.facts import SessionFacts
from memd.notes.local import lines
from memd.transcripts.stream import TranscriptStream
from tests.notes.local_lines import call, every_message, facts_of, reply, request, result
from tests.transcripts import shapes
from tests.transcripts.shapes import Line, claude, codex, gemini

CHINESE = "不对，端口是 5433。"


def _claude_session() -> list[Line]:
    todos = [{"content": "文档", "status": "pending"}, {"content": "x", "status": "completed"}]
    calls = (
        ("Read", {"file_path": "/p/README.md"}, "text", False),
        ("Bash", {"command": "pytest -q"}, "Exit code 1\nE  KeyError: 'x'\n2 failed in 1s", True),
        ("Edit", {"file_path": "/p/a.py", "old_string": "a", "new_string": "b"}, "ok", False),
        ("Bash", {"command": "pytest -q"}, "2 passed in 1s", False),
        ("Agent", {"prompt": "look", "description": "d"}, "secret words", True),
        ("mcp__memd__save", {"name": "x"}, "memory words\n3 passed in 1s", True),
        ("TodoWrite", {"todos": todos}, "ok", False),
    )
    listed: list[Line] = [claude("user", "u1", "Mend the test of `login`.")]
    for number, (name, given_, text, failed) in enumerate(calls):
        block = {**shapes.call(f"t{number}", name), "input": given_}
        output = {**shapes.result(f"t{number}", text), "is_error": failed}
        listed += [shapes.reply(f"a{number}", f"m{number}", block)]
        listed += [claude("user", f"r{number}", [output])]
    side = claude("user", "side", "words of a sub-agent", isSidechain=True)
    last = shapes.reply("a9", "m9", shapes.words("It passes."))
    return [
        *listed,
        side,
        {"type": "ai-title", "aiTitle": "Login"},
        last,
        claude("user", "u2", CHINESE),
    ]


def _codex_session() -> list[Line]:
    def function(number: str, name: str, output: str, **given_: Any) -> list[Line]:
        made = {"type": "function_call", "name": name, "arguments": json.dumps(given_)}
        answer = {"type": "function_call_output", "output": output}
        return [codex("response_item", call_id=number, **item) for item in (made, answer)]

    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-a\n+b\n*** End Patch"
    item = {"type": "custom_tool_call", "name": "apply_patch", "input": patch, "call_id": "c3"}
    changes = {"/p/src/a.py": {"type": "update"}}
    plan = [{"step": "文档", "status": "pending"}, {"step": "x", "status": "completed"}]
    head = "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code {}\nOutput:\n{}\n"
    running = "Wall time: 10 seconds\nProcess running with session ID 7\nOutput:\n"
    words = [{"type": "output_text", "text": "It passes."}]
    return [
        codex("session_meta", id="s", cwd="/p"),
        codex("event_msg", type="user_message", message="Mend the test of `login`."),
        *function("c1", "exec_command", head.format(0, "text"), cmd="cat README.md"),
        *function("c2", "exec_command", running, cmd="pytest -q", workdir="/p"),
        *function(
            "c7", "write_stdin", head.format(1, "KeyError: 'x'\n2 failed in 1s"), session_id=7
        ),
        codex("response_item", **item),
        codex("event_msg", type="patch_apply_end", call_id="c3", success=True, changes=changes),
        codex("response_item", type="custom_tool_call_output", call_id="c3", output="Success."),
        *function(
            "c4", "shell", head.format(0, "2 passed in 1s"), command=["bash", "-lc", "pytest -q"]
        ),
        *function("c5", "update_plan", "Plan updated", plan=plan),
        codex("response_item", type="message", role="assistant", content=words),
        codex("event_msg", type="user_message", message=CHINESE),
    ]


def _gemini_session() -> list[Line]:
    def tool(number: str, name: str, output: str, **given_: Any) -> list[Line]:
        made = {"id": number, "name": name, "args": given_, "status": "success"}
        answer = {"id": number, "name": name, "response": {"output": output}}
        return [
            gemini("gemini", f"g{number}", "", toolCalls=[made]),
            gemini("user", f"r{number}", [{"functionResponse": answer}]),
        ]

    failed = "Output: KeyError: 'x'\n2 failed in 1s\nExit Code: 1"
    todos = [
        {"description": "文档", "status": "pending"},
        {"description": "x", "status": "completed"},
    ]
    return [
        {"sessionId": "s", "projectHash": "h", "kind": "main"},
        gemini("user", "u1", "Mend the test of `login`."),
        *tool("1", "read_file", "text", absolute_path="/p/README.md"),
        *tool("2", "run_shell_command", failed, command="pytest -q"),
        *tool("3", "replace", "ok", file_path="/p/a.py", old_string="a", new_string="b"),
        *tool("4", "run_shell_command", "Output: 2 passed in 1s", command="pytest -q"),
        *tool("5", "write_todos", "ok", todos=todos),
        gemini("gemini", "g9", "It passes."),
        gemini("user", "u2", CHINESE),
    ]


SESSIONS = {"claude": _claude_session(), "codex": _codex_session(), "gemini": _gemini_session()}


@pytest.mark.parametrize("client", SESSIONS)
def test_each_client_s_shapes_tell_the_same(client: str, tmp_path: Path) -> None:
    """Files, commands, failures, plans and words are found in the records of each client."""
    stream = shapes.stream_of(tmp_path / "s.jsonl", *SESSIONS[client])
    notes = lines(facts_of(shapes.whole(stream)))
    readme = "README.md" if client == "codex" else "/p/README.md"
    source = "src/a.py" if client == "codex" else "/p/a.py"
    assert notes["Session Title"] == [
        "- `Login`" if client == "claude" else "- ``Mend the test of `login`.``"
    ]
    assert notes["Current State"] == [
        f"- last request: `{CHINESE}`",
        "- assistant's words: `It passes.`",
        "- open: `文档`",
    ]
    assert [line.partition(", last")[0] for line in notes["Files and Functions"]] == [
        f"- `{source}`: edited 1",
        f"- `{readme}`: read 1",
    ]
    assert notes["Workflow"] == ["- `pytest -q`: passed, 2 times"]
    failures = [line for line in notes["Errors & Corrections"] if "KeyError" in line]
    assert [line.endswith("; later passed") for line in failures] == [True]
    assert f"- person: `{CHINESE}`" in notes["Errors & Corrections"]
    assert notes["Codebase and System Documentation"] == [f"- read: `{readme}`"]
    assert notes["Key results"] == ["- `2 passed in 1s` after `pytest -q`"]
    assert notes["Worklog"][1].endswith(f"; edits 1, errors {2 if client == 'claude' else 1}")
    assert "words" not in str(notes).replace("assistant's words", "")


@pytest.mark.parametrize("client", SESSIONS)
@given(cuts=st.lists(st.integers(0, 6_000), max_size=50), asked=st.sets(st.integers(0, 50)))
def test_same_transcript_same_bytes(
    client: str, cuts: list[int], asked: set[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """However the file grew between readings, and after a restart, the lines are the same."""
    path = tmp_path_factory.mktemp("t") / "s.jsonl"
    whole = shapes.encoded(SESSIONS[client])
    stream = TranscriptStream(str(path))
    facts = SessionFacts(every_message)
    before = 0
    for number, end in enumerate([*sorted(min(cut, len(whole)) for cut in cuts), len(whole)]):
        with path.open("ab") as file:
            file.write(whole[before:end])
        before = end
        for piece in shapes.whole(stream):
            facts.add(piece)
        if number in asked:  # asking in between changes nothing
            lines(facts)
    again = facts_of(shapes.whole(TranscriptStream(str(path))))
    assert lines(facts) == lines(again)
    assert (facts.last_id, facts.calls_since, facts.mid_turn) == (
        again.last_id,
        again.calls_since,
        again.mid_turn,
    )


def test_calls_are_counted_since_the_notes() -> None:
    """The count begins anew at the message that notes cover, whether it passes before or after."""
    pieces = [request("a", "u1"), call("Bash", command="x"), result("ok"), reply("b", "a1")]
    more = [request("c", "u2"), call("Read"), result("ok"), call("Read"), result("ok")]
    facts = facts_of([*pieces, *more])
    assert (facts.calls_since, facts.last_id) == (3, "r")
    facts.covered("unknown")
    assert facts.calls_since == 3
    facts.covered("r")
    assert facts.calls_since == 0
    assert facts_of([*pieces, *more], covers="a1").calls_since == 2
    later = facts_of(pieces)
    later.covered("u2")
    assert later.calls_since == 1
    later.add(request("c", "u2"))
    assert later.calls_since == 0


def test_a_break_is_an_answer_without_calls() -> None:
    """With a call, open or answered, a turn goes on; words beside a call are no end of it."""
    facts = SessionFacts(every_message)
    server = TranscriptPiece("assistant", "page", answers="c", tool="web_search")
    steps = (
        (request("do it"), False),
        (reply("I look.", "c"), False),
        (call("Bash", command="x"), True),
        (reply("And on.", "c"), True),
        (result("ok"), True),
        (reply("Done.", "a2"), False),
        (request("thanks", "u2"), False),
        (call("web_search", query="x"), True),
        (server, False),
    )
    for piece, goes_on in steps:
        facts.add(piece)
        assert facts.mid_turn is goes_on, piece


def test_events_are_no_messages() -> None:
    """A compaction changes nothing of the facts; the newest title counts."""
    events = [TranscriptPiece("user", "t", id="b", event=event) for event in (BOUNDARY, "size")]
    titles = [TranscriptPiece("user", title, id=title, event=TITLE) for title in ("old", "new")]
    facts = facts_of([request("a", "u1"), *events, *titles])
    assert (facts.last_id, facts.title, lines(facts)["Session Title"]) == ("u1", "new", ["- `new`"])


def test_tasks_that_are_done_push_no_open_one_out() -> None:
    """After a hundred finished tasks the first one, still open, is there; so is one reopened."""
    pieces: list[TranscriptPiece] = []
    for number in range(1, 102):
        made = call("TaskCreate", subject=f"task {number}")
        pieces += [made, result(f"Task #{number} created successfully: task {number}")]
        if number > 1:
            pieces += [
                call("TaskUpdate", taskId=str(number), status="Completed"),
                result("Updated"),
            ]
    pieces += [call("TaskUpdate", taskId="90", status="pending"), result("Updated")]
    assert lines(facts_of(pieces))["Current State"] == ["- open: `task 1`", "- open: `task 90`"]


def test_tasks_are_made_and_changed_one_by_one() -> None:
    """A task's id stands in the answer to the call that made it; a finished one is not open."""
    pieces: list[TranscriptPiece] = []
    for number, text in enumerate(("first", "second", "third"), 1):
        made = call("TaskCreate", description=f"more of the {text}", subject=text)
        pieces += [made, result(f"Task #{number} created: {text}")]
    for name, status in (("1", "completed"), ("3", "in_progress"), ("9", "deleted")):
        pieces += [call("TaskUpdate", taskId=name, status=status), result("Updated")]
    assert lines(facts_of(pieces))["Current State"] == [
        "- open: `second`",
        "- in progress: `third`",
    ]


@pytest.mark.parametrize(
    ("output", "state"),
    [
        ("Command running in background with ID: b1. Output is being written", "running"),
        ("Command moved to background (PID: 3).", "running"),
        ("Output: x\nExit Code: 2\nProcess Group PGID: 1", "failed"),
        ("exit code: 2 is what it says", "passed"),
        (None, "open"),
    ],
)
def test_how_a_command_ended_is_what_its_output_says(output: str | None, state: str) -> None:
    """A command that goes on has not passed, and one without a result is open."""
    pieces = [call("Bash", command="make"), *([] if output is None else [result(output)])]
    assert lines(facts_of(pieces))["Workflow"] == [f"- `make`: {state}"]


def test_what_failed_touched_nothing() -> None:
    """A refused edit or read names its file in the failure alone."""
    wrong = "<tool_use_error>String to replace not found in file.\nString: x</tool_use_error>"
    pieces = [call("Edit", ("/p/a.py",), file_path="/p/a.py"), result(wrong, failed=True)] * 2
    assert lines(facts_of(pieces)) == {
        "Errors & Corrections": [
            "- failed: `Edit`, `/p/a.py`: `String to replace not found in file.`; 2 times"
        ],
        "Worklog": ["- `Edit` 2; errors 2"],
    }


def test_what_a_client_says_in_the_persons_place_is_no_request() -> None:
    """An interruption is nobody's message."""
    facts = facts_of(
        [request("go on"), request("[Request interrupted by user for tool use]", "u2")]
    )
    assert lines(facts)["Current State"] == ["- last request: `go on`"]
    assert facts.last_id == "u2"


@pytest.mark.parametrize(
    "unit", ["-", "= ", "9", "a.", "…", "`", " ", "\n", "--- x\n", "http://,", "x"]
)
def test_a_megabyte_costs_no_more_than_its_edges(unit: str) -> None:
    """No text in any place, however long and however made, takes the writer long."""
    text = unit * (1024 * 1024 // len(unit)) + "!"
    pieces = [request(text), reply(text)]
    for name, member in (("Bash", "command"), ("Read", "path"), ("WebFetch", "url"), ("X", "x")):
        pieces += [call(name, **{member: text[:65_536]}), result(text), call(name), result(text)]
        pieces += [call(name, **{member: text[:65_536]}), result(text, failed=True)]
    before = time.process_time()
    assert lines(facts_of(pieces))
    assert time.process_time() - before < 2


def test_a_call_that_says_itself_that_it_failed_waits_for_its_output(tmp_path: Path) -> None:
    """Gemini's record of a call has its end; what it said stands in the next record."""
    made = {"id": "1", "name": "replace", "args": {"file_path": "/p/a.py"}, "status": "error"}
    answer = {"id": "1", "name": "replace", "response": {"error": "no match"}}
    stream = shapes.stream_of(
        tmp_path / "s.jsonl",
        {"sessionId": "s", "projectHash": "h", "kind": "main"},
        gemini("gemini", "g1", "", toolCalls=[made]),
        gemini("user", "r1", [{"functionResponse": answer}]),
    )
    notes = lines(facts_of(shapes.whole(stream)))
    assert notes["Errors & Corrections"] == ["- failed: `replace`, `/p/a.py`: `no match`"]
    assert "Files and Functions" not in notes
