"""Small transcripts as Claude Code writes them."""

import json
from pathlib import Path


def user(text: str, number: int = 1, at: str = "2026-03-03T10:00:00.000Z") -> dict[str, object]:
    """Return the line of one message of the user."""
    return {
        "type": "user",
        "uuid": f"u{number}",
        "sessionId": "s",
        "timestamp": at,
        "message": {"role": "user", "content": text},
    }


def answer(session: str, at: str = "2026-03-03T12:00:00.000Z") -> dict[str, object]:
    """Return the line of one answer."""
    content = [{"type": "text", "text": "Done."}]
    line = user("", at=at) | {"type": "assistant", "parentUuid": "u1", "sessionId": session}
    return line | {"message": {"role": "assistant", "content": content}}


def write(path: Path, *lines: dict[str, object]) -> str:
    """Append lines to a transcript and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return str(path)
