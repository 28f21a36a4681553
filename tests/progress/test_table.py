"""The line of a tool's call without a model."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.conversation.pieces import RecordedCall
from memd.progress.lines import is_line
from memd.progress.table import line_of
from memd.store import secret
from memd.transcripts.reading import recent_calls
from tests.corpora import folder

SAMPLES = Path(__file__).parents[1] / "support" / "samples"
VERBS = {"Reading", "Editing", "Searching", "Running", "Fetching"}
LINES = [
    ("Read", {"file_path": "/p/src/parser.py"}, "Reading parser.py"),
    ("read_file", {"absolute_path": "/p/my notes.md"}, "Reading my notes.md"),
    ("Edit", {"file_path": "/p/loader.py"}, "Editing loader.py"),
    ("Write", {"file_path": "C:\\work\\new.ts"}, "Editing new.ts"),
    ("Grep", {"pattern": r"def\s+parse_index\(", "path": "/p/src"}, "Searching for parse_index"),
    ("Grep", {"pattern": "x", "path": "/p/src/loader.py"}, "Searching loader.py"),
    ("Glob", {"pattern": "**/*"}, "Searching the files"),
    ("WebFetch", {"url": "https://docs.example.org/a?b=c"}, "Fetching docs.example.org"),
    ("WebFetch", {"url": "http://[bad"}, "Fetching a page"),
    ("WebSearch", {"query": "asyncio task group cancel"}, "Searching for asyncio task group"),
    ("Bash", {"command": "cd /p && pytest tests/test_a.py -q"}, "Running pytest test_a.py"),
    ("Bash", {"command": "FOO=1 timeout 30 python -m pytest -x"}, "Running pytest"),
    ("Bash", {"command": "cat src/a.py | head"}, "Reading a.py"),
    ("Bash", {"command": "sed -n 1,20p memd/base/text.py"}, "Reading text.py"),
    ("Bash", {"command": "rg -n 'load_index' memd"}, "Searching for load_index"),
    ("Bash", {"command": "curl -s https://example.org/x"}, "Fetching example.org"),
    ("Bash", {"command": "git commit -m 'all'"}, "Running git commit"),
    ("Bash", {"command": "mysql -u root -p hunter2 app"}, "Running mysql"),
    ("Bash", {"command": ""}, "Running a command"),
    ("shell", {"command": ["bash", "-lc", "make check"]}, "Running make check"),
    ("Task", {"subagent_type": "code-reviewer"}, "Running the code-reviewer agent"),
    ("TodoWrite", {"todos": []}, "Editing the plan"),
    ("mcp__github__create_issue", {}, "Running create_issue"),
    ("", {}, "Running a tool"),
]


@pytest.mark.parametrize(("name", "given_", "line"), LINES)
def test_a_call_has_a_line(name: str, given_: dict[str, Any], line: str) -> None:
    """What is done comes first, then the file, word, host or program."""
    assert line_of(RecordedCall("t", name, given=given_)) == line


def test_a_patch_names_its_file() -> None:
    """What a call writes goes before its input."""
    call = RecordedCall("t", "apply_patch", writes=("/p/a.py", "/p/b.py"))
    assert line_of(call) == "Editing a.py"


def recorded_calls() -> list[RecordedCall]:
    """Return the calls of the recorded sessions, and more with what others collected as input."""
    paths = sorted(SAMPLES.glob("*.jsonl"))
    result = [call for path in paths for call in recent_calls(str(path)).calls]
    commands = json.loads((folder("commands") / "bad_commands.json").read_text("utf-8"))
    given_ = [("Bash", {"command": each["cmd"]}) for each in commands]
    strings = json.loads((folder("blns") / "blns.json").read_text("utf-8"))
    names = ("Read", "Grep", "WebFetch", "Bash", "shell", "Task", "WebSearch", "anything")
    members = ("file_path", "pattern", "url", "command", "subagent_type", "query")
    with gzip.open(folder("paths") / "all_traversals.txt.gz", "rt", errors="replace") as file:
        paths_ = [line.rstrip("\n") for line in file][::50]
    for place, text in enumerate((*strings, *paths_)):
        name = names[place % len(names)]
        given_.append((name, dict.fromkeys(members, text)))
    return result + [RecordedCall("t", name, given=each) for name, each in given_]


def test_every_line_of_recorded_calls_is_one() -> None:
    """Of 500 calls and more, recorded and hostile, each line keeps the rule and hides nothing."""
    calls = recorded_calls()
    assert len(calls) > 500
    for call in calls:
        line = line_of(call)
        assert is_line(line), (call, line)
        assert line.isprintable(), line
        assert line.split()[0] in VERBS, line
        assert not secret.find(line), line
        assert not set("<>") & set(line), line


TEXTS = st.one_of(
    st.text(max_size=200), st.sampled_from(["sudo env A=1 \u202e.py", "a/" * 500, "-x", "\\\\"])
)
VALUES = st.one_of(TEXTS, st.none(), st.integers(), st.lists(TEXTS, max_size=4))
NAMES = st.sampled_from([*sorted({name for name, _, _ in LINES}), "apply_patch", "mcp__a__ b"])
MEMBERS = ("file_path", "path", "pattern", "query", "url", "command", "subagent_type")


@given(NAMES, st.dictionaries(st.sampled_from(MEMBERS), VALUES))
def test_whatever_a_call_holds_its_line_is_one(name: str, given_: dict[str, Any]) -> None:
    """No input breaks the rule of a line, and none brings a character that is not shown."""
    line = line_of(RecordedCall("t", name, given=given_))
    assert is_line(line), line
    assert line.isprintable()


@pytest.mark.parametrize(
    "command",
    ["login ghp_16C7e42F292c6912E7710c838347Ae178B4a", "deploy AKIAIOSFODNN7EXAMPLQ"],
)
def test_a_credential_is_not_shown(command: str) -> None:
    """A word of a command that looks like one takes the whole command's name with it."""
    assert line_of(RecordedCall("t", "Bash", given={"command": command})) == "Running a command"
