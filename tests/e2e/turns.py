"""What memd's hooks cost the real Claude Code: ``python -m tests.e2e.turns``.

Prints, for a conversation of twenty turns without memd, with it, with a daemon that hangs and with
none, its seconds in all and the milliseconds of each event's hook as the client saw them.
"""

# ruff: noqa: T201 - prints its table

import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import quantiles

from tests.e2e.claude import conversation
from tests.e2e.programs import memctl
from tests.support.daemon import Home, client, daemon_process, throw_away_home
from tests.support.messages import MessagesServer, messages_server, text

TURNS = 20
_PROMPT = "Tell me in a word what you think of part {} of the heron service."
_SUBJECTS = ("port", "owner", "queue", "backup", "deploy", "test", "log", "cache", "key", "host")


def main() -> int:
    """Print the table."""
    print(f"a conversation of {TURNS} turns; seconds in all, then p50 / p95 ms of each hook")
    with messages_server(text("Understood.")) as server:
        for name in ("without memd", "memd at rest", "a daemon that hangs", "no daemon"):
            with throw_away_home() as home, _prepared(home, name):
                print(f"| {name} | {_measured(home, server)} |", flush=True)
    return 0


@contextmanager
def _prepared(home: Home, name: str) -> Iterator[None]:
    if name != "without memd":
        memctl(home, "--no-start", "setup", "claude-code")
    if name == "no daemon":
        os.environ["MEMD_HOOK_NO_START"] = "1"
    if name in {"without memd", "no daemon"}:
        yield
        return
    with daemon_process(home) as daemon:
        with client(home) as caller:
            for number, subject in enumerate(_SUBJECTS):
                fact = f"The heron service's {subject} is in part {number} of the plan."
                parts = {"name": f"heron-{subject}", "description": fact, "type": "project"}
                body = f"{fact} Whoever changes it tells the others first."
                where = {"cwd": home.project(), "path": f"heron-{subject}.md"}
                caller.call("memory.write", {**where, **parts, "body": body})
        hangs = name == "a daemon that hangs"
        if hangs:
            os.kill(daemon.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            if hangs:
                os.kill(daemon.pid, signal.SIGCONT)


def _measured(home: Home, server: MessagesServer) -> str:
    hooks: defaultdict[str, list[float]] = defaultdict(list)
    begun = time.monotonic()
    with conversation(home, server, home.project()) as talk:
        for number in range(TURNS):
            for event, seconds in talk.say(_PROMPT.format(number)).hooks.items():
                hooks[event].append(1000 * seconds)
    took = time.monotonic() - begun
    cells = (f"{event} {_spread(values)}" for event, values in sorted(hooks.items()))
    return f"{took:.2f} s | {'; '.join(cells)}"


def _spread(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.0f} (once)"
    parts = quantiles(values, n=20, method="inclusive")
    return f"{parts[9]:.0f} / {parts[18]:.0f}"


if __name__ == "__main__":
    sys.exit(main())
