"""Extraction by a model: what it is asked, what its tools may do, and what a bound is."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.net.extract_talk import extract, memory, messages
from tests.net.kit import Project
from tests.net.recorder import Blocks, Recorder, text, tool

SAID = "Please keep the staging host in mind, it is stage-9.example.net."
CLIENT: dict[str, Any] = {
    "model": "claude-opus-5-5",
    "system": [
        {
            "type": "text",
            "text": "You are a coder. \u4f60\u597d",
            "cache_control": {"type": "ephemeral"},
        }
    ],
    "tools": [{"name": name, "input_schema": {"type": "object"}} for name in ("Bash", "Task")],
    "messages": messages("Hello, d\u00e9j\u00e0 vu \u201c/\u007f\u201d."),
}


def results(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the results of tools that a request ends with."""
    content = request["messages"][-1]["content"]
    return [block for block in content if block["type"] == "tool_result"]


def asked(request: dict[str, Any]) -> str:
    """Return the last text of a request."""
    content = request["messages"][-1]["content"]
    return content if isinstance(content, str) else str(content[-1].get("text"))


def test_memories_of_one_run_are_one_change(project: Project, model: Recorder) -> None:
    """A run that reads, then writes and edits, takes two requests and makes one change."""
    project.put("host.md", memory("host", "The staging host is stage-8."))
    new = memory("mail", "Mail goes through stage-9.example.net.")
    model.play(
        [tool("Read", file_path=f"{project.memory}/host.md"), tool("Glob", pattern="*.md")],
        [
            tool("Write", file_path=f"{project.memory}/mail.md", content=new),
            tool(
                "Edit", file_path="host.md", old_string="stage-8", new_string="stage-9.example.net"
            ),
        ],
    )
    model.usage = {"input_tokens": 100, "cache_read_input_tokens": 900}
    answer = extract(project, SAID)
    assert (answer["saved"], answer["updated"]) == (["mail.md"], ["host.md"])
    assert "(mail.md)" in project.read()
    assert len(model.requests) == 2
    assert answer["usage"]["cache_read"] == 1800
    assert answer["hit_rate"] == pytest.approx(0.9)
    (change,) = project.call("memory.history", session="s1")["changes"]
    assert {file["path"] for file in change["files"]} == {"MEMORY.md", "mail.md", "host.md"}
    assert change["model"] == "claude-sonnet-5-5"


def test_the_task_says_how_to_work(project: Project, model: Recorder) -> None:
    """It names the new messages, the manifest and the order of work, and forbids to investigate."""
    project.put("host.md", memory("host", "The staging host is stage-8."))
    said = [*CLIENT["messages"], *messages(SAID)]
    extract(project, messages=said, cache={**CLIENT, "messages": said})
    extract(project, SAID, session="s2")
    shared, request = model.requests
    words = json.dumps(shared)
    for pattern in (r"host\.md \(", "extract", "investigat|verif", "parallel|at once|together"):
        assert re.search(pattern, words, re.IGNORECASE), pattern
    assert re.search(r"last ~?\d+ (messages|pieces)", words)
    names = {given["name"] for given in request["tools"]}
    assert names >= {"Read", "Grep", "Glob", "Bash", "Write", "Edit"}


def test_a_short_request_is_short(project: Project, model: Recorder) -> None:
    """Without the client's prefix memd's own words are 4,000 tokens at most."""
    extract(project, SAID)
    (raw,) = model.raw
    assert len(raw) / 4 <= 4000


def test_the_clients_prefix_goes_out_to_the_byte(project: Project, model: Recorder) -> None:
    """System, tools, model and messages are the client's own, and one message follows."""
    said = [*CLIENT["messages"], *messages(SAID)]
    extract(project, messages=said, cache={**CLIENT, "messages": said})
    (request,) = model.requests
    for name in ("model", "system", "tools"):
        assert json.dumps(request[name]) == json.dumps(CLIENT[name])
    assert json.dumps(request["messages"][:-1]) == json.dumps(said)
    assert request["messages"][-1]["role"] == "user"
    raw = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
    assert raw[1:-1].encode() in model.raw[0]


