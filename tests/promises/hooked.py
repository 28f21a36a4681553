"""A home whose hook is installed, and events that reach it as a client's do."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memd.client import hook_file
from memd.client.errors import DaemonUnavailableError
from memd.client.launch import Client
from tests.support import transcripts
from tests.support.daemon import Home, client, throw_away_home
from tests.support.waiting import wait_until_up

SECONDS = 60.0


@dataclass(frozen=True)
class Hooked:
    """One project of a person who uses a client with memd's hook.

    ``launchers`` is the end of a pipe that whatever launches a daemon inherits; a daemon does not.
    """

    home: Home
    cwd: str
    launchers: int

    def say(self, text: str, session: str = "s") -> str:
        """Let the person say something; return the transcript."""
        folder = Path(self.home.path, ".claude", "projects", "x")
        return transcripts.write(folder / f"{session}.jsonl", transcripts.user(text))

    def send(self, event: str, session: str = "s", *, start: bool = True, **members: Any) -> float:
        """Run the hook for one event of a session; return how many seconds it took."""
        path = str(Path(self.home.path, ".claude", "projects", "x", f"{session}.jsonl"))
        payload = {"session_id": session, "transcript_path": path, "cwd": self.cwd, **members}
        hook = hook_file.hook_path(self.home.places)
        begin = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-I", "-S", hook, "claude-code", event],
            input=json.dumps(payload).encode(),
            env={**self.home.environ, "MEMD_HOOK_NO_START": "" if start else "1"},
            capture_output=True,
            timeout=SECONDS,
            check=False,
            pass_fds=[self.launchers],
        )
        seconds = time.monotonic() - begin
        assert (done.returncode, done.stderr) == (0, b"")
        return seconds

    def up(self) -> Client:
        """Return a client of the daemon, once one serves."""
        wait_until_up(self.home.places, SECONDS)
        return client(self.home)

    def learnt(self) -> list[str]:
        """Return what the memories say, once the spool is empty and no job is left."""
        until = time.monotonic() + SECONDS
        with self.up() as asked:
            while os.listdir(self.home.places.spool) or not self._rests(asked):
                assert time.monotonic() < until
                asked.call("status")
            memories = asked.call("memory.list", {"cwd": self.cwd})["memories"]
            return sorted(memory["description"] for memory in memories)

    def end(self) -> None:
        """End the daemon, if there is one, and wait until it is gone."""
        try:
            with client(self.home) as asked:
                asked.call("shutdown")
        except DaemonUnavailableError:
            return
        lock = ["flock", self.home.places.lock, "true"]
        subprocess.run(lock, check=True, timeout=SECONDS)

    @staticmethod
    def _rests(asked: Client) -> bool:
        jobs = asked.call("job.list")["jobs"]
        return bool(jobs) and all(job["ended"] for job in jobs)


@contextmanager
def hooked() -> Iterator[Hooked]:
    """Install the hook in a home of its own; a daemon that is left ends with the block."""
    with throw_away_home() as home:
        hook_file.write(home.places)
        end, inherited = os.pipe()
        result = Hooked(home, home.project(), inherited)
        try:
            yield result
        finally:
            os.close(inherited)
            with open(end, "rb") as pipe:  # a late one would bring a daemon up behind our back
                assert pipe.read() == b""
            result.end()
