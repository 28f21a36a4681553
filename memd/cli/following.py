"""Commands that keep running: print after each event of the daemon, or each new line of a file.

They end when they are interrupted (status 130) or when nobody reads their output (0).
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from memd.cli.invocation import Invocation
from memd.cli.output import Screen
from memd.client.errors import DaemonUnavailableError

_TICK_SECONDS = 1.0  # between two checks that somebody still reads the output
_BURST_SECONDS = 0.05  # a pause this long ends a burst of events, which counts as one event
_POLL_SECONDS = 0.2  # between two looks for a daemon, or at a file
_CHUNK_BYTES = 64 * 1024
_DAEMON_GONE = "memd went away; waiting for it"


def follow(invocation: Invocation, topics: list[str], step: Callable[[], None]) -> None:
    """Call ``step`` at once, and again after each burst of events of the topics.

    When the daemon goes away, wait for another one and call ``step`` again. None is started, since
    a person may have stopped it. Raises what the first calls raise.
    """
    subscribed = False
    while True:
        try:
            invocation.call("subscribe", topics=topics)
            step()
            subscribed = True
            invocation.options.no_start = True  # a daemon that a person stops stays stopped
            while not invocation.screen.reader_gone:
                for _ in invocation.client().notifications(_TICK_SECONDS):
                    # The rest of the burst needs no step of its own: a step reads the current
                    # state.
                    for _ in invocation.client().notifications(_BURST_SECONDS):
                        pass
                    step()
        except DaemonUnavailableError:
            if not subscribed:
                raise
            invocation.close()
            invocation.screen.note(_DAEMON_GONE)
            if not _wait_for_daemon(invocation):
                return
        else:
            return


def _wait_for_daemon(invocation: Invocation) -> bool:
    """Wait until a daemon answers; return ``False`` if nobody reads the output any more."""
    while not invocation.screen.reader_gone:
        with suppress(DaemonUnavailableError):
            invocation.client()
            return True
        time.sleep(_POLL_SECONDS)
    return False


class GrowingFile:
    """Reads the whole lines of a growing file, also after it is rotated or truncated."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1  # of the open file, -1 while none is open
        self._offset = 0  # bytes of the open file that were read
        self._partial_line = b""  # what was read behind the last newline

    def lines(self) -> Iterator[str]:
        """Yield the new lines; after a rotation first the last ones of the old file."""
        yield from self._read()
        with suppress(FileNotFoundError):
            current = os.stat(self._path)
            if self._descriptor >= 0:
                opened = os.fstat(self._descriptor)
                if (current.st_dev, current.st_ino) == (opened.st_dev, opened.st_ino):
                    return  # the file was not rotated
                yield from self._read()  # what was written before the rotation
                self.close()
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            yield from self._read()

    def follow(self, screen: Screen) -> Iterator[str]:
        """Yield the lines that exist and then each new one, while somebody reads them."""
        try:
            while True:
                yield from self.lines()
                if screen.reader_gone:
                    return
                time.sleep(_POLL_SECONDS)
        finally:
            self.close()

    def close(self) -> None:
        """Close the file and drop its unfinished last line; a later read begins anew."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._offset, self._partial_line = -1, 0, b""

    def _read(self) -> Iterator[str]:
        """Yield the whole lines that were added to the open file since the last read."""
        if self._descriptor < 0:
            return
        if os.fstat(self._descriptor).st_size < self._offset:  # the file was truncated
            self._offset, self._partial_line = 0, b""
        while data := os.pread(self._descriptor, _CHUNK_BYTES, self._offset):
            self._offset += len(data)
            *lines, self._partial_line = (self._partial_line + data).split(b"\n")
            yield from (line.decode(errors="replace") for line in lines)
