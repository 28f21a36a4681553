"""A start makes the memories of the last projects ready before it serves."""

from pathlib import Path
from threading import Lock

import pytest

from memd.daemon.clock import SystemClock
from memd.recall.indexes import Indexes
from memd.store.reading import DirectoryReader
from tests.support import corpus
from tests.support.daemon import Home, client, daemon_process, throw_away_home

MEMORIES = 120


def visited(home: Home, cwd: str) -> str:
    """Fill a project's memory directory, end a session in it, and return the directory."""
    with daemon_process(home), client(home) as caller:
        directory = str(caller.call("memory.list", {"cwd": cwd})["memory_dir"])
        corpus.write(directory, MEMORIES)
        caller.call("session.end", {"cwd": cwd, "session_id": "s"})
    return directory


def index(home: Home, directory: str) -> None:
    """Bring the index of a directory to disk, as a daemon that runs long enough does."""
    made = Indexes(DirectoryReader(SystemClock()), Lock, f"{home.places.state_dir}/index")
    while made.work(directory, MEMORIES):
        pass
    made.close()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_a_start_opens_the_index_of_the_last_project() -> None:
    """Once a daemon serves, the index of the project that was visited last is open and whole."""
    with throw_away_home() as home:
        cwd = home.project()
        index(home, visited(home, cwd))
        with daemon_process(home) as process, client(home) as caller:
            caller.call("status")  # answered once it serves; before, it listens
            maps = Path(f"/proc/{process.pid}/maps").read_text()
            about = corpus.memory(7)
            query = f"what about {about.identifier}?"
            results = caller.call("prefetch", {"cwd": cwd, "session_id": "t", "query": query})
    assert f"{home.places.state_dir}/index/" in maps
    assert results["note"] is None
    assert any(memory["path"].endswith(about.path) for memory in results["memories"])
