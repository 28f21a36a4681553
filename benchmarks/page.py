"""How quickly the page answers, and what five open pages cost the daemon: ``make bench-ui``.

The first figure of a view is its first call, the second the median of twenty. Prompts are timed in
turns without a page and beside five open ones that are told of changes; the ratio is the cost.
"""

import statistics
import sys
import time
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote

import psutil

from memd.client.blocking import Client
from tests.support.daemon import Home, client, daemon_process, throw_away_home
from tests.ui.served import Served, page_process

SIZES = (1_000, 10_000)
ROUNDS = 20
PAGES = 5
PROMPTS = 100
TURNS = 6
PROMPT = "which token do the cache and the queue share"


def run(sizes: tuple[int, ...]) -> None:
    """Measure and print."""
    for size in sizes:
        with throw_away_home() as home, daemon_process(home) as daemon:
            caller = client(home)
            fill(caller, home, size)
            with page_process(home) as page:
                page.enter()
                views(page, home, size)
                open_pages(page, home, caller, daemon.pid)


def fill(caller: Client, home: Home, size: int) -> None:
    """Lay memories into the project, and have them indexed."""
    about = {"cwd": home.project()}
    folder = Path(caller.call("memory.list", about)["memory_dir"])
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(size):
        head = f"name: m{number}\ndescription: The cache and the queue share token {number}"
        text = f"---\n{head}\ntype: project\n---\n\nText {number} of the database.\n"
        (folder / f"project_m{number}.md").write_text(text)
    change(caller, home, "a change")
    hits: list[object] = []
    while not hits:
        hits = caller.call("memory.search", {**about, "query": "token"}, 120)["hits"]


def change(caller: Client, home: Home, words: str) -> None:
    """Write one memory."""
    memory = {"path": "last.md", "name": "last", "description": "The last one", "type": "user"}
    caller.call("memory.write", {"cwd": home.project(), **memory, "body": words}, 120)


def views(page: Served, home: Home, size: int) -> None:
    """Print how long views take, from the request to the last byte."""
    cwd = quote(home.project(), safe="")
    paths = {
        "memories": f"project?cwd={cwd}",
        "filtered": f"project?cwd={cwd}&q=token+{size - 1}",
        "a memory": f"memory?cwd={cwd}&path=project_m5.md",
        "search": f"search?cwd={cwd}&q={quote(PROMPT)}",
        "projects": "",
        "health": "health",
    }
    print(f"\n{size:,} memories: milliseconds to the last byte")
    for name, path in paths.items():
        times = [timed(page, page.root + path) for _ in range(ROUNDS)]
        print(f"{name:12} first {times[0]:7.1f}   median {statistics.median(times):7.1f}")


def timed(page: Served, path: str) -> float:
    """Return how long one page takes on a connection of its own, in milliseconds."""
    connection = HTTPConnection(page.host)
    begun = time.perf_counter()
    connection.request("GET", path, headers={"cookie": page.cookie})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    assert answer.status == 200, path
    return (time.perf_counter() - begun) * 1000


def open_pages(page: Served, home: Home, caller: Client, daemon: int) -> None:
    """Print what prompts and the daemon's size are beside open pages, as ratios."""
    alone: list[float] = []
    beside: list[float] = []
    rss = [psutil.Process(daemon).memory_info().rss]
    prompts(caller, home, "warm")
    for turn in range(TURNS):
        alone += prompts(caller, home, f"alone {turn}")
        with ExitStack() as opened:
            for _ in range(PAGES):
                stream = opened.enter_context(page.connect())
                path = f"{page.root}events?topics=memory.changed"
                stream.sendall(page.head("GET", path).encode())
                assert b"200" in stream.recv(4096)
            beside += prompts(caller, home, f"beside {turn}")
            rss.append(psutil.Process(daemon).memory_info().rss)
    print(f"prompts beside {PAGES} open pages, of the same without: ", end="")
    for rank in (50, 99):
        quantiles = [statistics.quantiles(one, n=100)[rank - 1] for one in (beside, alone)]
        print(f"p{rank} {quantiles[0] / quantiles[1]:.2f} ({quantiles[0]:.1f} ms)  ", end="")
    print(f"size of the daemon {max(rss[1:]) / rss[0]:.2f} ({rss[0] / 2**20:.0f} MiB before)")


def prompts(caller: Client, home: Home, session: str) -> list[float]:
    """Return how long prompts take, with a change now and then, in milliseconds."""
    about = {"cwd": home.project()}
    result = []
    for number in range(PROMPTS):
        if number % 25 == 0:
            change(caller, home, f"{session} {number}")
        params = {**about, "session_id": f"{session} {number}", "query": PROMPT}
        begun = time.perf_counter()
        caller.call("prefetch", params)
        result.append((time.perf_counter() - begun) * 1000)
    return result


if __name__ == "__main__":
    run(tuple(map(int, sys.argv[1:])) or SIZES)
