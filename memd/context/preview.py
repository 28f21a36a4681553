"""Write the text that replaces a stored result: its size, its path and its first bytes. Pure.

Rules of this file
- The text is part of conversations: a change of its form may not change results sent before.
- No text of a result can close the tag that its first bytes stand in.
"""

import re

PREVIEW_BYTES = 2_000
CLEARED = "[Old tool result content cleared]"
_TAG = "persisted-output"
_CLOSING = rf"(?i)<(?=\s*/\s*{_TAG})"
_ESCAPED = "&lt;"


def stored_preview(text: str, path: str) -> str:
    """Return the replacement of a text that is stored at ``path``.

    It has the text's first 2,000 bytes up to the end of a line, or up to a whole character if
    their second half has no line's end.
    """
    content = text.encode()
    head = content[:PREVIEW_BYTES]
    end_of_line = head.rfind(b"\n", PREVIEW_BYTES // 2)
    if end_of_line >= 0:
        head = head[:end_of_line]
    start = head.decode("utf-8", "ignore")  # without the bytes of a character that was cut
    lines = text.count("\n") + (not text.endswith("\n"))
    size = f"{len(content)} bytes, {lines} lines, whole at: {path}"
    return f"<{_TAG}>\n{size}\n{re.sub(_CLOSING, _ESCAPED, start)}\n[cut]\n</{_TAG}>"


def cleared_text(path: str) -> str:
    """Return the replacement of an old result that is cleared and stored at ``path``."""
    return f"{CLEARED}\n{path}"
