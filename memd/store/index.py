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
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
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
from memd.text.invisible import CONTROLS, DIRECTIONS, HIDDEN, without_directions

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
_CACHED_INDEXES = 4  # whose entries stay in memory: an update reads the old index and the new one
# From one index to the next nearly all lines are the same.
_CACHED_LINES = 16_384  # whose paths stay in memory: 8 MiB with the next bound
_CACHED_LINE_BYTES = 1024  # a longer line is not one of memd's, and is read anew each time
_OUTSIDE = " (outside)"  # the mark at the end of the line of a memory from outside
_DESCRIPTION_CHARACTERS = 500  # of a manifest's line; 200 of these still fit a prompt
_LAST_SECOND = 253_402_300_799  # of the year 9999; a file system may keep later times

NameAndDescription = tuple[str, str]


class EntryLine(Struct, frozen=True):
    """The number of an entry's line, from 0, and the ``paths`` that its link may mean.

    The path that Markdown means comes first.
    """

    number: int
    paths: tuple[str, ...]


class Entries(Struct, frozen=True):
    """The entries of an index in its order; ``named`` are all paths that their links may mean."""

    lines: tuple[EntryLine, ...]
    named: frozenset[str]


class IndexEntry(Struct, frozen=True):
    """One pointer of the index; ``line`` is its number, from 0."""

    path: str
    title: str
    hook: str
    line: int


class LoadedIndex(Struct, frozen=True):
    """The part of an index that a prompt gets; ``lines`` and ``bytes`` are of the whole index."""

    text: str  # with a warning line at the end if it was cut
    lines: int
    bytes: int
    cut: str  # the limit that decided where the text ends, "lines" or "bytes"; "" for all of it


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
        paths = _cached_paths(line) if len(line) <= _CACHED_LINE_BYTES else _paths(line)
        if paths:
            lines.append(EntryLine(number, paths))
    return Entries(tuple(lines), frozenset(path for line in lines for path in line.paths))


def entries(content: bytes, among: Container[str] | None = None) -> tuple[IndexEntry, ...]:
    """Return the pointers of an index, in its order; with ``among`` only those of these paths."""
    lines = content.splitlines(keepends=True)
    result: list[IndexEntry] = []
    for line in read(content).lines:
        if among is None or line.paths[0] in among:
            _, title, _, hook = _fields(lines[line.number])
            result.append(IndexEntry(line.paths[0], title, hook, line.number))
    return tuple(result)


def pointers(content: bytes | None) -> dict[str, Pointer]:
    """Return title and hook of each entry by its path; of several for one path the last."""
    return {entry.path: Pointer(entry.title, entry.hook) for entry in entries(content or b"")}


def own_lines(content: bytes) -> list[bytes]:
    """Return the lines of an index that lead to no memory, without the empty ones."""
    numbers = {line.number for line in read(content).lines}
    lines = enumerate(content.splitlines())
    return [line for number, line in lines if number not in numbers and line.strip()]


def load(content: bytes | None) -> LoadedIndex:
    """Return the part of the index that a prompt gets: whole lines within both limits.

    A single line that is too long is cut at a character. ``None`` is an empty index.
    """
    text = without_directions(decode(content or b"")).strip()
    lines = text.count("\n") + 1 if text else 0
    size = len(text.encode())
    retained, cut = text, ""
    if lines > limits.INDEX_LINES:
        first_lines = text.split("\n", limits.INDEX_LINES)[: limits.INDEX_LINES]
        retained, cut = "\n".join(first_lines), "lines"
    encoded = retained.encode()
    if len(encoded) > limits.INDEX_BYTES:
        end = encoded.rfind(b"\n", 0, limits.INDEX_BYTES + 1)
        retained = encoded[:end].decode() if end > 0 else cut_bytes(retained, limits.INDEX_BYTES)
        cut = "bytes"
    if cut:
        retained = f"{retained.rstrip()}\n\n{_warning(lines, size)}"
    return LoadedIndex(retained, lines, size, cut)


