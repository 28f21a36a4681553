"""Recall through a running daemon beside plain rankers: ``make bench-recall DATA=… [MODEL=…]``.

DATA is the folder that holds ``locomo`` (its questions without an answer stay out); MODEL the
folder of a sentence encoder for the optional semantic ranker. Each conversation, and each project
of the coding set, is a project of the daemon; each question is a ``prefetch`` of a session of its
own.

Recall is the share of a question's evidence that the first five or ten memories cover. "Covered"
counts the questions and evidence that some memory holds, as the facts do; "all" counts everything
that a question names, which no ranker can reach: the line "ceiling" says how far it goes.
"""

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from benchmarks import talk_recall
from benchmarks.background import folder
from benchmarks.baselines import BASELINES
from benchmarks.measures import Line, table
from benchmarks.recall_sets import (
    PARTS,
    TODAY,
    Answer,
    Collection,
    Search,
    answers,
    coding,
    conversations,
    mean,
)
from tests.support.daemon import daemon_process, throw_away_home

_READY_SECONDS = 60.0  # for a model to load and to read all memories
_HEADING = ("ranker", "recall@5", "recall@10", "talks 1-3", "talks 4-5", "all @5", "all @10")
_WRITTEN = datetime.fromisoformat(TODAY).replace(tzinfo=UTC).timestamp()
_CODING = (
    *("ranker", "recall@5", "first right", "silent"),
    *("held out: recall@5", "silent", "natural: recall@5", "silent"),
    *("later: recall@5", "silent"),
)

Found = Mapping[str, list[Answer]]  # by the name of a collection


def main(data: str, model: str = "") -> int:
    """Print both tables; return the exit status."""
    talks, projects = conversations(data), coding()
    sets = (*talks, *projects)
    results = {"memd, by words": _through_a_daemon(sets, "")}
    if model:
        results["memd, by words and meaning"] = _through_a_daemon(sets, model)
    for name, make in BASELINES.items():
        results[name] = {one.name: answers(one, make(one)) for one in sets}
    if talks:
        print(table([_HEADING, *(_talk_row(name, one, talks) for name, one in results.items())]))
        ceiling = mean(
            len(question.evidence & one.covered) / len(question.evidence)
            for one in talks
            for question in one.questions
        )
        print(f'\n{ceiling:.3f} is the ceiling of the columns "all".\n')
    else:
        print(f"skipped: there is no locomo in {data}\n")
    print(table([_CODING, *(_coding_row(name, one, projects) for name, one in results.items())]))
    if work := talk_recall.rows(data):
        print(f"\n{table(work)}")
    return 0


def _talk_row(name: str, results: Found, talks: Sequence[Collection]) -> tuple[str, ...]:
    rows = [answer for talk in talks for answer in results[talk.name]]
    early = [row for row in rows if not row.question.held_out]
    overdue = [row for row in rows if row.question.held_out]
    return (
        name,
        f"{mean(row.five for row in rows):.3f}",
        f"{mean(row.ten for row in rows):.3f}",
        *(
            f"{mean(r.five for r in part):.3f} {mean(r.ten for r in part):.3f}"
            for part in (early, overdue)
        ),
        f"{mean(row.all_five for row in rows):.3f}",
        f"{mean(row.all_ten for row in rows):.3f}",
    )


def _coding_row(name: str, results: Found, projects: Sequence[Collection]) -> tuple[str, ...]:
    rows = [answer for project in projects for answer in results[project.name]]
    tuned, *unseen = ([row for row in rows if row.question.part == part] for part in PARTS)
    first = mean(float(row.first) for row in tuned if row.question.evidence)
    return (
        name,
        f"{mean(row.five for row in tuned):.3f}",
        f"{first:.3f}",
        f"{_silent(tuned):.3f}",
        *(
            figure
            for part in unseen
            for figure in (f"{mean(row.five for row in part):.3f}", f"{_silent(part):.3f}")
        ),
    )


def _silent(rows: Sequence[Answer]) -> float:
    """Return the share of the questions that nothing helps with that were answered with nothing."""
    return mean(float(not row.given) for row in rows if not row.question.evidence)


def _through_a_daemon(sets: Sequence[Collection], model: str) -> Found:
    """Ask every question of a daemon that found the memories when it started."""
    with throw_away_home() as home:
        places = {one.name: home.project(one.name) for one in sets}
        for one in sets:
            _write(folder(home, places[one.name]), one)
        if model:
            os.makedirs(os.path.dirname(home.places.config), exist_ok=True)
            with open(home.places.config, "w", encoding="utf-8") as file:
                file.write(f"[recall]\nsemantic_model = {json.dumps(os.path.abspath(model))}\n")
        with daemon_process(home), Line(home.places.socket) as line:
            for one in sets if model else ():
                _wait_for_meaning(line, places[one.name], one)
            began = time.perf_counter()
            results = {one.name: answers(one, _search(line, places[one.name])) for one in sets}
            requested = 2 * sum(len(one.questions) for one in sets)
            each = (time.perf_counter() - began) * 1000 / requested
            print(f"{requested} prompts, {each:.1f} ms each", file=sys.stderr)
            return results


def _write(directory: str, collection: Collection) -> None:
    os.makedirs(directory, mode=0o700)
    for item in collection.items:
        path = os.path.join(directory, item.path)
        with open(path, "w", encoding="utf-8") as file:
            file.write(item.content)
        os.utime(path, (_WRITTEN, _WRITTEN))


def _search(line: Line, cwd: str) -> Search:
    number = 0

    def search(query: str, limit: int) -> Sequence[str]:
        nonlocal number
        number += 1
        session = f"{cwd}-{number}"
        requested = {"cwd": cwd, "session_id": session, "query": query, "limit": limit}
        answer = line.call("prefetch", requested | {"strategy": "local"})
        assert answer.get("note") is None, answer["note"]
        return [os.path.basename(memory["path"]) for memory in answer["memories"]]

    return search


def _wait_for_meaning(line: Line, cwd: str, collection: Collection) -> None:
    """Wait until the model has read a project: a prompt's order does not change any more."""
    query = next(question.text for question in collection.questions if question.evidence)
    requested = {"cwd": cwd, "session_id": "wait", "query": query, "limit": 10, "explain": True}
    before, until = None, time.perf_counter() + _READY_SECONDS
    while time.perf_counter() < until:
        rows = (line.call("prefetch", requested).get("explanation") or {}).get("rows", [])
        scores = [(row["path"], row["score"]) for row in rows if "semantic" in row["parts"]]
        if scores and scores == before:
            return
        before = scores
        time.sleep(1.0)
    print(f"the model had not read {collection.name} in time", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:] or ["../shared/corpora"])))
