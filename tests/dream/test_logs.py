"""Which daily logs a dream looks at."""

import os
from pathlib import Path

from memd.dream import logs

NOW = 1_772_450_000.0


def log(memory: Path, name: str, age: float = 0.0) -> Path:
    """Write a log."""
    path = memory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("- 10:00 something\n")
    os.utime(path, (NOW - age, NOW - age))
    return path


def test_logs_that_changed_come_first_by_day(tmp_path: Path) -> None:
    """The newest day comes first; what has not changed since the last dream is left out."""
    log(tmp_path, "logs/2026/02/2026-02-27.md", age=500.0)
    log(tmp_path, "logs/2026/03/2026-03-01.md", age=50.0)
    log(tmp_path, "logs/2025/12/2025-12-31.md", age=5.0)
    log(tmp_path, "logs/2026/03/notes.txt")
    log(tmp_path, "logs/2026/03/deeper/too/far.md")
    (tmp_path / "logs/2026/03/folder.md").mkdir()
    assert logs.changed(str(tmp_path), NOW - 100) == (
        "logs/2026/03/2026-03-01.md",
        "logs/2025/12/2025-12-31.md",
    )
    assert len(logs.changed(str(tmp_path), None)) == 3


def test_there_may_be_many_or_none(tmp_path: Path) -> None:
    """At most a month of logs is named; a directory without logs, or none at all, has none."""
    assert logs.changed(str(tmp_path), None) == ()
    assert logs.changed(str(tmp_path / "missing"), None) == ()
    for day in range(1, 41):
        log(tmp_path, f"logs/2026/03/{day:02}.md")
    assert len(logs.changed(str(tmp_path), None)) == logs.MOST


def test_no_link_leads_to_other_folders(tmp_path: Path) -> None:
    """A folder or a log behind a link is none."""
    elsewhere = tmp_path / "elsewhere"
    log(elsewhere, "2026/03/2026-03-01.md")
    memory = tmp_path / "memory"
    memory.mkdir()
    (memory / "logs").symlink_to(elsewhere)
    assert logs.changed(str(memory), None) == ()
