"""Where transcripts lie, and which sessions have some."""

import os
from pathlib import Path

from memd.core.values import Project
from memd.store.transcript_folders import folders, sessions


def test_sessions_are_regular_transcripts(tmp_path: Path) -> None:
    """Each transcript is a session with its last change; nothing else in the folder is one."""
    for name in ("a.jsonl", "b.jsonl", "notes.txt"):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (5.0, 7.5))
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "a.jsonl")
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert sessions(str(tmp_path)) == {"a": 7.5, "b": 7.5}


def test_a_folder_that_is_not_there_has_none(tmp_path: Path) -> None:
    """A missing folder, and a file in its place, have no sessions."""
    assert sessions(str(tmp_path / "gone")) == {}
    (tmp_path / "file").write_text("")
    assert sessions(str(tmp_path / "file")) == {}


def test_each_working_directory_has_a_folder() -> None:
    """The folders are those of the working directory and of the root, each named once."""
    below = Project("/r/sub", "/r", "/m", "test", "/t", enabled=True)
    assert folders(below) == ("/t/-r-sub", "/t/-r")
    assert folders(Project("/r", "/r", "/m", "test", "/t", enabled=True)) == ("/t/-r",)
