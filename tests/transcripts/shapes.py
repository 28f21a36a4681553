"""Lines of transcripts as the clients write them, and streams of files that have them."""

import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from memd.conversation.pieces import TranscriptPiece
from memd.transcripts.stream import StreamPart, TranscriptStream

Line = dict[str, Any]
TIME = "2026-03-03T09:00:00.000Z"


def claude(kind: str, number: str, content: Any = None, **more: Any) -> Line:
    """Return a line of Claude Code's transcript."""
    message = more.pop("message", {"role": kind, "content": content})
    common = {"type": kind, "uuid": number, "timestamp": TIME, "isSidechain": False}
    return {**common, "cwd": "/p", "message": message, **more}


def reply(number: str, key: str, *blocks: Any, tokens: int = 0) -> Line:
    """Return one line of a reply, which repeats the reply's id and usage."""
    usage = {"input_tokens": 1, "cache_read_input_tokens": tokens, "output_tokens": 1}
    message = {"id": key, "content": list(blocks), "usage": usage if tokens else None}
    return claude("assistant", number, message=message)


def words(text: str) -> Line:
    """Return a text block."""
    return {"type": "text", "text": text}


def call(number: str, name: str, **given: Any) -> Line:
    """Return a tool-use block."""
    return {"type": "tool_use", "id": number, "name": name, "input": given}


def result(number: str, text: Any) -> Line:
    """Return a tool's result."""
    return {"type": "tool_result", "tool_use_id": number, "content": text}


def codex(kind: str, /, **payload: Any) -> Line:
    """Return a line of Codex's rollout file."""
    return {"timestamp": TIME, "type": kind, "payload": payload}


def gemini(kind: str, number: str, content: Any, **more: Any) -> Line:
    """Return a line of Gemini CLI's chat record."""
    return {"id": number, "timestamp": TIME, "type": kind, "content": content, **more}


def compacted(summary: str) -> list[Line]:
    """Return what Claude Code writes when it has compacted a conversation."""
    shown = {"isVisibleInTranscriptOnly": True, "isCompactSummary": True}
    name = "<command-name>/compact</command-name>"
    return [
        {"type": "system", "subtype": "compact_boundary", "uuid": "b", "compactMetadata": {}},
        claude("user", "s", summary, **shown),
        claude("user", "c", "<local-command-caveat>x</local-command-caveat>", isMeta=True),
        claude("user", "n", name),
        claude("user", "o", "<local-command-stdout>Compacted</local-command-stdout>"),
    ]


def encoded(lines: Iterable[Line | bytes], *, escaped: bool = True) -> bytes:
    """Return the bytes of a file with these lines."""
    dump = partial(json.dumps, ensure_ascii=escaped)
    return b"".join(
        line if isinstance(line, bytes) else dump(line).encode("utf-8", "replace") + b"\n"
        for line in lines
    )


def whole(stream: TranscriptStream, **limits: int) -> tuple[TranscriptPiece, ...]:
    """Return all that a stream has, however many parts it takes."""
    pieces: list[TranscriptPiece] = []
    part = StreamPart((), complete=False)
    while not part.complete:
        part = stream.more(**limits)
        pieces += part.pieces
    return tuple(pieces)


def stream_of(path: Path, *lines: Line | bytes) -> TranscriptStream:
    """Return the stream of a new file with these lines."""
    path.write_bytes(encoded(lines))
    return TranscriptStream(str(path))
