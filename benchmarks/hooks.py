"""What each event of a client costs the person who waits: the whole process, as a client runs it.

With memd at rest, beside a dream and three extractions, with a daemon that hangs, and with none;
each beside the floor of the same run, a shell that starts Python to do nothing.
"""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence

from benchmarks import background, corpus
from benchmarks.measures import Series, each, table
from memd.cli.setup.hooks import Hooks
from memd.client import hook_file
from tests.support import samples
from tests.support.daemon import Home, daemon_process, throw_away_home

EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")
MEMORIES = 1_000
ROUNDS = 60
HUNG_ROUNDS = 10  # a bound is met the same way each time
_NOTHING = f"trap 'exit 0' 0; exec 2>/dev/null; {sys.executable} -I -S -c pass"


def run() -> None:
    """Measure and print."""
    with throw_away_home() as home:
        cwd = home.project()
        corpus.write(background.folder(home, cwd), MEMORIES)
        background.prepare(home)
        hook_file.write(home.places)
        clients = Clients(home, cwd)
        floor = each(lambda _: clients.shell(_NOTHING, b""), ROUNDS)
        rows = [("", *EVENTS), _row("no daemon", clients.events(ROUNDS), floor)]
        with daemon_process(home) as process:
            clients.events(3)  # its index is made once
            rows.append(_row("memd at rest", clients.events(ROUNDS), floor))
            brought = clients.answered["UserPromptSubmit"]
            with background.pressure(home):
                rows.append(_row("beside a dream", clients.events(ROUNDS), floor))
            process.send_signal(signal.SIGSTOP)
            rows.append(_row("a daemon that hangs", clients.events(HUNG_ROUNDS), floor))
            process.send_signal(signal.SIGCONT)
    print(f"hook, {MEMORIES:,} memories, process start to end; p50 / p95 ms (p50 in floors)")
    print(table(rows))
    print(f"floor, a shell that starts Python: {floor.p50:.1f} / {floor.at(0.95):.1f} ms")
    print(f"at rest {brought} of {ROUNDS} prompts brought memories; aim: 1.5 floors")


class Clients:
    """Sessions of one project that send their events through the hook.

    ``transcript`` writes what a session has behind it, a short conversation unless it is given.
    """

    def __init__(
        self,
        home: Home,
        cwd: str,
        names: Sequence[str] = EVENTS,
        transcript: Callable[[str], None] | None = None,
    ) -> None:
        self._names, self._transcript = names, transcript
        self._home = home
        self._cwd = cwd
        self._environ = {**home.environ, "MEMD_HOOK_NO_START": "1"}
        self._sessions = 0
        self._prompts = [each.text for each in corpus.questions(MEMORIES, ROUNDS)]
        self.answered: Counter[str] = (
            Counter()
        )  # by event, of the last ones: what brought something

    def events(self, rounds: int) -> dict[str, Series]:
        """Return what each event took, in so many sessions; events in turns, so noise meets all."""
        times: dict[str, list[float]] = {event: [] for event in self._names}
        self.answered.clear()
        for _ in range(rounds):
            self._sessions += 1
            session = f"h{self._sessions}"
            path = samples.place(self._home.path, self._cwd, session)
            if self._transcript:
                self._transcript(path)
            else:
                samples.write(samples.NAMES[0], path, cwd=self._cwd, session=session)
            for event in self._names:
                send = self._sender(event, session, path)
                times[event] += each(send, 1).times
        return {event: Series(tuple(series)) for event, series in times.items()}

    def shell(self, command: str, payload: bytes) -> bytes:
        """Run a command as a client's shell does; return what it printed."""
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            input=payload,
            env=self._environ,
            capture_output=True,
            check=True,
        )
        return done.stdout

    def _sender(self, event: str, session: str, path: str) -> Callable[[int], None]:
        # As the client's settings have it, with the shell that keeps it harmless.
        hook = hook_file.hook_path(self._home.places)
        command = Hooks("claude-code", hook, {event: None}).group(event)["hooks"][0]["command"]
        payload = {"session_id": session, "transcript_path": path, "cwd": self._cwd}
        prompt = self._prompts[self._sessions % ROUNDS]
        source = "compact" if "PreCompact" in self._names else "startup"
        more = {"prompt": prompt, "source": source, "trigger": "manual"}
        said = json.dumps(payload | more).encode()

        def send(_: int) -> None:
            printed = self.shell(command, said)
            self.answered[event] += b"additionalContext" in printed

        return send


def _row(name: str, times: dict[str, Series], floor: Series) -> tuple[str, ...]:
    cells = (
        f"{one.p50:.1f} / {one.at(0.95):.1f} ({one.p50 / floor.p50:.1f})" for one in times.values()
    )
    return name, *cells
