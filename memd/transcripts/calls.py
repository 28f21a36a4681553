"""Read the tool calls at the end of a transcript: what an agent or sub-agent is doing now.

Rules of this file
- However long a file is, no more than its last ``TAIL_BYTES`` are read.
- A line counts once it ends; a file that became shorter is read from its start.
- A sub-agent's transcript counts as well, since no memory is made from these calls.
Blocks: call it from a worker thread.
"""

import os
from typing import Any

from msgspec import Struct

from memd.conversation.pieces import RecordedCall
from memd.transcripts.lines import PieceReader
from memd.transcripts.opening import opened, records

TAIL_BYTES = 256 * 1024  # of a file that are read at most


class RecentCalls(Struct, frozen=True):
    """The tool calls behind an offset, the newest last; ``offset`` is where to read on."""

    calls: tuple[RecordedCall, ...]
    offset: int


def recent_calls(path: str, offset: int = 0) -> RecentCalls:
    """Return the tool calls that were added since an offset.

    Raises Refused.
    """
    reader = PieceReader()
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        start = offset if offset <= size else 0
        if size - start > TAIL_BYTES:  # start at the first line that begins in the tail
            start = next(records(file, size - TAIL_BYTES - 1), (None, size))[1]
        lines = list(records(file, start))
    pieces = (piece for line, _ in lines for piece in reader.pieces(_as_main_session(line)))
    calls = tuple(piece.call for piece in pieces if piece.call is not None)
    return RecentCalls(calls, lines[-1][1] if lines else start)


def _as_main_session(record: Any) -> Any:
    """Return a line marked as the main session's; ``None`` for a line that names the session."""
    if not isinstance(record, dict) or "projectHash" in record:
        return None
    if record.get("type") == "session_meta":
        return None
    return {**record, "isSidechain": False}
