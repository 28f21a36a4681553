"""The index of a memory directory: loading it for a prompt, keeping it true, the manifest. Pure.

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

from memd.core import limits
from memd.core.names import INDEX, TEAM
from memd.core.text import cut_bytes, decode, iso_time, one_line
from memd.core.values import FOREIGN, Header, Pointer
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
from memd.text.invisible import without_directions

_DESCRIPTION_CHARACTERS = 500  # one specific line is shorter; 200 of these still fit a prompt
_OUTSIDE = b" (outside)"
_LAST_SECOND = 253_402_300_799  # of the year 9999; a file system may keep later times


class LoadedIndex(Struct, frozen=True):
    """What a prompt gets of the index: ``text`` with a warning line when it is ``cut``.

    ``lines`` and ``bytes`` are the real size of the trimmed text; ``cut`` is "", "lines" or
    "bytes", the limit that decided where it ends.
    """

    text: str
    lines: int
    bytes: int
    cut: str


def load(content: bytes | None) -> LoadedIndex:
    """Return the part of the index that a prompt gets: whole lines within both limits.

    A single line that is too long is cut at a character. ``None`` is an empty index.
    """
    text = without_directions(decode(content or b"")).strip()
    lines = text.count("\n") + 1 if text else 0
    size = len(text.encode())
    retained, cut = text, ""
    if lines > limits.INDEX_LINES:
        retained, cut = (
            "\n".join(text.split("\n", limits.INDEX_LINES)[: limits.INDEX_LINES]),
            "lines",
        )
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
    """Return the index in which every pointer resolves and every file has exactly one.

    Entries of what is neither among the files nor the ``others`` go, of several for one file the
    first stays; those of the ``unknown``, where memd never had a file, are a person's and stay as
    they are. Files without one get theirs at the end, in the order of ``files`` (sorted when
    that is a set) with the line of ``wanted`` or the file's name. ``None`` when there is no index
    and none is needed.
    """
    raw = content or b""
    there = frozenset(files) | others
    seen, gone = _settled(read(raw).lines, there, unknown)
    order = sorted(files) if isinstance(files, AbstractSet) else dict.fromkeys(files)
    missing = [path for path in order if path not in seen and not path.startswith(TEAM)]
    if content is None and not missing:
        return None
    retained = raw
    if gone:
        retained = b"".join(
            text for n, text in enumerate(raw.splitlines(keepends=True)) if n not in gone
        )
    eol = b"\r\n" if b"\r\n" in raw else b"\n"
    if missing and retained not in (b"", BOM) and not retained.endswith(b"\n"):
        retained += eol
    added = (pointer_line(path, wanted.get(path) or _named(path)) for path in missing)
    return retained + b"".join(line.encode() + eol for line in added)


def derive(content: bytes | None, wanted: Mapping[str, Pointer]) -> bytes | None:
    """Return an index of these memories alone, in their order; a person's own lines come after.

    ``None`` where there is nothing to write.
    """
    raw = (content or b"").removeprefix(BOM)
    gone = {line.number for line in read(raw).lines}
    own = [line for n, line in enumerate(raw.splitlines(keepends=True)) if n not in gone]
    lines = (f"{pointer_line(path, pointer)}\n".encode() for path, pointer in wanted.items())
    return b"".join((*lines, *own)) or None


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
            lines[number] = text.removesuffix(_OUTSIDE) + _OUTSIDE * marked + line[len(text) :]
    return b"".join(lines)


def with_marks(content: bytes, outside: Mapping[str, bool]) -> bytes:
    """Return the index with the mark of outside memories at the end of their lines, and only there.

    Lines of memories that ``outside`` does not name stay as they are.
    """
    lines = content.splitlines(keepends=True)
    for entry in read(content).lines:
        line = lines[entry.number]
        text = line.rstrip()
        bare = text.removesuffix(_OUTSIDE)
        wanted = next((outside[path] for path in entry.paths if path in outside), bare != text)
        if wanted != (bare != text):
            lines[entry.number] = bare + _OUTSIDE * wanted + line[len(text) :]
    return b"".join(lines)


def manifest(headers: Sequence[Header]) -> str:
    """Return one line per memory, in the order given, of the first 200.

    ``- [type] path (ISO 8601 mtime in UTC): description (origin)``, without the parts that are
    missing; the origin is told of what came from outside, an import or the team.
    """
    return "\n".join(_manifest_line(result) for result in headers[: limits.MANIFEST_ENTRIES])


def _settled(
    lines: Iterable[EntryLine], there: AbstractSet[str], unknown: AbstractSet[str]
) -> tuple[frozenset[str], frozenset[int]]:
    """Return what the entries mean, and the numbers of those that do not stay."""
    seen: set[str] = set()
    gone: set[int] = set()
    for line in lines:
        path = line.path(there)
        if path in unknown:
            continue
        if path in seen or not (path in there or path.startswith(TEAM)):
            gone.add(line.number)
        seen.add(path)
    return frozenset(seen), frozenset(gone)


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


def _named(path: str) -> Pointer:
    words = path.rpartition("/")[2].removesuffix(".md").replace("_", " ").replace("-", " ").strip()
    return Pointer(words[:1].upper() + words[1:] or path, "")


def _manifest_line(result: Header) -> str:
    """Return the line of one memory in the manifest."""
    kind = f"[{result.type.value}] " if result.type else ""
    path = " ".join(without_directions(result.path).splitlines())
    at = iso_time(min(max(result.mtime_ns / 1e9, 0), _LAST_SECOND))
    words = one_line(result.description, _DESCRIPTION_CHARACTERS)
    origin = f" ({result.origin})" if result.origin in FOREIGN else ""
    return f"- {kind}{path} ({at}){f': {words}' if words else ''}{origin}"
