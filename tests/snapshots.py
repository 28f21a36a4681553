"""Prompts as they were reviewed: a change of wording is a diff of a file.

Write them anew with ``MEMD_SNAPSHOTS=write python -m pytest FILE``.
"""

import os
from pathlib import Path


def reviewed(path: Path, text: str) -> bool:
    """Whether a text is that of a snapshot, to the byte; a last line end does not count."""
    if os.environ.get("MEMD_SNAPSHOTS") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    return path.read_text(encoding="utf-8").rstrip("\n") == text.rstrip("\n")
