"""``make bench-instructions``: how long instruction files take, first and when nothing has changed.

Over the socket of a daemon, for trees of 5 and 200 files. Promised are 50 ms for 200 files and 2 ms
when nothing has changed. The last column is how many times a call takes what ``load_prompt`` takes
without instruction files: what a busy machine does to both is not in it.
"""

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.measures import Series
from memd.client.aio import AsyncClient
from tests.support.daemon import daemon_here, throw_away_home

SIZES = (5, 200)
_VIEWS = ("claude", "union")
_TEXT = "Use the name of the thing and not of its place. " * 20


def plant(folder: str, count: int) -> None:
    """Write a CLAUDE.md, a few includes and as many rules as are left."""
    root = Path(folder)
    (root / "docs").mkdir()
    for number in range(3):
        (root / f"docs/{number}.md").write_text(f"# Part {number}\n{_TEXT}")
    (root / "CLAUDE.md").write_text(f"{_TEXT}\n@docs/0.md\n@docs/1.md\n@docs/2.md\n")
    for number in range(count - 4):
        rule = root / f".claude/rules/{number % 10}/{number}.md"
        rule.parent.mkdir(parents=True, exist_ok=True)
        rule.write_text(f"# Rule {number}\n{_TEXT}")


async def took(client: AsyncClient, method: str, params: dict[str, Any]) -> float:
    """Return the milliseconds of one call."""
    begun = time.perf_counter()
    await client.call(method, params)
    return (time.perf_counter() - begun) * 1000


async def main(calls: int) -> None:
    """Measure and print."""
    print(f"{'files':>6}  {'view':<8}{'first ms':>10}{'p50 ms':>10}{'p99 ms':>10}{'ratio':>8}")
    for count in SIZES:
        with throw_away_home() as home:
            cwd = home.project()
            plant(cwd, count)
            async with daemon_here(home), AsyncClient(home.places.socket, name="bench") as client:
                await client.call("load_prompt", {"cwd": cwd})
                for view in _VIEWS:
                    about = {"cwd": cwd, "view": view}
                    first = await took(client, "instructions.list", about)
                    warm, plain = list[float](), list[float]()
                    for _ in range(calls):
                        warm.append(await took(client, "instructions.list", about))
                        plain.append(await took(client, "load_prompt", {"cwd": cwd}))
                    series, ratio = Series(tuple(warm)), sorted(plain)[calls // 2]
                    print(
                        f"{count:>6}  {view:<8}{first:>10.1f}{series.p50:>10.2f}"
                        f"{series.p99:>10.2f}{series.p50 / ratio:>8.2f}"
                    )


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
