"""Print what a command answers on standard output, and all else on standard error.

Rules of this file
- With ``--json`` standard output holds exactly the result, one JSON object, on every path.
- Text of memories comes from outside. On a terminal its control characters are shown as escapes
  and never obeyed; into a file or a pipe it goes as it is.
- Colour is for terminals; ``NO_COLOR`` and ``--color`` decide otherwise.
"""

import json
import os
import re
import select
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TextIO

from memd.text.invisible import CONTROLS, DIRECTIONS, HIDDEN, SEPARATORS

_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
# The numbers of the terminal's codes.
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
# Characters that move the cursor, end a line, turn the direction of text or are invisible.
# Variation selectors are left alone, since emoji need them.
_CONTROL = f"[\r{CONTROLS}{SEPARATORS}{DIRECTIONS}{HIDDEN}\u200c\u200d]"
_USUAL_COLUMNS, _USUAL_LINES = 80, 24  # of a terminal that does not say
_MIN_COLUMNS = 10  # the last column of a table is never cut shorter
_UNITS = (("KiB", 1024), ("MiB", 1024**2), ("GiB", 1024**3))


def line_columns(stream: TextIO, environ: Mapping[str, str]) -> int | None:
    """Return the columns of a line: COLUMNS, else the terminal's, ``None`` without either."""
    given = environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    if not stream.isatty():
        return None
    with suppress(OSError):
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_COLUMNS
    return _USUAL_COLUMNS


