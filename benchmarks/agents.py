"""What messages between agents cost: ``make bench-agents``, ratios within one run.

Everything goes through the socket of a daemon process, or through the hook as a client runs it.
``PARTS`` are ``send wait stored hook idle prefetch``; each prints its figures beside the aim.
"""

import json
import os
import selectors
import socket
import sqlite3
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import background, corpus
from benchmarks.measures import Line, Series, each, size
from memd.client import hook_file
from tests.support.daemon import Home, daemon_process, throw_away_home

SENDS = 1_000
WAITS = 500
RECEIVERS, MAILBOX = 50, 200  # 10,000 messages stored
HOOKS = 300
AGENTS = 100
IDLE_SECONDS = 30.0
MEMORIES = 200
PREFETCHES = 500
SENDERS = 8
BODY = "The index is built; the parser still fails on empty files. " * 16  # some 900 bytes
_SETTINGS = "[messages]\nper_minute = 100000\n"
_MEBIBYTE = 1024 * 1024 / 1e6  # of ``size``, which counts in 10^6 bytes
_ROW = (
    "CREATE TABLE message (id TEXT PRIMARY KEY, sender TEXT, kind TEXT, summary TEXT, body TEXT,"
    " sent REAL); CREATE TABLE copy (message TEXT, receiver INTEGER, state TEXT, changed REAL,"
    " PRIMARY KEY (message, receiver));"
)


@dataclass(frozen=True, slots=True)
class BenchAgent:
    """An agent that was registered, and its key."""

    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Post:
    """A daemon that runs, its project, and a connection to it."""

    home: Home
    pid: int
    cwd: str
    line: Line

    def register(self, name: str) -> BenchAgent:
        """Register an agent of the project."""
        return register(self.line, self.cwd, name)

    def send(self, sender: BenchAgent, receiver: BenchAgent, number: int) -> None:
        """Send a message."""
        words = {"to": receiver.name, "body": f"{number} {BODY}", "summary": f"number {number}"}
        self.line.call("message.send", {"key": sender.key, **words})

    def drain(self, receiver: BenchAgent) -> list[float]:
        """Read and acknowledge all that waits; return what each reading took in milliseconds."""
        return drain(self.line, receiver.key)


def register(line: Line, cwd: str, name: str) -> BenchAgent:
    """Register an agent of a project."""
    about = {"cwd": cwd, "name": name, "session_id": f"session-{name}"}
    return BenchAgent(name, line.call("agent.register", about)["key"])


def drain(line: Line, key: str) -> list[float]:
    """Read and acknowledge all that waits for a key; return the milliseconds of each reading."""
    times: list[float] = []
    while True:
        messages = line.call("message.receive", {"key": key, "limit": 20})["messages"]
        times.append(line.milliseconds)
        if not messages:
            return times[:-1]
        line.call("message.ack", {"key": key, "ids": [each["id"] for each in messages]})


@contextmanager
def post() -> Iterator[Post]:
    """Run a daemon in a home of its own, with a rate that stops no benchmark."""
    with throw_away_home() as home:
        config = Path(home.places.config)
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(_SETTINGS)
        cwd = home.project()
        corpus.write(background.folder(home, cwd), MEMORIES)
        with daemon_process(home) as process, Line(home.places.socket) as line:
            line.call("status", {})
            yield Post(home, process.pid, cwd, line)


def durable_send() -> None:
    """Compare a send with a bare commit of the same row, in turns."""
    with post() as at:
        sender, receiver = at.register("sender"), at.register("receiver")
        folder = Path(at.home.places.state_dir)
        bare = sqlite3.connect(folder / "bare.db", isolation_level=None)
        bare.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; {_ROW}")
        sent, committed = list[float](), list[float]()
        for number in range(SENDS):
            at.send(sender, receiver, number)
            sent.append(at.line.milliseconds)
            begun = time.perf_counter()
            _commit(bare, number)
            committed.append((time.perf_counter() - begun) * 1000)
            if number % 100 == 99:
                at.drain(receiver)
        bare.close()
    show_ratios("durable send, in bare commits", Series(tuple(sent)), Series(tuple(committed)))


def _commit(bare: sqlite3.Connection, number: int) -> None:
    bare.execute("BEGIN IMMEDIATE")
    words = (f"m{number}", "sender", "text", f"number {number}", f"{number} {BODY}", time.time())
    bare.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?, ?)", words)
    bare.execute("INSERT INTO copy VALUES (?, 1, 'queued', ?)", (f"m{number}", time.time()))
    bare.execute("COMMIT")


