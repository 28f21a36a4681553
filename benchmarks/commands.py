"""How long a command takes that asks no daemon, beside a Python that does nothing."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

from benchmarks.measures import table

ROUNDS = 40
AIM_MS = 100  # of memctl --version


def run(program: str = "") -> None:
    """Measure a memctl, the one beside this interpreter unless named, and print the table.

    The commands take turns, so that what the machine does meanwhile meets them all.
    """
    memctl = program or os.path.join(os.path.dirname(sys.executable), "memctl")
    commands = {
        "python -c pass": (sys.executable, "-c", "pass"),
        f"memctl --version (aim: {AIM_MS} ms)": (memctl, "--version"),
        "memctl sockname": (memctl, "sockname"),
        "memctl --help": (memctl, "--help"),
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            times[name].append(_milliseconds(command))
    floor = statistics.median(times["python -c pass"])
    rows = [["command", "p50, ms", "least, ms", "ratio of the medians"]]
    for name, each in times.items():
        middle = statistics.median(each)
        rows.append([name, f"{middle:.0f}", f"{min(each):.0f}", f"{middle / floor:.2f}"])
    print(table(rows))


def _milliseconds(command: Sequence[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - begin) * 1000