class Screen:
    """Standard output and standard error: what each may show, and in which form."""

    def __init__(
        self,
        stdout: TextIO,
        stderr: TextIO,
        environ: Mapping[str, str],
        *,
        as_json: bool = False,
        quiet: bool = False,
        color: str = "auto",
    ) -> None:
        self._stdout = stdout
        self._stderr = stderr
        self._quiet = quiet  # no notes on standard error
        self.as_json = as_json
        self.terminal = stdout.isatty()
        self.width = line_columns(stdout, environ)  # ``None`` where no line is cut
        # Whether standard error may have lines that change, and questions may be asked there.
        self.live = stderr.isatty() and not quiet and not as_json
        understands_color = self.terminal and environ.get("TERM") != "dumb"
        is_wanted = understands_color and not environ.get("NO_COLOR")
        self._colored = color == "always" or (color == "auto" and is_wanted)

    @property
    def share(self) -> int | None:
        """The columns that a name may have beside a sentence, ``None`` where no line is cut."""
        return max(self.width * 3 // 10, _MIN_COLUMNS) if self.width else None

    @property
    def height(self) -> int | None:
        """The terminal's height in lines, 24 if it does not say; ``None`` without a terminal."""
        if not self.terminal:
            return None
        with suppress(OSError):
            return os.get_terminal_size(self._stdout.fileno()).lines or _USUAL_LINES
        return _USUAL_LINES

    @property
    def reader_gone(self) -> bool:
        """Whether nobody reads standard output any more: the pipe's other end is closed."""
        try:
            poll = select.poll()
            # Without requested events poll reports only errors and a closed other end.
            poll.register(self._stdout.fileno(), 0)
            return bool(poll.poll(0))
        except (OSError, ValueError):  # the stream has no descriptor
            return False

    def answer(self, result: object, text: str) -> None:
        """Print a result: as JSON with ``--json``, else as ``text`` unless that is empty."""
        if self.as_json:
            self.data(result)
        elif text:
            self._write(text if text.endswith("\n") else f"{text}\n")

    def text(self, result: object, text: str) -> None:
        """Print a result: as JSON with ``--json``, else ``text`` as it is, without colour."""
        if self.as_json:
            self.data(result)
        else:
            self._write(text, colored=False)

    def data(self, value: object) -> None:
        """Print a value as JSON: indented on a terminal, on one line elsewhere."""
        layout: dict[str, Any] = {"indent": 2} if self.terminal else {"separators": (",", ":")}
        self._write(json.dumps(value, ensure_ascii=False, **layout) + "\n")
        self._stdout.flush()

    def record(self, value: object) -> None:
        """Print a value as JSON on one line, and flush."""
        self.line(json.dumps(value, ensure_ascii=False, separators=(",", ":")))

    def line(self, text: str) -> None:
        """Print one line and flush."""
        self._write(f"{text}\n")
        self._stdout.flush()

    def note(self, text: str) -> None:
        """Print a note on standard error, unless ``--quiet`` is given."""
        if not self._quiet:
            self.error(text)

    def error(self, text: str) -> None:
        """Print a message on standard error, escaped on a terminal."""
        self._stderr.write(f"{escape(text) if self._stderr.isatty() else text}\n")
        self._stderr.flush()

    def show_temporary(self, text: str) -> None:
        """Show a temporary line on standard error in place of the last one; "" clears it."""
        if self.live:
            self._stderr.write(f"\r\x1b[K{escape(text)}")
            self._stderr.flush()

    def paint(self, text: str, style: str) -> str:
        """Return a text in a style of the table, marked so that ``escape`` leaves it alone."""
        return f"{_OPEN}{_STYLES[style]};{text}{_CLOSE}" if self._colored and text else text

    def diff(self, text: str) -> str:
        """Return a unified diff with its lines in colours, ended by a newline."""
        if not text:
            return ""
        lines = []
        for line in text.removesuffix("\n").split("\n"):
            style = _DIFF_STYLES.get(line[:1])
            lines.append(self.paint(line, style) if style else line)
        return "\n".join([*lines, ""])

    def _write(self, text: str, *, colored: bool = True) -> None:
        """Write a text to standard output: escaped on a terminal, in colour if wanted."""
        if self.terminal:
            text = escape(text)
        self._stdout.write(_color_codes(text) if colored and self._colored else text)


# Private-use characters stand for the colour escapes until the text itself has been escaped.
_OPEN, _CLOSE = "\ue0f0", "\ue0f1"
# Text of memories can hold these characters too: all they can do there is to colour it.
_PAINTED = f"{_OPEN}({'|'.join(_STYLES.values())});|{_CLOSE}"


def _color_codes(text: str) -> str:
    """Return a text with the marks of ``paint`` replaced by escape codes of the terminal."""
    return re.sub(_PAINTED, lambda match: f"\x1b[{match[1] or '0'}m", text)


def escape(text: str) -> str:
    """Return a text whose control characters are visible, as JSON would write them."""
    return re.sub(_CONTROL, lambda match: f"\\u{ord(match[0]):04x}", text)


def columns(text: str) -> int:
    """Return how many columns a terminal gives a text; East Asian wide characters take two.

    Control characters count as what is shown of them.
    """
    plain = re.sub(_PAINTED, "", text) if _OPEN in text else text
    if not plain.isprintable():
        plain = escape(plain)
    if plain.isascii():
        return len(plain)
    from unicodedata import combining, east_asian_width  # noqa: PLC0415 - rarely needed at start-up

    count = 0
    for char in plain:
        if not combining(char):  # a combining character is drawn over the one before it
            count += 2 if east_asian_width(char) in "WF" else 1  # wide, full width
    return count


def table(rows: Iterable[Sequence[str]], width: int | None = None, cut_column: int = -1) -> str:
    """Return rows as aligned columns; one column is cut so that lines fit ``width``."""
    lines = [[" ".join(cell.split()) for cell in row] for row in rows]
    if not lines:
        return ""
    widths = [max(columns(cell) for cell in column) for column in zip(*lines, strict=True)]
    if width:
        others = sum(widths) - widths[cut_column] + 2 * (len(widths) - 1)
        widths[cut_column] = min(widths[cut_column], max(width - others, _MIN_COLUMNS))
        for line in lines:
            line[cut_column] = cut(line[cut_column], widths[cut_column])
    aligned_lines = []
    for line in lines:
        padded_cells = [
            cell + " " * (cell_width - columns(cell))
            for cell, cell_width in zip(line, widths, strict=True)
        ]
        aligned_lines.append("  ".join(padded_cells).rstrip())
    return "\n".join(aligned_lines) + "\n"


def cut(text: str, width: int | None) -> str:
    """Return a text cut to at most ``width`` columns; ``…`` marks the cut."""
    if width is None or columns(text) <= width:
        return text
    # One column is left for the sign of the cut.
    while columns(text) >= max(width, 1):
        text = text[:-1]
    style_is_open = text.count(_OPEN) > text.count(_CLOSE)
    return f"{text.rstrip()}…{_CLOSE if style_is_open else ''}"


def facts(pairs: Iterable[tuple[str, object]], width: int | None = None) -> str:
    """Return pairs of name and value as lines, without the pairs whose value is empty."""
    rows = [(name, str(value)) for name, value in pairs if value not in (None, "", [], {})]
    return table(rows, width)


def place(path: str, home: str) -> str:
    """Return a directory's short form.

    For a memory directory this is the name of its project's folder, for one in the home directory
    the path with ``~``, for any other the whole path.
    """
    project_folder, _, name = path.rpartition("/")
    projects_folder, _, project = project_folder.rpartition("/")
    if name == "memory" and projects_folder.endswith("/projects"):
        return project
    return f"~{path[len(home) :]}" if f"{path}/".startswith(f"{home}/") else path


def size(count: int) -> str:
    """Return a number of bytes as a person reads it."""
    text = f"{count} bytes"
    for unit, factor in _UNITS:  # the largest unit that fits is the last one
        if count >= factor:
            text = f"{count / factor:.1f} {unit}"
    return text


def duration(seconds: float) -> str:
    """Return a time span with at most two units."""
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))} ms"
    whole_seconds = int(seconds)
    parts = (
        (whole_seconds // 86400, "d"),
        (whole_seconds // 3600 % 24, "h"),
        (whole_seconds // 60 % 60, "min"),
        (whole_seconds % 60, "s"),
    )
    largest = next(index for index, (count, _) in enumerate(parts) if count)
    return " ".join(f"{count} {unit}" for count, unit in parts[largest : largest + 2] if count)


def ago(at: str) -> str:
    """Return how long ago an ISO 8601 time was; any other text is returned unchanged."""
    from memd.base.instants import written  # noqa: PLC0415 - not every command prints a time

    seconds = written(at)
    if seconds is None:
        return at
    return age(time.time() - seconds)


def local_time(at: str) -> str:
    """Return an ISO 8601 time as a time of this machine's zone; any other text unchanged."""
    from memd.base.instants import written  # noqa: PLC0415 - as in ``ago``

    seconds = written(at)
    return at if seconds is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def age(seconds: float) -> str:
    """Return an age of so many seconds in words, such as ``5 min ago``."""
    return f"{duration(seconds)} ago" if seconds >= 1 else "just now"
