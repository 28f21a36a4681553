"""cat, head, tail and wc: showing and counting text."""

from collections import deque
from collections.abc import Iterator
from itertools import islice

from memd.agent.options import Given, Syntax, number, read
from memd.agent.refusals import OptionRefusedError
from memd.agent.shell import Lines, Shell, Source
from memd.agent.shell_words import Word
from memd.agent.view import WHOLE_BYTES

_CAT = Syntax("cat", "nbsu", long={"--number": "n", "--number-nonblank": "b"})
_PART_LONG = {"--lines": "n", "--bytes": "c", "--quiet": "q", "--silent": "q", "--verbose": "v"}
_HEAD = Syntax("head", "qv", ("n", "c"), _PART_LONG, digits="n")
_TAIL = Syntax("tail", "qv", ("n", "c"), _PART_LONG, digits="n")
_WC = Syntax(
    "wc",
    "lwcm",
    long={"--lines": "l", "--words": "w", "--bytes": "c", "--chars": "m"},
)
_DEFAULT_LINES = 10
_FROM_START = "only line counts from the start are understood"


def cat(shell: Shell, words: tuple[Word, ...], before: Lines | None) -> Lines:
    """Show files one after the other."""
    given = read(_CAT, words)
    count, blank = 0, False
    for source in shell.sources("cat", given.operands, before):
        if isinstance(source, str):
            yield source
            continue
        for line in source.lines(shell.view):
            if "s" in given.flags and blank and not line:
                continue
            blank = not line
            numbered = bool(line) if "b" in given.flags else "n" in given.flags
            count += numbered
            yield f"{count:6}\t{line}" if numbered else line


def head(shell: Shell, words: tuple[Word, ...], before: Lines | None) -> Lines:
    """Show the first lines, or the first bytes, of each file."""
    given = read(_HEAD, words)
    lines, size = _amount(_HEAD, given)
    for source in _titled(shell, _HEAD, given, before):
        if isinstance(source, str):
            yield source
        elif size is not None:
            yield from _first_bytes(source.lines(shell.view), size)
        else:
            yield from islice(source.lines(shell.view), lines)


def tail(shell: Shell, words: tuple[Word, ...], before: Lines | None) -> Lines:
    """Show the last lines, or the last bytes, of each file; ``-n +N`` shows from line N on."""
    given = read(_TAIL, words)
    lines, size = _amount(_TAIL, given)
    behind = (given.value("n") or "").startswith("+")
    for source in _titled(shell, _TAIL, given, before):
        if isinstance(source, str):
            yield source
        elif behind:
            yield from islice(source.lines(shell.view), max(lines - 1, 0), None)
        elif size is not None:
            yield from _last_bytes(_end(shell, source), size)
        else:
            yield from deque(_end(shell, source), maxlen=lines)


def wc(shell: Shell, words: tuple[Word, ...], before: Lines | None) -> Lines:
    """Count lines, words and bytes."""
    given = read(_WC, words)
    shown = [flag for flag in "lwmc" if flag in given.flags] or ["l", "w", "c"]
    total = dict.fromkeys("lwmc", 0)
    files = 0
    for source in shell.sources("wc", given.operands, before):
        if isinstance(source, str):
            yield source
            continue
        counts = dict.fromkeys("lwmc", 0)
        for piece in source.pieces(shell.view):
            counts["l"] += piece.raw.count("\n")
            counts["w"] += len(piece.raw.split())
            counts["m"] += len(piece.raw)
            counts["c"] += len(piece.raw.encode("utf-8", "replace"))
        if source.entry is not None:
            counts["c"] = source.entry.size
        files += 1
        total = {key: value + counts[key] for key, value in total.items()}
        yield " ".join([*(str(counts[key]) for key in shown), source.path]).rstrip()
    if files > 1:
        yield " ".join([*(str(total[key]) for key in shown), "total"])


def _amount(syntax: Syntax, given: Given) -> tuple[int, int | None]:
    """Return how many lines are meant, and how many bytes where those are."""
    size = given.value("c")
    if size is not None:
        if size.startswith("+"):
            raise OptionRefusedError(syntax.command, "-c", _FROM_START)
        return 0, number(syntax.command, "-c", size)
    lines = given.value("n")
    return (_DEFAULT_LINES if lines is None else number(syntax.command, "-n", lines)), None


def _titled(
    shell: Shell, syntax: Syntax, given: Given, before: Lines | None
) -> Iterator[Source | str]:
    """Yield sources, each with its title before it where there are several."""
    titles = (len(given.operands) > 1 or "v" in given.flags) and "q" not in given.flags
    for source in shell.sources(syntax.command, given.operands, before):
        if titles and isinstance(source, Source):
            yield f"==> {source.path or 'standard input'} <=="
        yield source


def _end(shell: Shell, source: Source) -> Lines:
    """Return the lines of a file's end: all of them where it is not large."""
    size = source.entry.size if source.entry else 0
    start = max(0, size - WHOLE_BYTES)
    lines = source.lines(shell.view, start)
    return islice(lines, 1 if start else 0, None)  # the first may be half a line


def _first_bytes(lines: Lines, size: int) -> Lines:
    left = size
    for line in lines:
        if left <= 0:
            return
        encoded = line.encode("utf-8", "replace")[:left]
        left -= len(encoded) + 1
        yield encoded.decode("utf-8", "ignore")


def _last_bytes(lines: Lines, size: int) -> Lines:
    text = ""
    for line in lines:
        text = f"{text}{line}\n"[-max(size, 1) :]
    kept = text.encode("utf-8", "replace")[-size:] if size else b""
    yield from kept.decode("utf-8", "ignore").removesuffix("\n").split("\n") if kept else ()
