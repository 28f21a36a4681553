"""What team memory costs (``make bench-team``), as ratios within one run.

``python -m benchmarks.team [PART...]``: ``pull`` (a first pull of 5,000 entries of 1 KiB beside as
many plain synced files, with and without prompts, and a warm start), ``wire`` (bytes of a pull, an
edit, a list of hashes), ``idle`` (a daemon that joined beside one that did not), ``load`` (200
clients of one server for a minute, with SQLite and with a PostgreSQL where there is one). Every
server and client is on this machine. Nothing here fails; the aims stand beside the figures.
"""

import argparse
import json
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from benchmarks import corpus, team_load
from benchmarks.measures import Line, Series, size, table
from benchmarks.team_load import CLIENTS, SECONDS, LoadResult
from memd.core.text import sha256
from memd.remote.link import HttpRequest, Link
from memd.server.storage import open_storage
from memd.server.values import PutEntry, Session
from tests.server import clusters
from tests.support.daemon import Home, daemon_process, throw_away_home
from tests.support.team import ORIGIN, REMOTE, invited, team_server

PARTS = ("pull", "wire", "idle", "load")
ENTRIES = 5_000
PRIVATE = 200
PROMPTS = 300
_PUT = 100
_KIB, _MIB = 1024, 1.048576  # bytes, MB
_SETTLE_SECONDS = 3.0
_HEAD = """---
name: note-{0}
description: what service {0} drains
metadata:
  type: project
---

"""
Row = tuple[str, str, str]  # what, what was measured, the aim
_QUESTION = "which queue does service {} drain before the nightly export?"


@dataclass(frozen=True, slots=True)
class Upstream:
    """A server with its data, and the way to it."""

    data: str
    repository: str
    counter: "ByteCounter"


