"""How much of recall is luck of the choice: ``python -m benchmarks.nested DATA``.

The weights of scoring are chosen anew on one part of the conversations, one after the other, by
the sum of recall@5 and @10 there; then the other part is asked. Without the floor, in process.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import chain

from benchmarks.ablation import changed, indexed_search
from benchmarks.measures import table
from benchmarks.recall_sets import Answer, Collection, answers, conversations, mean
from memd.state import asking, weighing

CHOICES: Mapping[tuple[object, str], Sequence[float]] = {
    (asking, "_COMMON"): (0.5, 0.6, 0.75, 1.0),
    (asking, "_SYNONYM"): (0.2, 0.3, 0.45, 0.6),
    (asking, "_FAMILY"): (0.15, 0.3, 0.5),
    (weighing, "_PAIR"): (0.15, 0.3, 0.45),
    (weighing, "_SUBJECT"): (0.3, 0.6, 1.0, 1.5),
    (weighing, "_FEEDBACK"): (0.05, 0.1, 0.2),
    (weighing, "_MODELS"): (2, 3, 5),
}
Values = Mapping[tuple[object, str], float]


def main(data: str) -> int:
    """Print the table; return the exit status."""
    talks = conversations(data)
    early, late = talks[:3], talks[3:]
    rows: list[tuple[str, ...]] = [("weights", "talks 1-3", "talks 4-5")]
    for name, values in (
        ("as they are", {}),
        ("chosen on 1-3", _choose(early)),
        ("chosen on 4-5", _choose(late)),
    ):
        rows.append((name, *(_figures(_ask(part, values)) for part in (early, late))))
    print(table(rows))
    return 0


def _choose(talks: Sequence[Collection]) -> Values:
    """Return the best value of each weight, the others as chosen so far; ties go to the first."""
    values: dict[tuple[object, str], float] = {}
    for weight, choices in CHOICES.items():
        worth = {choice: _worth(_ask(talks, values | {weight: choice})) for choice in choices}
        values[weight] = max(choices, key=lambda choice: worth[choice])
    return values


def _worth(rows: Sequence[Answer]) -> float:
    return mean(row.five for row in rows) + mean(row.ten for row in rows)


def _figures(rows: Sequence[Answer]) -> str:
    return f"{mean(row.five for row in rows):.3f} {mean(row.ten for row in rows):.3f}"


def _ask(talks: Sequence[Collection], values: Values) -> list[Answer]:
    with ExitStack() as stack:
        for (module, name), value in values.items():
            stack.enter_context(changed({module: {name: value}}))
        found = [answers(talk, indexed_search(talk, floor=False)) for talk in talks]
        return list(chain.from_iterable(found))


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:] or ["../shared/corpora"])))
