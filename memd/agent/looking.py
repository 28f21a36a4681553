"""Run the tools Read, Grep and Glob on the files of a view, with answers of limited size."""

from collections.abc import Iterator
from itertools import islice

from msgspec.structs import replace

from memd.agent import matching
from memd.agent.answer import collect
from memd.agent.matching import Search
from memd.agent.refusals import ToolError
from memd.agent.step import ToolResult
from memd.agent.tools import Glob, Grep, Read
from memd.agent.view import AgentView, FileEntry
from memd.base import globs

READ_LINES = 2_000  # of one answer of Read
READ_BYTES = 64 * 1024  # of one answer of Read
_ANSWER_LINES = 200  # of Grep or Glob, where the call has no limit of its own
_LINES_AROUND = 50  # before or after a hit, at most


def read(given: Read, entry: FileEntry, view: AgentView) -> ToolResult:
    """Return a file's lines with their numbers."""
    first = max(given.offset or 1, 1)
    most = READ_LINES if given.limit is None else min(given.limit, READ_LINES)
    problems: list[ToolError] = []
    numbered_lines = _numbered_lines(view, entry, first)
    lines = (f"{number:6}\t{text}" for number, text in islice(numbered_lines, most))
    text = collect(lines, problems, READ_BYTES)
    if not text:
        text = "(the file is empty)" if first == 1 else f"(it has fewer than {first} lines)"
    elif next(numbered_lines, None) is not None:
        text += "\n[… there is more; read on with offset]"
    return ToolResult(text, problems[0].fault if problems else "")


def grep(given: Grep, view: AgentView) -> ToolResult:
    """Return the lines, names or counts of the files that match a pattern."""
    before, after = _lines_around(given)
    search = matching.search(
        given.pattern,
        ignore_case=given.ignore_case,
        before=before,
        after=after,
        most=1 if given.output_mode == "files_with_matches" else None,
    )
    problems: list[ToolError] = []
    first = given.offset or 0
    most = _ANSWER_LINES if given.head_limit is None else given.head_limit
    end = first + most if most else None  # a limit of 0 stands for none
    text = collect(islice(_grep_lines(given, search, view), first, end), problems)
    fault = problems[0].fault if problems else ""
    return ToolResult(text or "(nothing found)", fault)


def _lines_around(given: Grep) -> tuple[int, int]:
    """Return how many lines before and after a hit are shown; none where lines are not shown."""
    if given.output_mode != "content":
        return 0, 0
    default = given.around if given.context is None else given.context
    before = default if given.before is None else given.before
    after = default if given.after is None else given.after
    return min(before or 0, _LINES_AROUND), min(after or 0, _LINES_AROUND)


def glob(given: Glob, view: AgentView) -> ToolResult:
    """Return the names of the files that match a pattern, newest first."""
    top = _top(given.path, view)
    fits = globs.compiled(_relative_pattern(given.pattern, top))
    entries = [entry for entry, path in _files(top, view) if fits(path)]
    entries.sort(key=lambda entry: (-entry.mtime_ns, entry.shown))
    problems: list[ToolError] = []
    text = collect((entry.shown for entry in entries[:_ANSWER_LINES]), problems)
    text = text or "(nothing found)"
    more = len(entries) - _ANSWER_LINES
    return ToolResult(f"{text}\n[… and {more} more]" if more > 0 else text)


def _numbered_lines(view: AgentView, entry: FileEntry, first: int) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers, from line ``first`` on."""
    number = 0
    for piece in view.pieces(entry):
        if number + piece.count() < first:
            number += piece.count()
            continue
        for text in piece.lines():
            number += 1
            if number >= first:
                yield number, text


def _grep_lines(given: Grep, search: Search, view: AgentView) -> Iterator[str]:
    """Yield Grep's output for all files below its path that fit its ``glob`` and ``type``."""
    top = _top(given.path, view)
    fits_glob = globs.compiled(given.glob) if given.glob else None
    endings = _endings(given.type)
    for entry, path in _files(top, view):
        if fits_glob and not (fits_glob(entry.name) or fits_glob(path)):
            continue
        if endings and not any(fits(entry.name) for fits in endings):
            continue
        result = matching.lines(search, view.pieces(entry), view.meter.tick)
        yield from _output_lines(given, search, entry.shown, result)


def _endings(file_type: str | None) -> list[globs.Matcher]:
    """Return tests for the endings of a type's file names, none without a type."""
    if not file_type:
        return []
    return [globs.compiled(f"*.{ending}") for ending in _ENDINGS.get(file_type, (file_type,))]


def _output_lines(
    given: Grep, search: Search, name: str, result: Iterator[matching.MatchedLine]
) -> Iterator[str]:
    """Yield Grep's output for one file in the chosen mode: its name, its count or its lines."""
    if given.output_mode == "files_with_matches":
        if any(line.hit for line in islice(result, 1)):
            yield name
    elif given.output_mode == "count":
        count = sum(line.hit for line in result)
        if count:
            yield f"{name}:{count}"
    else:
        yield from matching.shown(search, result, name, numbers=given.numbers)


def _files(top: FileEntry, view: AgentView) -> Iterator[tuple[FileEntry, str]]:
    """Yield the files below ``top``, each with its path relative to it."""
    start = len(top.shown.rstrip("/")) + 1 if top.shown else 0
    for entry in view.walk(top):
        if not entry.folder:
            path = entry.name if entry is top else entry.shown[start:]
            yield entry, path


def _top(path: str | None, view: AgentView) -> FileEntry:
    """Return the folder or file to search; without a path, the memory directory."""
    return view.entry(path) if path else replace(view.entry("."), shown="")


def _relative_pattern(pattern: str, top: FileEntry) -> str:
    """Return a pattern without the folder ``top`` at its beginning."""
    for prefix in (f"{top.place.root.path}/", f"{top.place.path}/", f"{top.shown}/", "./"):
        pattern = pattern.removeprefix(prefix)
    return pattern


_ENDINGS = {  # of file names by type; any other type is an ending itself
    "js": ("js", "jsx", "mjs", "cjs"),
    "md": ("md", "markdown"),
    "markdown": ("md", "markdown"),
    "python": ("py", "pyi"),
    "py": ("py", "pyi"),
    "rust": ("rs",),
    "ts": ("ts", "tsx", "mts", "cts"),
    "yaml": ("yaml", "yml"),
}