def waiting() -> None:
    """Measure from the call of send until a receiver that waits has the message."""
    times: list[float] = []
    with post() as at, Line(at.home.places.socket) as other:
        sender, receiver = at.register("sender"), at.register("receiver")
        got: list[float] = []
        for number in range(WAITS):
            thread = threading.Thread(target=_receive, args=(other, receiver.key, got))
            thread.start()
            time.sleep(0.01)  # until it waits
            begun = time.perf_counter()
            at.send(sender, receiver, number)
            thread.join()
            times.append((got.pop() - begun) * 1000)
    show("a waiting receiver has it", Series(tuple(times)), 10.0, 50.0)


def _receive(line: Line, key: str, got: list[float]) -> None:
    messages = line.call("message.receive", {"key": key, "wait": 30})["messages"]
    got.append(time.perf_counter())
    line.call("message.ack", {"key": key, "ids": [each["id"] for each in messages]})


def stored() -> None:
    """Measure one reading while 10,000 messages wait."""
    with post() as at:
        sender = at.register("sender")
        receivers = [at.register(f"receiver{number}") for number in range(RECEIVERS)]
        for number in range(RECEIVERS * MAILBOX):
            at.send(sender, receivers[number % RECEIVERS], number)
        times = [took for receiver in receivers[: RECEIVERS // 2] for took in at.drain(receiver)]
    name = f"receive (20 messages of {len(BODY)} bytes) with {RECEIVERS * MAILBOX:,} stored"
    show(name, Series(tuple(times)), 3.0, None)


def hook() -> None:
    """Compare a prompt's hook that was set up with messages, and has none, with one without."""
    with post() as at:
        hook_file.write(at.home.places)
        plain, with_messages = _Hook(at, "plain"), _Hook(at, "messages", "messages")
        for one in (plain, with_messages):
            one.run("SessionStart")
        took: tuple[list[float], list[float]] = ([], [])
        for number in range(HOOKS):
            pairs = ((plain, took[0]), (with_messages, took[1]))
            for one, times in pairs if number % 2 else pairs[::-1]:
                times.append(one.run("UserPromptSubmit"))
    without, with_ = (Series(tuple(times)) for times in took)
    ratio = with_.p50 / without.p50
    print(
        f"a hook with no message: p50 {with_.p50:.2f} ms, with messages off {without.p50:.2f} ms:"
        f" {ratio:.3f} (aim 1.05){_verdict(ratio <= 1.05)}"
    )


class _Hook:
    """The hook of one session, run as a process."""

    def __init__(self, at: Post, session: str, *arguments: str) -> None:
        path = hook_file.hook_path(at.home.places)
        self._command = [sys.executable, "-I", "-S", path, "claude-code"]
        self._arguments = arguments
        self._environ = {**at.home.environ, "MEMD_HOOK_NO_START": "1"}
        folder = f"{at.home.path}/.claude/projects/x"
        os.makedirs(folder, exist_ok=True)
        self._about = {"session_id": session, "cwd": at.cwd, "source": "startup"}
        self._about |= {"transcript_path": f"{folder}/{session}.jsonl", "prompt": "Go on, please."}

    def run(self, event: str) -> float:
        """Run it for an event; return the milliseconds from its start to its end."""
        data = json.dumps({**self._about, "hook_event_name": event}).encode()
        command = [*self._command, event, *self._arguments]
        begun = time.perf_counter()
        subprocess.run(command, input=data, env=self._environ, capture_output=True, check=True)
        return (time.perf_counter() - begun) * 1000


def idle() -> None:
    """Compare the daemon's size and wake-ups at rest, before and after 100 agents came."""
    with post() as at:
        at.register("first")  # what the first one loads is no agent's
        time.sleep(2)
        before, woken = size(at.pid).resident, _wake_ups(at.pid)
        with ExitStack() as stack:
            for number in range(AGENTS):
                line = stack.enter_context(Line(at.home.places.socket))
                about = {"cwd": at.cwd, "name": f"agent{number}", "session_id": f"s{number}"}
                line.call("agent.register", about)
            time.sleep(2)
            after, woken_then = size(at.pid).resident, _wake_ups(at.pid)
    grown = (after - before) / _MEBIBYTE
    print(f"{AGENTS} agents with a connection each: +{grown:.2f} MiB (aim 5){_verdict(grown <= 5)}")
    more = woken_then - woken
    print(
        f"wake-ups in {IDLE_SECONDS:.0f} s at rest: {woken} with one agent, {woken_then} with"
        f" {AGENTS}{_verdict(more <= 2)}"
    )


def _wake_ups(pid: int) -> int:
    """Return how often the threads of a process went to sleep of their own will in some time.

    A thread that ended or began meanwhile had work left from before, and does not count.
    """
    before = _switches(pid)
    time.sleep(IDLE_SECONDS)
    after = _switches(pid)
    return sum(after[thread] - before[thread] for thread in before.keys() & after.keys())


def _switches(pid: int) -> dict[str, int]:
    result = {}
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        result[status.parent.name] = int(lines["voluntary_ctxt_switches"])
    return result


def prefetch() -> None:
    """Compare a prefetch at rest with one beside senders at full speed."""
    with post() as at:
        questions = [each.text for each in corpus.questions(MEMORIES, PREFETCHES)]

        def ask(start: int) -> Callable[[int], object]:
            def act(number: int) -> object:
                about = {"cwd": at.cwd, "session_id": f"p{start + number}"}
                return at.line.call("prefetch", {**about, "query": questions[number]})

            return act

        each(ask(0), 50)
        alone = each(ask(1_000), PREFETCHES)
        command = [sys.executable, "-m", "benchmarks.agents", "--send", at.home.places.socket]
        with subprocess.Popen(
            [*command, at.cwd], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as senders:
            assert senders.stdout is not None
            senders.stdout.readline()  # all of them send
            begun = time.perf_counter()
            beside = each(ask(10_000), PREFETCHES)
            seconds = time.perf_counter() - begun
            sent = int(senders.communicate("")[0].split()[-1])
    rate = sent / seconds
    ratio = beside.p99 / alone.p99
    print(
        f"prefetch, {MEMORIES} memories, beside {SENDERS} senders ({rate:.0f} messages a"
        f" second): p50 {alone.p50:.1f} → {beside.p50:.1f} ms, p99"
        f" {alone.p99:.1f} → {beside.p99:.1f} ms: {ratio:.2f} (aim 2){_verdict(ratio <= 2)}"
    )


def send_until_told(path: str, cwd: str) -> None:
    """Send over some connections as fast as it goes, until the standard input ends.

    Prints a line once all have sent, and at the end how many messages were sent since. The frames
    are made before, so that the senders cost little beside the daemon.
    """
    selector, frames, sent, started = selectors.DefaultSelector(), {}, 0, False
    with ExitStack() as stack, Line(path) as line:
        keys = {}
        for number in range(SENDERS):
            sender, receiver = (register(line, cwd, f"{role}{number}") for role in ("from", "to"))
            keys[number] = receiver.key
            about = {"key": sender.key, "to": receiver.name, "body": BODY, "summary": "s"}
            frame = {"jsonrpc": "2.0", "id": 1, "method": "message.send", "params": about}
            frames[number] = json.dumps(frame).encode() + b"\n"
            connection = stack.enter_context(socket.socket(socket.AF_UNIX))
            connection.connect(path)
            connection.sendall(frames[number])
            selector.register(connection, selectors.EVENT_READ, (number, connection))
        selector.register(sys.stdin, selectors.EVENT_READ, None)
        counts = dict.fromkeys(frames, 0)
        while True:
            for ready, _ in selector.select():
                if ready.data is None:
                    print(sent)
                    return
                number, connection = ready.data
                if not connection.recv(65536).endswith(b"\n"):
                    continue  # the rest of the answer comes
                counts[number] += 1
                sent += 1
                if counts[number] % MAILBOX == 0:
                    drain(line, keys[number])
                connection.sendall(frames[number])
            if not started and min(counts.values()):
                started, sent = True, 0
                print("sending", flush=True)


def show(what: str, series: Series, p50: float, p99: float | None) -> None:
    """Print a series in milliseconds beside its aims."""
    met = series.p50 <= p50 and (p99 is None or series.p99 <= p99)
    aim = f"{p50:g}" if p99 is None else f"{p50:g} / {p99:g}"
    print(f"{what}: p50 {series.p50:.2f} ms, p99 {series.p99:.2f} ms (aim {aim}){_verdict(met)}")


def show_ratios(what: str, series: Series, floor: Series) -> None:
    """Print a series beside its floor of the same run."""
    middle, late = series.p50 / floor.p50, series.p99 / floor.p99
    print(
        f"{what}: p50 {series.p50:.2f} / {floor.p50:.2f} ms = {middle:.2f} (aim 2), p99"
        f" {series.p99:.2f} / {floor.p99:.2f} ms = {late:.2f} (aim 5)"
        f"{_verdict(middle <= 2 and late <= 5)}"
    )


def _verdict(met: bool) -> str:  # noqa: FBT001 - a formatter
    return "" if met else "  MISSED"


PARTS = {
    "send": durable_send,
    "wait": waiting,
    "stored": stored,
    "hook": hook,
    "idle": idle,
    "prefetch": prefetch,
}


def main(arguments: list[str]) -> None:
    """Run the parts that are named, all by default."""
    if arguments[:1] == ["--send"]:
        send_until_told(*arguments[1:])
        return
    load = statistics.fmean(os.getloadavg()[:2])
    print(f"{os.cpu_count()} cores, load {load:.1f}; ratios within one run")
    for name in arguments or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