def reconcile(
    content: bytes | None,
    files: Collection[str],
    wanted: Mapping[str, Pointer],
    others: AbstractSet[str] = frozenset(),
    unknown: AbstractSet[str] = frozenset(),
) -> bytes | None:
    """Return the index with exactly one entry for each of ``files``, and none that leads nowhere.

    - An entry stays if its path is among ``files`` or ``others``. Of several entries for one file
      the first stays.
    - Entries of ``unknown`` paths, where memd never had a file, are a person's and stay.
    - Files without an entry get one at the end, with the pointer of ``wanted`` or the file's name.
      They come in the order of ``files``, sorted if that is a set.

    The result is ``None`` if there is no index and none is needed.
    """
    raw = content or b""
    existing = frozenset(files) | others
    listed, removed = _listed_and_removed(read(raw).lines, existing, unknown)
    distinct_files = sorted(files) if isinstance(files, AbstractSet) else dict.fromkeys(files)
    missing = [path for path in distinct_files if path not in listed and not path.startswith(TEAM)]
    if content is None and not missing:
        return None
    lines = raw.splitlines(keepends=True)
    retained = b"".join(line for number, line in enumerate(lines) if number not in removed)
    line_end = b"\r\n" if b"\r\n" in raw else b"\n"
    if missing and retained not in (b"", BOM) and not retained.endswith(b"\n"):
        retained += line_end  # the last line has none, and the new ones come behind it
    added = [pointer_line(path, wanted.get(path) or _from_file_name(path)) for path in missing]
    return retained + b"".join(line.encode() + line_end for line in added)


def derive(content: bytes | None, wanted: Mapping[str, Pointer]) -> bytes | None:
    """Return an index of these memories only, in their order; a person's own lines come after.

    The entries of ``content`` are replaced by ``wanted``, its other lines are the person's. The
    result is ``None`` if it would be empty.
    """
    raw = (content or b"").removeprefix(BOM)
    old_entries = {line.number for line in read(raw).lines}
    raw_lines = enumerate(raw.splitlines(keepends=True))
    own = [line for number, line in raw_lines if number not in old_entries]
    new_entries = [f"{pointer_line(path, pointer)}\n".encode() for path, pointer in wanted.items()]
    return b"".join((*new_entries, *own)) or None


def pointer_line(path: str, pointer: Pointer) -> str:
    """Return the line of a memory: ``- [Title](path) — hook``, the hook a sentence at most."""
    return _line("- ", f"({_SPECIAL.sub(_percent, path)})", pointer)


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
    old = lines[entry.number]
    bullet, _, target, _ = _fields(old)
    bom = BOM if old.startswith(BOM) else b""
    line_end = old[len(old.rstrip(b"\r\n")) :]
    lines[entry.number] = bom + _line(bullet, target, pointer).encode() + line_end
    return b"".join(lines)


def with_followed_lines(
    content: bytes, heads: Mapping[str, tuple[NameAndDescription, NameAndDescription]]
) -> bytes:
    """Return an index in which memd's lines of changed memories say what their heads now say.

    ``heads`` has each memory's name and description before and after, by path. Of several lines of
    a memory the first counts.
    """
    remaining = dict(heads)
    for entry in entries(content, heads):
        if entry.path in remaining:
            pointer = _followed(entry, *remaining.pop(entry.path))
            if pointer is not None:
                content = with_pointer(content, entry.path, pointer)
    return content


def with_marks(content: bytes, outside: Mapping[str, bool]) -> bytes:
    """Return the index with the mark of outside memories at the end of their lines, and only there.

    Lines of memories that ``outside`` does not name stay as they are.
    """
    paths = {line.number: line.paths for line in read(content).lines}
    return _marked(
        content,
        lambda number: next((outside[p] for p in paths.get(number, ()) if p in outside), None),
    )


def with_own_marks(content: bytes, *, marked: bool) -> bytes:
    """Return the index with the mark of outside words at the end of its own lines, or without it.

    These are the lines that lead to no memory: headings, and what somebody wrote between them.
    """
    numbers = {line.number for line in read(content).lines}
    return _marked(content, lambda number: None if number in numbers else marked)


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


