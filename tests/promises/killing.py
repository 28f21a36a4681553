"""Extractions of one growing conversation by real daemons that are killed on the way.

Each turn of the person's carries a mark. The scripted model writes one memory a run, under a name
that no other run has, which lists the marks of the pieces that it was told to look at. So a stretch
that is lost leaves a mark out, and one that is extracted twice leaves a mark in two memories.
"""

import re
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memd.client.errors import DaemonUnavailableError
from tests.promises.transcripts import Conversation
from tests.support.daemon import Home, client, daemon_process
from tests.support.messages import structured, tools
from tests.support.steps import Drip, ReceivedMessage

MARK = re.compile(r"mark-(\d+)-")
_COUNT = re.compile(r"Look at the last (\d+) pieces")
_DRIP_SECONDS = 0.002  # between two pieces of a reply that is to be cut in half


@dataclass(frozen=True, slots=True)
class Moment:
    """When to kill: so many seconds after the n-th request of a run; ``drip``: while it is read."""

    request: int
    seconds: float
    drip: bool = False


@dataclass(slots=True)
class Killing:
    """A conversation of a project, and the daemons that learn from it."""

    home: Home
    said: Conversation
    folder: Path = Path()
    turns: int = 0
    kills: int = 0
    _moment: Moment | None = None
    _process: "subprocess.Popen[bytes] | None" = None
    _timers: list[threading.Timer] = field(default_factory=list)

    def script(self, request: ReceivedMessage) -> Any:
        """Answer a request of a run, and set the time of whoever asked if its moment has come."""
        if not request.json.get("tools"):
            return structured({"selected_memories": []})
        messages = request.json["messages"]
        reply = self._reply(request, messages)
        moment, number = self._moment, 1 + len(messages) // 2
        if moment is None or self._process is None or moment.request != number:
            return reply
        self._moment = None
        self._timers.append(threading.Timer(moment.seconds, self._process.kill))
        self._timers[-1].start()
        return Drip(reply, size=64, seconds=_DRIP_SECONDS) if moment.drip else reply

    def _reply(self, request: ReceivedMessage, messages: Any) -> Any:
        if len(messages) == 1:
            return tools(("Glob", {"pattern": "*.md"}), ("Read", {"file_path": "MEMORY.md"}))
        *said, task = messages[0]["content"]
        results = _COUNT.search(task["text"])
        assert results is not None
        looked_at = " ".join(piece["text"] for piece in said[-int(results[1]) :])
        name = f"run{request.number:04}"
        marks = "".join(f"mark-{mark}-\n" for mark in sorted(set(MARK.findall(looked_at))))
        head = f"name: {name}\ndescription: releases, seen by {name}\nmetadata:\n  type: project"
        content = f"---\n{head}\n---\n\n{marks}"
        return tools(("Write", {"file_path": f"{self.folder}/{name}.md", "content": content}))

    def live(self, moment: Moment) -> None:
        """Have a new turn extracted and kill the daemon at a moment; the next one ends the job."""
        self.turns += 1
        self.said.user(f"Our release {self.turns} is mark-{self.turns}- and nothing else.")
        self.said.assistant("Noted.")
        params = {"session_id": self.said.session, "transcript_path": self.said.path}
        with daemon_process(self.home) as process:
            with suppress(DaemonUnavailableError), client(self.home) as caller:
                listed = caller.call("memory.list", {"cwd": self.said.cwd})
                self.folder = Path(listed["memory_dir"])
                self._process, self._moment = process, moment
                job = caller.call("extract", {"cwd": self.said.cwd, **params})["job"]
                caller.call("job.wait", {"job": job})
            while self._timers:
                self._timers.pop().join()
                self.kills += 1
        with daemon_process(self.home), client(self.home) as caller:
            ended = caller.call("job.wait", {"job": job})
            assert ended["state"] == "completed", ended

    def marks(self) -> list[int]:
        """Return the marks of all memories, one for each time that it was extracted."""
        results = (MARK.findall(path.read_text()) for path in sorted(self.folder.glob("run*.md")))
        return sorted(int(mark) for marks in results for mark in marks)
