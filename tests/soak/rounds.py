"""Independent rounds of one sequence, several at a time, from a seed."""

import random
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import TypeVar

SIDE_BY_SIDE = 8
T = TypeVar("T")


def play(
    count: int, seed: int, sequence: Callable[[random.Random], int], *, apart: bool = False
) -> int:
    """Return the sum of what so many rounds of a sequence count; see ``each``."""
    return sum(each(count, seed, sequence, apart=apart))


def each(
    count: int, seed: int, sequence: Callable[[random.Random], T], *, apart: bool = False
) -> list[T]:
    """Return what so many rounds of a sequence return; each gets a randomness of its own.

    With ``apart`` they are played in processes of their own, as daemons in one would mix up what
    each leaves behind.
    """
    chances = [random.Random(f"{seed} {n}") for n in range(count)]  # noqa: S311 - repeatable
    processes = partial(ProcessPoolExecutor, mp_context=get_context("spawn"))
    with (processes if apart else ThreadPoolExecutor)(min(count, SIDE_BY_SIDE)) as pool:
        return list(pool.map(sequence, chances))


def delay(chance: random.Random, count: int) -> float:
    """Return seconds to wait: up to 3 in a full run, up to 0.2 in a sample of a few rounds."""
    return chance.uniform(0, 3 if count >= len("a full run") else 0.2)
