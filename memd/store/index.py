"""The index of a memory directory, ``MEMORY.md``: a set of lines. Pure.

Rules of this file
- An *entry* is a line that is a pointer and nothing else: a bullet, a link to a memory, perhaps a
  separator and a hook. Any other line is a person's and never changes.
- Lines are changed, removed or added as bytes: line ends, a BOM, order and foreign bytes stay.
- Links to places that are no memories (addresses, other kinds of file, paths that lead out) are no
  entries. ``team/`` has an index of its own, all of whose entries are derived: what points there
  is never removed, and what lies there never added.
- A line that says what memd wrote for a memory's head (``title.py``) follows that head; what a
  person wrote in it stays.
"""

import re
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from urllib.parse import unquote

from msgspec import Struct

from memd.base import limits
from memd.base.names import INDEX, TEAM, in_catalogue
from memd.base.text import cut_bytes, decode, iso_time, one_line
from memd.base.values import FOREIGN, Header, Pointer
from memd.store.head import BOM
from memd.store.title import TITLE_CHARACTERS, is_cut_of, same_words
from memd.store.title import is_own_title as is_own_title
from memd.store.title import of_memory as of_memory
from memd.text.invisible import CONTROLS, DIRECTIONS, HIDDEN, visible, without_directions

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
_LEADING_DOTS = re.compile(r"\A(?:\./)+")
# From one index to the next nearly all lines are the same: so many stay parsed, in 8 MiB.
_CACHED_LINES = 8192
_CACHED_LINE_BYTES = 1024  # a longer line is not one of memd's, and is parsed anew each time
_KEPT_BYTES = 256 * 1024  # of an index that stays parsed as a whole
_OUTSIDE = b" (outside)"  # the mark at the end of the line of a memory from outside
_DESCRIPTION_CHARACTERS = 500  # of a manifest's line; 200 of these still fit a prompt
_LAST_SECOND = 253_402_300_799  # of the year 9999; a file system may keep later times

NameAndDescription = tuple[str, str]


class IndexEntry(Struct, frozen=True, gc=False):
    """What the line of one pointer says.

    ``path`` is what Markdown makes of its link, ``paths`` are all that it may mean. Title and hook
    are as a reader of Markdown sees them, bullet and target as they are written.
    """

    path: str
    paths: tuple[str, ...]
    title: str
    hook: str
    bullet: str
    target: str


# The newest texts that were parsed, with their lines and entries: of an index that begins with one
# only the rest is parsed. Each ends with the end of a line, and has no code.
_parsed: deque[tuple[bytes, list[bytes], dict[int, IndexEntry]]] = deque(maxlen=4)


class LoadedIndex(Struct, frozen=True):
    """The part of an index that a prompt gets; ``lines`` and ``bytes`` are of the whole index."""

    text: str  # with a warning line at the end if it was cut
    lines: int
    bytes: int
    cut: str  # the limit that decided where the text ends, "lines" or "bytes"; "" for all of it


