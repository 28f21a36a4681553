"""What a prompt of real work brings: ``python -m benchmarks.talk_recall DATA``.

DATA holds ``talk``: sessions of strangers with statements that readers would have remembered. Each
source is a project whose memories are these statements. ``talk_prompts.jsonl`` names 341 prompts
of twelve sources by session and turn, with the numbers of the statements that help, as one of us
judged; it holds no text. What was tuned was tuned on the sources with an odd number.
"""

import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measures import table
from benchmarks.recall_sets import Collection, Item, Question, indexed_search, mean

_LABELS = Path(__file__).with_name("talk_prompts.jsonl")
HEADING = ("prompts of real work", "recall@5", "dropped", "wrong", "silent", "foreign")


def sources(folder: str) -> tuple[Collection, ...]:
    """Return the sources with labelled prompts; none where the talk is not there."""
    talk = Path(folder) / "talk"
    if not talk.exists():
        return ()
    with gzip.open(talk / "sessions.jsonl.gz", "rt", encoding="utf-8") as file:
        turns = {each["session"]: each["turns"] for each in map(json.loads, file)}
    labels = [json.loads(line) for line in (talk / "labels.jsonl").read_text("utf-8").splitlines()]
    rows = [json.loads(line) for line in _LABELS.read_text("utf-8").splitlines()]
    return tuple(
        Collection(
            name=source,
            items=tuple(
                Item(f"m{at}.md", f"m{at}", it["memory"], it["type"], it["memory"], _one(at))
                for at, it in enumerate(labels)
                if _source(it["session"]) == source
            ),
            questions=tuple(
                Question(
                    turns[session][turn]["text"],
                    frozenset(f"m{at}.md" for at in right),
                    held_out=int(source[1:]) % 2 == 0,
                )
                for session, turn, right in rows
                if _source(session) == source
            ),
        )
        for source in sorted({_source(session) for session, _, _ in rows})
    )


def figures(collections: Sequence[Collection], *, held_out: bool, floor: bool = True) -> list[str]:
    """Return recall@5, and the shares of prompts: dropped, with a wrong one, silent, foreign.

    "Dropped" are those that a memory helps with and that got nothing at all; "wrong" those that
    got one that does not help; "silent" those that nothing helps with and that got nothing;
    "foreign" those of other sources that a source answers.
    """
    recall, dropped, wrong, silent, foreign = [], [], [], [], []
    for one in collections:
        search = indexed_search(one, floor=floor)
        for other in collections:
            for question in other.questions:
                if question.held_out is not held_out:
                    continue
                given = frozenset(search(question.text, 5))
                if other is not one:
                    foreign.append(bool(given))
                    continue
                wrong.append(bool(given - question.evidence))
                if question.evidence:
                    recall.append(len(given & question.evidence) / len(question.evidence))
                    dropped.append(not given)
                else:
                    silent.append(not given)
    return [f"{mean(map(float, each)):.3f}" for each in (recall, dropped, wrong, silent, foreign)]


def rows(folder: str) -> list[tuple[str, ...]]:
    """Return the table; empty where the talk is not there."""
    collections = sources(folder)
    if not collections:
        return []
    lines: list[tuple[str, ...]] = [HEADING]
    for name, held_out in (("tuned", False), ("held out", True)):
        for floor in (True, False):
            shown = f"{name}{'' if floor else ', without a floor'}"
            lines.append((shown, *figures(collections, held_out=held_out, floor=floor)))
    return lines


def _source(session: str) -> str:
    return session.partition("-")[0]


def _one(at: int) -> frozenset[str]:
    return frozenset((f"m{at}.md",))


if __name__ == "__main__":
    print(table(rows((sys.argv[1:] or ["../shared/corpora"])[0])))
