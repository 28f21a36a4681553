"""What recall is measured on: memories, questions, and which memories answer which question.

LoCoMo's observations (CC BY-NC: measured, never shipped) and the coding set beside this file, with
two more parts: natural prompts about the same memories, and prompts written later.
"""

import gzip
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from memd.search.index import Entry, Index
from memd.search.ranking import answered

Search = Callable[[str, int], Sequence[str]]  # a question and a limit → paths, the best first

PARTS = ("tuned", "held out", "natural", "later")
UNANSWERABLE = 5
TODAY = "2026-04-20"  # of the coding set; its files are that old
_CODING = Path(__file__).with_name("coding_recall.json")
_NATURAL = Path(__file__).with_name("natural_recall.json")


@dataclass(frozen=True, slots=True)
class Item:
    """A memory; ``evidence`` is what it holds of what questions ask for."""

    path: str
    name: str
    description: str
    type: str
    body: str
    evidence: frozenset[str]

    @property
    def text(self) -> str:
        """All its words, for rankers that know no fields."""
        return f"{self.name} {self.description} {self.body}"

    @property
    def content(self) -> str:
        """The file as an assistant writes it."""
        description = json.dumps(self.description, ensure_ascii=False)
        head = f"name: {self.name}\ndescription: {description}\ntype: {self.type}"
        return f"---\n{head}\n---\n\n{self.body}\n"


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt and the evidence that answers it; none where nothing helps.

    ``part`` is one of ``PARTS`` for the coding set.
    """

    text: str
    evidence: frozenset[str]
    held_out: bool
    part: str = ""


@dataclass(frozen=True, slots=True)
class Collection:
    """The memories of one project and what is asked about them."""

    name: str
    items: tuple[Item, ...]
    questions: tuple[Question, ...]

    @property
    def covered(self) -> frozenset[str]:
        """The evidence that any memory holds."""
        return frozenset[str]().union(*(item.evidence for item in self.items))


@dataclass(frozen=True, slots=True)
class Answer:
    """One question's outcome: the share of its evidence within five and within ten memories.

    ``five`` and ``ten`` count what some memory holds (``None`` where no memory holds any), the
    ``all_`` ones everything that the question names. ``given`` is how many of the first five came,
    ``first`` whether the very first helps.
    """

    question: Question
    five: float | None
    ten: float | None
    all_five: float
    all_ten: float
    given: int
    first: bool


def conversations(folder: str) -> tuple[Collection, ...]:
    """Return LoCoMo's conversations 1 to 5, or nothing where the file is not there."""
    path = os.path.join(folder, "locomo", "locomo_retrieval.json.gz")
    if not os.path.exists(path):
        return ()
    with gzip.open(path, "rt", encoding="utf-8") as file:
        results = json.load(file)["conversations"]
    return tuple(
        Collection(
            name=f"conversation-{number}",
            items=tuple(
                # Neither the path nor the name helps: they say nothing of the memory.
                Item(f"m{at}.md", f"m{at}", it["text"], "project", it["date"], _set(it["evidence"]))
                for at, it in enumerate(conversation["observations"])
            ),
            questions=tuple(
                Question(query["question"], _set(query["evidence"]), held_out=number > 3)
                for query in conversation["queries"]
                if query["category"] != UNANSWERABLE
            ),
        )
        for number, conversation in enumerate(results, start=1)
    )


def coding() -> tuple[Collection, ...]:
    """Return the projects of the coding set."""
    results = json.loads(_CODING.read_text("utf-8"))
    more = json.loads(_NATURAL.read_text("utf-8"))
    for part in ("natural", "later"):
        results["queries"] += [query | {"held_out": True, "part": part} for query in more[part]]
    names = dict.fromkeys(memory["project"] for memory in results["memories"])
    return tuple(
        Collection(
            name=name,
            items=tuple(
                Item(
                    path=it["file"],
                    name=it["name"],
                    description=it["description"],
                    type=it["type"],
                    body=it["body"],
                    evidence=frozenset((it["file"],)),
                )
                for it in results["memories"]
                if it["project"] == name
            ),
            questions=tuple(
                Question(
                    query["query"],
                    _set(query["right"]),
                    query["held_out"],
                    query.get("part", "held out" if query["held_out"] else "tuned"),
                )
                for query in results["queries"]
                if query["project"] == name
            ),
        )
        for name in names
    )


def answers(collection: Collection, search: Search) -> list[Answer]:
    """Ask all questions of a collection, each with a limit of five and one of ten."""
    holds = {item.path: item.evidence for item in collection.items}
    results = []
    for question in collection.questions:
        five, ten = search(question.text, 5)[:5], search(question.text, 10)[:10]
        wanted = question.evidence & collection.covered
        got5, got10 = (
            frozenset[str]().union(*(holds[it] for it in paths)) for paths in (five, ten)
        )
        results.append(
            Answer(
                question,
                five=_share(wanted, got5) if wanted else None,
                ten=_share(wanted, got10) if wanted else None,
                all_five=_share(question.evidence, got5),
                all_ten=_share(question.evidence, got10),
                given=len(five),
                first=bool(five and holds[five[0]] & wanted),
            )
        )
    return results


def indexed_search(collection: Collection, *, floor: bool) -> Search:
    """Return a search over an index in memory."""
    index = Index(None)
    index.update(
        Entry(item.path, (at, 0, 0), 0, item.name, item.description, item.type, item.body)
        for at, item in enumerate(collection.items)
    )
    return lambda text, limit: [one.path for one in answered(index.rank(text, limit, floor=floor))]


def mean(values: Iterable[float | None]) -> float:
    """Return the mean of the values that are there."""
    return fmean(value for value in values if value is not None)


def _share(wanted: frozenset[str], got: frozenset[str]) -> float:
    return len(wanted & got) / max(len(wanted), 1)


def _set(names: Iterable[str]) -> frozenset[str]:
    return frozenset(names)
