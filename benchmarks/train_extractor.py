"""Train and measure the local extractor: ``python -m benchmarks.train_extractor DATA``.

Three sets: real talk of strangers (DATA/talk: conversations, and what readers would have kept),
``sentences.jsonl`` and ``statements.jsonl``, which we wrote: [label, type, language, text] a line.
All scores are learned from the first two, that of what is only stated from the third as well. The
figures are those on the talk alone, by cross-validation in which no source (the repository that
conversations came from) is on both sides. ``--write`` trains on everything and writes
``memd/extract/weights.tsv``; ``--kept FILE`` writes what was kept, to be read by eye.

A word or a pair of words counts only if three sources of the talk or three of our own sentences
have it, so that no text of theirs is in the weights. Needs scikit-learn (``make bench-extract``
installs it).
"""

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from benchmarks.talk import Score, Talk, load
from memd.extract import scorer
from memd.extract.markers import markers
from memd.extract.scorer import SentencePlace
from memd.extract.sentences import sentences

SENTENCES = Path(__file__).parent / "sentences.jsonl"
STATEMENTS = Path(__file__).parent / "statements.jsonl"
WEIGHTS = Path(__file__).parent.parent / "memd" / "extract" / "weights.tsv"
FOLDS = 10
READ_MESSAGES = 3238  # of the talk, read by the people who labelled it
_OURS = (
    "our own sentences"  # a feature of what we wrote: how often a label occurs there says nothing
)
_SHARED = 3  # sources, or own sentences, that have a word
_PENALTY = {"w:": 10.0, "b:": 10.0, _OURS: 0.01}  # of a squared weight; of any other feature 0.5
# Of our own sentences in English, of those in other languages, of weak labels.
_WEIGHT = {"lasting": (0.05, 0.2, 0.5), "marked": (0.5, 0.5, 1.0), "stated": (1.0, 1.0, 0.5)}
_AROUND = ("sentences ", "message ", "first ", "after ", "answer")
_SMALLEST = 0.02  # weights below are left out


@dataclass(frozen=True, slots=True)
class Row:
    """One sentence: its source, features, and label ("", "lasting", "weak", "marked ..." )."""

    source: str
    features: Mapping[str, float]
    label: str
    language: str = ""
    statement: bool = False


def rows(talk: Talk) -> list[Row]:
    """Return the sentences of the talk, each once a source."""
    result: list[Row] = []
    known: set[tuple[str, str]] = set()
    for session in talk.sessions:
        before, first = "", True
        for turn, message in enumerate(session.messages):
            if message.role != "user":
                before = message.text
                continue
            own = sentences(message.text)
            for number, sentence in enumerate(own):
                key = (session.source, " ".join(sentence.text.lower().split()))
                if key in known:
                    continue
                known.add(key)
                place = SentencePlace(number, len(own), len(message.text), first, before)
                names = scorer.features(sentence, markers(sentence.plain), place)
                label = talk.label(session.name, turn, sentence.text)
                result.append(Row(session.source, dict.fromkeys(names, 1.0), label))
            first = first and not own
    return result


def written(talk_rows: Sequence[Row]) -> list[Row]:
    """Return our own sentences; what stands around them is as it is in the talk on average."""
    around = Counter(name for row in talk_rows for name in row.features if name.startswith(_AROUND))
    usual = {name: count / len(talk_rows) for name, count in around.items()}
    labels = {"marked": "marked clear", "lasting": "clear", "no": ""}
    result: list[Row] = []
    lines = [(path, line) for path in (SENTENCES, STATEMENTS) for line in _lines(path)]
    for path, line in lines:
        label, _, language, text = json.loads(line)
        for sentence in sentences(text)[:1]:
            names = scorer.features(sentence, markers(sentence.plain), SentencePlace())
            own = {name: 1.0 for name in names if not name.startswith(_AROUND)} | usual
            is_statement = path == STATEMENTS
            result.append(Row("", own | {_OURS: 1.0}, labels[label], language, is_statement))
    return result


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


