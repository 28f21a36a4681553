"""The entries of an index: which lines are pointers, and to what. Pure.

An index of 10,000 lines changes by a line or two from one commit to the next, so of a large one
the last readings are kept, and of another version only the lines that differ are read. Whether a
line is an entry depends on no other line but for the marks of code blocks; an index that has any
is read whole.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from memd.core import limits
from memd.core.names import in_catalogue
from memd.core.text import decode
from memd.text import spans

_ENTRY = re.compile(
    r"(?P<bullet>\s*+(?:[-*+]|[0-9]{1,4}[.)])[ \t]++)"
    r"\[(?P<title>(?:\\.|[^\[\]\\]|\[[^\[\]]*+\])*+)\]"
    r"(?P<target>\((?:[ \t]*+<[^<>]*+>|(?:\\.|[^()\\]|\([^()]*+\))++)\))"
    r"(?:\s*+(?:\u2014|\u2013|--|-|:)(?P<hook>.*+)|\s++(?P<text>[^\[\]]*+)|)",
    re.DOTALL,
)
_LINK_TITLE = re.compile(r"""(?<!\s)\s++(?:"[^"]*"|'[^']*')\s*\Z""")
_LEADS_OUT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|~")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_FENCE = re.compile(rb"[ ]{0,3}(`{3,}|~{3,})")
_LINES_KEPT = 4096  # read lines of small indexes that are remembered, 2 MiB with the next bound
_LONG_LINE = 1024  # bytes; a longer one is no line of memd's and is read anew
_LARGE_KEPT = 2  # readings of large indexes: of what stands there, and of what it becomes


@dataclass(frozen=True, slots=True)
class Line:
    """Where an entry stands, from 0; ``paths`` is what its link may mean, Markdown's first."""

    number: int
    paths: tuple[str, ...]

    def path(self, files: AbstractSet[str]) -> str:
        """Return the path that exists, otherwise the one that Markdown means."""
        if len(self.paths) == 1:
            return self.paths[0]
        return next((path for path in self.paths if path in files), self.paths[0])


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of an index in its order, and ``named``: every path that a link of it may mean.

    With ``plain`` each has one meaning and no two have the same. ``marked`` says that lines may
    stand in a code block.
    """

    lines: tuple[Line, ...]
    named: frozenset[str]
    plain: bool
    marked: bool

    def first(self) -> frozenset[str]:
        """Return what the links mean to Markdown."""
        return self.named if self.plain else frozenset(line.paths[0] for line in self.lines)


@dataclass(frozen=True, slots=True)
class Words:
    """The parts of an entry: ``bullet`` and ``target`` as they are written, title and hook read."""

    bullet: str
    title: str
    target: str
    hook: str


_LARGE: list[tuple[bytes, Entries]] = []  # the last readings, the newest first


def read(content: bytes) -> Entries:
    """Return the entries of an index."""
    if len(content) <= limits.MEMORY_BYTES:
        return _whole(content, _known_paths)
    recent = tuple(_LARGE)
    for kept, entries in recent:
        if kept == content:
            return entries
    entries = _read_large(content, recent)
    _LARGE[:] = [(content, entries), *recent[: _LARGE_KEPT - 1]]
    return entries


def words(raw: bytes) -> Words:
    """Return the parts of a line that is an entry."""
    found = _ENTRY.fullmatch(_text(raw))
    parts = found.groupdict() if found else {}
    title, hook = (parts.get("title") or "", parts.get("hook") or parts.get("text") or "")
    return Words(
        parts.get("bullet") or "",
        _ESCAPED.sub(r"\1", title).strip(),
        parts.get("target") or "",
        hook.strip(),
    )


def _read_large(content: bytes, recent: Sequence[tuple[bytes, Entries]]) -> Entries:
    """Read a large index; of one that was just read in another version only what differs."""
    for kept, entries in recent:
        span = spans.differing(kept, content)
        middle = content[span.start : span.after]
        if 2 * len(middle) < len(content) and not (entries.marked or _has_marks(middle)):
            return _joined(kept, entries, middle, span)
    return _whole(content, _line_paths)


def _joined(kept: bytes, entries: Entries, middle: bytes, span: spans.Span) -> Entries:
    """Return the entries of a text from those of another version of it and what differs."""
    lines = entries.lines
    first = len(kept[: span.start].splitlines())
    old = len(kept[span.start : span.before].splitlines())
    moved = len(middle.splitlines()) - old
    begin = bisect_left(lines, first, key=_number)
    end = bisect_left(lines, first + old, key=_number)
    new = tuple(
        Line(first + line.number, line.paths) for line in _read(middle, _line_paths, marked=False)
    )
    rest = lines[end:]
    if moved:
        rest = tuple(Line(line.number + moved, line.paths) for line in rest)
    if begin < end or not entries.plain:
        return _made((*lines[:begin], *new, *rest), marked=False)
    more = _made(new, marked=False)
    plain = more.plain and not more.named & entries.named
    return Entries((*lines[:begin], *new, *rest), entries.named | more.named, plain, marked=False)


def _whole(content: bytes, paths: Callable[[bytes], tuple[str, ...]]) -> Entries:
    marked = _has_marks(content)
    return _made(tuple(_read(content, paths, marked=marked)), marked=marked)


def _made(lines: tuple[Line, ...], *, marked: bool) -> Entries:
    named = frozenset(path for line in lines for path in line.paths)
    plain = len(named) == sum(len(line.paths) for line in lines) == len(lines)
    return Entries(lines, named, plain, marked)


def _number(line: Line) -> int:
    return line.number


def _read(
    content: bytes, paths: Callable[[bytes], tuple[str, ...]], *, marked: bool
) -> Iterator[Line]:
    lines = content.splitlines(keepends=True)
    code = _code(lines) if marked else frozenset[int]()
    for number, raw in enumerate(lines):
        if number in code or b"](" not in raw:
            continue
        found = paths(raw)
        if found:
            yield Line(number, found)


def _known_paths(raw: bytes) -> tuple[str, ...]:
    """Read one line; from one commit to the next nearly all lines of an index are the same."""
    return _kept_paths(raw) if len(raw) <= _LONG_LINE else _line_paths(raw)


@lru_cache(_LINES_KEPT)
def _kept_paths(raw: bytes) -> tuple[str, ...]:
    return _line_paths(raw)


def _line_paths(raw: bytes) -> tuple[str, ...]:
    """Return what the link of a line may mean, nothing for a line that is no entry."""
    match = _ENTRY.fullmatch(_text(raw))
    return () if match is None else _paths(match["target"])


def _text(raw: bytes) -> str:
    return decode(raw.rstrip(b"\r\n"))


def _paths(target: str) -> tuple[str, ...]:
    """Return what a link's target may name, Markdown's meaning first; nothing for no memory."""
    text = target[1:-1].strip()
    if text.startswith("<"):
        text = text[1:].removesuffix(">")
    else:
        text = _ESCAPED.sub(r"\1", _LINK_TITLE.sub("", text))
    if _LEADS_OUT.match(text):
        return ()
    bare = re.split(r"[#?]", text, maxsplit=1)[0]
    meanings = (unquote(bare), bare, unquote(text), text)
    return tuple(filter(in_catalogue, dict.fromkeys(_plain(path) for path in meanings)))


def _plain(path: str) -> str:
    while path.startswith("./"):
        path = path[2:]
    return path


def _has_marks(content: bytes) -> bool:
    """Say whether lines may stand in a code block."""
    return b"```" in content or b"~~~" in content


def _code(lines: list[bytes]) -> frozenset[int]:
    """Return the numbers of the lines in closed code blocks: they show, they do not point."""
    inside: set[int] = set()
    opened, mark = 0, b""
    for number, line in enumerate(lines):
        match = _FENCE.match(line)
        if match is None:
            continue
        if not mark:
            opened, mark = number, match[1]
        elif match[1].startswith(mark):
            inside.update(range(opened, number + 1))
            mark = b""
    return frozenset(inside)
