"""What the benchmarks measure with: series of times, a connection, the size of a process."""

import json
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

_ANSWER_SECONDS = 600.0  # what was never meant for so many memories may take minutes


class RefusedError(Exception):
    """The daemon answered with an error; holds its sentence."""


@dataclass(frozen=True, slots=True)
class Series:
    """Times in milliseconds."""

    times: tuple[float, ...]

    def at(self, share: float) -> float:
        """Return the time that a share of all stays within."""
        ranked = sorted(self.times)
        return ranked[min(len(ranked) - 1, int(len(ranked) * share))]

    @property
    def p50(self) -> float:
        """The median."""
        return self.at(0.5)

    @property
    def p99(self) -> float:
        """What one in a hundred passes."""
        return self.at(0.99)


@dataclass(frozen=True, slots=True)
class Size:
    """The resident memory of a process in MB (10^6 bytes): all of it, mapped files, the peak."""

    resident: float
    mapped: float
    peak: float


class Line:
    """One persistent connection that speaks JSON-RPC, a line a message."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_ANSWER_SECONDS)
        self._socket.connect(path)
        self._reader = self._socket.makefile("rb")
        self.milliseconds = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()
        self._socket.close()

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """Ask and return the result; ``milliseconds`` is then what it took. Raises RefusedError."""
        frame = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        data = json.dumps(frame).encode() + b"\n"
        begin = time.perf_counter()
        self._socket.sendall(data)
        line = self._reader.readline()
        self.milliseconds = (time.perf_counter() - begin) * 1000
        answer = json.loads(line)
        if "error" in answer:
            raise RefusedError(answer["error"]["message"])
        return answer["result"]


def each(act: Callable[[int], object], count: int, seconds: float = _ANSWER_SECONDS) -> Series:
    """Return the times of an act, done ``count`` times or until ``seconds`` have passed."""
    times: list[float] = []
    until = time.perf_counter() + seconds
    while len(times) < count and (not times or time.perf_counter() < until):
        begin = time.perf_counter()
        act(len(times))
        times.append((time.perf_counter() - begin) * 1000)
    return Series(tuple(times))


def least(act: Callable[[], object], times: int) -> float:
    """Return the shortest time of some tries in milliseconds: a floor, without the noise."""
    return min(each(lambda _: act(), times).times)


def size(pid: int) -> Size:
    """Return how big a process is."""
    said = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    resident, mapped, peak = (
        int(said[name].split()[0]) * 1024 / 1e6 for name in ("VmRSS", "RssFile", "VmHWM")
    )
    return Size(resident, mapped, peak)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a table of Markdown, the first of them as its heading."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines)
