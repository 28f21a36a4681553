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
from memd.core import globs

READ_LINES = 2_000
READ_BYTES = 64 * 1024
_MOST = 200  # lines of an answer of Grep or Glob, unless told
_AROUND = 50  # lines around a hit at most


def read(given: Read, entry: FileEntry, view: AgentView) -> ToolResult:
    """Return a file's lines with their numbers."""
    first = max(given.offset or 1, 1)
    most = READ_LINES if given.limit is None else min(given.limit, READ_LINES)
    problems: list[ToolError] = []
    result = _numbered_lines(view, entry, first)
    lines = (f"{number:6}\t{text}" for number, text in islice(result, most))
    text = collect(lines, problems, READ_BYTES)
    if not text:
        text = "(the file is empty)" if first == 1 else f"(it has fewer than {first} lines)"
    elif next(result, None) is not None:
        text += "\n[… there is more; read on with offset]"
    return ToolResult(text, problems[0].fault if problems else "")


def grep(given: Grep, view: AgentView) -> ToolResult:
    """Return the lines, names or counts of the files that match a pattern."""
    around = given.around if given.context is None else given.context
    before, after = (
        min((around if side is None else side) or 0, _AROUND)
        for side in (given.before, given.after)
    )
    content = given.output_mode == "content"
    search = matching.search(
        given.pattern,
        ignore_case=given.ignore_case,
        before=before if content else 0,
        after=after if content else 0,
        most=1 if given.output_mode == "files_with_matches" else None,
    )
    problems: list[ToolError] = []
    first = given.offset or 0
    most = _MOST if given.head_limit is None else given.head_limit or None
    lines = _grep_lines(given, search, view)
    text = collect(islice(lines, first, None if most is None else first + most), problems)
    fault = problems[0].fault if problems else ""
    return ToolResult(text or "(nothing found)", fault)


def glob(given: Glob, view: AgentView) -> ToolResult:
    """Return the names of the files that match a pattern, newest first."""
    top = _top(given.path, view)
    fits = globs.compiled(_below(given.pattern, top))
    result = [entry for entry, path in _files(top, view) if fits(path)]
    result.sort(key=lambda entry: (-entry.mtime_ns, entry.shown))
    problems: list[ToolError] = []
    text = collect((entry.shown for entry in result[:_MOST]), problems)
    more = f"\n[… and {len(result) - _MOST} more]" if len(result) > _MOST else ""
    return ToolResult((text or "(nothing found)") + more)


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
    kinds = [
        f"*.{kind}" for kind in _KINDS.get(given.type or "", (given.type,) if given.type else ())
    ]
    tests = [globs.compiled(pattern) for pattern in kinds]
    wanted = globs.compiled(given.glob) if given.glob else None
    for entry, path in _files(top, view):
        if wanted and not (wanted(entry.name) or wanted(path)):
            continue
        if tests and not any(test(entry.name) for test in tests):
            continue
        result = matching.lines(search, view.pieces(entry), view.meter.tick)
        yield from _output_lines(given, search, entry.shown, result)


def _output_lines(
    given: Grep, search: Search, name: str, result: Iterator[matching.MatchedLine]
) -> Iterator[str]:
    """Yield Grep's output for one file in the chosen mode: its name, its count or its lines."""
    if given.output_mode == "files_with_matches":
        yield from (name for line in islice(result, 1) if line.hit)
    elif given.output_mode == "count":
        count = sum(line.hit for line in result)
        yield from (f"{name}:{count}",) if count else ()
    else:
        yield from matching.shown(search, result, name, numbers=given.numbers)


def _files(top: FileEntry, view: AgentView) -> Iterator[tuple[FileEntry, str]]:
    """Yield the files below ``top``, each with its path relative to it."""
    start = len(top.shown.rstrip("/")) + 1 if top.shown else 0
    for _, entry in view.walk(top):
        if not entry.folder:
            yield entry, entry.shown[start:] if entry is not top else entry.name


def _top(path: str | None, view: AgentView) -> FileEntry:
    """Return the folder or file to search; without a path, the memory directory."""
    return view.entry(path) if path else replace(view.entry("."), shown="")


def _below(pattern: str, top: FileEntry) -> str:
    """Return a pattern without the folder ``top`` at its beginning."""
    for prefix in (f"{top.place.root.path}/", f"{top.place.path}/", f"{top.shown}/", "./"):
        pattern = pattern.removeprefix(prefix)
    return pattern


_KINDS = {
    "js": ("js", "jsx", "mjs", "cjs"),
    "md": ("md", "markdown"),
    "markdown": ("md", "markdown"),
    "python": ("py", "pyi"),
    "py": ("py", "pyi"),
    "rust": ("rs",),
    "ts": ("ts", "tsx", "mts", "cts"),
    "yaml": ("yaml", "yml"),
}
