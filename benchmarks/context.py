"""``make bench-context``: what context services save, and whether what was said is still there.

Twenty recorded sessions (``context_sessions``) are played against the caching server in several
ways (``context_runs``), and the person asks for five planted facts at the end of each. Dollars are
those of the price table; what summaries cost is among them. Nothing here fails.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from statistics import mean
from typing import Any

from benchmarks.context_runs import MODEL, ClearByAge, Played, Way, play
from benchmarks.context_sessions import SESSIONS, Session, long_run, sessions
from benchmarks.context_ways import Kept, able, prepared, summaries_cost
from benchmarks.measures import table
from tests.support.daemon import Home

# What makes a way to play a session: the home of a daemon, a session's name, what the model can.
Making = Callable[[Home, str, Any], Way]
WAYS: dict[str, tuple[str, Making]] = {
    "none": ("without memd", lambda *_: Way()),
    "age": ("clear by age, without memd", lambda *_: ClearByAge()),
    "spill": ("spill", lambda home, name, _: Kept(home, name)),
    "api": ("spill, the API clears", lambda home, name, model: Kept(home, name, model=model)),
    "notes": (
        "spill, compacted at 167,000 by notes",
        lambda home, name, _: Kept(home, name, strategy="notes"),
    ),
    "local": (
        "spill, compacted at 167,000 locally",
        lambda home, name, _: Kept(home, name, strategy="local"),
    ),
    "model": (
        "spill, compacted at 167,000 by a scripted model",
        lambda home, name, _: Kept(home, name, strategy="model"),
    ),
}
_WINDOW = 200_000
_HEAD = (
    "way",
    "M tokens sent",
    "of them from the cache",
    "of each prompt, given back to the next",
    "M tokens written to it",
    "dollars",
    "largest prompt",
    "sessions over 200,000",
    "refused",
    "answers shown / read / lost",
)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.context")
    parser.add_argument("way", nargs="*", choices=[[], *WAYS], help="all of them unless named")
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--run", type=int, default=0, help="one run of so many requests instead")
    options = parser.parse_args()
    chosen = [long_run(options.run)] if options.run else list(sessions(options.sessions))
    requests = sum(len(session.exchanges) for session in chosen)
    print(f"{len(chosen)} sessions, {requests:,} requests, {MODEL}", flush=True)
    print(table([_HEAD, *_rows(chosen, options.way or list(WAYS))]))
    return 0


def _rows(chosen: Sequence[Session], names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    with prepared() as (home, server):
        model, numbers = able(), count()
        for name in names:
            title, make = WAYS[name]
            before = summaries_cost(server)
            played = [play(each, make(home, f"s{next(numbers)}", model)) for each in chosen]
            yield _row(title, played, summaries_cost(server) - before)


def _row(name: str, played: Sequence[Played], summaries: float = 0.0) -> tuple[str, ...]:
    """Return the line of one way, and show it at once."""
    total = Played()
    for each in played:
        total.add(each)
    read = total.tokens["cache_read_input_tokens"]
    created = total.tokens["cache_creation_input_tokens"]
    sent = read + created + total.tokens["input_tokens"]
    answers = " / ".join(str(total.answers[where]) for where in ("shown", "read", "lost"))
    row = (
        name,
        f"{sent / 1e6:.1f}",
        f"{read / sent:.1%}",
        f"{mean(total.reread):.1%}",
        f"{created / 1e6:.2f}",
        f"{total.dollars + summaries:.2f}",
        f"{total.largest:,}",
        str(sum(each.largest > _WINDOW for each in played)),
        str(total.refused),
        answers,
    )
    print(*row, sep="  ", file=sys.stderr, flush=True)
    return row


if __name__ == "__main__":
    sys.exit(main())