class Index:
    """An index as its lines; ``entries`` are those of its text, by the numbers of their lines.

    ``listed`` are their paths. A line that goes becomes empty, so that the numbers of the others
    stay.
    """

    def __init__(self, content: bytes | None) -> None:
        content = content or b""
        known = (each for each in tuple(_parsed) if content.startswith(each[0]))
        start, lines, entries = next(known, (b"", [], {}))
        rest = content[len(start) :].splitlines(keepends=True)
        self.lines, self.entries = lines + rest, dict(entries)
        for number, line in enumerate(rest, len(lines)):
            entry = _entry(line) if len(line) <= _CACHED_LINE_BYTES else _entry.__wrapped__(line)
            if entry:
                self.entries[number] = entry
        # The search for one byte takes a fiftieth of the time of that for several.
        if any(sign in content and 3 * sign in content for sign in (b"`", b"~")):
            for number in _lines_in_code(self.lines) & self.entries.keys():
                del self.entries[number]
        elif rest and rest[-1].endswith(b"\n") and len(content) <= _KEPT_BYTES:
            _parsed.appendleft((content, [*self.lines], self.entries))
        self._line_end = b"\r\n" if b"\r" in content and b"\r\n" in content else b"\n"
        self.listed = {entry.path for entry in self.entries.values()}

    def others(self) -> list[int]:
        """Return the numbers of the lines that lead to no memory: what somebody wrote by hand."""
        return [number for number in range(len(self.lines)) if number not in self.entries]

    def point(self, number: int, pointer: Pointer) -> None:
        """Give an entry another title and hook; its bullet and link stay as they were written."""
        entry, old = self.entries[number], self.lines[number]
        bom = BOM if old.startswith(BOM) else b""
        line_end = old[len(old.rstrip(b"\r\n")) :]
        line = pointer_line(entry.path, pointer, entry.bullet, entry.target)
        self.lines[number] = bom + line.encode() + line_end

    def follow(self, heads: Mapping[str, tuple[NameAndDescription, NameAndDescription]]) -> None:
        """Make memd's lines of changed memories say what their heads now say.

        ``heads`` has each memory's name and description before and after, by path. Of several lines
        of a memory the first counts, and what a person wrote in it stays.
        """
        remaining = dict(heads)
        for number, entry in self.entries.items():
            if entry.path not in remaining:
                continue
            old, new = remaining.pop(entry.path)
            hook = entry.hook.removesuffix(_OUTSIDE.decode().strip()).strip()
            has_own_title = is_own_title(entry.title, *old)
            if not (is_cut_of(hook, old[1]) if hook else has_own_title):
                continue
            pointer = of_memory(*new)
            if not has_own_title:
                pointer = Pointer(entry.title, new[1])
            elif pointer.title.casefold() == entry.title.casefold():
                pointer = Pointer(entry.title, pointer.hook)
            if pointer != Pointer(entry.title, hook):
                self.point(number, pointer)

    def reconcile(
        self,
        files: Collection[str],
        wanted: Mapping[str, Pointer],
        others: AbstractSet[str] = frozenset(),
        unknown: AbstractSet[str] = frozenset(),
    ) -> dict[str, int]:
        """Have exactly one entry for each of ``files``, and none that leads nowhere.

        - An entry stays if its path is among ``files`` or ``others``. Of several entries for one
          file the first stays.
        - Entries of ``unknown`` paths, where memd never had a file, are a person's and stay.
        - Files without an entry get one at the end, with the pointer of ``wanted`` or the file's
          name. They come in the order of ``files``, sorted if that is a set.

        Return the numbers of the lines that were added, by path.
        """
        listed = self.listed
        if len(listed) < len(self.entries) or listed.difference(others).difference(files):
            listed = self._drop_lost({*files, *others}, unknown)
        if isinstance(files, AbstractSet):
            files = sorted(files - listed)
        wanting = (path for path in dict.fromkeys(files) if path not in listed)
        missing = [path for path in wanting if not path.startswith(TEAM)]
        last = next((line for line in reversed(self.lines) if line), b"\n")
        if missing and not last.endswith(b"\n") and b"".join(self.lines) != BOM:
            self.lines.append(self._line_end)  # the last line has none
        added: dict[str, int] = {}
        for path in missing:
            added[path] = len(self.lines)
            line = pointer_line(path, wanted.get(path) or _from_file_name(path))
            self.lines.append(line.encode() + self._line_end)
        return added

    def _drop_lost(self, existing: AbstractSet[str], unknown: AbstractSet[str]) -> set[str]:
        """Drop entries that lead nowhere, or to the file of an earlier one; return their paths.

        Entries of ``unknown`` paths stay.
        """
        listed: set[str] = set()
        for number, entry in self.entries.items():
            path = entry.path
            if path not in existing:
                path = next((path for path in entry.paths if path in existing), path)
            if path in unknown:
                continue
            if path in listed or (path not in existing and not path.startswith(TEAM)):
                self.lines[number] = b""
            listed.add(path)
        return listed

    def mark(self, number: int, *, marked: bool) -> None:
        """Give a line the mark of outside words at its end, or take it away; not to empty ones."""
        line = self.lines[number]
        text = line.rstrip()
        if text and marked != text.endswith(_OUTSIDE):
            text_before = text.removesuffix(_OUTSIDE)
            self.lines[number] = text_before + _OUTSIDE * marked + line[len(text) :]


