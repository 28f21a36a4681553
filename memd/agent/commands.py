"""Run the commands of the read-only shell: ls, cat, head, tail, wc, grep and find.

A command is a function that gets its options and the piped lines and yields lines. Options are read
by argparse (``options``); an unknown one is refused with the name of the tool to use instead.
"""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from memd.agent import matching
from memd.agent.refusals import CommandRefusedError, LimitError, ToolError
from memd.agent.view import WHOLE_BYTES, AgentView, FileEntry, TextPiece
from memd.core import globs

if TYPE_CHECKING:
    from memd.agent.options import Given

Lines = Iterator[str]
_HIGHEST_NUMBER = 1_000_000  # that an option may have
_NUMBER = re.compile(r"\d{1,7}", re.ASCII)
_NUMBER_FLAG = re.compile(r"^-(\d+)$", re.ASCII)  # such as ``-3``
_NS = 1_000_000_000
_LAST_SECOND = 253_402_300_799  # of the year 9999, the last that can be shown
_NO_NUMBER = f"it must be a number up to {_HIGHEST_NUMBER}"
_NO_PATTERN = "grep has no pattern"


class InputText(Struct, frozen=True):
    """One input of a command: a file, or the piped lines, whose path is empty."""

    path: str
    view: AgentView
    entry: FileEntry | None
    piped: Lines | None = None

    def pieces(self, start: int = 0) -> Iterator[TextPiece]:
        """Yield the text in pieces of whole lines."""
        if self.entry is not None:
            yield from self.view.pieces(self.entry, start)
        for line in self.piped or ():
            yield TextPiece(f"{line}\n", foreign=False)

    def lines(self, start: int = 0) -> Lines:
        """Yield the text line by line."""
        for piece in self.pieces(start):
            yield from piece.lines()


class Shell:
    """The state of one command line: its view of the files, and its problems so far."""

    def __init__(self, view: AgentView) -> None:
        self.view = view
        self.problems: list[ToolError] = []  # of files; the answer's fault is made of them
        self.messages: list[str] = []  # lines about them, which follow the output

    def report(self, command: str, error: ToolError) -> None:
        """Record an error of one file; raise one that ends the whole command line."""
        if isinstance(error, LimitError | CommandRefusedError):
            raise error
        self.problems.append(error)
        self.messages.append(f"{command}: {error.sentence}")

    def entries(self, command: str, paths: Sequence[str]) -> Iterator[FileEntry]:
        """Yield the files and folders at paths; report those that cannot be read."""
        for path in paths:
            try:
                yield self.view.entry(path)
            except ToolError as error:
                self.report(command, error)

    def texts(self, command: str, paths: Sequence[str], piped: Lines | None) -> Iterator[InputText]:
        """Yield the files at paths, or the piped lines. Raises CommandRefusedError for neither."""
        if not paths and piped is None:
            why = f"{command} names no file, and nothing is piped into it"
            raise CommandRefusedError(why)
        for path in paths or ["-"]:
            if path == "-":
                yield InputText("", self.view, None, piped)
                continue
            try:
                entry = self.view.file(path)
            except ToolError as error:
                self.report(command, error)
                continue
            yield InputText(path, self.view, entry)


def begin(name: str, words: Sequence[str], shell: Shell, piped: Lines | None) -> Lines:
    """Return the lines that one command prints. Raises CommandRefusedError."""
    flag = "C" if name == "grep" else "n"  # grep -3 stands for -C3, head -3 for -n3
    words = ["-not" if word == "!" else _NUMBER_FLAG.sub(rf"-{flag}\1", word) for word in words]
    from memd.agent import options  # noqa: PLC0415 - argparse, for daemons that run an agent

    run, flags = _COMMANDS[name]
    parser = options.parser_of(name, flags, _parse_number, _HIGHEST_NUMBER)
    given = parser.parse_intermixed_args(words, options.Given(conditions=[], negated=False))
    return run(given, shell, piped)


def _ls(given: "Given", shell: Shell, _piped: Lines | None) -> Lines:
    """List folders and files, always without hidden ones and with sizes in bytes."""
    entries = list(shell.entries("ls", given.paths or ["."]))
    # With ``-d`` a folder is listed like a file, without what is in it.
    files = [entry for entry in entries if given.d or not entry.folder]
    for entry in _sorted(files, given):
        yield _ls_line(entry, entry.shown, given)
    for top in entries:
        if top.folder and not given.d:
            yield from _ls_folder(top, given, shell)


