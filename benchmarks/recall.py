"""What recall finds, beside plain rankers: ``make bench-recall DATA=folder``.

DATA is the folder that holds ``locomo`` (CC BY-NC: measured, never shipped; questions without an
answer stay out) and ``talk``: sessions of strangers with statements that readers would have
remembered. Each conversation, each project of ``coding_recall.json`` and each source of the talk
is a project of a running daemon; each question is a ``prefetch`` of a session of its own.

Recall is the share of a question's evidence that the first five or ten memories cover. "Covered"
counts the questions and evidence that some memory holds; "all" counts everything that a question
names, which no ranker can reach: the line "ceiling" says how far it goes. ``talk_prompts.jsonl``
names 341 prompts of twelve sources by session and turn, with the numbers of the statements that
help, as one reader judged; it holds no text. What was tuned was tuned on the sources with an odd
number.
"""

import gzip
import json
import math
import os
import re
import sqlite3
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from statistics import fmean

from memd.base.values import PERSONAL
from memd.client.blocking import Client
from tests.support.corpus import folder
from tests.support.daemon import client, daemon_process, throw_away_home

Search = Callable[[str, int], Sequence[str]]  # a question and a limit → paths, the best first
Row = tuple[str, ...]

PARTS = ("tuned", "held out", "natural", "later")
UNANSWERABLE = 5
_WRITTEN = datetime(2026, 4, 20, tzinfo=UTC).timestamp()  # the files' age
_HERE = Path(__file__).parent
_HEADING = ("ranker", "recall@5", "recall@10", "talks 1-3", "talks 4-5", "all @5", "all @10")
_CODING = (
    *("ranker", "recall@5", "first right", "silent"),
    *("held out: recall@5", "silent", "natural: recall@5", "silent"),
    *("later: recall@5", "silent"),
)
_SERVED = ("in a session that has the rules", "served", "noise", "foreign")
_WORK = ("prompts of real work", "recall@5", "dropped", "wrong", "silent", "foreign")


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
    held_out: bool = False
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


def main(data: str) -> None:
    """Print the tables."""
    talks, projects, work = conversations(data), coding(), sources(data)
    with ExitStack() as stack:
        home = stack.enter_context(throw_away_home())
        places = {one.name: home.project(one.name) for one in (*talks, *projects, *work)}
        for one in (*talks, *projects, *work):
            write(folder(home, places[one.name]), one)
        stack.enter_context(daemon_process(home))
        line = stack.enter_context(client(home, "bench"))
        rankers: dict[str, Callable[[Collection], Search]] = {
            "memd": lambda one: through_the_daemon(line, places[one.name]),
            "plain BM25": bm25,
            "SQLite FTS5 porter, any word": full_text,
        }
        results = {
            name: {one.name: answers(one, make(one)) for one in (*talks, *projects)}
            for name, make in rankers.items()
        }
        if talks:
            _print([_HEADING, *(_talk_row(name, one, talks) for name, one in results.items())])
            ceiling = _mean(
                len(question.evidence & one.covered) / len(question.evidence)
                for one in talks
                for question in one.questions
            )
            print(f'\n{ceiling:.3f} is the ceiling of the columns "all".\n')
        _print([_CODING, *(_coding_row(name, one, projects) for name, one in results.items())])
        if work:
            print()
            _print(work_rows(line, places, work))
        print()
        served = [("coding", projects), ("real work", work)]
        _print([_SERVED, *(served_row(line, places, name, each) for name, each in served if each)])


def write(directory: str, collection: Collection) -> None:
    """Write the memories of a collection as files."""
    os.makedirs(directory, mode=0o700)
    for item in collection.items:
        path = os.path.join(directory, item.path)
        with open(path, "w", encoding="utf-8") as file:
            file.write(item.content)
        os.utime(path, (_WRITTEN, _WRITTEN))


