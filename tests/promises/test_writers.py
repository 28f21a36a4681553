"""Many writers into one project: every acknowledged write is kept."""

import subprocess
import sys
from pathlib import Path

import pytest

from memd.core.names import is_temporary
from memd.documents.index import entries
from memd.testing.daemon import Home, client, daemon_process, throw_away_home

WRITER = """
import sys
from memd.client.blocking import Client

socket, cwd, who, count = sys.argv[1:]
with Client(socket, name=who, environment={}) as client:
    for number in range(int(count)):
        answer = client.call("memory.write", {
            "cwd": cwd, "path": f"{who}_{number}.md", "name": f"{who}-{number}",
            "description": f"note {number} of {who}", "type": "project", "body": f"text {number}",
            "title": f"Title {number}", "hook": f"hook {number} of {who}",
        })
        assert answer["status"] == "created"
        print(answer["path"], flush=True)
"""


def write_together(home: Home, cwd: str, writers: int, count: int) -> set[str]:
    """Run so many writer processes at once; return the paths that were acknowledged."""
    command = [sys.executable, "-c", WRITER, home.places.socket, cwd]
    processes = [
        subprocess.Popen(
            [*command, f"writer{number}", str(count)],
            env=dict(home.environ),
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(writers)
    ]
    acknowledged: set[str] = set()
    for process in processes:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        acknowledged |= set(out.split())
    return acknowledged


def test_eight_processes_lose_nothing() -> None:
    """8 processes × 25 writes: 200 acknowledged, 200 kept, one index line each."""
    with throw_away_home() as home, daemon_process(home):
        cwd = home.project()
        acknowledged = write_together(home, cwd, 8, 25)
        with client(home) as connection:
            listed = connection.call("memory.list", {"cwd": cwd})
        folder = Path(listed["memory_dir"])
        pointers = [entry.path for entry in entries((folder / "MEMORY.md").read_bytes())]
        # Replaced files go a moment after the change.
        names = {path.name for path in folder.iterdir() if not is_temporary(path.name)}
    assert len(acknowledged) == 200
    assert {memory["path"] for memory in listed["memories"]} == acknowledged
    assert sorted(pointers) == sorted(acknowledged)
    assert names == acknowledged | {"MEMORY.md"}


@pytest.mark.soak
def test_a_killed_daemon_loses_nothing_it_acknowledged() -> None:
    """20 rounds of four writers with the daemon killed in between: all acknowledged is kept."""
    acknowledged: set[str] = set()
    with throw_away_home() as home:
        cwd = home.project()
        command = [sys.executable, "-c", WRITER, home.places.socket, cwd]
        for number in range(20):
            with daemon_process(home) as process:
                writers = [
                    subprocess.Popen(
                        [*command, f"r{number}w{who}", "1000"],
                        env=dict(home.environ),
                        stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL,
                        text=True,
                    )
                    for who in range(4)
                ]
                assert writers[0].stdout is not None
                for _ in range(20):
                    acknowledged.add(writers[0].stdout.readline().strip())
                process.kill()
                process.wait()
                for writer in writers:
                    acknowledged |= set(writer.communicate(timeout=60)[0].split())
        with daemon_process(home), client(home) as connection:
            listed = connection.call("memory.list", {"cwd": cwd})
            index = Path(listed["memory_dir"], "MEMORY.md").read_bytes()
    kept = {memory["path"] for memory in listed["memories"]}
    assert acknowledged - {""} <= kept
    assert sorted(entry.path for entry in entries(index)) == sorted(kept)