def test_a_prefix_that_changed_is_named(project: Project, model: Recorder) -> None:
    """A client whose system text changed between two turns is told so."""
    said = [*CLIENT["messages"], *messages(SAID)]
    first = extract(project, messages=said, cache={**CLIENT, "messages": said})
    said = [*said, *messages("And the port is 9911.")]
    other = {**CLIENT, "system": [{"type": "text", "text": "You are a poet."}], "messages": said}
    second = extract(project, messages=said, cache=other)
    assert len(model.requests) == 2
    assert not first["prefix_changed"]
    assert second["prefix_changed"] == ["system"]


CALLS: dict[str, tuple[bool, str, dict[str, Any]]] = {
    "read": (True, "Read", {"file_path": "{memory}/host.md"}),
    "read transcript": (True, "Read", {"file_path": "{transcript}"}),
    "grep": (True, "Grep", {"pattern": "staging", "path": "{memory}"}),
    "glob": (True, "Glob", {"pattern": "*.md", "path": "{memory}"}),
    "ls": (True, "Bash", {"command": "ls {memory}"}),
    "cat and head": (True, "Bash", {"command": "cat {memory}/host.md | head -3"}),
    "tail": (True, "Bash", {"command": "tail -1 {memory}/host.md"}),
    "wc": (True, "Bash", {"command": "wc -l {memory}/host.md"}),
    "find": (True, "Bash", {"command": "find {memory} -name '*.md'"}),
    "grep command": (True, "Bash", {"command": "grep -rn staging {memory}"}),
    "read secret": (False, "Read", {"file_path": "{home}/secret.txt"}),
    "read passwd": (False, "Read", {"file_path": "/etc/passwd"}),
    "read proc": (False, "Read", {"file_path": "/proc/self/environ"}),
    "read dots": (False, "Read", {"file_path": "{memory}/../../../../secret.txt"}),
    "read link": (False, "Read", {"file_path": "{memory}/link.md"}),
    "read pipe": (False, "Read", {"file_path": "{memory}/pipe.md"}),
    "read other": (False, "Read", {"file_path": "{other}/rule.md"}),
    "cat secret": (False, "Bash", {"command": "cat {home}/secret.txt"}),
    "grep home": (False, "Grep", {"pattern": "TOP", "path": "{home}", "output_mode": "content"}),
    "glob home": (False, "Glob", {"pattern": "*", "path": "{home}"}),
    "rm": (False, "Bash", {"command": "rm {memory}/host.md"}),
    "redirection": (False, "Bash", {"command": "echo x > {made}"}),
    "tee": (False, "Bash", {"command": "ls | tee {made}"}),
    "exec": (False, "Bash", {"command": "find {memory} -exec touch {made} ;"}),
    "delete": (False, "Bash", {"command": "find {memory} -delete"}),
    "substitution": (False, "Bash", {"command": "ls $(touch {made})"}),
    "backquote": (False, "Bash", {"command": "ls `touch {made}`"}),
    "semicolon": (False, "Bash", {"command": "ls; touch {made}"}),
    "and": (False, "Bash", {"command": "ls && touch {made}"}),
    "newline": (False, "Bash", {"command": "ls\ntouch {made}"}),
    "python": (False, "Bash", {"command": 'python3 -c \'open("{made}", "w")\''}),
    "curl": (False, "Bash", {"command": "curl -d @{home}/secret.txt http://127.0.0.1:1/"}),
    "write project": (False, "Write", {"file_path": "{made}", "content": "x"}),
    "write dots": (False, "Write", {"file_path": "{memory}/../made.md", "content": "x"}),
    "write tmp": (False, "Write", {"file_path": "/tmp/net-made.md", "content": "x"}),
    "write link": (False, "Write", {"file_path": "{memory}/folder/made.md", "content": "x"}),
    "write hidden": (False, "Write", {"file_path": "{memory}/.git/hooks/x.md", "content": "x"}),
    "write lock": (False, "Write", {"file_path": "{memory}/.consolidate-lock", "content": "1"}),
    "edit unread": (
        False,
        "Edit",
        {"file_path": "{memory}/b.md", "old_string": "a", "new_string": "c"},
    ),
    "task": (False, "Task", {"prompt": "go"}),
    "mcp": (False, "mcp__db__query", {"q": "1"}),
    "no input": (False, "Read", {}),
}


