"""The deterministic pass: what can be tightened without understanding. Pure.

Rules of this file
- A memory goes where another one of its type has all its statements, its description and what the
  index says of it. The other one stays as it is, byte for byte. Of a person's own rules only exact
  copies go. Other duplicates, and what contradicts, are named (``questions.py``).
- What anything links to stays. Of two equal memories it is the one that stays.
- Relative dates of ``project`` memories become absolute, counted from the ``modified`` stamp of
  the memory, else from its mtime. The memory does not become newer by that.
- Changed are only memories of a known type that parse, are UTF-8, within the size limit and without
  anything like a secret, none that is shared with a team. The others are listed, each with why; for
  secrets only what would change is looked through.
- A second pass changes nothing. What a person took back or refused stays so while the text is the
  same: such a file is left alone.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property

from memd.core import limits
from memd.core.errors import MemdError
from memd.core.instants import written
from memd.core.names import INDEX, TEAM, check_name
from memd.core.text import decode, sha256
from memd.core.values import PERSONAL, FileEdit, MemoryFile, MemoryType, Pointer, Tree
from memd.core.yielding import yield_to_requests
from memd.documents import document, index, secrets
from memd.documents.document import Document, FrontmatterNotEditableError
from memd.dream.grounds import restated
from memd.dream.links import names, targets
from memd.dream.values import DAMAGED, LISTED, Merge, Reasoned, Wanted, in_the_end
from memd.text.dates import resolve
from memd.text.statements import Statement, fenced, statements

Repeats = Callable[[Sequence[FileEdit]], Collection[str]]  # paths of edits that were taken back

_NS = 1_000_000_000
_ROUNDS = 8  # each sees what the last one would do instead of what was taken back
_FILES = limits.CHANGE_FILES - 1  # without the index
_TEMPLATE = 200  # memories with one statement in common; more is a template and says nothing
_PARAGRAPHS = re.compile(r"(?<=\n)(?=\n)")
_TAKEN_BACK = "a dream changed this text before, and that was taken back or refused"
_CREDENTIAL = "it holds what looks like a credential"
_UNTYPED = f"its type is none of {', '.join(MemoryType)}"


@dataclass(frozen=True)
class _Candidate:
    """A memory as the pass changes it: ``head`` is everything before the body."""

    file: MemoryFile
    read: Document
    head: bytes
    body: str
    pinned: bool = False

    @property
    def path(self) -> str:
        """The path below the memory directory."""
        return self.file.header.path

    @property
    def content(self) -> bytes:
        """The bytes that the file would have."""
        return self.head + self.body.encode()

    @property
    def changed(self) -> bool:
        """Whether the file would change."""
        return self.content != self.file.content

    @property
    def at(self) -> float:
        """Its stamp, or its mtime where it has none."""
        stamp = written(self.read.metadata.get("modified", ""))
        return self.file.header.mtime_ns / _NS if stamp is None else stamp

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """The statements of its text."""
        return tuple(statements(self.body))

    @cached_property
    def keys(self) -> frozenset[str]:
        """What a duplicate has in common: of a person's own rules every byte."""
        if self.read.type in PERSONAL:
            return frozenset((self.body.strip(), self.read.description))
        return frozenset(one.key for one in self.statements if one.key)

    @property
    def rank(self) -> tuple[bool, int, int, str]:
        """What stays first: what is linked to, then the richest; a second pass decides the same."""
        return (not self.pinned, -len(self.keys), -len(self.body), self.path)


def fixed(tree: Tree, repeats: Repeats, refused: Collection[tuple[str, str]]) -> Wanted:
    """Return what the pass would change without doing again what a person took back.

    ``repeats`` tells which edits a dream made before to the same text (``Past.repeats``);
    ``refused`` are paths with the hash of the text for which a person refused an edit. Both are
    among ``left``, the index too: then not even its pointers shall be mended.
    """
    content = tree.index()
    # What becomes of the index is seen to by the store, so it is asked about in any case.
    probe = () if content is None else (FileEdit(INDEX, None, sha256(content)),)
    frozen: frozenset[str] = frozenset()
    for _ in range(_ROUNDS):
        wanted = consolidate(tree, frozen)
        edits = [edit for edit in (*wanted.edits, *probe) if edit.path not in frozen]
        again = {edit.path for edit in edits if (edit.path, edit.base) in refused}
        again |= set(repeats(edits))
        if not again:
            break
        frozen |= again
    else:
        wanted = Wanted(listed=wanted.listed)
    return replace(wanted, left=tuple(Reasoned(path, _TAKEN_BACK) for path in sorted(frozen)))


