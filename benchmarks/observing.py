"""What being looked at costs: ``make bench-observing``, ratios within one run.

``record`` is the share of a hello that counting it takes; ``top`` the processor that five
``memctl top`` on terminals of their own cost a daemon with memories, beside the same daemon that
nobody looks at, and what a prompt waits meanwhile.
"""

import os
import pty
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks import corpus
from benchmarks.measures import Line, Series, each
from memd.core.histogram import RequestTimes
from memd.daemon.clock import SystemClock
from tests.support.daemon import Home, daemon_process, memctl_command, throw_away_home

PARTS = ("record", "top")
HELLOS = 4_000
COUNTS = 200_000
MEMORIES = 1_000
TOPS = 5
SECONDS = 30.0
PROMPTS = 300
_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Measure the parts that are named, else all, and print."""
    parts = sys.argv[1:] or PARTS
    if "record" in parts:
        record()
    if "top" in parts:
        top()
    return 0


def record() -> None:
    """Print what counting a request takes, beside a hello on the socket."""
    times, clock = RequestTimes(), SystemClock()

    def count() -> None:
        for _ in range(1_000):
            begun = clock.monotonic()
            times.add("hello", clock.monotonic() - begun)

    rounds = []
    for _ in range(COUNTS // 1_000):
        begun = time.perf_counter()
        count()
        rounds.append((time.perf_counter() - begun) * 1e3)  # µs for each of a thousand
    with throw_away_home() as home, daemon_process(home), Line(home.places.socket) as line:
        hello = each(lambda _: line.call("hello", {"client": "bench"}), HELLOS)
    cost = statistics.median(rounds)
    share = cost / (hello.p50 * 1000)
    print(
        f"hello p50 {hello.p50 * 1000:.0f} µs, counting it {cost:.2f} µs: {share:.2%} (aim < 1 %)"
    )


def top() -> None:
    """Print the processor that a daemon uses, and the prompts, with and without five tops."""
    with throw_away_home() as home, daemon_process(home) as process:
        cwd = home.project()
        with Line(home.places.socket) as line:
            corpus.write(line.call("memory.list", {"cwd": cwd})["memory_dir"], MEMORIES)
            _prompts(line, cwd, 20)
            alone, quiet = _used(process.pid), _prompts(line, cwd, PROMPTS)
            with ExitStack() as stack:
                for _ in range(TOPS):
                    stack.enter_context(_looking(home))
                time.sleep(2)  # each has begun
                looked, beside = _used(process.pid), _prompts(line, cwd, PROMPTS)
    print(f"processor at rest {alone:.2%}, with {TOPS} tops {looked:.2%} of one core")
    print(f"prefetch p50 {quiet.p50:.2f} and {beside.p50:.2f} ms, ", end="")
    print(f"p99 {quiet.p99:.2f} and {beside.p99:.2f} ms")


def _prompts(line: Line, cwd: str, count: int) -> Series:
    def ask(number: int) -> None:
        words = {"cwd": cwd, "session_id": f"s{number}", "query": "what was decided on releases"}
        line.call("prefetch", words)

    return each(ask, count)


def _used(pid: int) -> float:
    """Return the share of a core that a process uses for some time."""
    before, begun = _ticks(pid), time.monotonic()
    time.sleep(SECONDS)
    return (_ticks(pid) - before) / _TICKS / (time.monotonic() - begun)


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@contextmanager
def _looking(home: Home) -> Iterator[None]:
    """Run memctl top on a terminal whose pictures are thrown away."""
    master, slave = pty.openpty()
    environ = {**home.environ, "TERM": "xterm"}
    command = memctl_command("--no-start", "top")
    process = subprocess.Popen(command, env=environ, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)

    def drain() -> None:
        try:
            while os.read(master, 65536):
                pass
        except OSError:  # the end of it
            return

    reading = threading.Thread(target=drain)
    reading.start()
    try:
        yield
    finally:
        process.terminate()
        process.wait()
        reading.join()
        os.close(master)


if __name__ == "__main__":
    sys.exit(main())
