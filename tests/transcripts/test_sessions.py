"""Which sessions have transcripts in a folder."""

import os
from pathlib import Path

from memd.transcripts.sessions import sessions_of


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
