"""Real talk of strangers, read from DATA/talk, and what of it an extractor keeps.

None of it is part of the project: it is measured with, never shipped or quoted.
"""

import gzip
import importlib.util
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from memd.core.values import Message
from memd.extract import candidates
from memd.extract.scorer import Scores

_SOURCE_CHARACTERS = 3  # of a session's name: the repository that it came from
Score = Callable[[frozenset[str]], Scores]


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

    def kept(self, score: Callable[[str], Score]) -> list[dict[str, str]]:
        """Return what is kept; ``score`` gives the scorer for a source.

        What a source's earlier conversation gave already is nothing new, as it is in a store.
        """
        rows: list[dict[str, str]] = []
        known: set[tuple[str, str]] = set()
        for session in self.sessions:
            found = candidates.find(session.messages, 0.0, session.name, score(session.source))
            texts = [("saved", item.text) for item in found.candidates]
            texts += [("suggested", item.text) for item in found.suggestions]
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

    def label(self, session: str, turn: int, text: str) -> str:
        """Return how a sentence is labelled: "", "weak", "clear", with "marked " before."""
        for label in self._of_turn(session, turn):
            quoted, own = (self.scoring.tokens(item) for item in (label["quote"], text))
            if quoted and own and 2 * len(quoted & own) >= min(len(quoted), len(own)):
                rule = label["type"] == "feedback" and label["strength"] == "clear"
                marked = "marked " if label["cue"] == "explicit" or rule else ""
                return f"{marked}{label['strength']}"
        return ""

    def _of_turn(self, session: str, turn: int) -> Iterator[dict[str, Any]]:
        for label in self.labels:
            if (label["session"], label["turn"]) == (session, turn):
                yield label


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
