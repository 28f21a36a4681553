"""What the gates of dreams cost in system calls, by strace."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memd.projects.project import slug
from memd.store.lock import LOCK
from tests.crash import kill

DRIVER = Path(__file__).with_name("gate_driver.py")
FILES = "trace=%file,fstat,getdents64"
STAT = re.compile(r"\b(stat|lstat|statx|newfstatat|fstatat64)\(")
MARK = re.compile(r'"/mark/([^"]+)"')


def calls(folder: Path) -> dict[str, list[str]]:
    """Return what each question cost: its calls that concern files."""
    log = folder / "trace"
    command = ["strace", "-f", "-e", FILES, "-o", str(log), sys.executable, "-B", str(DRIVER)]
    done = subprocess.run(
        [*command, str(folder)], capture_output=True, text=True, env=dict(os.environ), check=False
    )
    assert done.returncode == 0, done.stderr
    results: dict[str, list[str]] = {}
    requested = "end"
    for line in log.read_text(errors="replace").splitlines():
        mark = MARK.search(line)
        if mark:
            requested = mark[1]
        elif requested != "end" and "resumed" not in line:
            results.setdefault(requested, []).append(line)
    return results


@pytest.mark.skipif(bool(kill.missing()), reason=kill.missing() or "strace works")
@pytest.mark.crash
def test_a_closed_time_gate_costs_one_stat(tmp_path: Path) -> None:
    """Switches cost no call on files, time one stat, and sessions one scan of each folder once."""
    lock = tmp_path / "memory" / LOCK
    lock.parent.mkdir()
    lock.write_text("")
    os.utime(lock, (time.time() - 3600, time.time() - 3600))
    folders = [tmp_path / "t" / slug(str(tmp_path / name)) for name in ("p", "p/sub")]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "s.jsonl").write_text("")
    results = calls(tmp_path)
    assert "dream_off" not in results
    for name in ("time", "sessions again"):
        (only,) = results[name]
        assert STAT.search(only), only
        assert str(lock) in only
    scanned = [line for line in results["sessions"] if "O_DIRECTORY" in line]
    assert len(scanned) == 2
    assert all(any(str(folder) in line for line in scanned) for folder in folders)
    stats = [line for line in results["sessions"] if STAT.search(line)]
    assert sum(str(lock) in line for line in stats) == 1
    assert sum("s.jsonl" in line for line in stats) == 2
