"""A full-screen view on a terminal, which is restored on every way out.

Rules of this file
- The alternate screen and the terminal's modes are undone on every way out: the end, an error,
  Ctrl-C, SIGTERM and SIGHUP, which end the program with 128 and their number.
- A stop (Ctrl-Z) restores the terminal first and enters the screen again afterwards. It happens in
  the next call of ``key``, since a signal handler must not write in the middle of a write.
- A change of the terminal's size ends the wait for a key.
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

# Control codes: the alternate screen with a hidden cursor, and back.
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_ARROWS = {"A": "up", "B": "down", "C": "right", "D": "left"}
_END_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
RESIZED, CLOSED = "resized", "closed"  # what ``key`` returns beside keys


class NoTerminalError(MemdError):
    """A screen that changes needs a terminal for its input and its output."""

    hint = "--once prints it as text, --batch N prints it N times"
    exit_status = 2

    def __init__(self) -> None:
        super().__init__("a live screen needs a terminal")


class FullScreen:
    """The alternate screen of a terminal, as a context manager. Raises NoTerminalError."""

    def __init__(self, screen: Screen, stdin: TextIO, environ_term: str) -> None:
        if not (screen.terminal and stdin.isatty()) or environ_term in {"", "dumb"}:
            raise NoTerminalError
        self._screen = screen
        self._input = stdin.fileno()  # the descriptor of the terminal
        self._old_modes = termios.tcgetattr(self._input)
        self._old_handlers: dict[signal.Signals, object] = {}
        self._wake_pipe = (-1, -1)  # descriptors to read and to write; signals write into it
        self._stop_requested = False  # whether Ctrl-Z was pressed since the last call of ``key``

    def __enter__(self) -> Self:
        self._wake_pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        # Each signal writes a byte into the pipe, which ends the wait in ``key``.
        self._old_wakeup = signal.set_wakeup_fd(self._wake_pipe[1], warn_on_full_buffer=False)
        for number in _END_SIGNALS:
            self._old_handlers[number] = signal.signal(number, _exit_on_signal)
        self._old_handlers[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, _ignore)
        self._old_handlers[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._request_stop)
        try:
            self._enter_screen()
        except BaseException:
            self._restore_terminal()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._restore_terminal()
        signal.set_wakeup_fd(self._old_wakeup)
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type] # what signal.signal returned
        for descriptor in self._wake_pipe:
            os.close(descriptor)

    def key(self, seconds: float) -> str:
        """Return the next key, RESIZED after a signal, CLOSED without a terminal, else ""."""
        ready, _, _ = select.select([self._input, self._wake_pipe[0]], [], [], max(0.0, seconds))
        if self._wake_pipe[0] in ready:
            with suppress(BlockingIOError):
                while os.read(self._wake_pipe[0], 100):
                    pass
        if self._stop_requested:
            self._stop_requested = False
            self._stop()
        if self._input not in ready:
            return RESIZED if ready else ""
        try:
            data = os.read(self._input, 32).decode(errors="replace")
        except OSError:  # the terminal was hung up
            return CLOSED
        # Terminals send an arrow key in one of these two forms.
        if data.startswith(("\x1b[", "\x1bO")):
            return _ARROWS.get(data[2:3], "")
        return data[:1] or CLOSED

    def draw(self, lines: Sequence[str]) -> None:
        """Show lines from the top, and nothing below them."""
        self._screen.draw(lines)

    def _enter_screen(self) -> None:
        """Switch to the alternate screen and read single keys without echo."""
        tty.setcbreak(self._input, termios.TCSANOW)
        self._screen.write_codes(_ENTER)

    def _restore_terminal(self) -> None:
        """Leave the alternate screen and restore the terminal's modes."""
        with suppress(OSError, ValueError):  # a terminal that is gone
            self._screen.write_codes(_LEAVE)
        with suppress(OSError, termios.error):
            termios.tcsetattr(self._input, termios.TCSANOW, self._old_modes)

    def _request_stop(self, _number: int, _frame: FrameType | None) -> None:
        """Remember Ctrl-Z; ``key`` stops the process at its next call."""
        self._stop_requested = True

    def _stop(self) -> None:
        """Restore the terminal, stop the process, and draw again once it is continued."""
        self._restore_terminal()
        os.kill(os.getpid(), signal.SIGSTOP)  # returns when the process is continued
        self._enter_screen()


def _exit_on_signal(number: int, _frame: FrameType | None) -> None:
    """Exit with status 128 plus the signal's number, through the clean-up of ``__exit__``."""
    sys.exit(128 + number)


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the wake-up pipe already ends the wait for a key."""