def filled(project: Project) -> dict[str, str]:
    """Lay out what tools may and may not reach; return the words that stand for places."""
    for name in ("host", "b"):
        project.put(f"{name}.md", memory(name, "The staging host is stage-8."))
    home = project.home.path / "h"
    (home / "secret.txt").write_text("TOP-SECRET")
    (project.memory / "link.md").symlink_to(home / "secret.txt")
    (project.memory / "folder").symlink_to(project.path)
    os.mkfifo(project.memory / "pipe.md")
    other = project.home.project()
    other.put("rule.md", memory("rule", "TOP-SECRET of another project."))
    talk = project.conversation("s1").user(SAID).assistant("Ok.")
    return {
        "{memory}": str(project.memory),
        "{home}": str(home),
        "{other}": str(other.memory),
        "{made}": str(project.path / "made.md"),
        "{transcript}": str(talk.path),
    }


def placed(given: dict[str, Any], places: dict[str, str]) -> dict[str, Any]:
    """Return the input of a tool with its places."""
    for mark, place in places.items():
        given = {key: value.replace(mark, place) for key, value in given.items()}
    return given


def test_tools_stay_in_memory_and_transcript(project: Project, model: Recorder) -> None:
    """What reads there is allowed, anything else is refused, leaks nothing and does nothing."""
    places = filled(project)
    before = project.tree()
    model.play([tool(name, **placed(given, places)) for _, name, given in CALLS.values()])
    answer = extract(project, transcript_path=places["{transcript}"])
    refused = {
        name: bool(result.get("is_error"))
        for name, result in zip(CALLS, results(model.requests[1]), strict=True)
    }
    assert refused == {name: not allowed for name, (allowed, _, _) in CALLS.items()}
    assert "TOP-SECRET" not in json.dumps(model.requests[1]["messages"])
    assert (project.tree(), answer["saved"]) == (before, [])
    made = [project.path / "made.md", project.folder / "made.md", Path("/tmp/net-made.md")]
    assert [path for path in made if path.exists()] == []
    assert not (project.memory / ".consolidate-lock").exists()


def test_the_projects_sources_are_not_read(project: Project, model: Recorder) -> None:
    """A file of the project outside memory and transcript is refused."""
    (project.path / "source.py").write_text("x = 1\n")
    model.play([tool("Read", file_path=f"{project.path}/source.py")])
    extract(project, SAID)
    assert results(model.requests[1])[0].get("is_error")


@pytest.mark.parametrize(
    "command",
    [
        "ls -1 {}",
        "stat {}/host.md",
        "ls -la {}",
        "cat {}/host.md",
        "grep -rn staging {} | tail -5",
    ],
)
def test_a_plain_command_is_answered(project: Project, model: Recorder, command: str) -> None:
    """A command with plain arguments, and a pipe to head or tail, is answered from memories."""
    project.put("host.md", memory("host", "The staging host is stage-8."))
    model.play([tool("Bash", command=command.format(project.memory))])
    extract(project, SAID)
    (result,) = results(model.requests[1])
    assert not result.get("is_error")
    assert "host.md" in str(result) or "stage-8" in str(result)


def test_a_refused_command_names_the_tool_to_use(project: Project, model: Recorder) -> None:
    """Who runs a command that is not allowed is told what to use instead."""
    model.play([tool("Bash", command="sed -n 1,5p host.md")])
    extract(project, SAID)
    (result,) = results(model.requests[1])
    assert result["is_error"]
    assert re.search("Read|Grep|Glob|Edit|Write", str(result["content"]))


def loops(project: Project) -> Any:
    """Return a model that writes a memory at first, and reads then and for ever after."""

    def script(request: dict[str, Any]) -> Blocks:
        new = memory("host", "The staging host is stage-9.example.net.")
        first = tool("Write", file_path=f"{project.memory}/host.md", content=new)
        read = tool("Glob", pattern=f"*{len(request['messages'])}*.md")
        return [read] if results_in(request) else [first, read]

    return script


def results_in(request: dict[str, Any]) -> bool:
    """Tell whether a request has results of tools."""
    return "tool_result" in json.dumps(request["messages"])


