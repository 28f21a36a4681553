"""The log of memd-team: one JSON object in each line, without any content of entries.

A fault is logged by its class and its place in the code, since its message and its variables could
contain a memory or a token.
"""

import json
import os
import traceback
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import TextIO

from memd.store.secret import scrub
from memd.text.invisible import without_directions

Fact = str | int | float | bool


class ServingLog:
    """Writes events to a stream; if the disk is full, lines are lost and the server goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def note(self, event: str, **facts: Fact) -> None:
        """Write a line with an event and its facts."""
        line: dict[str, Fact] = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": event,
        }
        for name, value in facts.items():
            line[name] = _scrubbed(value) if isinstance(value, str) else value
        with suppress(OSError):
            self._stream.write(json.dumps(line) + "\n")
            self._stream.flush()

    def fault(self, error: BaseException) -> str:
        """Write a line about an unexpected error; return its id, which the client gets too."""
        fault_id = uuid.uuid4().hex[:12]
        frames = traceback.extract_tb(error.__traceback__)[-3:]  # the innermost ones
        where = [f"{os.path.basename(frame.filename)}:{frame.lineno}" for frame in frames]
        self.note("fault", id=fault_id, error=type(error).__name__, where=" ".join(where))
        return fault_id


@lru_cache(maxsize=1024)  # names of members and devices come again and again
def _scrubbed(text: str) -> str:
    """Return a text without credentials and without characters that turn its direction."""
    return scrub(without_directions(text))
