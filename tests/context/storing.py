"""Stores results in processes that kill themselves at the n-th call of the system.

Usage: ``storing.py <folder>``. Prints one JSON object for each kill: what was stored, before which
call, whether what stands in the folder is whole, and what the same call got afterwards.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memd.client.stored import read_stored
from memd.context import results
from memd.context.values import StoredSizes
from memd.testing.faults import FaultyDisk

TEXT = "".join(f"line {number} of a long result: 行\n" for number in range(600))
OTHER = "what Claude Code had stored there\n"
EMPTY = StoredSizes()


def killed(place: results.ResultsPlace, number: int) -> str:
    """Store in a process that dies before the n-th call of the system; "" where it ended."""
    names = os.pipe()
    child = os.fork()
    if child == 0:
        left = number

        def before(name: str) -> None:
            nonlocal left
            left -= 1
            if not left:
                os.write(names[1], name.encode())
                os.kill(os.getpid(), signal.SIGKILL)

        def profiler(_: object, event: str, function: Any) -> None:
            if event == "c_call" and function.__module__ == "posix":
                before(function.__name__)

        def renaming(name: str, _: str) -> None:
            if name == "move":  # through ctypes, of which no profiler hears
                before(name)

        disk = FaultyDisk(before=renaming, portion=10_000)
        sys.setprofile(profiler)
        results.store(place, "a", TEXT, used=EMPTY, disk=disk)
        sys.setprofile(None)
        os._exit(0)
    os.close(names[1])
    _, status = os.waitpid(child, 0)
    name = os.read(names[0], 100).decode()
    os.close(names[0])
    return name if os.WIFSIGNALED(status) else ""


def read_back(path: str) -> str:
    """Return a stored result as a model reads it, part by part."""
    text, end = "", 0
    while end < os.path.getsize(path):
        _, _, part = read_stored(path, end, 1_000).partition("\n")
        text += part
        end += len(part.encode())
    return text


def main(base: str) -> None:
    """Kill the storing of a result before each of its calls, beside nothing, its own and others."""
    for beside in ("nothing", "same", "other"):
        place = results.ResultsPlace(base, "-p", beside)
        number, before = 0, "none"
        while before:
            number += 1
            results.remove(base, [f"{place.folder}/{name}" for name in names(place)])
            if beside != "nothing":
                os.makedirs(place.folder)
                text = TEXT if beside == "same" else OTHER
                Path(place.folder, "a.txt").write_text(text)
            before = killed(place, number)
            whole = [name for name in names(place) if not name.endswith(".tmp")]
            texts = {name: Path(place.folder, name).read_text() for name in whole}
            again = results.store(place, "a", TEXT, used=EMPTY)
            kill = {
                "beside": beside,
                "before": before,
                "texts": texts,
                "again": read_back(again.path),
                "left": names(place),
            }
            sys.stdout.write(f"{json.dumps(kill)}\n")


def names(place: results.ResultsPlace) -> list[str]:
    """Return what stands in the folder of the results."""
    return sorted(os.listdir(place.folder)) if os.path.isdir(place.folder) else []


if __name__ == "__main__":
    main(sys.argv[1])
