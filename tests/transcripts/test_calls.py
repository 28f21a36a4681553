"""The tool calls at the end of a transcript."""

import json
from pathlib import Path
from typing import Any

import pytest

from memd.transcripts.opening import TranscriptRefusedError
from memd.transcripts.reading import recent_calls


def claude(name: str, given: dict[str, Any], *, sidechain: bool = True) -> dict[str, Any]:
    """Return a line of Claude Code in which the assistant calls a tool."""
    block = {"type": "tool_use", "id": f"t-{name}", "name": name, "input": given}
    message = {"role": "assistant", "id": "m", "content": [block]}
    return {"type": "assistant", "uuid": "u", "isSidechain": sidechain, "message": message}


CODEX = [
    {"type": "session_meta", "payload": {"id": "s", "source": {"subagent": "review"}}},
    {
        "type": "response_item",
        "payload": {
            "type": "function_call",
            "name": "shell",
            "call_id": "c",
            "arguments": json.dumps({"command": ["bash", "-lc", "ls"]}),
        },
    },
]
GEMINI = [
    {"projectHash": "h", "kind": "subagent", "sessionId": "s"},
    {
        "type": "gemini",
        "id": "1",
        "content": "",
        "toolCalls": [{"id": "g", "name": "read_file", "args": {}, "status": "success"}],
    },
]


def written(path: Path, *lines: Any, end: str = "\n") -> str:
    """Append lines to a transcript and return its path."""
    with path.open("a", encoding="utf-8") as file:
        file.write("\n".join(json.dumps(line) for line in lines) + end)
    return str(path)


def names(path: str, offset: int = 0) -> list[str]:
    """Return the names of the calls behind an offset."""
    return [call.name for call in recent_calls(path, offset).calls]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([claude("Read", {"file_path": "/a.py"})], ["Read"]),
        ([claude("Bash", {}, sidechain=False)], ["Bash"]),
        (CODEX, ["shell"]),
        (GEMINI, ["read_file"]),
    ],
)
def test_a_sub_agents_calls_are_read(tmp_path: Path, lines: list[Any], expected: list[str]) -> None:
    """Each client's sub-agents are read as its sessions are."""
    assert names(written(tmp_path / "a.jsonl", *lines)) == expected


def test_only_what_is_new_is_read_and_only_whole_lines(tmp_path: Path) -> None:
    """The next reading begins behind the last whole line; a shorter file begins anew."""
    path = tmp_path / "a.jsonl"
    first = recent_calls(written(path, claude("Read", {})))
    written(path, claude("Grep", {}), claude("Bash", {}), end="")
    assert names(str(path), first.offset) == ["Grep"]
    written(path, end="\n")
    assert names(str(path), first.offset) == ["Grep", "Bash"]
    path.write_text("")
    assert recent_calls(str(path), first.offset).offset == 0


def test_of_a_long_file_the_end_is_read(tmp_path: Path) -> None:
    """A quarter of a megabyte is enough, from the first line that begins there."""
    path = tmp_path / "a.jsonl"
    lines = [claude(f"T{number}", {"text": "x" * 10_000}) for number in range(100)]
    calls = names(written(path, *lines))
    assert calls[-1] == "T99"
    assert 20 < len(calls) < 30
    assert recent_calls(str(path)).offset == path.stat().st_size


def test_what_is_no_transcript_is_refused(tmp_path: Path) -> None:
    """A link, a folder and a name of another kind are not opened."""
    real = written(tmp_path / "a.jsonl", claude("Read", {}))
    link = tmp_path / "link.jsonl"
    link.symlink_to(real)
    (tmp_path / "folder.jsonl").mkdir()
    for path in (link, tmp_path / "folder.jsonl", tmp_path / "a.txt", tmp_path / "none.jsonl"):
        with pytest.raises(TranscriptRefusedError):
            recent_calls(str(path))
