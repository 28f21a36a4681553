"""``make bench``: how fast memd is, each figure beside a floor of the same run.

``python -m benchmarks [PART...] [--sizes N,N...]``: ``calls`` (start, memory, and what the main
calls take, in calls of ``hello``, for each number of memories), ``hook`` (each event as a client
runs it, with memd at rest, hung and absent, beside a shell that starts Python to do nothing; the
process of each kind of hook without the shell; a turn's three hooks) and
``commands`` (memctl's processor time beside a Python that does nothing). Machines are noisy: the
ratios mean more than the milliseconds, and nothing here fails.
"""

import argparse
import json
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from memd.cli.setup.hooks import Hooks
from memd.client import hook_file
from tests.support import corpus, samples
from tests.support.daemon import Home, client, daemon_process, memctl_command, throw_away_home

PARTS = ("calls", "hook", "commands")
SIZES = "200,2000,10000"
ROUNDS = 200
HOOK_MEMORIES, HOOK_ROUNDS = 1_000, 40
COMMAND_MEMORIES, COMMAND_ROUNDS = 200, 20
_ADD = "memctl add SENTENCE"
PROCESS_ROUNDS = TURNS = 20
HUNG_ROUNDS = 10  # a bound is met the same way each time
EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")
TURN = ("UserPromptSubmit", "PostToolUse", "Stop")
# Programs in the hook's folder: the native hook where it was compiled, and the Python.
KINDS = {"native": "python", "Python": "interpreter"}
_MANY = 1_000_000  # the number of the first memory that no project has yet
_NOTHING = f": memd; trap 'exit 0' 0; exec 2>/dev/null; {sys.executable} -I -S -c pass"

_NULL = b'Content-Length: 38\r\n\r\n{"jsonrpc":"2.0","id":1,"result":null}'

Times = list[float]  # in milliseconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("part", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--sizes", default=SIZES, help=f"memories, of the part calls: {SIZES}")
    options = parser.parse_args()
    parts = options.part or PARTS
    if "calls" in parts:
        for size in map(int, options.sizes.split(",")):
            with throw_away_home() as home:
                _calls(home, size)
    if "hook" in parts:
        with throw_away_home() as home:
            _hook(home)
    if "commands" in parts:
        with throw_away_home() as home:
            _commands(home)


