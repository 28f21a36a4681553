"""Running one operation under strace: which system calls change something, and a kill at one."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

DRIVER = Path(__file__).with_name("operation.py")
CHANGING = (
    *("openat", "write", "pwrite64", "fsync", "fdatasync", "ftruncate", "fallocate"),
    *("rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "utimensat"),
    *("fchmod", "fchmodat", "mkdir", "mkdirat", "link", "linkat", "symlinkat"),
)
_WORDS = {
    "write": "write",
    "fchmod": "set_mode",
    "utimensat": "set_mtime",
    "unlink": "unlink",
    "unlinkat": "unlink",
}
_CALL = re.compile(r"^(?:\[pid +\d+\] |\d+ +)?(\w+)\((.*)$")


@dataclass(frozen=True)
class Point:
    """The k-th call of a name, counted from the start of the process."""

    call: str
    number: int


def missing() -> str:
    """Return why processes cannot be killed at a system call here, or ""."""
    if sys.platform != "linux" or shutil.which("strace") is None:
        return "strace is not installed"
    probe = subprocess.run(
        ["strace", "-f", "-e", "trace=write", "-o", os.devnull, "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if probe.returncode == 0 else f"strace may not trace here: {probe.stderr.strip()}"


def run(
    root: Path, operation: str, step: str, *strace: str, driver: Path = DRIVER
) -> subprocess.CompletedProcess[str]:
    """Run one step of an operation, under strace when it has arguments."""
    command = [sys.executable, "-B", str(driver), str(root), operation, step]
    if strace:
        command = ["strace", "-f", *strace, *command]  # its filter in the kernel kills nobody
    environ = {"PYTHONHASHSEED": "0", "PATH": os.environ["PATH"]}
    environ |= {k: v for k, v in os.environ.items() if k == "PYTHONPATH"}
    return subprocess.run(command, capture_output=True, text=True, env=environ, check=False)


def points(
    root: Path, operation: str, step: str, *, output: bool = True, driver: Path = DRIVER
) -> list[Point]:
    """Run a step to its end and return every call of it that changes something, in order.

    With ``output`` also those that only say something.
    """
    log = root / "trace"
    trace = f"trace={','.join(CHANGING)}"
    done = run(root, operation, step, "-e", trace, "-o", str(log), driver=driver)
    assert done.returncode == 0, done.stderr
    seen: Counter[str] = Counter()
    results = []
    for line in log.read_text(errors="replace").splitlines():
        match = _CALL.match(line)
        if match is None:
            continue
        seen[match[1]] += 1
        if match[1] == "write" and match[2].startswith(("1,", "2,")) and not output:
            continue
        if match[1] != "openat" or "O_CREAT" in match[2]:
            results.append(Point(match[1], seen[match[1]]))
    log.unlink()
    return results


def file_operations(root: Path, operation: str) -> list[str]:
    """Return what a run does to the memory directory, by strace, in the words of ``core.py``.

    Writes of one body are one; calls that make folders are left out.
    """
    log = root.with_name("trace-y")
    trace = f"trace={','.join(CHANGING)}"
    done = run(root, operation, "run", "-y", "-e", trace, "-o", str(log))
    assert done.returncode == 0, done.stderr
    results: list[str] = []
    for line in log.read_text(errors="replace").splitlines():
        match = _CALL.match(line)
        if match is None or f"{root}/memory" not in match[2]:
            continue
        call, rest = match[1], match[2]
        if call == "fsync":
            word = "fsync" if ".tmp>" in rest else "sync_folder"
        elif call in {"rename", "renameat", "renameat2"}:
            word = "exchange" if "RENAME_EXCHANGE" in rest else "move"
        elif call == "openat":
            word = "create" if "O_CREAT" in rest else ""
        else:
            word = _WORDS.get(call, "")
        if word and [word] != results[-1:] * (word == "write"):
            results.append(word)
    return results


def killed(root: Path, operation: str, step: str, point: Point, *, driver: Path = DRIVER) -> str:
    """Run a step and kill it just before one of its calls; return what it had said by then."""
    inject = f"inject={point.call}:signal=SIGKILL:when={point.number}"
    log = root / "trace"
    arguments = ("-e", f"trace={point.call}", "-e", inject, "-o", str(log))
    done = run(root, operation, step, *arguments, driver=driver)
    log.unlink(missing_ok=True)
    assert done.returncode != 0, f"nothing was killed at {point}: {done.stderr}"
    return done.stdout
