"""What the local extractor keeps of real talk of strangers: ``make bench-extract DATA=folder``.

DATA is the folder that holds ``talk``: conversations, what readers would have kept of them, and
``score.py``, which compares. None of it is part of the project: it is measured with, never shipped
or quoted. ``--kept FILE`` writes what was kept, to be read by eye.
"""

import argparse
import gzip
import importlib.util
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from memd.base.values import Message
from memd.extract import candidates

_SOURCE_CHARACTERS = 3  # of a session's name: the repository that it came from
READ_MESSAGES = 3238  # of the talk, read by the people who labelled it


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation; ``source`` is where it was published."""

    name: str
    source: str
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Talk:
    """All conversations, what readers would have kept of them, and the module that compares."""

    sessions: tuple[Session, ...]
    labels: tuple[dict[str, Any], ...]
    scoring: ModuleType

    def kept(self) -> list[dict[str, str]]:
        """Return what is kept.

        What a source's earlier conversation gave already is nothing new, as it is in a store.
        """
        rows: list[dict[str, str]] = []
        known: set[tuple[str, str]] = set()
        for session in self.sessions:
            found = candidates.find(session.messages, 0.0, session.name)
            texts = [("saved", item.text) for item in found.candidates]
            # A changed value is only suggested where a memory has the old one.
            suggestions = [each for each in found.suggestions if each.reason != candidates.CHANGED]
            texts += [("suggested", item.text) for item in suggestions]
            for kind, text in texts:
                key = (session.source, " ".join(text.lower().split()))
                if key not in known:
                    known.add(key)
                    rows.append({"session": session.name, "text": text, "kind": kind})
        return rows

    def figures(self, kept: Sequence[dict[str, str]]) -> dict[str, dict[str, float]]:
        """Return what the comparison with the readers' labels says, by name."""
        result: dict[str, dict[str, float]] = self.scoring.score(self.labels, kept)
        return result


def load(data: Path) -> Talk:
    """Read conversations and labels. Raises FileNotFoundError."""
    with gzip.open(data / "talk" / "sessions.jsonl.gz", "rt", encoding="utf-8") as lines:
        sessions = tuple(_session(json.loads(line)) for line in lines)
    labels = (data / "talk" / "labels.jsonl").read_text("utf-8").splitlines()
    return Talk(sessions, tuple(map(json.loads, labels)), _scoring(data / "talk" / "score.py"))


def _session(row: dict[str, Any]) -> Session:
    messages = (
        Message(str(number), turn["role"], turn["text"], turn["role"], _seconds(turn.get("at")))
        for number, turn in enumerate(row["turns"])
    )
    return Session(row["session"], row["session"][:_SOURCE_CHARACTERS], tuple(messages))


def _seconds(time: str | None) -> float | None:
    try:
        return datetime.fromisoformat(time or "").timestamp()
    except ValueError:
        return None


def _scoring(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("talk_scoring", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Print the figures of the talk."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder that holds talk")
    parser.add_argument("--kept", type=Path, help="write what was kept, JSON lines")
    arguments = parser.parse_args()
    talk = load(arguments.data)
    kept = talk.kept()
    if arguments.kept:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in kept)
        arguments.kept.write_text("".join(lines), "utf-8")
    for name, figures in talk.figures(kept).items():
        print(_line(name, figures))


def _line(name: str, figures: Mapping[str, Any]) -> str:
    share = 100 * figures["kept"] / READ_MESSAGES
    return (
        f"{name}: kept {figures['kept']} ({share:.1f} of 100 messages),"
        f" right {figures['right']}, precision {figures['precision']:.2f};"
        f" recall of the clear {figures['recall clear']:.2f}"
        f" (explicit {figures['recall clear explicit']:.2f},"
        f" implicit {figures['recall clear implicit']:.2f})"
    )


if __name__ == "__main__":
    main()
