"""Recall on LoCoMo's observations, beside plain BM25: ``python -m benchmarks.recall_quality DATA``.

DATA is the folder that holds ``locomo_retrieval.json.gz`` (CC BY-NC: measure, never ship). Each
observation is a memory. Recall is the share of a question's evidence that the first five or ten
memories cover; category 5 (questions without an answer) stays out of the mean.
"""

import gzip
import json
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memd.state.search import Entry, SearchIndex

Search = Callable[[str, int], Sequence[str]]
UNANSWERABLE = 5


def main(folder: str) -> int:
    """Print both rankers' recall@5 and recall@10; return the exit status."""
    path = os.path.join(folder, "locomo", "locomo_retrieval.json.gz")
    if not os.path.exists(path):
        print(f"skipped: {path} is not there")
        return 0
    with gzip.open(path, "rt", encoding="utf-8") as file:
        conversations = json.load(file)["conversations"]
    print(f"{'ranker':<28}{'recall@5':>10}{'recall@10':>11}")
    makers: Mapping[str, Callable[[Sequence[Mapping[str, Any]]], Search]] = {
        "plain BM25": _plain,
        "memd, without its floor": lambda observations: _ours(observations, floor=False),
        "memd": lambda observations: _ours(observations, floor=True),
    }
    for name, maker in makers.items():
        five, ten = _measure(conversations, maker)
        print(f"{name:<28}{five:>10.3f}{ten:>11.3f}")
    return 0


def _measure(
    conversations: Sequence[Mapping[str, Any]],
    maker: Callable[[Sequence[Mapping[str, Any]]], Search],
) -> tuple[float, float]:
    totals = [0.0, 0.0]
    questions = 0
    for conversation in conversations:
        observations = conversation["observations"]
        search = maker(observations)
        evidence = {item["id"]: set(item["evidence"]) for item in observations}
        reachable: set[str] = set().union(*evidence.values())
        for query in conversation["queries"]:
            wanted = reachable & set(query["evidence"])
            if query["category"] == UNANSWERABLE or not wanted:
                continue
            questions += 1
            found = search(query["question"], 10)
            for at, cut in enumerate((5, 10)):
                covered: set[str] = set().union(*(evidence[item] for item in found[:cut]))
                totals[at] += len(wanted & covered) / len(wanted)
    return totals[0] / questions, totals[1] / questions


def _ours(observations: Sequence[Mapping[str, Any]], *, floor: bool) -> Search:
    index = SearchIndex()
    index.update(
        Entry(
            path=item["id"],
            fingerprint=(number, 0, 0),
            mtime_ns=0,
            name="",
            description=item["text"],
            type="",
            body=item["date"],
        )
        for number, item in enumerate(observations)
    )
    return lambda query, limit: [hit.path for hit in index.rank(query, limit, floor=floor)]


def _plain(observations: Sequence[Mapping[str, Any]]) -> Search:
    """BM25 as in the textbook (k1 1.5, b 0.75): lower case, no stop words, no stemming."""
    documents = [Counter(_split(item["text"])) for item in observations]
    lengths = [sum(document.values()) for document in documents]
    mean = sum(lengths) / len(lengths)
    holders = Counter(word for document in documents for word in document)

    def search(query: str, limit: int) -> Sequence[str]:
        scores = [0.0] * len(documents)
        for word in _split(query):
            rarity = math.log(1 + (len(documents) - holders[word] + 0.5) / (holders[word] + 0.5))
            for at, document in enumerate(documents):
                times = document[word]
                scores[at] += (
                    rarity * times * 2.5 / (times + 1.5 * (0.25 + 0.75 * lengths[at] / mean))
                )
        order = sorted(range(len(documents)), key=lambda at: -scores[at])
        return [observations[at]["id"] for at in order[:limit]]

    return search


def _split(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "../shared/corpora"))
