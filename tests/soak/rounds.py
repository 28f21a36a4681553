"""Independent rounds of one sequence, several at a time, from a seed."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

SIDE_BY_SIDE = 8
T = TypeVar("T")


def play(count: int, seed: int, sequence: Callable[[random.Random], int]) -> int:
    """Return the sum of what so many rounds of a sequence count."""
    return sum(each(count, seed, sequence))


def each(count: int, seed: int, sequence: Callable[[random.Random], T]) -> list[T]:
    """Return what so many rounds of a sequence return; each gets a randomness of its own."""
    chances = [random.Random(f"{seed} {n}") for n in range(count)]  # noqa: S311 - repeatable
    with ThreadPoolExecutor(min(count, SIDE_BY_SIDE)) as pool:
        return list(pool.map(sequence, chances))


def delay(chance: random.Random, count: int) -> float:
    """Return seconds to wait: up to 3 in a full run, up to 0.2 in a sample of a few rounds."""
    return chance.uniform(0, 3 if count >= len("a full run") else 0.2)
