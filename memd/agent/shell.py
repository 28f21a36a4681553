"""What the commands share: whom they ask, what went wrong, and the text that they work on."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from memd.agent.refusals import CommandRefusedError, LimitError, OptionRefusedError, ToolError
from memd.agent.shell_words import Word
from memd.agent.view import Entry, Piece, View

Lines = Iterator[str]
_SECOND = 1_000_000_000


class Shell:
    """One command line: the view it looks through, and its problems so far."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.problems: list[ToolError] = []

    def trouble(self, command: str, error: ToolError) -> str:
        """Remember what went wrong with one file and return it as a line of the answer."""
        if isinstance(error, LimitError | OptionRefusedError):
            raise error
        self.problems.append(error)
        return f"{command}: {error.sentence}"

    def sources(
        self, command: str, operands: tuple[Word, ...], before: Lines | None
    ) -> Iterator["Source | str"]:
        """Yield the files that a command names, or what is piped into it.

        A file that cannot be read is a line of the answer instead. Raises CommandRefusedError.
        """
        if not operands and before is None:
            why = f"{command} names no file, and nothing is piped into it"
            raise CommandRefusedError(why)
        for path in [word.text for word in operands] or ["-"]:
            if path == "-":
                yield Source("", None, before)
                continue
            try:
                yield Source(path, self.view.file(path), None)
            except ToolError as error:
                yield self.trouble(command, error)


class Source:
    """Text to work on: a file, or lines from the command before. ``path`` is "" for those."""

    def __init__(self, path: str, entry: Entry | None, before: Lines | None) -> None:
        self.path = path
        self.entry = entry
        self._before = before

    def pieces(self, view: View, start: int = 0) -> Iterator[Piece]:
        """Yield the text in pieces of whole lines."""
        if self.entry is not None:
            yield from view.pieces(self.entry, start)
        for line in self._before or ():
            yield Piece(f"{line}\n", foreign=False)

    def lines(self, view: View, start: int = 0) -> Lines:
        """Yield the text line by line."""
        for piece in self.pieces(view, start):
            yield from piece.lines()


def when(mtime_ns: int) -> str:
    """Return a file's time to the minute in UTC."""
    return _at(mtime_ns).strftime("%Y-%m-%d %H:%M")


def exactly(mtime_ns: int) -> str:
    """Return a file's time to the second in UTC."""
    return _at(mtime_ns).strftime("%Y-%m-%d %H:%M:%S +0000")


def human(size: int) -> str:
    """Return a size as ``ls -h`` writes it."""
    value, units = float(size), list("PTGMK")
    unit = ""
    while value >= 1024 and units:  # noqa: PLR2004 - a binary thousand
        value, unit = value / 1024, units.pop()
    return f"{value:.1f}{unit}" if unit else str(size)


def _at(mtime_ns: int) -> datetime:
    seconds = min(max(mtime_ns // _SECOND, 0), 253_402_300_799)  # the end of year 9999
    return datetime.fromtimestamp(seconds, UTC)


Command = Callable[[Shell, tuple[Word, ...], Lines | None], Lines]
