"""memctl on a terminal of the system, as a person has it."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from memd.testing.daemon import memctl_command
from tests.cli.home import Home

SECONDS = 30.0  # for what a slow machine takes; nobody waits for it
ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A program on a terminal: what it wrote, and the keys that are pressed there."""

    def __init__(self, process: "subprocess.Popen[bytes]", descriptor: int, slave: int) -> None:
        self.process = process
        self.text = ""
        self._descriptor = descriptor
        self._slave = slave
        self.before = termios.tcgetattr(slave)

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self._descriptor, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size; the program is told by the system."""
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, size)
        self.process.send_signal(signal.SIGWINCH)

    def until(self, wanted: str) -> str:
        """Read until some text was written since the last time; return what was written."""
        start = len(self.text)
        until = time.monotonic() + SECONDS
        while wanted not in self.text[start:]:
            assert time.monotonic() < until, self.text[start:]
            self._read(1.0)
        return self.text[start:]

    def picture(self, wanted: Callable[[list[str]], bool]) -> list[str]:
        """Return the lines of a picture that is wanted, once one was drawn as a whole."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            *pictures, rest = self.text.split("\x1b[J")
            self.text = rest
            for picture in pictures:
                lines = _CODES.sub("", picture).split("\r\n")
                if wanted(lines):
                    return lines
            self._read(0.2)
        raise AssertionError(self.text)

    def frame(self, words: str) -> list[str]:
        """Return the lines of a picture that has some words."""
        return self.picture(lambda lines: any(words in line for line in lines))

    def ended(self) -> int:
        """Return the status of the program once it has ended, having read the rest."""
        until = time.monotonic() + SECONDS
        while self.process.poll() is None and time.monotonic() < until:
            self._read(0.1)
        self._read(0.1)
        return self.process.wait(1)

    def attributes(self) -> list[Any]:
        """Return the modes of the terminal now."""
        return termios.tcgetattr(self._slave)

    def _read(self, seconds: float) -> None:
        if select.select([self._descriptor], [], [], seconds)[0]:
            self.text += os.read(self._descriptor, 65536).decode(errors="replace")


@contextmanager
def on_a_terminal(home: Home, *arguments: str, term: str = "xterm") -> Iterator[Terminal]:
    """Run memctl on a terminal of 80 columns and 24 lines; it ends with the block."""
    master, slave = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        memctl_command("--cwd", home.cwd, "--no-start", *arguments),
        env={**home.environ, "TERM": term, "NO_COLOR": "1"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    try:
        yield Terminal(process, master, slave)
    finally:
        process.kill()
        process.wait()
        os.close(master)
        os.close(slave)
