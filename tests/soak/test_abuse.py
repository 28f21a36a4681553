"""G10: what one hostile client can cost: memory of frames, unread answers, descriptors, batches.

Memory is the daemon's resident one at its highest while the abuse lasts, above what it was before.
"""

import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from memd.client.errors import DaemonUnavailableError, RemoteError
from memd.testing.daemon import Home, client, daemon_process, throw_away_home
from tests.soak import second_client
from tests.soak.figures import FIGURE
from tests.soak.malformed import GOOD

Record = Callable[[str, object], None]
pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the highest memory is told by /proc"
)
MEBIBYTE = 1024 * 1024
MEMORIES = 300  # a list of them is 90 kB
_FLOOD_BYTES = 100 * MEBIBYTE
_PIECE = b"x" * (64 * 1024)
_FEW_DESCRIPTORS = 64
_LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]),) * 2)
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Home, str, int]]:
    """Run a daemon with some memories, and have its caches filled."""
    with throw_away_home() as home, daemon_process(home) as process:
        cwd = home.project()
        with client(home) as caller:
            folder = Path(caller.call("memory.list", {"cwd": cwd})["memory_dir"])
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(MEMORIES):
                head = f"name: m{number}\ndescription: memory {number}\nmetadata:\n  type: user"
                (folder / f"m{number}.md").write_text(f"---\n{head}\n---\n\ntext {number}\n")
            for _ in range(20):
                caller.call("memory.list", {"cwd": cwd})
        for _ in range(3):
            flood(home, b"{")
        yield home, cwd, process.pid


def resident(pid: int, name: str = "VmRSS") -> float:
    """Return the resident memory of a process in MiB: now, or with VmHWM at its highest."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


def costs(pid: int, act: Callable[[], object]) -> float:
    """Return how far the memory of a process rises while something is done, in MiB."""
    before = resident(pid)
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # the highest begins anew
    act()
    return resident(pid, "VmHWM") - before


def connected(home: Home) -> socket.socket:
    """Return a new connection."""
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(30)
    made.connect(home.places.socket)
    return made


def flood(home: Home, begin: bytes, size: int = _FLOOD_BYTES) -> bytes:
    """Send so many bytes that end nothing, and return what is said of them."""
    with connected(home) as made:
        with suppress(OSError):
            made.sendall(begin)
            for _ in range(size // len(_PIECE)):
                made.sendall(_PIECE)
        return made.recv(1000)


@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.soak)])
def test_a_frame_without_end_costs_its_bound(
    running: tuple[Home, str, int], rounds: int, record_property: Record
) -> None:
    """A flood without a newline takes the bytes of one frame, one that is announced none at all."""
    home, _, pid = running
    before = resident(pid)
    line = max(costs(pid, lambda: flood(home, b"{")) for _ in range(rounds))
    announced = max(
        costs(pid, lambda: flood(home, b"Content-Length: %d\r\n\r\n" % _FLOOD_BYTES))
        for _ in range(rounds)
    )
    left = resident(pid) - before
    record_property(
        FIGURE,
        f"G10 {rounds} floods of 100 MiB: without a newline +{line:.1f} MiB at most, announced"
        f" +{announced:.1f} MiB; afterwards {left:+.1f} MiB",
    )
    assert b"too_large" in flood(home, b"{")
    assert line <= 4.5  # 4 MiB of the frame, a piece that was on the way, a connection
    assert announced <= 0.5
    assert left <= 1


@pytest.mark.parametrize("requests", [500, pytest.param(20_000, marks=pytest.mark.soak)])
def test_a_client_that_never_reads_costs_its_bound(
    running: tuple[Home, str, int], requests: int, record_property: Record
) -> None:
    """What one client does not read is bounded, however much it asks for."""
    home, cwd, pid = running
    line = b'{"jsonrpc":"2.0","id":%d,"method":"memory.list","params":{"cwd":"%b"}}\n'

    def ask() -> None:
        with connected(home) as made:
            made.settimeout(2)
            with suppress(OSError):
                for number in range(requests):
                    made.sendall(line % (number, cwd.encode()))

    cost = costs(pid, ask)
    record_property(FIGURE, f"G10 a client that never reads: +{cost:.1f} MiB at most")
    assert cost <= 8


@pytest.mark.parametrize("count", [300, pytest.param(1000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("says", [b"", GOOD[:20], b"Content-Length: 10\r\n"], ids=str)
def test_half_open_connections_are_survived(
    running: tuple[Home, str, int], count: int, says: bytes, record_property: Record
) -> None:
    """A thousand connections with nothing or half a frame keep nobody out, and leave nothing."""
    home, cwd, pid = running
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(connected(home)).sendall(says)
        begun = time.monotonic()
        with client(home) as caller:
            caller.call("memory.list", {"cwd": cwd})
        among = time.monotonic() - begun
        rss = resident(pid)
    begun = time.monotonic()
    with client(home) as caller:
        assert caller.call("status", {})["pid"] == pid
    after = time.monotonic() - begun
    record_property(
        FIGURE,
        f"G10 {count} connections with {says!r}: a new client is answered after {among:.2f} s among"
        f" them, {after:.2f} s behind them; RSS {rss:.0f} MiB",
    )
    assert max(among, after) <= 1


@pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=pytest.mark.soak)])
def test_without_descriptors_it_serves_again_within_a_second(
    rounds: int, record_property: Record
) -> None:
    """A daemon with 64 descriptors and 200 clients is the same afterwards, and serves at once."""
    memd = (sys.executable, "-m", "memd", "serve")
    command = (sys.executable, "-c", _LIMITED, str(_FEW_DESCRIPTORS), *memd)
    slowest = 0.0
    with throw_away_home() as home, daemon_process(home, command=command) as process:
        for _ in range(rounds):
            with ExitStack() as stack:
                for _ in range(200):
                    stack.enter_context(connected(home))
            begun = time.monotonic()
            while not _served(home, process.pid):
                assert time.monotonic() - begun < 5
            slowest = max(slowest, time.monotonic() - begun)
        assert "accept_failed" in Path(home.places.log).read_text()
    record_property(
        FIGURE,
        f"G10 {_FEW_DESCRIPTORS} descriptors and 200 clients, {rounds} rounds: served again after"
        f" {slowest:.2f} s at most",
    )
    assert slowest <= 1


def _served(home: Home, pid: int) -> bool:
    with suppress(DaemonUnavailableError, RemoteError), client(home) as caller:
        return bool(caller.call("status", {})["pid"] == pid)
    return False


@pytest.mark.parametrize("rounds", [2, pytest.param(30, marks=pytest.mark.soak)])
def test_a_batch_of_20_000_keeps_nobody_waiting(
    running: tuple[Home, str, int], rounds: int, record_property: Record
) -> None:
    """While batches that are far too large come in, a second client is answered as ever."""
    home, cwd, _ = running
    batch = b"[" + b",".join([GOOD] * 20_000) + b"]\n"
    with second_client.asking(home, cwd) as alone:
        threading.Event().wait(rounds / 10)
    with second_client.asking(home, cwd) as meanwhile:
        for _ in range(rounds):
            with connected(home) as made:
                made.sendall(batch)
                assert b"too_large" in made.recv(1000)
    record_property(
        FIGURE, f"G10 {rounds} batches of 20,000: second client {meanwhile}; alone {alone}"
    )
    assert meanwhile.at(1) <= max(100, 10 * alone.at(1))