def consolidate(tree: Tree, frozen: AbstractSet[str] = frozenset()) -> Wanted:
    """Return what the pass would change in a memory directory; ``frozen`` paths stay."""
    before = tree.index()
    memories, listed = _gathered(tree, frozen, before or b"")
    dated = [_with_dates(memory) for memory in memories]
    hooks = {entry.path: entry.hook for entry in reversed(index.entries(before or b""))}
    into = dict(_duplicates(dated, hooks))
    wanted = [memory for memory in dated if memory.changed or memory.path in into]
    doubted = {memory.path for memory in wanted if secrets.find(decode(memory.file.content))}
    listed += tuple(Reasoned(path, _CREDENTIAL) for path in sorted(doubted))
    edits = [
        FileEdit(m.path, None, m.file.hash)
        if m.path in into
        else FileEdit(m.path, m.content, m.file.hash, m.file.header.mtime_ns)
        for m in sorted(wanted, key=lambda m: m.path not in into)
        if m.path not in doubted
    ][:_FILES]
    touched = {edit.path for edit in edits}
    if before is not None and INDEX not in frozen:
        after = _with_dated_hooks(before, [m for m in dated if m.path not in into])
        edits += [FileEdit(INDEX, after, sha256(before))] if after != before else []
    gone = [path for path in into if path in touched]
    merges = tuple(Merge(in_the_end(into, path), path) for path in gone)
    return Wanted(tuple(edits), merges, listed=listed)


def absolute(text: str, at: float) -> str:
    """Return a text with absolute dates, code left alone; unchanged where it would not be stable.

    ``at`` is when the text was written, in seconds since 1970.
    """
    parts: list[str] = []
    for place, part in enumerate(fenced(text)):
        pieces = [part] if place % 2 else _PARAGRAPHS.split(part)
        for piece in pieces:
            yield_to_requests()
            new = piece if place % 2 else resolve(piece, at)
            if not place % 2 and resolve(new, at) != new:
                return text
            parts.append(new)
    return "".join(parts)


def _gathered(
    tree: Tree, frozen: AbstractSet[str], before: bytes
) -> tuple[list[_Candidate], tuple[Reasoned, ...]]:
    """Return the memories that may change, and sentences on those that may not."""
    free: list[_Candidate] = []
    listed: list[Reasoned] = []
    links: set[str] = set(targets(_without_pointers(before), INDEX))
    for header in tree.headers():
        yield_to_requests()
        if header.path.startswith(TEAM):
            continue
        try:
            file = tree.read(header.path)
            check_name(header.path)
        except MemdError as error:
            listed.append(Reasoned(header.path, error.sentence))
            continue
        if file is None:
            continue
        links |= targets(file.body, header.path)
        memory, why = _memory(file)
        if why:
            listed.append(Reasoned(header.path, why))
        if memory is not None and header.path not in frozen:
            free.append(memory)
    pinned = (not links.isdisjoint(names(memory.path, memory.read.name)) for memory in free)
    result = [replace(m, pinned=pin) for m, pin in zip(free, pinned, strict=True)]
    return result, tuple(listed[:LISTED])


def _memory(file: MemoryFile) -> tuple[_Candidate | None, str]:
    """Return a memory that may change, or why not, or both where its head cannot be mended."""
    content, body = file.content, file.body.encode()
    read = document.parse(content, file.header.path)
    why = ""
    if len(content) > limits.MEMORY_BYTES:
        why = f"it is larger than {limits.MEMORY_BYTES} bytes"
    elif read.damaged:
        why = DAMAGED
    elif not content.endswith(body) or decode(content).encode() != content:
        why = "it is not UTF-8"
    elif read.type is None:
        why = _UNTYPED
    if why:
        return None, why
    better, trouble = _mended(content, read)
    why = f"other programs cannot read its frontmatter: {trouble}" if trouble else ""
    return _Candidate(file, read, better[: len(better) - len(body)], file.body), why


