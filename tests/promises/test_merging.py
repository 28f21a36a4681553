"""Many writers of one memory: no line is lost, and nobody is told to come again."""

import subprocess
import sys
import time
from pathlib import Path

from tests.support.daemon import Home, client, daemon_process, throw_away_home

PATH = "shared_log.md"
APPENDER = """
import sys, time
from memd.client.blocking import Client

socket, cwd, who, count = sys.argv[1:]
with Client(socket, name=who, environment={}) as client:
    sys.stdin.readline()
    for number in range(int(count)):
        read = client.call("memory.read", {"cwd": cwd, "path": "shared_log.md"})
        begun = time.perf_counter()
        answer = client.call("memory.write", {
            "cwd": cwd, "path": "shared_log.md", "base_hash": read["hash"],
            "content": read["content"] + f"- {who} saw thing {number}\\n",
        })
        print(answer["status"], f"{time.perf_counter() - begun:.6f}", flush=True)
"""


def append_together(home: Home, cwd: str, writers: int, count: int) -> list[tuple[str, float]]:
    """Run so many processes that append at once; return each answer with its seconds."""
    command = [sys.executable, "-c", APPENDER, home.places.socket, cwd]
    processes = [
        subprocess.Popen(
            [*command, f"writer{number}", str(count)],
            env=dict(home.environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(writers)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers: list[tuple[str, float]] = []
    for process in processes:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        answers += [(line.split()[0], float(line.split()[1])) for line in out.splitlines()]
    return answers


def test_eight_processes_append_to_one_memory() -> None:
    """8 processes × 25 appends to one file, each on what it had read: 200 kept, none refused."""
    with throw_away_home() as home, daemon_process(home):
        cwd = home.project()
        with client(home) as connection:
            parts = {"name": "shared-log", "description": "what was seen", "type": "project"}
            first = {"cwd": cwd, "path": PATH, **parts, "body": "Seen:"}
            connection.call("memory.write", first)
            begun = time.perf_counter()
            answers = append_together(home, cwd, 8, 25)
            took = time.perf_counter() - begun
            content = connection.call("memory.read", {"cwd": cwd, "path": PATH})["content"]
            listed = connection.call("memory.list", {"cwd": cwd})
            changes = connection.call("memory.history", {"cwd": cwd, "path": PATH, "limit": 500})
        index = Path(listed["memory_dir"], "MEMORY.md").read_text(encoding="utf-8")
    lines = content.splitlines()
    kept = [line for line in lines if line.startswith("- writer")]
    merged = sum(status == "merged" for status, _ in answers)
    seconds = sorted(seconds for _, seconds in answers)
    print(  # noqa: T201 - the figure of this promise, shown by -s
        f"8 × 25 appends to one file: {len(set(kept))} of 200 kept, {merged} merged, 0 refused,"
        f" p50 {seconds[100] * 1e3:.1f} ms, p99 {seconds[197] * 1e3:.1f} ms, {took:.1f} s"
    )
    assert sorted(kept) == sorted(f"- writer{w} saw thing {n}" for w in range(8) for n in range(25))
    assert {status for status, _ in answers} <= {"updated", "merged"}
    assert lines[: lines.index("Seen:") + 1][-1] == "Seen:"
    assert len(changes["changes"]) == 201
    assert index.count(f"({PATH})") == 1
    assert merged > 0
