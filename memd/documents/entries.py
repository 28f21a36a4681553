"""The entries of an index: which lines lead to memories, to which ones, and their form. Pure.

From one commit to the next nearly all lines of an index are the same, so the paths of a line are
cached, and so are the last few indexes as a whole.
"""

import re
from collections.abc import Set as AbstractSet
from functools import lru_cache
from urllib.parse import unquote

from msgspec import Struct

from memd.base import limits
from memd.base.names import in_catalogue
from memd.base.text import decode, one_line
from memd.base.values import Pointer
from memd.documents.frontmatter import BOM
from memd.text.invisible import CONTROLS, DIRECTIONS, HIDDEN

# The line of an entry: a bullet, a link, and perhaps a hook behind a dash or colon, or other text.
_ENTRY = re.compile(
    r"(?P<bullet>\s*+(?:[-*+]|[0-9]{1,4}[.)])[ \t]++)"
    r"\[(?P<title>(?:\\.|[^\[\]\\]|\[[^\[\]]*+\])*+)\]"
    r"(?P<target>\((?:[ \t]*+<[^<>]*+>|(?:\\.|[^()\\]|\([^()]*+\))++)\))"
    r"(?:\s*+(?:\u2014|\u2013|--|-|:)(?P<hook>.*+)|\s++(?P<text>[^\[\]]*+)|)",
    re.DOTALL,
)
_LINK_TITLE = re.compile(r"""(?<!\s)\s++(?:"[^"]*"|'[^']*')\s*\Z""")  # behind a link's target
_LEADS_OUT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|~")  # an address, or a path from a home
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")  # a sign with the backslash of Markdown
_FENCE = re.compile(rb"[ ]{0,3}(`{3,}|~{3,})")  # begins or ends a code block
_CONTROL = re.compile(f"[\t\r\n{CONTROLS}\ud800-\udfff{DIRECTIONS}{HIDDEN}]")
# What would end a link, be decoded, or be cut off by a reader of Markdown.
_SPECIAL = re.compile(r"[\s%()<>\\\[\]#?:~\x00-\x1f\x7f-\x9f\u2028\u2029]")
_NO_WORD = re.compile(r"[\W_]+")
_LEADING_DOTS = re.compile(r"\A(?:\./)+")
_CACHED_INDEXES = 4  # whose entries stay in memory: an update reads the old index and the new one
_CACHED_LINES = 16_384  # whose paths stay in memory: 8 MiB with the next bound
_CACHED_LINE_BYTES = 1024  # a longer line is not one of memd's, and is read anew each time


TITLE_CHARACTERS = 80


class EntryLine(Struct, frozen=True):
    """The number of an entry's line, from 0, and the ``paths`` that its link may mean.

    The path that Markdown means comes first.
    """

    number: int
    paths: tuple[str, ...]

    def path(self, files: AbstractSet[str]) -> str:
        """Return the path that exists, otherwise the one that Markdown means."""
        if len(self.paths) == 1:
            return self.paths[0]
        return next((path for path in self.paths if path in files), self.paths[0])


class Entries(Struct, frozen=True):
    """The entries of an index in its order; ``named`` are all paths that their links may mean."""

    lines: tuple[EntryLine, ...]
    named: frozenset[str]


class IndexEntry(Struct, frozen=True):
    """One pointer of the index."""

    path: str
    title: str
    hook: str
    line: int  # its number, from 0


@lru_cache(_CACHED_INDEXES)
def read(content: bytes) -> Entries:
    """Return the entries of an index: its lines that are a link to a memory, outside of code."""
    raw_lines = content.splitlines(keepends=True)
    has_fence = b"```" in content or b"~~~" in content
    in_code = _lines_in_code(raw_lines) if has_fence else frozenset[int]()
    lines: list[EntryLine] = []
    for number, line in enumerate(raw_lines):
        if b"](" not in line or number in in_code:  # most lines without a link are passed fast
            continue
        paths = _paths(line)
        if paths:
            lines.append(EntryLine(number, paths))
    return Entries(tuple(lines), frozenset(path for line in lines for path in line.paths))


def entries(content: bytes) -> tuple[IndexEntry, ...]:
    """Return the pointers of an index, in its order."""
    lines = content.splitlines(keepends=True)
    result: list[IndexEntry] = []
    for line in read(content).lines:
        _, title, _, hook = _parts(lines[line.number])
        result.append(IndexEntry(line.paths[0], title, hook, line.number))
    return tuple(result)


def pointers(content: bytes | None) -> dict[str, Pointer]:
    """Return title and hook of each entry by its path; of several for one path the last."""
    return {entry.path: Pointer(entry.title, entry.hook) for entry in entries(content or b"")}