def _mended(content: bytes, read: Document) -> tuple[bytes, str]:
    """Return a memory whose head every reader reads as memd does, or why there is none."""
    fenced = document.split(content)
    trouble = document.problem("\n".join(fenced.lines)) if fenced else ""
    if fenced is None or not trouble or document.plain(fenced.lines) is not None:
        return content, ""
    fields: dict[str, str] = {}
    for line in fenced.lines:
        parts = document.LENIENT_LINE.fullmatch(line)
        if parts and document.problem(line.strip()):
            key, nested = parts[2], bool(parts[1]) or parts[2] not in {"name", "description"}
            fields[f"metadata.{key}" if nested else key] = document.unquoted(parts[3] or "")
    try:
        better = document.with_fields(content, fields)
    except FrontmatterNotEditableError:
        return content, trouble
    lines = (document.split(better) or fenced).lines
    sound = not document.problem("\n".join(lines)) and document.parse(better, read.name) == read
    return (better, "") if sound else (content, trouble)


def _without_pointers(content: bytes) -> str:
    """Return the index without what its pointers point to: the lines of people, and hooks."""
    lines = decode(content).splitlines()
    for entry in index.entries(content):
        if entry.line < len(lines):
            lines[entry.line] = entry.hook
    return "\n".join(lines)


def _with_dates(memory: _Candidate) -> _Candidate:
    if memory.read.type is not MemoryType.PROJECT:
        return memory
    body = absolute(memory.body, memory.at)
    description = absolute(memory.read.description, memory.at)
    result = replace(memory, body=body)
    if description != memory.read.description:
        try:
            head = document.with_fields(memory.head, {"description": description})
        except FrontmatterNotEditableError:
            return result
        result = replace(result, head=head, read=replace(memory.read, description=description))
    return result


def _with_dated_hooks(before: bytes, memories: Sequence[_Candidate]) -> bytes:
    after = before
    when = {m.path: m.at for m in memories if m.read.type is MemoryType.PROJECT}
    for entry in index.entries(before):
        if entry.path in when:
            hook = absolute(entry.hook, when[entry.path])
            if hook != entry.hook and not secrets.find(hook):
                after = index.with_pointer(after, entry.path, Pointer(entry.title, hook))
    return before if index.load(after).cut and not index.load(before).cut else after


def _duplicates(memories: Sequence[_Candidate], hooks: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each memory that another one has in it, with that one."""
    counts: Counter[tuple[str, str]] = Counter()
    for memory in memories:
        yield_to_requests()
        counts.update((memory.read.type or "", key) for key in memory.keys)
    holders: dict[tuple[str, str], list[_Candidate]] = defaultdict(list)
    for memory in sorted(memories, key=lambda one: one.rank):
        yield_to_requests()
        kind = memory.read.type or ""
        rarest = min(memory.keys, key=lambda key: (counts[kind, key], key), default="")
        if rarest and not memory.pinned and 1 < counts[kind, rarest] <= _TEMPLATE:
            winners = (one for one in holders[kind, rarest] if _has(one, memory, hooks))
            winner = next(winners, None)
            if winner is not None:
                yield memory.path, winner.path
                continue
        for key in memory.keys:
            holders[kind, key].append(memory)


def _has(winner: _Candidate, loser: _Candidate, hooks: dict[str, str]) -> bool:
    """Whether a memory says all that another one says, the index's words on it among that."""
    if not loser.keys <= winner.keys:
        return False
    said = [*winner.statements, Statement(winner.read.description), Statement(winner.read.name)]
    raw = f"{winner.read.description}\n{winner.body}"
    wanted = [Statement(loser.read.description)]
    hook = hooks.get(loser.path, "")
    if hook and hook != loser.read.description:
        wanted.append(Statement(hook))
    known = frozenset[str]().union(*(one.words for one in said))
    return all(
        one.key in {other.key for other in said}
        or (one.words <= known and restated(one, said, raw))
        for one in wanted
    )