def _ls_folder(top: FileEntry, given: "Given", shell: Shell) -> Lines:
    """List the entries of a folder, with ``-R`` also those of all folders below it."""
    folders = [entry for _, entry in shell.view.walk(top) if entry.folder] if given.R else [top]
    for index, folder in enumerate(folders):
        if given.R or len(given.paths) > 1:
            if index:
                yield ""
            yield f"{folder.shown}:"
        for child in _sorted(shell.view.children(folder), given):
            yield _ls_line(child, child.name, given)


def _sorted(entries: list[FileEntry], given: "Given") -> list[FileEntry]:
    """Return ls's entries by path, or with ``-t`` the newest first; ``-r`` reverses the order."""
    if given.t:
        return sorted(entries, key=lambda e: (-e.mtime_ns, e.shown), reverse=given.r)
    return sorted(entries, key=lambda e: e.shown, reverse=given.r)


def _ls_line(entry: FileEntry, name: str, given: "Given") -> str:
    """Return the line of an entry in ls's output; with ``-l`` its size and time come first."""
    name = f"{name}/" if entry.folder and (given.F or given.p) else name
    if not given.l:
        return name
    kind = "d" if entry.folder else "-"
    seconds = min(max(entry.mtime_ns // _NS, 0), _LAST_SECOND)
    when = datetime.fromtimestamp(seconds, UTC)
    return f"{kind} {entry.size:>9} {when:%Y-%m-%d %H:%M} {name}"


def _cat(given: "Given", shell: Shell, piped: Lines | None) -> Lines:
    """Yield the lines of all files, with ``-n`` numbered."""
    texts = shell.texts("cat", given.paths, piped)
    lines = (line for text in texts for line in text.lines())
    for number, line in enumerate(lines, 1):
        yield f"{number:6}\t{line}" if given.n else line


def _head(given: "Given", shell: Shell, piped: Lines | None) -> Lines:
    """Yield the first lines of each file."""
    lines = _parse_number(given.lines)
    for text in shell.texts("head", given.paths, piped):
        yield from _title(text, given)
        yield from islice(text.lines(), lines)


def _tail(given: "Given", shell: Shell, piped: Lines | None) -> Lines:
    """Yield the last lines of each file; with ``-n +N`` those from line N on."""
    number = _parse_number(given.lines.removeprefix("+"))
    for text in shell.texts("tail", given.paths, piped):
        yield from _title(text, given)
        if given.lines.startswith("+"):
            yield from islice(text.lines(), max(number - 1, 0), None)
        else:
            size = text.entry.size if text.entry else 0
            start = max(0, size - WHOLE_BYTES)
            # Reading from the middle of a file may begin with half a line, which is dropped.
            lines = islice(text.lines(start), 1 if start else 0, None)
            yield from deque(lines, maxlen=number)


def _title(text: InputText, given: "Given") -> list[str]:
    """Return the line that names a file among several, no line for a single file or with ``-q``."""
    return [f"==> {text.path} <=="] if len(given.paths) > 1 and not given.q else []


def _wc(given: "Given", shell: Shell, piped: Lines | None) -> Lines:
    """Yield the numbers of lines, words, characters and bytes of each file."""
    shown = [flag for flag in "lwmc" if getattr(given, flag)] or ["l", "w", "c"]
    total: Counter[str] = Counter()
    for text in shell.texts("wc", given.paths, piped):
        counts: Counter[str] = Counter(c=text.entry.size if text.entry else 0)
        for piece in text.pieces():
            size = 0 if text.entry else len(piece.raw.encode("utf-8", "replace"))
            words = len(piece.raw.split())
            counts.update(l=piece.raw.count("\n"), w=words, m=len(piece.raw), c=size)
        total.update(counts)
        yield _wc_line(counts, shown, text.path)
    if len(given.paths) > 1:
        yield _wc_line(total, shown, "total")


def _wc_line(counts: Mapping[str, int], shown: Sequence[str], name: str) -> str:
    """Return the line of a file in wc's output; ``shown`` are the flags of the counts in it."""
    numbers = [str(counts[flag]) for flag in shown]
    return " ".join([*numbers, name]).rstrip()


def _grep(given: "Given", shell: Shell, piped: Lines | None) -> Lines:
    """Yield the lines that match, or their number, or the names of the files that have some."""
    patterns = given.e or given.paths[:1]
    paths = given.paths if given.e else given.paths[1:]
    if not patterns:
        raise CommandRefusedError(_NO_PATTERN)
    search = _search(patterns, given)
    if given.r or given.R:
        texts, has_several = _files_below(shell, given, paths), True
    else:
        texts, has_several = shell.texts("grep", paths, piped), len(paths) > 1
    with_name = given.H or (has_several and not given.h)
    for text in texts:
        try:
            yield from _grep_output(text, search, given, with_name=with_name)
        except ToolError as error:
            shell.report("grep", error)
    if given.s:  # grep -s prints no errors
        shell.messages.clear()


def _search(patterns: Sequence[str], given: "Given") -> matching.Search:
    """Return the search for grep's patterns and options."""
    parts = [line for pattern in patterns for line in pattern.split("\n")]
    if given.F:
        parts = [re.escape(pattern) for pattern in parts]
    elif not given.E:
        parts = [matching.basic(pattern) for pattern in parts]
    joined = "|".join(f"(?:{pattern})" for pattern in parts) if len(parts) > 1 else parts[0]
    if given.x:  # whole lines
        joined = f"^(?:{joined})$"
    elif given.w:  # whole words
        joined = rf"\b(?:{joined})\b"
    around = {"before": given.B or given.C or 0, "after": given.A or given.C or 0}
    return matching.search(joined, ignore_case=given.i, invert=given.v, most=given.m, **around)


def _files_below(shell: Shell, given: "Given", paths: Sequence[str]) -> Iterator[InputText]:
    """Yield the files below paths whose names match ``--include``, or all without it."""
    for top in shell.entries("grep", paths or ["."]):
        for _, entry in shell.view.walk(top):
            is_included = not given.include or any(fits(entry.name) for fits in given.include)
            if is_included and not entry.folder:
                yield InputText(entry.shown, shell.view, entry)


def _grep_output(
    text: InputText, search: matching.Search, given: "Given", *, with_name: bool
) -> Lines:
    """Yield grep's output for one input: its name, its count, or its matching lines."""
    name = text.path or "(standard input)"
    result = matching.lines(search, text.pieces(), text.view.meter.tick)
    if given.l or given.L or given.q:
        has_match = any(line.hit for line in result)
        # ``-l`` names the files with a match, ``-L`` those without one, ``-q`` prints nothing.
        if has_match == given.l and not given.q:
            yield name
    elif given.c:
        count = sum(line.hit for line in result)
        yield f"{name}:{count}" if with_name else str(count)
    else:
        yield from matching.shown(search, result, name if with_name else "", numbers=given.n)


def _find(given: "Given", shell: Shell, _piped: Lines | None) -> Lines:
    """List the files and folders below each path that fulfil all conditions."""
    tests = [(_test(option, value), negated) for option, value, negated in given.conditions]
    for top in shell.entries("find", given.paths or ["."]):
        for _, entry in shell.view.walk(top, given.maxdepth):
            if all(test(entry) != negated for test, negated in tests):
                yield entry.shown


def _test(option: str, value: str) -> Callable[[FileEntry], bool]:
    """Return one condition of find as a test of an entry."""
    if option in ("-name", "-iname"):
        fits_name = globs.compiled(value, ignore_case=option == "-iname")
        return lambda entry: fits_name(entry.name)
    if option == "-path":
        fits_path = globs.compiled(value.replace("*", "**"))  # there a star crosses folders
        return lambda entry: fits_path(entry.shown)
    if option == "-type":
        return lambda entry: entry.folder == (value == "d")
    return lambda _entry: True  # -print


def _parse_number(value: str) -> int:
    """Return the number that an option is given. Raises CommandRefusedError."""
    if not _NUMBER.fullmatch(value) or int(value) > _HIGHEST_NUMBER:
        raise CommandRefusedError(_NO_NUMBER)
    return int(value)


# Each command with the flags that it knows without a value.
_COMMANDS: dict[str, tuple[Callable[["Given", Shell, Lines | None], Lines], str]] = {
    "cat": (_cat, "n"),
    "find": (_find, ""),
    "grep": (_grep, "ivnclLwxEFGrRhHsqIa"),
    "head": (_head, "q"),
    "ls": (_ls, "laA1htrRdFp"),
    "tail": (_tail, "q"),
    "wc": (_wc, "lwcm"),
}
NAMES = tuple(_COMMANDS)
