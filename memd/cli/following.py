"""Commands that go on: what the daemon tells as it happens, and a file as it grows.

They end when they are interrupted (130) or when nobody reads what they print (0).
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from memd.cli.invocation import Invocation
from memd.cli.output import Screen
from memd.client.errors import DaemonUnavailableError

_TICK_SECONDS = 1.0  # between two looks whether somebody still reads
_SETTLED_SECONDS = 0.05  # of silence, after which events that came together are one
_POLL_SECONDS = 0.2
_CHUNK = 64 * 1024
_GONE = "memd went away; waiting for it"


def follow(invocation: Invocation, topics: list[str], step: Callable[[], None]) -> None:
    """Call a step at once, and again after each event of some topics.

    A daemon that goes away is waited for and not started, since somebody may have stopped it; the
    step is called when it is there again. Raises what the first calls raise.
    """
    subscribed = False
    while True:
        try:
            invocation.call("subscribe", topics=topics)
            step()
            subscribed = invocation.options.no_start = True  # one that is stopped stays so
            while not invocation.screen.reader_gone:
                for _ in invocation.client().notifications(_TICK_SECONDS):
                    for _ in invocation.client().notifications(_SETTLED_SECONDS):
                        pass
                    step()
        except DaemonUnavailableError:
            if not subscribed:
                raise
            invocation.close()
            invocation.screen.note(_GONE)
            if not _back(invocation):
                return
        else:
            return


def _back(invocation: Invocation) -> bool:
    """Wait until a daemon answers again; return false where nobody reads any more."""
    while not invocation.screen.reader_gone:
        with suppress(DaemonUnavailableError):
            invocation.client()
            return True
        time.sleep(_POLL_SECONDS)
    return False


class GrowingFile:
    """Whole lines of a file as it grows, also over its rotation and when it is cut."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1
        self._place = 0
        self._rest = b""

    def lines(self) -> Iterator[str]:
        """Yield the lines that are new, those of a file that was put aside first."""
        yield from self._read()
        with suppress(FileNotFoundError):
            now = os.stat(self._path)
            if self._descriptor >= 0:
                known = os.fstat(self._descriptor)
                if (now.st_dev, now.st_ino) == (known.st_dev, known.st_ino):
                    return
                yield from self._read()  # what came before it was put aside
                self.close()
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            yield from self._read()

    def follow(self, screen: Screen) -> Iterator[str]:
        """Yield the lines that are there and those that come, while somebody reads them."""
        try:
            while True:
                yield from self.lines()
                if screen.reader_gone:
                    return
                time.sleep(_POLL_SECONDS)
        finally:
            self.close()

    def close(self) -> None:
        """Close the file; what it held stays known, and a line without an end is none."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._place, self._rest = -1, 0, b""

    def _read(self) -> Iterator[str]:
        if self._descriptor < 0:
            return
        if os.fstat(self._descriptor).st_size < self._place:  # it was cut
            self._place, self._rest = 0, b""
        while data := os.pread(self._descriptor, _CHUNK, self._place):
            self._place += len(data)
            *whole, self._rest = (self._rest + data).split(b"\n")
            yield from (line.decode(errors="replace") for line in whole)
