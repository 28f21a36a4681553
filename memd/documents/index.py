"""The index of a memory directory: loading it for a prompt, and keeping it true. Pure.

Rules of this file
- An *entry* is a line that is a pointer and nothing else: a bullet, a link to a memory, perhaps a
  separator and a hook. Any other line is a person's and never changes.
- Lines are changed, removed or added as bytes: line ends, a BOM, order and foreign bytes stay.
- Links to places that are no memories (addresses, other kinds of file, paths that lead out) are no
  entries. ``team/`` has an index of its own: what points there is never removed, and what lies
  there never added.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from memd.core import limits
from memd.core.names import INDEX, TEAM
from memd.core.text import cut_bytes, decode, one_line
from memd.core.values import Pointer
from memd.documents.entries import Line, read, words
from memd.documents.frontmatter_lines import BOM
from memd.text.invisible import CONTROLS, DIRECTIONS, HIDDEN, without_directions

_TITLE_CHARACTERS = 80  # leaves room for the hook in a line of about 150
_CONTROL = re.compile(f"[\t\r\n{CONTROLS}\ud800-\udfff{DIRECTIONS}{HIDDEN}]")
# What would end a link, be decoded, or be cut off by a reader of Markdown.
_SPECIAL = re.compile(r"[\s%()<>\\\[\]#?:~\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class LoadedIndex:
    """What a prompt gets of the index: ``text`` with a warning line when it is ``cut``.

    ``lines`` and ``bytes`` are the real size of the trimmed text; ``cut`` is "", "lines" or
    "bytes", the limit that decided where it ends.
    """

    text: str
    lines: int
    bytes: int
    cut: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One pointer of the index; ``line`` counts from 0."""

    path: str
    title: str
    hook: str
    line: int


def load(content: bytes | None) -> LoadedIndex:
    """Return the part of the index that a prompt gets: whole lines within both limits.

    A single line that is too long is cut at a character. ``None`` is an empty index.
    """
    text = without_directions(decode(content or b"")).strip()
    lines = text.count("\n") + 1 if text else 0
    size = len(text.encode())
    kept, cut = text, ""
    if lines > limits.INDEX_LINES:
        kept, cut = "\n".join(text.split("\n", limits.INDEX_LINES)[: limits.INDEX_LINES]), "lines"
    encoded = kept.encode()
    if len(encoded) > limits.INDEX_BYTES:
        end = encoded.rfind(b"\n", 0, limits.INDEX_BYTES + 1)
        kept = encoded[:end].decode() if end > 0 else cut_bytes(kept, limits.INDEX_BYTES)
        cut = "bytes"
    if cut:
        kept = f"{kept.rstrip()}\n\n{_warning(lines, size)}"
    return LoadedIndex(kept, lines, size, cut)


def entries(content: bytes) -> tuple[Entry, ...]:
    """Return the pointers of an index, in its order."""
    return tuple(each(content))


def each(content: bytes) -> Iterator[Entry]:
    """Yield the pointers of an index, in its order; reading the words of many takes a while."""
    lines = content.splitlines(keepends=True)
    for line in read(content).lines:
        said = words(lines[line.number])
        yield Entry(line.paths[0], said.title, said.hook, line.number)


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
    found = read(raw)
    seen, gone = found.named, frozenset[int]()
    if not found.plain or not found.named <= there:
        seen, gone = _settled(found.lines, there, unknown)
    order = sorted(files) if isinstance(files, AbstractSet) else dict.fromkeys(files)
    missing = [path for path in order if path not in seen and not path.startswith(TEAM)]
    if content is None and not missing:
        return None
    kept = raw
    if gone:
        kept = b"".join(
            text for n, text in enumerate(raw.splitlines(keepends=True)) if n not in gone
        )
    eol = b"\r\n" if b"\r\n" in raw else b"\n"
    if missing and kept not in (b"", BOM) and not kept.endswith(b"\n"):
        kept += eol
    added = (pointer_line(path, wanted.get(path) or _named(path)) for path in missing)
    return kept + b"".join(line.encode() + eol for line in added)


def _settled(
    lines: Iterable[Line], there: AbstractSet[str], unknown: AbstractSet[str]
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


def with_pointer(content: bytes, path: str, pointer: Pointer) -> bytes:
    """Return the index with a new title and hook in the entry of a path; without one, as it is.

    The bullet, the link as it was written and every other line stay.
    """
    found = [entry for entry in read(content).lines if path in entry.paths]
    if not found:
        return content
    entry = min(found, key=lambda line: line.paths.index(path))
    lines = content.splitlines(keepends=True)
    old = lines[entry.number]
    written = words(old)
    text = _composed(written.bullet, written.target, pointer).encode()
    start = BOM if old.startswith(BOM) else b""
    lines[entry.number] = start + text + old[len(old.rstrip(b"\r\n")) :]
    return b"".join(lines)


def pointer_line(path: str, pointer: Pointer) -> str:
    """Return the line of a memory: ``- [Title](path) — hook``, about 150 characters at most."""
    return _composed("- ", f"({_SPECIAL.sub(_percent, path)})", pointer)


def _warning(lines: int, size: int) -> str:
    over = []
    if lines > limits.INDEX_LINES:
        over.append(f"{lines} lines (limit {limits.INDEX_LINES})")
    if size > limits.INDEX_BYTES:
        over.append(f"{size} bytes (limit {limits.INDEX_BYTES})")
    return (
        f"> WARNING: {INDEX} is cut here: it has {' and '.join(over)}. Keep each entry to one short"
        " line and move detail into the topic files, so that all of the index is loaded."
    )


def _composed(bullet: str, target: str, pointer: Pointer) -> str:
    title = one_line(_CONTROL.sub(" ", pointer.title), _TITLE_CHARACTERS) or "Untitled"
    escaped = re.sub(r"([\\\[\]])", r"\\\1", title)
    head = f"{bullet}[{escaped}]{target}"
    room = limits.INDEX_LINE_CHARACTERS - len(head) - len(" — ")
    hook = one_line(_CONTROL.sub(" ", pointer.hook), room) if room > 1 else ""
    return f"{head} — {hook}" if hook else head


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def _named(path: str) -> Pointer:
    words = path.rpartition("/")[2].removesuffix(".md").replace("_", " ").replace("-", " ").strip()
    return Pointer(words[:1].upper() + words[1:] or path, "")