def _calls(home: Home, size: int) -> None:
    """Measure the main calls over so many memories."""
    cwd = home.project()
    corpus.write(corpus.folder(home, cwd), size)
    began = time.perf_counter()
    with daemon_process(home) as process, client(home, "bench") as line:
        line.call("hello", {"client": "bench"})
        started = (time.perf_counter() - began) * 1000
        resident = _resident(process.pid)
        questions = [question.text for question in corpus.questions(size, ROUNDS)]
        sessions = map(str, count())

        def ask(method: str, **params: Any) -> Any:
            return line.call(method, {"cwd": cwd} | params)

        def write(number: int) -> None:
            new = corpus.memory(_MANY + number)
            about = {"name": new.name, "description": new.description, "type": new.type}
            ask("memory.write", path=f"new-{number}.md", body=new.body, **about)

        def extract(number: int) -> None:
            path = samples.place(home.path, cwd, f"e{number}")
            jobs.append(ask("extract", session_id=f"e{number}", transcript_path=path)["job"])

        def prefetch(number: int) -> None:
            ask("prefetch", session_id=next(sessions), query=questions[number % ROUNDS])

        jobs: list[str] = []
        for number in range(ROUNDS // 4):
            path = samples.place(home.path, cwd, f"e{number}")
            samples.write(samples.NAMES[0], path, cwd=cwd, session=f"e{number}")
        _each(prefetch, 20)
        acts: dict[str, tuple[Callable[[int], object], int]] = {
            "load_prompt": (lambda number: ask("load_prompt", session_id=f"p{number}"), ROUNDS),
            "prefetch": (prefetch, ROUNDS),
            "memory.search": (lambda n: ask("memory.search", query=questions[n]), ROUNDS),
            "memory.write": (write, ROUNDS // 4),
            "extract, until accepted": (extract, ROUNDS // 4),
        }
        times = {name: _each(act, rounds) for name, (act, rounds) in acts.items()}
        for job in jobs:
            line.call("job.wait", {"job": job})
        floor = _each(lambda _: line.call("hello", {"client": "bench"}), ROUNDS)
    synced = _each(lambda number: _synced(Path(home.path) / f"floor-{number}"), ROUNDS // 4)
    print(f"\n{size:,} memories: start to first answer {started:.0f} ms, RSS {resident:.1f} MiB")
    print(f"one file written and synced: {_p50(synced):.2f} / {_p99(synced):.2f} ms")
    rows = [("call", "p50 / p99, ms", "in calls of hello: p50", "p99")]
    for name, series in {"hello": floor, **times}.items():
        ratios = (f"{_p50(series) / _p50(floor):.1f}", f"{_p99(series) / _p50(floor):.1f}")
        rows.append((name, f"{_p50(series):.2f} / {_p99(series):.2f}", *ratios))
    _print(rows)


def _hook(home: Home) -> None:
    """Measure each event of a client, from the shell's start to its end."""
    cwd = home.project()
    corpus.write(corpus.folder(home, cwd), HOOK_MEMORIES)
    hook_file.write(home.places)
    file = hook_file.hook_path(home.places)
    environ = {**home.environ, "MEMD_HOOK_NO_START": "1"}
    questions = [question.text for question in corpus.questions(HOOK_MEMORIES, HOOK_ROUNDS)]
    sessions = count()

    def run(command: str, given: bytes = b"") -> None:
        subprocess.run(
            ["/bin/sh", "-c", command], input=given, env=environ, capture_output=True, check=True
        )

    def events(rounds: int) -> list[Times]:
        times: dict[str, Times] = {event: [] for event in EVENTS}
        for number in range(rounds):
            session = f"h{next(sessions)}"
            path = samples.place(home.path, cwd, session)
            samples.write(samples.NAMES[0], path, cwd=cwd, session=session)
            payload = {"session_id": session, "transcript_path": path, "cwd": cwd}
            more = {"prompt": questions[number], "source": "startup"}
            given = json.dumps(payload | more).encode()
            for event in EVENTS:
                entry = Hooks("claude-code", file, {}).groups({})[event]
                command = entry["hooks"][0]["command"]
                times[event] += _each(lambda _, c=command, g=given: run(c, g), 1)  # type: ignore[misc]
        return list(times.values())

    floor = _each(lambda _: run(_NOTHING), HOOK_ROUNDS)
    rows: list[tuple[str, ...]] = [("p50 / p95 ms (p50 in floors)", *EVENTS)]

    def row(name: str, rounds: int) -> None:
        cells = (f"{_p50(t):.1f} / {_at(t, 0.95):.1f} ({_p50(t) / _p50(floor):.1f})"
                 for t in events(rounds))  # fmt: skip
        rows.append((name, *cells))

    row("no daemon", HOOK_ROUNDS)
    with daemon_process(home) as process:
        events(3)  # its index is made once
        row("memd at rest", HOOK_ROUNDS)
        _hook_processes(home, cwd, questions)
        _hook_turns(home, cwd, questions, process.pid)
        process.send_signal(signal.SIGSTOP)
        row("a daemon that hangs", HUNG_ROUNDS)
        process.send_signal(signal.SIGCONT)
    print(
        f"\nhook, {HOOK_MEMORIES:,} memories; floor, a shell that starts Python: {_p50(floor):.1f}"
    )
    _print(rows)


def _hook_processes(home: Home, cwd: str, questions: Sequence[str]) -> None:
    """Measure a hook's process beside a Python that only imports what the Python hook imports."""
    folder, idle = home.places.data_dir, f"{home.path}/idle.sock"
    environ = {**home.environ, "MEMD_HOOK_NO_START": "1"}
    bare = (f"{folder}/interpreter", "-I", "-S", "-c", "import _socket")
    servers = {"memd": environ, "answers at once": {**environ, "MEMD_SOCKET": idle}}
    names = [(kind, server) for server in servers for kind in KINDS]
    floor, times = [], dict[tuple[str, ...], list[tuple[float, float]]]()
    with _answering(idle):
        for number in range(PROCESS_ROUNDS):
            floor.append(_process(bare, b"", environ))
            for kind, server in names:
                given = _payload(home, cwd, f"{kind}-{server}-{number}", questions[number])
                command = (f"{folder}/{KINDS[kind]}", "-I", "-S", f"{folder}/hook.py")
                for event in EVENTS[:3]:
                    took = _process((*command, "claude-code", event), given, servers[server])
                    times.setdefault((kind, server, event), []).append(took)
    processor, clock = (_p50([took[n] for took in floor]) for n in (0, 1))
    print(f"\nprocess of a hook; floor, import _socket: {processor:.1f}, by the clock {clock:.1f}")
    rows: list[tuple[str, ...]] = [("processor ms (in floors), by the clock; server", *EVENTS[:3])]
    for kind, server in names:
        cells = []
        for event in EVENTS[:3]:
            used, by_clock = ([t[n] for t in times[kind, server, event]] for n in (0, 1))
            cells.append(f"{_p50(used):.1f} ({_p50(used) / processor:.2f}), {_p50(by_clock):.1f}")
        rows.append((f"{kind}; {server}", *cells))
    _print(rows)


def _hook_turns(home: Home, cwd: str, questions: Sequence[str], daemon: int) -> None:
    """Measure the hooks of a session's turns, one after the other, with the client's shell."""
    program = Path(home.places.data_dir, "python")
    hooks = Hooks("claude-code", hook_file.hook_path(home.places), {}).groups({})
    heading = ("the hooks of a turn", "ms by the clock", "their processor ms", "the daemon's")
    rows: list[tuple[str, ...]] = [heading]
    for kind in KINDS:
        if kind == "Python" and not program.is_symlink():
            program.unlink()
            program.symlink_to("interpreter")
        times: list[tuple[float, float, float]] = []
        for number in range(TURNS):
            given = _payload(home, cwd, f"turns-{kind}", questions[number])
            used, began = _processor_seconds_of(daemon), time.perf_counter()
            processor = 0.0
            for event in TURN:
                command = ("/bin/sh", "-c", hooks[event]["hooks"][0]["command"])
                processor += _process(command, given, dict(home.environ))[0]
            took = (time.perf_counter() - began) * 1000
            times.append((took, processor, (_processor_seconds_of(daemon) - used) * 1000))
        rows.append((kind, *(f"{_p50([t[n] for t in times]):.1f}" for n in range(3))))
    print()
    _print(rows)


def _payload(home: Home, cwd: str, session: str, prompt: str) -> bytes:
    """Return a payload that suits each event, of a session with a transcript."""
    path = samples.place(home.path, cwd, session)
    samples.write(samples.NAMES[0], path, cwd=cwd, session=session)
    place = {"session_id": session, "transcript_path": path, "cwd": cwd}
    tool = {"tool_name": "Write", "tool_use_id": prompt, "tool_input": {"file_path": f"{cwd}/a"}}
    return json.dumps({**place, **tool, "prompt": prompt, "source": "startup"}).encode()


def _process(
    command: Sequence[str], given: bytes, environ: Mapping[str, str]
) -> tuple[float, float]:
    """Run a program with a short input; return its processor time and its time, in ms."""
    output, ends = os.open(os.devnull, os.O_WRONLY), os.pipe()
    os.write(ends[1], given)
    os.close(ends[1])
    actions = [(os.POSIX_SPAWN_DUP2, ends[0], 0), (os.POSIX_SPAWN_DUP2, output, 1)]
    began = time.perf_counter()
    process = os.posix_spawn(command[0], list(command), environ, file_actions=actions)
    _, status, used = os.wait4(process, 0)
    took = time.perf_counter() - began
    os.close(ends[0])
    os.close(output)
    assert status == 0
    return (used.ru_utime + used.ru_stime) * 1000, took * 1000


@contextmanager
def _answering(path: str) -> Iterator[None]:
    """Answer each request on a socket with null, at once."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        os.chmod(path, 0o600)
        server.listen()

        def serve() -> None:
            while True:
                connection, _ = server.accept()
                with connection:
                    if not connection.recv(1 << 20):
                        return
                    connection.sendall(_NULL)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(path)
        thread.join()


def _commands(home: Home) -> None:
    """Measure commands over 200 memories, in turns, so that what else runs meets them all."""
    cwd = home.project()
    corpus.write(corpus.folder(home, cwd), COMMAND_MEMORIES)
    lines = (
        *("--version", "--help", "list", "status", "search staging database", "log", "report"),
        *("prefetch which database is it", "review", "team status", "job list", "export --help"),
        *("doctor", "setup claude-code --dry-run", "rule list", "config"),
    )
    commands = {f"memctl {line}": memctl_command(*line.split()) for line in lines}
    commands = {"python -c pass": (sys.executable, "-c", "pass"), **commands}
    times: dict[str, Times] = {name: [] for name in (*commands, _ADD)}
    with daemon_process(home):
        for number in range(COMMAND_ROUNDS):
            commands[_ADD] = memctl_command("add", f"Deploy number {number} is on a Friday")
            for name, command in commands.items():
                before = _processor_seconds()
                subprocess.run(command, capture_output=True, cwd=cwd, env=home.environ, check=False)
                times[name].append((_processor_seconds() - before) * 1000)
    floor = _p50(times["python -c pass"])
    print()
    _print(
        [
            ("command, 200 memories", "processor ms, p50", "in bare interpreters"),
            *((name, f"{_p50(t):.0f}", f"{_p50(t) / floor:.2f}") for name, t in times.items()),
        ]
    )


def _processor_seconds_of(pid: int) -> float:
    """Return the processor time of another process, to the nanosecond of its scheduler."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def _processor_seconds() -> float:
    """Return the processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _each(act: Callable[[int], object], rounds: int) -> Times:
    """Return what an act takes, each time that it is done."""
    times = []
    for number in range(rounds):
        began = time.perf_counter()
        act(number)
        times.append((time.perf_counter() - began) * 1000)
    return times


def _at(times: Times, share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def _p50(times: Times) -> float:
    return statistics.median(times)


def _p99(times: Times) -> float:
    return _at(times, 0.99)


def _resident(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _synced(path: Path) -> None:
    with open(path, "wb") as file:
        file.write(b"x" * 600)
        file.flush()
        os.fsync(file.fileno())


def _print(rows: Sequence[Sequence[str]]) -> None:
    """Print rows as a table of Markdown, the first as its heading."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    print("\n".join((lines[0], "|" + "---|" * len(rows[0]), *lines[1:])))


if __name__ == "__main__":
    main()
