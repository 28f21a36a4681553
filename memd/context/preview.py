"""What is sent in the place of a result that is stored: its size, its path, how it begins. Pure.

Rules of this file
- The form is part of what conversations hold: a change of it changes no result sent before.
- Nothing that a result holds can close the tag that its beginning stands in.
"""

import re

PREVIEW_BYTES = 2_000
CLEARED = "[Old tool result content cleared]"
_TAG = "persisted-output"
_CLOSING = re.compile(rf"<(?=\s*/\s*{_TAG})", re.IGNORECASE)
_BROKEN = "&lt;"


def shown(text: str, path: str) -> str:
    """Return what stands for a text that is stored at a path: its first bytes, at a line's end.

    Where the second half of these has no line's end, they end with a character.
    """
    content = text.encode()
    head = content[:PREVIEW_BYTES]
    end = head.rfind(b"\n", PREVIEW_BYTES // 2)
    start = head[: end if end >= 0 else None].decode("utf-8", "ignore")
    lines = text.count("\n") + (not text.endswith("\n"))
    size = f"{len(content)} bytes, {lines} lines, whole at: {path}"
    return f"<{_TAG}>\n{size}\n{_CLOSING.sub(_BROKEN, start)}\n[cut]\n</{_TAG}>"


def cleared(path: str) -> str:
    """Return what stands for an old result whose whole is at a path."""
    return f"{CLEARED}\n{path}"