@dataclass
class ByteCounter:
    """Passes connections on from an address of its own, and counts their bytes, both ways."""

    url: str
    bytes: int = 0

    def during(self, act: Callable[[], object]) -> int:
        """Return the bytes that passed during an act."""
        before = self.bytes
        act()
        return self.bytes - before

    def accept(self, listener: socket.socket, upstream: tuple[str, int]) -> None:
        """Pass on what connects to a listener, until that is shut down."""
        with suppress(OSError):
            while True:
                ends = (listener.accept()[0], socket.create_connection(upstream))
                for source, sink in (ends, ends[::-1]):
                    threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(64 * _KIB):
                self.bytes += len(data)
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.team")
    parser.add_argument("part", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parts = parser.parse_args().part or PARTS
    rows: list[Row] = [("", "measured", "aim")]
    if set(parts) & _ONE_CLIENT.keys():
        with upstream() as server:
            rows += [
                row for part in parts if part in _ONE_CLIENT for row in _ONE_CLIENT[part](server)
            ]
    rows += load() if "load" in parts else []
    print(table(rows))


def pull(server: Upstream) -> list[Row]:
    """Measure a first pull, prompts beside one, and a warm start."""
    with throw_away_home() as home:
        floor = _seconds(lambda: _plain(home))
        with daemon_process(home), Line(home.places.socket) as line:
            first = _seconds(lambda: _join(home, line, server))
            _call(home, line, "memory.search", query="export")  # waits until all are indexed
        begin = time.perf_counter()
        with daemon_process(home), Line(home.places.socket) as line:
            ready = time.perf_counter() - begin
            _call(home, line, "prefetch", session_id="w", query=_QUESTION.format(7))
            prompt = line.milliseconds
            again = _seconds(lambda: _call(home, line, "team.pull"))
    with throw_away_home() as home, daemon_process(home), Line(home.places.socket) as line:
        corpus.write(str(_folder(home, line)), PRIVATE)
        prompts = _Prompts(home)
        calm = prompts.until(lambda sent: sent >= PROMPTS)
        joining = threading.Thread(target=_join, args=(home, line, server))
        joining.start()
        pulled = prompts.until(lambda _: not joining.is_alive())
        joining.join()
    return [
        (
            f"first pull of {ENTRIES:,} entries of 1 KiB",
            f"{first:.1f} s, as many plain synced files {floor:.1f} s: {first / floor:.1f}x",
            "3x",
        ),
        (
            "warm start with them",
            f"{ready:.2f} s, a prompt {prompt:.0f} ms, a pull {again * 1000:.0f} ms",
            "",
        ),
        (
            f"prefetch during a full pull, {len(pulled.times)} prompts",
            f"p99 {pulled.p99:.1f} ms, idle {calm.p99:.1f} ms: {pulled.p99 / calm.p99:.1f}x",
            "2x",
        ),
    ]


def wire(server: Upstream) -> list[Row]:
    """Measure the bytes of a first pull, one without news, an edit, and all hashes."""
    passed = server.counter.during
    with throw_away_home() as home, daemon_process(home), Line(home.places.socket) as line:
        first = passed(lambda: _join(home, line, server))
        same = passed(lambda: _call(home, line, "team.pull"))
        path = _folder(home, line) / "team" / "note-7.md"
        path.write_bytes(path.read_bytes() + b"One more line.\n")
        edit = passed(lambda: _call(home, line, "team.push")) - path.stat().st_size
    hashes = passed(lambda: anyio.run(_hashes, server))
    return [
        (f"first pull of {ENTRIES:,}, on the wire", f"{first / _KIB:,.0f} KiB", ""),
        ("pull without news", f"{same / _KIB:.2f} KiB", "1 KiB"),
        ("one-line edit, beyond the text", f"{edit / _KIB:.2f} KiB", "1.5 KiB"),
        (f"{ENTRIES:,} hashes", f"{hashes / _KIB:,.0f} KiB", "300 KiB"),
    ]


def idle(server: Upstream) -> list[Row]:
    """Measure what a daemon that joined holds beyond one that has the same files."""
    figures = []
    with throw_away_home() as joined, throw_away_home() as alone:
        with daemon_process(joined), Line(joined.places.socket) as line:
            _join(joined, line, server)
            source = _folder(joined, line)
        with daemon_process(alone), Line(alone.places.socket) as line:
            shutil.copytree(source, _folder(alone, line), dirs_exist_ok=True)
        for home in (alone, joined):
            with daemon_process(home) as process, Line(home.places.socket) as line:
                _call(home, line, "prefetch", session_id="i", query=_QUESTION.format(7))
                if home is joined:
                    _call(home, line, "team.pull")
                time.sleep(_SETTLE_SECONDS)
                figures.append((size(process.pid).resident / _MIB, _descriptors(process.pid)))
    (less, few), (more, many) = figures
    told = f"{more - less:+.1f} MiB (of {more:.0f}), {many - few:+d} descriptors (of {many})"
    return [(f"idle and joined with {ENTRIES:,} files", told, "15 MiB, 16 descriptors")]


def load() -> list[Row]:
    """Load a server with SQLite, and one with PostgreSQL where there is one."""
    with tempfile.TemporaryDirectory(prefix="memd-") as data:
        rows = [_loaded("SQLite", team_load.run(f"{data}/team.db", "--data", data))]
    if clusters.missing():
        return [*rows, ("PostgreSQL", f"left out: {clusters.missing()}", "")]
    with clusters.cluster() as cluster, clusters.database(cluster) as address:
        return [*rows, _loaded("PostgreSQL", team_load.run(address, "--database", address))]


@contextmanager
def upstream() -> Iterator[Upstream]:
    """Run a server with 5,000 entries until the end of the block, behind a counter of bytes."""
    with tempfile.TemporaryDirectory(prefix="memd-") as data:
        repository = _fill(data)
        with team_server("--data", data) as server, _counted(server.url) as counter:
            yield Upstream(data, repository, counter)


_ONE_CLIENT = {"pull": pull, "wire": wire, "idle": idle}


class _Prompts:
    """Prompts of ever new sessions, on a connection of their own."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._asked = 0

    def until(self, over: Callable[[int], bool]) -> Series:
        """Return the times of prompts that are sent until it is over, by how many were sent."""
        times: list[float] = []
        with Line(self._home.places.socket) as line:
            while not over(len(times)):
                self._asked += 1
                question = _QUESTION.format(self._asked)
                _call(self._home, line, "prefetch", session_id=f"p{self._asked}", query=question)
                times.append(line.milliseconds)
        return Series(tuple(times))


@contextmanager
def _counted(url: str) -> Iterator[ByteCounter]:
    """Pass connections on to an address until the end of the block, and count their bytes."""
    host, port = url.rpartition("/")[2].split(":")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        counter = ByteCounter(f"http://127.0.0.1:{listener.getsockname()[1]}")
        accept = threading.Thread(target=counter.accept, args=(listener, (host, int(port))))
        accept.start()
        try:
            yield counter
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accept.join()


def _fill(data: str) -> str:
    """Write the entries into a storage and return the repository."""
    storage = open_storage(f"{data}/team.db")
    repository = storage.add_repository(REMOTE, now=time.time()).id
    team_load.token(storage, repository, "seed")
    for start in range(0, ENTRIES, _PUT):
        entries = [_entry(number) for number in range(start, start + _PUT)]
        number, session = f"00000000-0000-0000-0000-{start:012}", Session(1, "seed", "bench")
        storage.put(session, repository, entries, id=number, body_hash="", now=time.time())
    storage.close()
    return repository


def _entry(number: int) -> PutEntry:
    lines = (f"Queue {number}-{line} is drained before export {line}.\n" for line in range(99))
    content = (_HEAD.format(number) + "".join(lines))[: _KIB - 1].encode() + b"\n"
    return PutEntry(f"note-{number}.md", content, sha256(content), None)


def _plain(home: Home) -> None:
    """Write as many files as there are entries, each synced."""
    folder = Path(home.path) / "plain"
    folder.mkdir()
    for number in range(ENTRIES):
        with (folder / f"note-{number}.md").open("wb") as file:
            file.write(_entry(number).content)
            os.fsync(file.fileno())


def _join(home: Home, line: Line, server: Upstream) -> None:
    """Join as a new member, which pulls everything."""
    config = Path(home.project()) / ".git" / "config"
    config.write_text(ORIGIN, encoding="utf-8")
    code = invited(server.data, f"member-{os.path.basename(home.path)}")
    _call(home, line, "team.join", url=server.counter.url, code=code)


async def _hashes(server: Upstream) -> None:
    """Ask for the hashes of all entries."""
    storage = open_storage(f"{server.data}/team.db")
    token = team_load.token(storage, server.repository, "hashes")
    storage.close()
    path, cursor = f"/v1/repos/{server.repository}/entries?view=hashes", ""
    async with Link(server.counter.url, token) as link:
        while cursor is not None:
            answer = await link.send(HttpRequest("GET", path + (cursor and f"&cursor={cursor}")))
            cursor = json.loads(answer.body)["next"]


def _call(home: Home, line: Line, method: str, **params: Any) -> Any:
    return line.call(method, {"cwd": home.project(), **params})


def _folder(home: Home, line: Line) -> Path:
    return Path(_call(home, line, "memory.list", limit=1)["memory_dir"])


def _descriptors(process: int) -> int:
    return len(os.listdir(f"/proc/{process}/fd"))


def _seconds(act: Callable[[], object]) -> float:
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin


def _loaded(name: str, result: LoadResult) -> tuple[str, str, str]:
    told = (
        f"{len(result.writes.times)} PUT, p50 {result.writes.p50:.0f} ms, p99 "
        f"{result.writes.p99:.0f} ms; {result.lost} lost, {result.refused} refused; all equal "
        f"after {result.equal_seconds:.1f} s; server {result.server_mib:.0f} MiB"
    )
    aim = "p99 250 ms, 0 lost, 10 s, 200 MiB"
    return (f"{CLIENTS} clients for {SECONDS:.0f} s, {name}", told, aim)


if __name__ == "__main__":
    main()
