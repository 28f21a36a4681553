"""Plain rankers to stand beside ours: each sees all words of a memory and has no floor."""

import math
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence

import tantivy

from benchmarks.recall_sets import Collection, Search
from memd.text.words import words


def grep(collection: Collection) -> Search:
    """Order by how many distinct words of the question a file contains, anywhere in its text."""
    texts = [item.text.lower() for item in collection.items]

    def score(query: str) -> Sequence[float]:
        wanted = set(_split(query))
        return [float(sum(word in text for word in wanted)) for text in texts]

    return _best(collection, score)


def bm25(collection: Collection, split: Callable[[str], list[str]] | None = None) -> Search:
    """BM25 as in the textbook (k1 1.5, b 0.75), over lower-case words unless ``split`` is given."""
    analyse = split or _split
    documents = [Counter(analyse(item.text)) for item in collection.items]
    lengths = [sum(document.values()) for document in documents]
    average = sum(lengths) / len(lengths)
    holders = Counter(word for document in documents for word in document)

    def score(query: str) -> Sequence[float]:
        scores = [0.0] * len(documents)
        for word in analyse(query):
            rarity = math.log(1 + (len(documents) - holders[word] + 0.5) / (holders[word] + 0.5))
            for at, document in enumerate(documents):
                times = document[word]
                norm = 1.5 * (0.25 + 0.75 * lengths[at] / average)
                scores[at] += rarity * times * 2.5 / (times + norm)
        return scores

    return _best(collection, score)


def stemmed(collection: Collection) -> Search:
    """BM25 over our words: stop words left out, stemmed."""
    return bm25(collection, words)


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


def engine(collection: Collection) -> Search:
    """Tantivy with its English stemmer, any word of the question."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", tokenizer_name="en_stem")
    builder.add_unsigned_field("at", stored=True)
    index = tantivy.Index(builder.build())
    writer = index.writer()
    for at, item in enumerate(collection.items):
        writer.add_document(tantivy.Document(text=item.text, at=at))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(query: str, limit: int) -> Sequence[str]:
        parsed = index.parse_query(" ".join(_split(query)), ["text"])
        hits = searcher.search(parsed, limit).hits
        return [collection.items[searcher.doc(at)["at"][0]].path for _, at in hits]

    return search


BASELINES = {
    "grep, distinct words": grep,
    "plain BM25": bm25,
    "BM25, stop words, stems": stemmed,
    "SQLite FTS5 porter, any word": full_text,
    "tantivy, English stems": engine,
}


def _best(collection: Collection, score: Callable[[str], Sequence[float]]) -> Search:
    def search(query: str, limit: int) -> Sequence[str]:
        scores = score(query)
        order = sorted(range(len(scores)), key=lambda at: -scores[at])[:limit]
        return [collection.items[at].path for at in order if scores[at] > 0]

    return search


def _split(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
