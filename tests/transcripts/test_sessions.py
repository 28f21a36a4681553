"""Which sessions a folder has, and which of them a session was made from."""

import json
import os
from pathlib import Path

import pytest

from memd.core.text import iso_time
from memd.transcripts.sessions import parents, sessions_of

NOW = 1_772_539_200.0


def answer(session: str, at: float, **members: object) -> dict[str, object]:
    """Return an assistant's line, as Claude Code writes it."""
    message = {"role": "assistant", "content": [{"type": "text", "text": "done"}]}
    common = {"type": "assistant", "uuid": "u", "parentUuid": None, "sessionId": session}
    return {**common, "timestamp": iso_time(at), "message": message, **members}


def write(path: Path, *lines: object, at: float = NOW) -> str:
    """Write a transcript that was last changed at a time and return its path."""
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    os.utime(path, (at, at))
    return str(path)


def test_a_fork_names_its_parents_once_it_is_written(tmp_path: Path) -> None:
    """The answers of a fork keep the sessions that asked for them; what is quoted names none."""
    quoted = {"role": "user", "content": json.dumps({"sessionId": "quoted"})}
    lines = (
        {"type": "mode", "sessionId": "f"},
        {"type": "user", "parentUuid": None, "sessionId": "f", "message": quoted},
        answer("f", NOW, requestSessionId="grandparent"),
        answer("f", NOW, requestSessionId="parent"),
    )
    path = write(tmp_path / "f.jsonl", *lines)
    assert parents(path, "f") == {"grandparent", "parent"}
    assert parents(path, "f", NOW) == {"grandparent", "parent"}


@pytest.mark.parametrize("off", [-1.5, 0.0, 1.5])
def test_before_that_the_last_answer_tells_the_parent(tmp_path: Path, off: float) -> None:
    """Of the other sessions it is the one that was answered when the fork says."""
    long = answer("parent", NOW - 500)
    write(tmp_path / "parent.jsonl", long, answer("parent", NOW - 100), {"type": "cost-state"})
    write(tmp_path / "later.jsonl", answer("later", NOW - 50))
    write(tmp_path / "earlier.jsonl", answer("earlier", NOW - 105), at=NOW - 104)
    path = write(tmp_path / "f.jsonl", {"type": "mode", "sessionId": "f"})
    assert parents(path, "f", NOW - 100 + off) == {"parent"}
    assert parents(str(tmp_path / "absent.jsonl"), "f", NOW - 100 + off) == {"parent"}
    assert parents(path, "f") == set()


def test_in_doubt_all_that_may_be_are_named(tmp_path: Path) -> None:
    """Two that were answered at once are both named; where none fits, all that changed since."""
    for name, at in (("a", NOW - 9), ("b", NOW - 10), ("c", NOW - 60)):
        write(tmp_path / f"{name}.jsonl", answer(name, at))
    (tmp_path / "d.jsonl").write_text('broken "assistant"\n[1, "assistant"]\n')
    (tmp_path / "e.jsonl").mkdir()
    path = str(tmp_path / "f.jsonl")
    assert parents(path, "f", NOW - 10) == {"a", "b"}
    assert parents(path, "f", NOW - 30) == {"a", "b", "c", "d"}


@pytest.mark.parametrize("path", ["", "f.jsonl", "/none/such/f.jsonl", "/dev/null", "/\0.jsonl"])
def test_a_strange_path_has_no_parents(path: str) -> None:
    """What is no transcript of ours names nobody and raises nothing."""
    assert parents(path, "f", NOW) == set()
    assert parents(path, "f") == set()


def test_sessions_are_regular_transcripts(tmp_path: Path) -> None:
    """Each transcript is a session with its last change; nothing else in the folder is one."""
    for name in ("a.jsonl", "b.jsonl", "notes.txt"):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (5.0, 7.5))
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "a.jsonl")
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert sessions_of(str(tmp_path)) == {"a": 7.5, "b": 7.5}


def test_a_folder_that_is_not_there_has_none(tmp_path: Path) -> None:
    """A missing folder, and a file in its place, have no sessions."""
    assert sessions_of(str(tmp_path / "gone")) == {}
    (tmp_path / "file").write_text("")
    assert sessions_of(str(tmp_path / "file")) == {}
