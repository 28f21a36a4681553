"""The log of memd-team: one JSON object in each line, without any content of entries.

A fault is told by its class and where in memd it arose: its message and its frames could hold a
memory or a token.
"""

import json
import os
import traceback
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import TextIO

from memd.documents.secrets import scrub
from memd.text.invisible import without_directions

Fact = str | int | float | bool


class TeamLog:
    """Writes events to a stream; on a full disk lines are lost and nobody is stopped."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def note(self, event: str, **facts: Fact) -> None:
        """Write what happened, with its facts."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        safe = {k: _scrubbed(v) if isinstance(v, str) else v for k, v in facts.items()}
        with suppress(OSError):
            self._stream.write(json.dumps({"at": at, "event": event} | safe) + "\n")
            self._stream.flush()

    def fault(self, error: BaseException) -> str:
        """Write that something went wrong; return the id under which the client hears of it."""
        fault = uuid.uuid4().hex[:12]
        frames = traceback.extract_tb(error.__traceback__)
        where = [f"{os.path.basename(f.filename)}:{f.lineno}" for f in frames[-3:]]
        self.note("fault", id=fault, error=type(error).__name__, where=" ".join(where))
        return fault


@lru_cache(maxsize=1024)  # names of members and devices come again and again
def _scrubbed(text: str) -> str:
    """Return a text without credentials and without characters that turn its direction."""
    return scrub(without_directions(text))
