"""Three sample conversations in the shape of Claude Code's transcripts, for the demo and tests.

``first-day``: a backend engineer new to React, a test policy with its reason, a merge freeze, a
tracker; and things that must not be kept: a folder structure, a moment's wish, words of a tool
result, of a sub-agent, of a request copy and of memd itself. ``second-day``: a confirmation, a
credential, the test policy once more, a dashboard, and a thought that is only a thought.
``long-day``: 12,000 tokens of work on two faults of an import, with a todo list, commands that fail
and later pass, two corrections, and a last request that is still open.

Placeholders stand for what differs per run; the credential is made when a conversation is written,
so that none lies in a file.
"""

import json
import os
from importlib import resources

from memd.projects.project import slug

NAMES = ("first-day", "second-day")  # to be learnt from
LONG = "long-day"  # to be kept notes of


def write(name: str, target_path: str, *, cwd: str, session: str) -> None:
    """Write a sample conversation (mode 0600) as if it had happened in a directory.

    Folders above the target are made. Raises FileNotFoundError for an unknown name.
    """
    text = resources.files(__name__).joinpath(f"{name}.jsonl").read_text("utf-8")
    values = {"CWD": cwd, "SESSION": session, "SECRET": secret()}
    for key, value in values.items():
        placeholder = "{{" + key + "}}"
        text = text.replace(placeholder, json.dumps(value)[1:-1])  # without quotation marks
    os.makedirs(os.path.dirname(target_path), mode=0o755, exist_ok=True)
    descriptor = os.open(target_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def place(home: str, cwd: str, session: str) -> str:
    """Return where Claude Code would keep the transcript of a session."""
    return f"{home}/.claude/projects/{slug(cwd)}/{session}.jsonl"


def secret() -> str:
    """Return the made-up credential of the second conversation; always the same."""
    kind = "sk"  # apart, so that no credential lies in this file
    return f"{kind}_live_4fQ9ZtLx7Rk2Wm8Vb3Nc6Yp1"
