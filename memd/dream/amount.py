"""How much of the memories a dream takes away, and when that is too much. Pure.

Rules of this file
- More than a third of the memories is not removed or rewritten, nor is more than a third of their
  bytes lost. Rewritten is a memory when less than half of its telling words are left of it and
  where it went; of any other one as many bytes are lost as there are telling words: a third of
  each is a third of all.
- What dreams removed and lost lately counts as if this one did it: a third does not go bit by bit.
- Of a few memories a third says nothing.
"""

from collections.abc import Iterator, Sequence

from memd.dream.carried import Facts

FEW = 4  # of fewer memories than this a third says nothing
REWRITTEN = 0.5  # of the telling words: what has fewer left is another text
_PART = 3


def left(memory: Facts, targets: Sequence[Facts]) -> float:
    """Return which part of a memory's telling words is left in those that it is in afterwards."""
    if not memory.statement:
        return 1.0 if targets else 0.0
    there = frozenset[str]().union(*(target.words for target in targets))
    return len(memory.statement & there) / len(memory.statement)


def lost(size: int, part: float) -> float:
    """Return how many bytes a memory of this size loses of which this part is left."""
    return size * (1 - part) if part >= REWRITTEN else size


def too_many(removed: int, rewritten: int, total: int, lately: int) -> Iterator[str]:
    """Yield a sentence when more than a third of the memories is removed or rewritten.

    ``lately`` is how many went before; those are not in the ``total`` any more.
    """
    count = removed + rewritten
    if total >= FEW and count and _PART * (count + lately) > total + lately:
        went = f", {lately} went lately" if lately else ""
        yield (
            f"{removed} of {total} memories would be dropped and {rewritten} "
            f"rewritten{went}: more than a third"
        )


def too_much(gone: int, total: int, lately: int, memories: int) -> Iterator[str]:
    """Yield a sentence when more than a third of the bytes is gone; ``total`` 0 is unknown."""
    if memories >= FEW and total and gone and _PART * (gone + lately) > total + lately:
        went = f", {lately} went lately" if lately else ""
        yield f"{gone} of {total} bytes would be dropped or rewritten{went}: more than a third"
