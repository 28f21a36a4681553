"""What sessions cost at the default model: ``make bench-cost DATA=folder``.

DATA is the folder that holds ``talk``. Of its conversations with five or more messages of a person
``--sessions`` are taken, spread evenly over their names. Each is a project of its own at a real
daemon, which asks through the SDK. A recorder on loopback answers and counts input as the API
documents it, with a prompt cache; an answer that says nothing is 60 tokens, one that writes a
memory 300. The dollars are those that the daemon books.
"""

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.extract import Session, load
from tests.net.kit import Home
from tests.net.recorder import Blocks, Recorder, text, tool
from tests.support.prompt_cache import PromptCache

_LEAST_MESSAGES = 5  # of a person: a shorter session is not read at its end
_NOTHING_TOKENS, _WRITE_TOKENS = 60, 300
_MEMORY = "---\nname: {0}\ndescription: {0}\ntype: project\n---\n\n{0}\n"


@dataclass(frozen=True, slots=True)
class Way:
    """How sessions are read: ``at_end`` once, else each turn, so many seconds after the last."""

    name: str
    at_end: bool
    writes: bool
    pause: float = 0.0


WAYS = (
    Way("once at the end, nothing to keep", at_end=True, writes=False),
    Way("once at the end, a memory written", at_end=True, writes=True),
    Way("each turn, a minute apart, nothing to keep", at_end=False, writes=False, pause=60.0),
    Way("each turn, ten minutes apart, nothing to keep", at_end=False, writes=False, pause=600.0),
    Way("each turn, a minute apart, a memory written", at_end=False, writes=True, pause=60.0),
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one session cost."""

    turns: int
    requests: int
    kilobytes: float  # of the bodies that went out
    tokens: int  # of input and output, cached or not, as the daemon booked them
    dollars: float


class Server:
    """The recorder with a prompt cache; the cache goes by the seconds that were let pass."""

    def __init__(self, way: Way) -> None:
        self.recorder = Recorder()
        self.seconds = 0.0
        self._way = way
        self._cache = PromptCache(lambda: self.seconds)
        self.recorder.script = self._answer

    def _answer(self, request: dict[str, Any]) -> Blocks:
        """Read the index and then write a memory, or say that there is nothing to do."""
        usage = self._cache.usage(request)
        replies = sum(message["role"] == "assistant" for message in request["messages"])
        is_write = self._way.writes and replies == 1
        written = _WRITE_TOKENS if is_write else _NOTHING_TOKENS
        self.recorder.usage = {**usage, "output_tokens": written}
        if is_write:
            name = f"session-{len(self.recorder.requests)}"
            content = _MEMORY.format(name)
            return [tool("Write", file_path=f"{name}.md", content=content)]
        if self._way.writes and not replies:
            return [tool("Read", file_path="MEMORY.md")]
        return [text("Nothing to keep.")]


def costs(way: Way, sessions: Sequence[Session]) -> list[Cost]:
    """Return what each session cost."""
    server = Server(way)
    with tempfile.TemporaryDirectory(prefix="memd-") as path:
        home = Home(Path(path))
        at_end = str(way.at_end).lower()
        settings = f"[extract]\nat_end = {at_end}\n[dream]\nauto = false\n"
        home.configure(server.recorder.settings() + settings)
        home.start(clock=True)
        try:
            return [_cost(home, server, way, session) for session in sessions]
        finally:
            home.stop()
            server.recorder.close()


def _cost(home: Home, server: Server, way: Way, session: Session) -> Cost:
    """Hold a conversation and return what it cost."""
    project = home.project()
    asked = len(server.recorder.raw)
    talk = project.conversation()
    given = {"session_id": talk.session, "transcript_path": str(talk.path), "wait": True}
    turns = 0
    for message, following in zip(session.messages, (*session.messages[1:], None), strict=True):
        if message.role == "user":
            talk.user(message.text)
            turns += 1
        else:
            talk.assistant(message.text)
        if turns and (following is None or (following.role, message.role) == ("user", "assistant")):
            project.call("extract", **given)
            if way.pause:
                server.seconds += way.pause
                home.pass_time(seconds=way.pause)
    payload = {**talk.payload, "reason": "exit"}
    home.call("hook", client="claude-code", event="SessionEnd", payload=payload)
    home.call("job.wait", job=project.call("job.list")["jobs"][0]["job"])
    booked = project.call("report", days=90)
    bodies = server.recorder.raw[asked:]
    kilobytes = sum(map(len, bodies)) / 1000
    return Cost(turns, len(bodies), kilobytes, booked["tokens"], booked["dollars"])


def main() -> None:
    """Print a table, a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder that holds talk")
    parser.add_argument("--sessions", type=int, default=20)
    arguments = parser.parse_args()
    long = [
        session
        for session in load(arguments.data).sessions
        if sum(message.role == "user" for message in session.messages) >= _LEAST_MESSAGES
    ]
    long.sort(key=lambda session: session.name)
    sessions = long[:: max(1, len(long) // arguments.sessions)][: arguments.sessions]
    for way in WAYS:
        print(_line(way, costs(way, sessions)), flush=True)


def _line(way: Way, found: Sequence[Cost]) -> str:
    cents = [100 * cost.dollars for cost in found]
    return (
        f"{way.name}: {len(found)} sessions with {statistics.mean(c.turns for c in found):.1f}"
        f" messages of a person; a session {statistics.mean(c.requests for c in found):.1f}"
        f" requests, {statistics.mean(c.kilobytes for c in found):.1f} kB sent,"
        f" {statistics.mean(c.tokens for c in found):,.0f} tokens booked;"
        f" cents: mean {statistics.mean(cents):.2f}, median {statistics.median(cents):.2f},"
        f" most {max(cents):.2f}"
    )


if __name__ == "__main__":
    main()