def entries(content: bytes | None) -> list[IndexEntry]:
    """Return the pointers of an index, in its order: its lines that are a link to a memory."""
    return [*Index(content).entries.values()]


def pointers(content: bytes | None) -> dict[str, Pointer]:
    """Return title and hook of each entry by its path; of several for one path the last."""
    return {entry.path: Pointer(entry.title, entry.hook) for entry in entries(content)}


def own_lines(content: bytes) -> list[bytes]:
    """Return the lines of an index that lead to no memory, without the empty ones."""
    parsed = Index(content)
    lines = (parsed.lines[number].rstrip(b"\r\n") for number in parsed.others())
    return [line for line in lines if line.strip()]


def load(content: bytes | None) -> LoadedIndex:
    """Return the part of the index that a prompt gets: whole lines within both limits.

    A single line that is too long is cut at a character. ``None`` is an empty index.
    """
    whole = (content or b"").removeprefix(BOM).strip()
    first, cut = whole, ""
    lines = whole.count(b"\n") + 1 if whole else 0
    if lines > limits.INDEX_LINES:
        first, cut = b"\n".join(whole.split(b"\n", limits.INDEX_LINES)[:-1]), "lines"
    retained = visible(decode(first)).strip()
    encoded = retained.encode()
    if len(encoded) > limits.INDEX_BYTES:
        end = encoded.rfind(b"\n", 0, limits.INDEX_BYTES + 1)
        retained = encoded[:end].decode() if end > 0 else cut_bytes(retained, limits.INDEX_BYTES)
        cut = "bytes"
    if cut:
        retained = f"{retained.rstrip()}\n\n{_warning(lines, len(whole))}"
    return LoadedIndex(retained, lines, len(whole), cut)


def derive(content: bytes | None, wanted: Mapping[str, Pointer]) -> bytes | None:
    """Return an index of these memories only, in their order; a person's own lines come after.

    The entries of ``content`` are replaced by ``wanted``, its other lines are the person's. The
    result is ``None`` if it would be empty.
    """
    old = Index((content or b"").removeprefix(BOM))
    new_entries = [f"{pointer_line(path, pointer)}\n".encode() for path, pointer in wanted.items()]
    return b"".join([*new_entries, *(old.lines[number] for number in old.others())]) or None


def pointer_line(path: str, pointer: Pointer, bullet: str = "- ", target: str = "") -> str:
    """Return the line of a memory: ``- [Title](path) — hook``, title and hook cut to fit.

    ``target`` is the link in its parentheses, if it is written already. A hook that has only the
    words of the title is left out.
    """
    title = one_line(_CONTROL.sub(" ", pointer.title), TITLE_CHARACTERS) or "Untitled"
    escaped = re.sub(r"([\\\[\]])", r"\\\1", title)
    start = f"{bullet}[{escaped}]{target or f'({_SPECIAL.sub(_percent, path)})'}"
    hook = one_line(_CONTROL.sub(" ", pointer.hook), limits.INDEX_HOOK_CHARACTERS)
    return f"{start} — {hook}" if hook and not same_words(title, hook) else start


