"""A small corpus out of a large one: few short inputs that reach all that all of them reach."""

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Self

from memd.store import secret
from tests.fuzz.inputs import kept, write
from tests.fuzz.target import Use
from tests.fuzz.targets import target

_BYTES = 24 * 1024  # of one door's inputs together
_LONGEST = 2_000
_PROGRAM = str(Path(__file__).parents[2] / "memd")
Step = tuple[str, int, int]


def keep(name: str, folder: Path) -> str:
    """Write the kept inputs of a door anew, and return what they are in one line."""
    door, tracer = target(name), Tracer()
    found = [path.read_bytes() for path in sorted(folder.glob("*"))]
    found = [content for content in found if len(content) <= _LONGEST and not _is_secret(content)]
    chosen: list[bytes] = []
    with tracer, door.opened() as use:
        known = set[Step]().union(*(tracer.steps_of(use, seed) for seed in door.seeds))
        inputs = dict.fromkeys([*kept(name), *found])
        each = {content: tracer.steps_of(use, content) for content in inputs}
        every = len(known.union(*each.values()))
        while True:
            content = max(each, key=lambda one: len(each[one] - known) / (len(one) + 50))
            if not each[content] - known or sum(map(len, chosen)) + len(content) > _BYTES:
                break
            chosen.append(content)
            known |= each[content]
    write(name, sorted(chosen, key=lambda content: (len(content), content)))
    return f"{name}: {len(chosen)} of {len(each)} inputs reach {len(known)} of {every} steps"


def _is_secret(content: bytes) -> bool:
    """Return whether others would take an input for a live key."""
    return bool(secret.find(content.decode(errors="replace")))


class Tracer:
    """Notes the steps from line to line of the program, in all threads that begin meanwhile."""

    def __init__(self) -> None:
        self._steps: set[Step] = set()
        self._last: dict[FrameType, int] = {}

    def __enter__(self) -> Self:
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)

    def steps_of(self, use: Use, content: bytes) -> frozenset[Step]:
        """Return the steps that an input makes."""
        self._steps.clear()
        use(content)
        return frozenset(self._steps)

    def _trace(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        file = frame.f_code.co_filename
        if not file.startswith(_PROGRAM):
            return None
        if event == "line":
            self._steps.add((file, self._last.get(frame, 0), frame.f_lineno))
            self._last[frame] = frame.f_lineno
        elif event == "return":
            self._last.pop(frame, None)
        return self._trace