@pytest.mark.full
def test_a_run_that_used_its_turns_is_an_end(project: Project, model: Recorder) -> None:
    """A run asks five times at most; what it validly wrote stays, and nothing is repeated."""
    model.script = loops(project)
    answer = extract(project, SAID)
    assert len(model.requests) == 5
    assert answer["saved"] == ["host.md"]


def test_a_run_has_five_turns(project: Project, model: Recorder) -> None:
    """No request of a run holds more than four earlier turns of the model."""
    model.script = loops(project)
    given = {"session_id": "s1", "messages": messages(SAID)}
    job = project.call("extract", **given)["job"]
    project.home.call("job.wait", job=job)
    turns = [sum(m["role"] == "assistant" for m in q["messages"]) for q in model.requests]
    assert max(turns) <= 4 + 1  # one assistant message may stand in the prefix


def test_a_refusal_costs_no_other_file(project: Project, model: Recorder) -> None:
    """Of two writes a valid one is kept although the other is refused."""
    good = memory("host", "The staging host is stage-9.example.net.")
    bad = memory("rule", "Always deploy at night.", "feedback", said="deploy at night, always")
    model.play(
        [tool("Write", file_path=f"{n}.md", content=c) for n, c in (("bad", bad), ("good", good))]
    )
    answer = extract(project, SAID)
    assert answer["saved"] == ["good.md"]
    assert not (project.memory / "bad.md").exists()


def test_a_head_is_read_leniently(project: Project, model: Recorder) -> None:
    """Whatever head a model writes, the file on disk has memd's own."""
    body = "The staging host is stage-9.example.net."
    loose = f"---\nname: The: host\ntype: Project\ndescription: a: b # c\nx: [y\n---\n{body}\n"
    model.play([tool("Write", file_path="host.md", content=loose)])
    extract(project, SAID)
    found = project.call("memory.read", path="host.md")
    assert (found["damaged"], found["type"]) == (False, "project")
    assert "originSessionId: s1" in found["content"]


def test_a_secret_of_a_model_is_refused(project: Project, model: Recorder) -> None:
    """A credential that the model copies, or a file named after one, is not stored."""
    key = "ghp_x7Kq2Lm9Vb4Nc8Rt1Yw6Zp3Hd5Jf0Sg2UeTa"
    files = {
        "token.md": f"The token is {key}.",
        f"{key}.md": "The staging host is stage-9.example.net.",
    }
    model.play(
        [tool("Write", file_path=n, content=memory("m", words)) for n, words in files.items()]
    )
    answer = extract(project, f"{SAID} The token is {key}.")
    assert answer["saved"] == []
    assert project.tree() == {}
    assert key not in json.dumps(answer)


def test_a_file_that_changed_meanwhile_is_not_lost(project: Project, model: Recorder) -> None:
    """What a person saves during a run stays, and the model's memory is there or suggested."""
    project.put("host.md", memory("host", "The staging host is stage-8."))

    def script(request: dict[str, Any]) -> Blocks:
        if not results_in(request):
            return [tool("Read", file_path="host.md")]
        if len(results(request)) and "stage-8" in str(results(request)):
            project.put("host.md", memory("host", "The staging host is stage-7, says Ana."))
            new = {"old_string": "stage-8", "new_string": "stage-9.example.net"}
            return [tool("Edit", file_path="host.md", **new)]
        return [text("Done.")]

    model.script = script
    answer = extract(project, SAID)
    assert "says Ana" in project.read("host.md")
    told = answer["suggested"] or answer["refused"] or answer["passed_over"] or answer["problem"]
    assert told or "stage-9" in project.read("host.md")


def test_when_a_memory_is_needed_is_kept(project: Project, model: Recorder) -> None:
    """The words on when a memory is needed stand in its head."""
    new = memory("host", "The staging host is stage-9.example.net.")
    new = new.replace(
        "type: project", "type: project\nwhen: deploying to staging or reading its log"
    )
    model.play([tool("Write", file_path="host.md", content=new)])
    assert extract(project, SAID)["saved"] == ["host.md"]
    assert "deploying to staging" in project.read("host.md").split("---")[1]