def _paths(raw: bytes) -> tuple[str, ...]:
    """Return the paths that the link of a line may mean, Markdown's meaning first.

    There are none if the line is no entry. People write paths with and without percent-encoding,
    and names that have ``#`` or ``?``.
    """
    match = _ENTRY.fullmatch(decode(raw.rstrip(b"\r\n")))
    if match is None:
        return ()
    text = match["target"][1:-1].strip()  # without its parentheses
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


_cached_paths = lru_cache(_CACHED_LINES)(_paths)


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


def _fields(raw: bytes) -> tuple[str, str, str, str]:
    """Return bullet, title, link target and hook of an entry's line.

    Title and hook are as a reader of Markdown sees them, the other two as they are written.
    """
    match = _ENTRY.fullmatch(decode(raw.rstrip(b"\r\n")))
    groups = match.groupdict("") if match else dict.fromkeys(_ENTRY.groupindex, "")
    title = _ESCAPED.sub(r"\1", groups["title"]).strip()
    return groups["bullet"], title, groups["target"], (groups["hook"] or groups["text"]).strip()


def _line(bullet: str, target: str, pointer: Pointer) -> str:
    """Return the line of an entry, with its title and hook cut to fit.

    A hook that has only the words of the title is left out.
    """
    title = one_line(_CONTROL.sub(" ", pointer.title), TITLE_CHARACTERS) or "Untitled"
    escaped = re.sub(r"([\\\[\]])", r"\\\1", title)
    start = f"{bullet}[{escaped}]{target}"
    hook = one_line(_CONTROL.sub(" ", pointer.hook), limits.INDEX_HOOK_CHARACTERS)
    return f"{start} — {hook}" if hook and not same_words(title, hook) else start


def _percent(match: re.Match[str]) -> str:
    """Return the matched characters percent-encoded, as in an address."""
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def _listed_and_removed(
    lines: Iterable[EntryLine], existing: AbstractSet[str], unknown: AbstractSet[str]
) -> tuple[frozenset[str], frozenset[int]]:
    """Return the paths of the entries, and the numbers of the entries that do not stay.

    An entry goes if its file does not exist or an earlier entry has it. Those of the team stay.
    """
    listed: set[str] = set()
    removed: set[int] = set()
    for line in lines:
        path = next((path for path in line.paths if path in existing), line.paths[0])
        if path in unknown:
            continue
        leads_somewhere = path in existing or path.startswith(TEAM)
        if path in listed or not leads_somewhere:
            removed.add(line.number)
        listed.add(path)
    return frozenset(listed), frozenset(removed)


def _marked(content: bytes, wanted: Callable[[int], bool | None]) -> bytes:
    """Return the index with or without the mark at the end of lines, as ``wanted`` says by number.

    Lines for which that is ``None``, and empty ones, stay as they are.
    """
    mark = _OUTSIDE.encode()
    lines = content.splitlines(keepends=True)
    for number, line in enumerate(lines):
        text, wants_mark = line.rstrip(), wanted(number)
        if text and wants_mark is not None and wants_mark != text.endswith(mark):
            lines[number] = text.removesuffix(mark) + mark * wants_mark + line[len(text) :]
    return b"".join(lines)


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


def _followed(
    entry: IndexEntry, old: NameAndDescription, new: NameAndDescription
) -> Pointer | None:
    """Return the new title and hook of an entry whose memory's head changed, ``None`` if it stays.

    What a person wrote in the line stays.
    """
    hook = entry.hook.removesuffix(_OUTSIDE.strip()).strip()
    has_own_title = is_own_title(entry.title, *old)
    has_own_hook = is_cut_of(hook, old[1]) if hook else has_own_title
    if not has_own_hook:
        return None
    wanted = of_memory(*new)
    if not has_own_title:
        pointer = Pointer(entry.title, new[1])
    elif wanted.title.casefold() == entry.title.casefold():
        pointer = Pointer(entry.title, wanted.hook)
    else:
        pointer = wanted
    return None if pointer == Pointer(entry.title, hook) else pointer
