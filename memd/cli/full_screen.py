"""A terminal that is taken whole for a while and given back as it was, whatever happens.

Rules of this file
- The alternate screen and the terminal's modes are undone on every way out: the end, an error,
  Ctrl-C, SIGTERM and SIGHUP, which end the program with 128 and their number.
- A stop (Ctrl-Z) gives the terminal back first and takes it again afterwards. It waits for the
  next look at the keys: a signal in the middle of a write must not write itself.
- A change of the terminal's size wakes who waits for a key.
"""

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Self, TextIO

from memd.cli.output import Screen
from memd.core.errors import MemdError

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_ARROWS = {"A": "up", "B": "down", "C": "right", "D": "left"}
_ENDING = (signal.SIGTERM, signal.SIGHUP)
RESIZED, CLOSED = "resized", "closed"


class NoTerminalError(MemdError):
    """A screen that changes needs a terminal for its input and its output."""

    hint = "--once prints it as text, --batch N prints it N times"
    exit_status = 2

    def __init__(self) -> None:
        super().__init__("a live screen needs a terminal")


class FullScreen:
    """Use it as a context manager. Raises NoTerminalError."""

    def __init__(self, screen: Screen, stdin: TextIO, environ_term: str) -> None:
        if not (screen.terminal and stdin.isatty()) or environ_term in {"", "dumb"}:
            raise NoTerminalError
        self._screen = screen
        self._keys = stdin.fileno()
        self._before = termios.tcgetattr(self._keys)
        self._old: dict[signal.Signals, object] = {}
        self._wakes = (-1, -1)
        self._stopping = False

    def __enter__(self) -> Self:
        self._wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._woken_before = signal.set_wakeup_fd(self._wakes[1], warn_on_full_buffer=False)
        for number in _ENDING:
            self._old[number] = signal.signal(number, _end)
        self._old[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, _nothing)
        self._old[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._ask_to_stop)
        try:
            self._take()
        except BaseException:
            self._give_back()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._give_back()
        signal.set_wakeup_fd(self._woken_before)
        for number, handler in self._old.items():
            signal.signal(number, handler)  # type: ignore[arg-type] # what signal.signal returned
        for descriptor in self._wakes:
            os.close(descriptor)

    def key(self, seconds: float) -> str:
        """Return the next key, RESIZED, CLOSED for a terminal that is gone, "" for none in time."""
        ready, _, _ = select.select([self._keys, self._wakes[0]], [], [], max(0.0, seconds))
        if self._wakes[0] in ready:
            with suppress(BlockingIOError):
                while os.read(self._wakes[0], 100):
                    pass
        if self._stopping:
            self._stopping = False
            self._stop()
        if self._keys not in ready:
            return RESIZED if ready else ""
        try:
            data = os.read(self._keys, 32).decode(errors="replace")
        except OSError:  # the terminal was hung up
            return CLOSED
        if data.startswith(("\x1b[", "\x1bO")):
            return _ARROWS.get(data[2:3], "")
        return data[:1] or CLOSED

    def draw(self, lines: Sequence[str]) -> None:
        """Show lines from the top, and nothing below them."""
        self._screen.draw(lines)

    def _take(self) -> None:
        tty.setcbreak(self._keys, termios.TCSANOW)
        self._screen.steer(_ENTER)

    def _give_back(self) -> None:
        with suppress(OSError, ValueError):  # a terminal that is gone
            self._screen.steer(_LEAVE)
        with suppress(OSError, termios.error):
            termios.tcsetattr(self._keys, termios.TCSANOW, self._before)

    def _ask_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True

    def _stop(self) -> None:
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)  # goes on here once it is continued
        self._take()


def _end(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """Let the wake-up tell of it."""
