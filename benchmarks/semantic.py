"""What the optional semantic ranker costs and brings: ``python -m benchmarks.semantic MODEL DATA``.

MODEL is the folder of the user's own model, DATA the one that holds ``locomo``. Recall is measured
as in ``recall_quality``; the share of a prompt's words that decides the fusion was not chosen on
the last two conversations, which stand apart. Each figure of memory is the growth of this process.
"""

import gzip
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psutil

from memd.search.index import Entry, Index, vector_text, version_mark
from memd.search.meaning import Meaning, Neighbours
from memd.search.ranking import answered

UNANSWERABLE = 5
CUTS = (5, 10)


def main(model: str, data: str) -> int:
    """Print both tables; return the exit status."""
    meaning = Meaning(print)
    before = _mebibytes()
    started = time.perf_counter()
    meaning.use(os.path.abspath(model))
    loaded = meaning.load()
    if loaded is None:
        return 1
    print(f"{'start, in the background':<34}{time.perf_counter() - started:>9.2f} s")
    print(f"{'numbers in a vector':<34}{loaded.width:>9}")
    path = os.path.join(data, "locomo", "locomo_retrieval.json.gz")
    if not os.path.exists(path):
        print(f"skipped: {path} is not there")
        return 0
    with gzip.open(path, "rt", encoding="utf-8") as file:
        conversations = json.load(file)["conversations"]
    with tempfile.TemporaryDirectory() as folder:
        pairs = [_rankers(item, meaning, folder) for item in conversations]
        queries = [item["question"] for item in conversations[0]["queries"]]
        print(f"{'memory':<34}{_mebibytes() - before:>9.0f} MiB")
        _print_costs(pairs[0], queries)
        _print_recall(conversations, pairs)
    return 0


def _rankers(
    conversation: Mapping[str, Any], meaning: Meaning, folder: str
) -> tuple[Index, Index, float]:
    """Return both indices of a conversation and the milliseconds that one vector took."""
    entries = {
        item["id"]: Entry(item["id"], (number, 0, 0), 0, "", item["text"], "", item["date"])
        for number, item in enumerate(conversation["observations"])
    }
    known = {path: version_mark(path, entry.fingerprint) for path, entry in entries.items()}
    near = Neighbours(meaning, f"{folder}/{next(iter(entries))}{len(entries)}")
    lexical, fused = Index(None), Index(None, near)
    lexical.update(entries.values())
    fused.update(entries.values())
    started = time.perf_counter()
    while near.work(
        lambda: known, lambda paths: [vector_text(entries[path]) for path in paths], 32
    ):
        pass
    return lexical, fused, (time.perf_counter() - started) * 1000 / len(entries)


def _print_costs(pair: tuple[Index, Index, float], queries: Sequence[str]) -> None:
    lexical, fused, each = pair
    print(f"{'a memory, in the background':<34}{each:>9.2f} ms")
    for name, ranker in (("a prompt by words", lexical), ("a prompt by words and meaning", fused)):
        took = []
        for query in queries:
            started = time.perf_counter()
            ranker.rank(query, 5)
            took.append((time.perf_counter() - started) * 1000)
        print(f"{name:<34}{statistics.median(took):>9.2f} ms")


def _print_recall(
    conversations: Sequence[Mapping[str, Any]], pairs: Sequence[tuple[Index, Index, float]]
) -> None:
    print(f"\n{'recall@5 / recall@10':<34}{'1 to 5':>15}{'1 to 3':>15}{'4 and 5':>15}")
    for name, which, floor in (
        ("by words", 0, True),
        ("by words and meaning", 1, True),
        ("the same without the floor", 1, False),
    ):
        scores = [
            _recalls(item, _search(pair[:2][which], floor=floor))
            for item, pair in zip(conversations, pairs, strict=True)
        ]
        columns = []
        for part in (scores, scores[:3], scores[3:]):
            rows = [row for conversation in part for row in conversation]
            means = [statistics.fmean(row[at] for row in rows) for at in range(len(CUTS))]
            columns.append(" / ".join(f"{mean:.3f}" for mean in means))
        print(f"{name:<34}" + "".join(f"{column:>15}" for column in columns))


def _search(index: Index, *, floor: bool) -> Callable[[str], list[str]]:
    return lambda query: [hit.path for hit in answered(index.rank(query, max(CUTS), floor=floor))]


def _recalls(
    conversation: Mapping[str, Any], search: Callable[[str], list[str]]
) -> list[tuple[float, ...]]:
    """Return the recalls of each question that has an answer."""
    evidence = {item["id"]: set(item["evidence"]) for item in conversation["observations"]}
    reachable = set().union(*evidence.values())
    rows = []
    for query in conversation["queries"]:
        wanted = reachable & set(query["evidence"])
        if query["category"] == UNANSWERABLE or not wanted:
            continue
        results = search(query["question"])
        covered = [set().union(*(evidence[path] for path in results[:cut])) for cut in CUTS]
        rows.append(tuple(len(wanted & part) / len(wanted) for part in covered))
    return rows


def _mebibytes() -> float:
    return float(psutil.Process().memory_info().rss) / 2**20


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