def common(all_rows: Sequence[Row]) -> frozenset[str]:
    """Return the features that count."""
    sources: defaultdict[str, set[str]] = defaultdict(set)
    own: Counter[str] = Counter()
    for row in all_rows:
        for name in row.features:
            if row.source:
                sources[name].add(row.source)
            else:
                own[name] += 1
    shared = {name for name, found in sources.items() if len(found) >= _SHARED}
    return frozenset(shared | {name for name, count in own.items() if count >= _SHARED})


def train(all_rows: Sequence[Row], names: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Return the weights of each feature, and of "" what every sentence begins with."""
    place = {name: number for number, name in enumerate(names)}
    scale = np.array([(0.5 / _penalty(name)) ** 0.5 for name in names])
    cells = [
        (number, place[name], value)
        for number, row in enumerate(all_rows)
        for name, value in row.features.items()
        if name in place
    ]
    at, of, values = (np.array(column) for column in zip(*cells, strict=True))
    matrix = csr_matrix((values * scale[of], (at, of)), (len(all_rows), len(names)))
    columns = []
    for target, shares in _WEIGHT.items():
        wanted = [
            "marked" in row.label or (target != "marked" and bool(row.label)) for row in all_rows
        ]
        weight = [_weight(row, target, *shares) for row in all_rows]
        model = LogisticRegression(C=2.0, max_iter=400).fit(matrix, wanted, weight)
        columns.append([float(model.intercept_[0]), *(model.coef_[0] * scale).tolist()])
    result = dict(zip(("", *names), zip(*columns, strict=True), strict=True))
    result.pop(_OURS, None)
    return result


def _weight(row: Row, target: str, english: float, other: float, weak: float) -> float:
    if row.statement and target != "stated":
        return 0.0
    if row.source:
        return weak if "weak" in row.label else 1.0
    return english if row.language == "en" else other


def _penalty(name: str) -> float:
    return _PENALTY.get(name, _PENALTY.get(name[:2], 0.5))


def scoring(weights: Mapping[str, tuple[float, ...]]) -> Score:
    """Return the scorer that has these weights."""
    return lambda names: scorer.added(names, weights)


def cross_validated(talk_rows: Sequence[Row], own: Sequence[Row]) -> dict[str, Score]:
    """Return for each source a scorer that has seen nothing of it."""
    names = sorted(common([*talk_rows, *own]))
    sizes = Counter(row.source for row in talk_rows)
    fold: dict[str, int] = {}
    load_of = [0] * FOLDS
    for source, size in sizes.most_common():
        fold[source] = load_of.index(min(load_of))
        load_of[fold[source]] += size
    result: dict[str, Score] = {}
    for number in range(FOLDS):
        seen = [row for row in talk_rows if fold[row.source] != number]
        score = scoring(train([*seen, *own], names))
        result.update({source: score for source, where in fold.items() if where == number})
    return result


def main() -> int:
    """Print score.py's lines for the talk; with ``--write`` write the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder that holds talk")
    parser.add_argument("--write", action="store_true", help="write memd/extract/weights.tsv")
    parser.add_argument("--kept", type=Path, help="write what was kept, JSON lines")
    arguments = parser.parse_args()
    talk = load(arguments.data)
    talk_rows = rows(talk)
    own = written(talk_rows)
    if arguments.write:
        weights = train([*talk_rows, *own], sorted(common([*talk_rows, *own])))
        lines = [
            "\t".join((*(f"{number:.2f}" for number in row), name))
            for name, row in weights.items()
            if max(map(abs, row)) >= _SMALLEST
        ]
        head = "# lasting, marked, stated, feature: benchmarks/train_extractor.py"
        WEIGHTS.write_text("\n".join([head, *lines, ""]), "utf-8")
    scorers = cross_validated(talk_rows, own)
    kept = talk.kept(lambda source: scorers.get(source, scorer.score))
    if arguments.kept:
        arguments.kept.write_text(
            "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept)
        )
    print("talk of strangers, labelled by its readers; cross-validated by source:")
    for name, figures in talk.figures(kept).items():
        print(f"  {_line(name, figures)}")
    return 0


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
    sys.exit(main())