def with_pointer(content: bytes, path: str, pointer: Pointer) -> bytes:
    """Return the index with a new title and hook in the entry of a path.

    The bullet, the link as it was written and every other line stay. An index without such an entry
    is returned unchanged.
    """
    candidates = [entry for entry in read(content).lines if path in entry.paths]
    if not candidates:
        return content
    # A link may mean several paths; the entry that most likely means this one is changed.
    entry = min(candidates, key=lambda line: line.paths.index(path))
    lines = content.splitlines(keepends=True)
    old_line = lines[entry.number]
    bullet, _, target, _ = _parts(old_line)
    new_text = _composed(bullet, target, pointer).encode()
    bom = BOM if old_line.startswith(BOM) else b""
    line_end = old_line[len(old_line.rstrip(b"\r\n")) :]
    lines[entry.number] = bom + new_text + line_end
    return b"".join(lines)


def pointer_line(path: str, pointer: Pointer) -> str:
    """Return the line of a memory: ``- [Title](path) — hook``, the hook a sentence at most."""
    return _composed("- ", f"({_SPECIAL.sub(_percent, path)})", pointer)


def _parts(raw: bytes) -> tuple[str, str, str, str]:
    """Return bullet, title, link target and hook of an entry's line.

    Title and hook are as a reader of Markdown sees them, the other two as they are written.
    """
    match = _ENTRY.fullmatch(decode(raw.rstrip(b"\r\n")))
    parts = match.groupdict("") if match else dict.fromkeys(_ENTRY.groupindex, "")
    title = _ESCAPED.sub(r"\1", parts["title"]).strip()
    return parts["bullet"], title, parts["target"], (parts["hook"] or parts["text"]).strip()


def _composed(bullet: str, target: str, pointer: Pointer) -> str:
    """Return the line of an entry, with its title and hook cut to fit.

    A hook that has only the words of the title is left out.
    """
    title = one_line(_CONTROL.sub(" ", pointer.title), TITLE_CHARACTERS) or "Untitled"
    escaped = re.sub(r"([\\\[\]])", r"\\\1", title)
    head = f"{bullet}[{escaped}]{target}"
    hook = one_line(_CONTROL.sub(" ", pointer.hook), limits.INDEX_HOOK_CHARACTERS)
    return f"{head} — {hook}" if hook and not same_words(title, hook) else head


def same_words(title: str, hook: str) -> bool:
    """Return whether a title and a hook have the same words, whatever stands between these."""
    return _NO_WORD.sub(" ", title.casefold()).split() == _NO_WORD.sub(" ", hook.casefold()).split()


def _percent(match: re.Match[str]) -> str:
    """Return the matched characters percent-encoded, as in an address."""
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def _paths(raw: bytes) -> tuple[str, ...]:
    """Return the paths that the link of a line may mean; none if the line is no entry."""
    return _cached_paths(raw) if len(raw) <= _CACHED_LINE_BYTES else _read_paths(raw)


def _read_paths(raw: bytes) -> tuple[str, ...]:
    """Return what ``_paths`` returns, without its cache."""
    match = _ENTRY.fullmatch(decode(raw.rstrip(b"\r\n")))
    return () if match is None else _meanings(match["target"])


_cached_paths = lru_cache(_CACHED_LINES)(_read_paths)


def _meanings(target: str) -> tuple[str, ...]:
    """Return the paths of memories that a link's target may mean, Markdown's meaning first.

    People write paths with and without percent-encoding, and names that have ``#`` or ``?``.
    """
    text = target[1:-1].strip()  # without its parentheses
    if text.startswith("<"):
        text = text[1:].removesuffix(">")
    else:
        text = _ESCAPED.sub(r"\1", _LINK_TITLE.sub("", text))
    if _LEADS_OUT.match(text):
        return ()
    before_fragment = re.split(r"[#?]", text, maxsplit=1)[0]
    meanings = (unquote(before_fragment), before_fragment, unquote(text), text)
    distinct_paths = dict.fromkeys(_LEADING_DOTS.sub("", path) for path in meanings)
    return tuple(path for path in distinct_paths if in_catalogue(path))


def _lines_in_code(lines: list[bytes]) -> frozenset[int]:
    """Return the numbers of the lines in closed code blocks: links there are only examples."""
    inside: set[int] = set()
    start, open_fence = 0, b""  # of the block that is open: its first line, its fence
    for number, line in enumerate(lines):
        match = _FENCE.match(line)
        if match is None:
            continue
        fence = match[1]
        if not open_fence:
            start, open_fence = number, fence
        elif fence.startswith(open_fence):  # at least as long as the one that opened the block
            inside.update(range(start, number + 1))
            open_fence = b""
    return frozenset(inside)
