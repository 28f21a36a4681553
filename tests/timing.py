"""How long something takes at its best: a busy machine only adds to that."""

import time
from collections.abc import Callable


def least_seconds(work: Callable[[], object], enough: float, tries: int = 10) -> float:
    """Return the shortest time of some tries in seconds; one that takes less than ``enough`` ends.

    A delay that the program makes itself is in each of them.
    """
    least = float("inf")
    for _ in range(tries):
        begun = time.monotonic()
        work()
        least = min(least, time.monotonic() - begun)
        if least < enough:
            break
    return least
