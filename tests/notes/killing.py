"""Writes and removes notes in processes that kill themselves at the n-th call of the disk.

Usage: ``killing.py <folder>``. Prints one JSON object for each kill: what was done, before which
call, what the notes said afterwards, and what the same writer got then.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from msgspec.structs import replace

from memd.base.values import Project
from memd.notes import files
from memd.notes.sections import NotesCursor, parse, rendered
from tests.support.faults import FaultyDisk


def text(covers: str) -> str:
    """Return notes that say how far they go in their cursor and in a section."""
    cursor = NotesCursor("s", covers, 10, "local", "2026-03-03T09:00:00Z")
    notes = replace(parse("# A\n_a_\n\n# B\n_b_\n"), cursor=cursor)
    lines = "\n".join(f"- {covers} covers this line" for _ in range(500))
    first, second = notes.sections
    return rendered(replace(notes, sections=(first.filled(lines), second)))


def operations(
    place: files.NotesPlace,
) -> Iterator[tuple[str, str, Callable[[FaultyDisk], object]]]:
    """Yield each operation: its name, the notes that it begins with, and the call."""
    yield "new", "", lambda disk: files.replace(place, text("new"), "", disk)
    old = files.replace(place, text("old"), "")
    yield "replace", text("old"), lambda disk: files.replace(place, text("new"), old, disk)
    yield "remove", text("old"), lambda disk: files.remove(place, disk)


def killed(call: Callable[[FaultyDisk], object], number: int) -> str:
    """Run a call in a process that dies before the n-th call of the disk; "" where it ended."""
    names = os.pipe()
    child = os.fork()
    if child == 0:
        left = number

        def before(name: str, _: str) -> None:
            nonlocal left
            left -= 1
            if not left:
                os.write(names[1], name.encode())
                os.kill(os.getpid(), signal.SIGKILL)

        call(FaultyDisk(before=before, portion=700))
        os._exit(0)
    os.close(names[1])
    _, status = os.waitpid(child, 0)
    name = os.read(names[0], 100).decode()
    os.close(names[0])
    return name if os.WIFSIGNALED(status) else ""


def main(base: str) -> None:
    """Kill every operation before each of its calls."""
    project = Project(cwd="/p", root="/p", memory_dir="", source="", transcripts=base, enabled=True)
    place = files.place(project, "s")
    for name, begun_with, call in operations(place):
        number = 0
        while True:
            number += 1
            present = files.read(place)
            if (present.text if present else "") != begun_with:
                files.remove(place)
                if begun_with:
                    files.replace(place, begun_with, "")
            before = killed(call, number)
            if not before:
                break
            after = files.read(place)
            files.replace(place, text("again"), after.hash if after else "")
            again = files.read(place)
            kill = {
                "operation": name,
                "before": before,
                "text": after.text if after else "",
                "again": again.text if again else "",
                "left": os.listdir(os.path.dirname(place.path)),
            }
            sys.stdout.write(f"{json.dumps(kill)}\n")
        files.remove(place)


if __name__ == "__main__":
    main(sys.argv[1])
