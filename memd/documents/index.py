"""The index of a memory directory: loading it for a prompt, updating it, the manifest. Pure.

Rules of this file
- An *entry* is a line that is a pointer and nothing else: a bullet, a link to a memory, perhaps a
  separator and a hook. Any other line is a person's and never changes.
- Lines are changed, removed or added as bytes: line ends, a BOM, order and foreign bytes stay.
- Links to places that are no memories (addresses, other kinds of file, paths that lead out) are no
  entries. ``team/`` has an index of its own, all of whose entries are derived: what points there
  is never removed, and what lies there never added.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct

from memd.base import limits
from memd.base.names import INDEX, TEAM
from memd.base.text import cut_bytes, decode, iso_time, one_line
from memd.base.values import FOREIGN, Header, Pointer
from memd.documents.entries import Entries as Entries
from memd.documents.entries import EntryLine
from memd.documents.entries import IndexEntry as IndexEntry
from memd.documents.entries import entries as entries
from memd.documents.entries import pointer_line as pointer_line
from memd.documents.entries import pointers as pointers
from memd.documents.entries import read as read
from memd.documents.entries import with_pointer as with_pointer
from memd.documents.frontmatter import BOM
from memd.documents.index_merge import merge as merge
from memd.documents.pointers import is_own_title as is_own_title
from memd.documents.pointers import of_memory as of_memory
from memd.documents.pointers import with_followed_lines as with_followed_lines
from memd.text.invisible import without_directions

_DESCRIPTION_CHARACTERS = 500  # one specific line is shorter; 200 of these still fit a prompt
_OUTSIDE_MARK = b" (outside)"
_LAST_SECOND = 253_402_300_799  # of the year 9999; a file system may keep later times


class LoadedIndex(Struct, frozen=True):
    """The part of an index that a prompt gets."""

    text: str  # with a warning line at the end if it was cut
    lines: int  # of the whole index
    bytes: int  # of the whole index
    cut: str  # the limit that decided where the text ends, "lines" or "bytes"; "" for all of it


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
    retained = raw
    if removed:
        lines = enumerate(raw.splitlines(keepends=True))
        retained = b"".join(line for number, line in lines if number not in removed)
    line_end = b"\r\n" if b"\r\n" in raw else b"\n"
    if missing and retained not in (b"", BOM) and not retained.endswith(b"\n"):
        retained += line_end  # the last line has none, and the new ones come behind it
    added: list[bytes] = []
    for path in missing:
        pointer = wanted.get(path) or _pointer_from_name(path)
        added += [pointer_line(path, pointer).encode(), line_end]
    return b"".join((retained, *added))


def derive(content: bytes | None, wanted: Mapping[str, Pointer]) -> bytes | None:
    """Return an index of these memories alone, in their order; a person's own lines come after.

    The entries of ``content`` are replaced by ``wanted``, its other lines are the person's. The
    result is ``None`` if it would be empty.
    """
    raw = (content or b"").removeprefix(BOM)
    old_entries = {line.number for line in read(raw).lines}
    raw_lines = enumerate(raw.splitlines(keepends=True))
    own = [line for number, line in raw_lines if number not in old_entries]
    new_entries = [f"{pointer_line(path, pointer)}\n".encode() for path, pointer in wanted.items()]
    return b"".join((*new_entries, *own)) or None


def own_lines(raw: bytes) -> list[bytes]:
    """Return the lines of an index that lead to no memory, without the empty ones."""
    entries = {line.number for line in read(raw).lines}
    lines = enumerate(raw.splitlines())
    return [line for number, line in lines if number not in entries and line.strip()]


def with_own_marks(content: bytes, *, marked: bool) -> bytes:
    """Return the index with the mark of outside words at the end of its own lines, or without it.

    These are the lines that lead to no memory: headings, and what somebody wrote between them.
    """
    entries = {line.number for line in read(content).lines}
    lines = content.splitlines(keepends=True)
    for number, line in enumerate(lines):
        text = line.rstrip()
        if text and number not in entries:
            bare = text.removesuffix(_OUTSIDE_MARK)
            lines[number] = bare + _OUTSIDE_MARK * marked + line[len(text) :]
    return b"".join(lines)


def with_marks(content: bytes, outside: Mapping[str, bool]) -> bytes:
    """Return the index with the mark of outside memories at the end of their lines, and only there.

    Lines of memories that ``outside`` does not name stay as they are.
    """
    lines = content.splitlines(keepends=True)
    for entry in read(content).lines:
        line = lines[entry.number]
        text = line.rstrip()
        bare = text.removesuffix(_OUTSIDE_MARK)
        has_mark = bare != text
        wants_mark = next((outside[path] for path in entry.paths if path in outside), has_mark)
        if wants_mark != has_mark:
            lines[entry.number] = bare + _OUTSIDE_MARK * wants_mark + line[len(text) :]
    return b"".join(lines)


def manifest(headers: Sequence[Header]) -> str:
    """Return one line per memory, in the order given, of the first 200.

    ``- [type] path (ISO 8601 mtime in UTC): description (origin)``, without the parts that are
    missing; only memories from outside, an import or the team have an origin here.
    """
    return "\n".join(_manifest_line(header) for header in headers[: limits.MANIFEST_ENTRIES])


def _listed_and_removed(
    lines: Iterable[EntryLine], existing: AbstractSet[str], unknown: AbstractSet[str]
) -> tuple[frozenset[str], frozenset[int]]:
    """Return the paths of the entries, and the numbers of the entries that do not stay.

    An entry goes if its file does not exist or an earlier entry has it. Those of the team stay.
    """
    listed: set[str] = set()
    removed: set[int] = set()
    for line in lines:
        path = line.path(existing)
        if path in unknown:
            continue
        leads_somewhere = path in existing or path.startswith(TEAM)
        if path in listed or not leads_somewhere:
            removed.add(line.number)
        listed.add(path)
    return frozenset(listed), frozenset(removed)


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


def _pointer_from_name(path: str) -> Pointer:
    """Return the pointer of a file without a title: its name in words, and no hook."""
    file_name = path.rpartition("/")[2].removesuffix(".md")
    words = file_name.replace("_", " ").replace("-", " ").strip()
    title = words[:1].upper() + words[1:]
    return Pointer(title or path, "")


def _manifest_line(header: Header) -> str:
    """Return the line of one memory in the manifest."""
    kind = f"[{header.type.value}] " if header.type else ""
    path = " ".join(without_directions(header.path).splitlines())  # a name may have line ends
    seconds = min(max(header.mtime_ns / 1e9, 0), _LAST_SECOND)  # only these have an ISO 8601 form
    words = one_line(header.description, _DESCRIPTION_CHARACTERS)
    description = f": {words}" if words else ""
    origin = f" ({header.origin})" if header.origin in FOREIGN else ""
    return f"- {kind}{path} ({iso_time(seconds)}){description}{origin}"