def through_the_daemon(line: Client, cwd: str, read: Iterable[str] = ()) -> Search:
    """Return a search that asks the daemon about a project, each time in a new session.

    The sessions know the memories at the paths in ``read``, relative to the directory.
    """
    sessions = count()

    def search(query: str, limit: int) -> Sequence[str]:
        session = f"{cwd}-{next(sessions)}-{limit}-{len(query)}-{id(search)}"
        asked = {"cwd": cwd, "session_id": session, "query": query, "limit": limit}
        asked["read_paths"] = [*read]
        answer = line.call("prefetch", asked | {"strategy": "local"})
        return [os.path.basename(memory["path"]) for memory in answer["memories"]]

    return search


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
    results = json.loads(_HERE.joinpath("coding_recall.json").read_text("utf-8"))
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
                Question(query["query"], _set(query["right"]), part=query["part"])
                for query in results["queries"]
                if query["project"] == name
            ),
        )
        for name in names
    )


def sources(folder: str) -> tuple[Collection, ...]:
    """Return the sources with labelled prompts; none where the talk is not there."""
    talk = Path(folder) / "talk"
    if not talk.exists():
        return ()
    with gzip.open(talk / "sessions.jsonl.gz", "rt", encoding="utf-8") as file:
        turns = {each["session"]: each["turns"] for each in map(json.loads, file)}
    labels = [json.loads(line) for line in (talk / "labels.jsonl").read_text("utf-8").splitlines()]
    rows = [
        json.loads(line)
        for line in _HERE.joinpath("talk_prompts.jsonl").read_text("utf-8").splitlines()
    ]
    return tuple(
        Collection(
            name=source,
            items=tuple(
                Item(
                    f"m{at}.md",
                    f"m{at}",
                    it["memory"],
                    it["type"],
                    it["memory"],
                    _set([f"m{at}.md"]),
                )
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


def work_rows(line: Client, places: Mapping[str, str], talk: Sequence[Collection]) -> list[Row]:
    """Return what prompts of real work bring, for the sources that were tuned on and the others.

    "Dropped" are those that a memory helps with and that got nothing at all; "wrong" those that
    got one that does not help; "silent" those that nothing helps with and that got nothing;
    "foreign" those of other sources that a source answers.
    """
    rows: list[Row] = [_WORK]
    for name, held_out in (("tuned", False), ("held out", True)):
        figures: dict[str, list[float]] = defaultdict(list)
        for one in talk:
            search = through_the_daemon(line, places[one.name])
            for other in talk:
                for question in other.questions:
                    if question.held_out is held_out:
                        _count(figures, question, search(question.text, 5), own=other is one)
        rows.append((name, *(f"{fmean(figures[column]):.3f}" for column in _WORK[1:])))
    return rows


def served_row(
    line: Client, places: Mapping[str, str], name: str, collections: Sequence[Collection]
) -> Row:
    """Return what prompts get in sessions that know the person's rules since their start.

    "Served" are the prompts that a memory helps with which the session has or gets; "noise" those
    that nothing helps with and that get one; "foreign" those of other projects that get one.
    """
    served, noise, foreign = list[bool](), list[bool](), list[bool]()
    for one in collections:
        rules = frozenset(item.path for item in one.items if item.type in PERSONAL)
        search = through_the_daemon(line, places[one.name], rules)
        for other in collections:
            for question in other.questions:
                given = frozenset(search(question.text, 5))
                if other is not one:
                    foreign.append(bool(given))
                elif question.evidence:
                    served.append(bool(question.evidence & (given | rules)))
                else:
                    noise.append(bool(given))
    return name, *(f"{fmean(values):.3f}" for values in (served, noise, foreign))


def _count(
    figures: dict[str, list[float]], question: Question, paths: Sequence[str], *, own: bool
) -> None:
    given = frozenset(paths)
    if not own:
        figures["foreign"].append(bool(given))
        return
    figures["wrong"].append(bool(given - question.evidence))
    if question.evidence:
        figures["recall@5"].append(_share(question.evidence, given))
        figures["dropped"].append(not given)
    else:
        figures["silent"].append(not given)


def bm25(collection: Collection) -> Search:
    """BM25 as in the textbook (k1 1.5, b 0.75), over lower-case words, without a floor."""
    documents = [Counter(_split(item.text)) for item in collection.items]
    lengths = [sum(document.values()) for document in documents]
    average = sum(lengths) / len(lengths)
    holders = Counter(word for document in documents for word in document)

    def score(query: str) -> Sequence[float]:
        scores = [0.0] * len(documents)
        for word in _split(query):
            rarity = math.log(1 + (len(documents) - holders[word] + 0.5) / (holders[word] + 0.5))
            for at, document in enumerate(documents):
                times = document[word]
                norm = 1.5 * (0.25 + 0.75 * lengths[at] / average)
                scores[at] += rarity * times * 2.5 / (times + norm)
        return scores

    def search(query: str, limit: int) -> Sequence[str]:
        scores = score(query)
        order = sorted(range(len(scores)), key=lambda at: -scores[at])[:limit]
        return [collection.items[at].path for at in order if scores[at] > 0]

    return search


def full_text(collection: Collection) -> Search:
    """SQLite's FTS5 with its Porter stemmer, any word of the question."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE found USING fts5(text, tokenize = 'porter unicode61')")
    connection.executemany(
        "INSERT INTO found (rowid, text) VALUES (?, ?)",
        [(at, item.text) for at, item in enumerate(collection.items)],
    )

    def search(query: str, limit: int) -> Sequence[str]:
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(_split(query)))
        rows = connection.execute(
            "SELECT rowid FROM found WHERE found MATCH ? ORDER BY rank LIMIT ?", (match, limit)
        )
        return [collection.items[at].path for (at,) in rows] if match else []

    return search


def _talk_row(
    name: str, results: Mapping[str, list[Answer]], talks: Sequence[Collection]
) -> tuple[str, ...]:
    rows = [answer for talk in talks for answer in results[talk.name]]
    early = [row for row in rows if not row.question.held_out]
    overdue = [row for row in rows if row.question.held_out]
    return (
        name,
        f"{_mean(row.five for row in rows):.3f}",
        f"{_mean(row.ten for row in rows):.3f}",
        *(
            f"{_mean(r.five for r in part):.3f} {_mean(r.ten for r in part):.3f}"
            for part in (early, overdue)
        ),
        f"{_mean(row.all_five for row in rows):.3f}",
        f"{_mean(row.all_ten for row in rows):.3f}",
    )


def _coding_row(
    name: str, results: Mapping[str, list[Answer]], projects: Sequence[Collection]
) -> tuple[str, ...]:
    rows = [answer for project in projects for answer in results[project.name]]
    tuned, *unseen = ([row for row in rows if row.question.part == part] for part in PARTS)
    first = _mean(float(row.first) for row in tuned if row.question.evidence)
    return (
        name,
        f"{_mean(row.five for row in tuned):.3f}",
        f"{first:.3f}",
        f"{_silent(tuned):.3f}",
        *(
            figure
            for part in unseen
            for figure in (f"{_mean(row.five for row in part):.3f}", f"{_silent(part):.3f}")
        ),
    )


def _silent(rows: Sequence[Answer]) -> float:
    """Return the share of the questions that nothing helps with that were answered with nothing."""
    return _mean(float(not row.given) for row in rows if not row.question.evidence)


def _split(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _mean(values: Iterable[float | None]) -> float:
    """Return the mean of the values that are there."""
    return fmean(value for value in values if value is not None)


def _share(wanted: frozenset[str], got: frozenset[str]) -> float:
    return len(wanted & got) / max(len(wanted), 1)


def _set(names: Iterable[str]) -> frozenset[str]:
    return frozenset(names)


def _source(session: str) -> str:
    return session.partition("-")[0]


def _print(rows: Sequence[Row]) -> None:
    """Print rows as a table of Markdown, the first as its heading."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    print("\n".join((lines[0], "|" + "---|" * len(rows[0]), *lines[1:])))


if __name__ == "__main__":
    main((sys.argv[1:] or ["../shared/corpora"])[0])