def with_pointer(content: bytes, path: str, pointer: Pointer) -> bytes:
    """Return the index with a new title and hook in the entry of a path.

    An index without such an entry is returned unchanged.
    """
    parsed = Index(content)
    places = {
        n: entry.paths.index(path) for n, entry in parsed.entries.items() if path in entry.paths
    }
    if places:
        # A link may mean several paths; the entry that most likely means this one is changed.
        parsed.point(min(places, key=places.__getitem__), pointer)
    return b"".join(parsed.lines)


def with_own_marks(content: bytes, *, marked: bool) -> bytes:
    """Return the index with the mark of outside words at the end of its own lines, or without it.

    These are the lines that lead to no memory: headings, and what somebody wrote between them.
    """
    parsed = Index(content)
    for number in parsed.others():
        parsed.mark(number, marked=marked)
    return b"".join(parsed.lines)


def manifest(headers: Sequence[Header]) -> str:
    """Return one line per memory, in the order given, of the first 200.

    ``- [type] path (ISO 8601 mtime in UTC): description (origin)``, without the parts that are
    missing; only memories from outside, an import or the team have an origin here.
    """
    return "\n".join(_manifest_line(header) for header in headers[: limits.MANIFEST_ENTRIES])


def _manifest_line(header: Header) -> str:
    kind = f"[{header.type.value}] " if header.type else ""
    path = " ".join(without_directions(header.path).splitlines())  # a name may have line ends
    seconds = min(max(header.mtime_ns / 1e9, 0), _LAST_SECOND)  # only these have an ISO 8601 form
    description = one_line(header.description, _DESCRIPTION_CHARACTERS)
    origin = f" ({header.origin})" if header.origin in FOREIGN else ""
    text = f": {description}" if description else ""
    return f"- {kind}{path} ({iso_time(seconds)}){text}{origin}"


@lru_cache(_CACHED_LINES)
def _entry(raw: bytes) -> IndexEntry | None:
    """Return what an entry's line says, ``None`` for another line.

    People write paths with and without percent-encoding, and names that have ``#`` or ``?``.
    """
    match = _ENTRY.fullmatch(decode(raw.rstrip(b"\r\n"))) if b"](" in raw else None
    if match is None:
        return None
    text = match["target"][1:-1].strip()  # without its parentheses
    if text.startswith("<"):
        text = text[1:].removesuffix(">")
    else:
        text = _ESCAPED.sub(r"\1", _LINK_TITLE.sub("", text))
    if _LEADS_OUT.match(text):
        return None
    before_fragment = re.split(r"[#?]", text, maxsplit=1)[0]
    meanings = (unquote(before_fragment), before_fragment, unquote(text), text)
    distinct_paths = dict.fromkeys(_LEADING_DOTS.sub("", path) for path in meanings)
    paths = tuple(path for path in distinct_paths if in_catalogue(path))
    if not paths:
        return None
    title = _ESCAPED.sub(r"\1", match["title"]).strip()
    hook = (match["hook"] or match["text"] or "").strip()
    return IndexEntry(paths[0], paths, title, hook, match["bullet"], match["target"])


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


def _percent(match: re.Match[str]) -> str:
    """Return the matched characters percent-encoded, as in an address."""
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def _warning(lines: int, size: int) -> str:
    """Return the line that says that the index was cut, and how large it is."""
    over = []
    if lines > limits.INDEX_LINES:
        over.append(f"{lines} lines (limit {limits.INDEX_LINES})")
    if size > limits.INDEX_BYTES:
        over.append(f"{size} bytes (limit {limits.INDEX_BYTES})")
    return (
        f"> WARNING: {INDEX} is cut here: it has {' and '.join(over)}. Keep each entry to one short"
        " line and move detail into the topic files, so that all of the index is loaded."
    )


def _from_file_name(path: str) -> Pointer:
    """Return the pointer of a file without a title: its name in words, and no hook."""
    file_name = path.rpartition("/")[2].removesuffix(".md")
    title = file_name.replace("_", " ").replace("-", " ").strip()
    return Pointer(title[:1].upper() + title[1:] or path, "")
