"""The deterministic pass: what can be tightened without understanding. Pure.

Rules of this file
- What may change at all: ``material.py``. Broken frontmatter: ``repair.py``. Duplicates:
  ``merging.py``. The index: ``shorten.py``. Links to what was merged: ``links.py``.
- Relative dates of ``project`` memories become absolute, counted from the ``modified`` stamp of
  the memory, else from its mtime. The memory does not become newer by that.
- A second pass finds nothing: who takes in whom depends on the texts alone, and the pass goes on
  until no two memories are left that could be merged.
- What a person took back or refused stays so while the text is the same: such a file is left
  alone, neither changed nor merged.
- The frontmatter, the line ends and every byte that needs no change stay.
"""

import re
from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from memd.core import limits
from memd.core.names import INDEX
from memd.core.text import sha256
from memd.core.values import FileEdit, MemoryType, Pointer, Tree
from memd.core.yielding import yield_to_requests
from memd.documents import document, index, secrets
from memd.documents.document import FrontmatterNotEditableError
from memd.dream import shorten
from memd.dream.links import LinkMoves
from memd.dream.material import Material, Memory, compared, gather
from memd.dream.merging import carries, merge_all
from memd.dream.rules import written
from memd.dream.similarity import Prose, fenced
from memd.dream.values import Left, Merge, Wanted, in_the_end

Resolve = Callable[[str, float], str]  # (text, when it was written) -> with absolute dates
Repeats = Callable[[Sequence[FileEdit]], Collection[str]]  # paths of edits that were taken back

_NS = 1_000_000_000
_ROUNDS = 8  # each finds what the last one would do instead of what was taken back
_FILES = limits.CHANGE_FILES - 1  # without the index
_PARAGRAPHS = re.compile(r"(?<=\n)(?=\n)")
_TAKEN_BACK = "a dream changed this text before, and that was taken back or refused"


def fixed(
    tree: Tree, resolve: Resolve, repeats: Repeats, refused: Collection[tuple[str, str]] = ()
) -> Wanted:
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
        wanted = consolidate(tree, resolve, frozen)
        edits = [edit for edit in (*wanted.edits, *probe) if edit.path not in frozen]
        again = {edit.path for edit in edits if (edit.path, edit.base) in refused}
        again |= set(repeats(edits))
        if not again:
            break
        frozen |= again
    else:
        wanted = Wanted(listed=wanted.listed)
    return replace(wanted, left=tuple(Left(path, _TAKEN_BACK) for path in sorted(frozen)))


def consolidate(tree: Tree, resolve: Resolve, frozen: AbstractSet[str] = frozenset()) -> Wanted:
    """Return what the pass would change in a memory directory; ``frozen`` paths stay."""
    material = gather(tree, frozen)
    dated = _within([_with_dates(memory, resolve) for memory in material.memories])
    hooks: dict[str, str] = {}
    for entry in shorten.pointers(material.index or b""):
        hooks.setdefault(entry.path, entry.hook)  # of several pointers the first one stays
    room = _FILES - sum(_changes(memory) for memory in dated)
    while True:
        retained, merges = _merged(dated, room, hooks)
        touched = sum(_changes(memory) for memory in retained) + len(merges)
        if touched <= _FILES or not merges:
            break
        room = min(room, 2 * len(merges)) - 2 * (touched - _FILES)
    before = {memory.path: memory.file for memory in material.memories}
    edits = [
        FileEdit(memory.path, memory.content, memory.file.hash, memory.mtime_ns)
        for memory in retained
        if _changes(memory)
    ]
    edits += [FileEdit(merge.source, None, before[merge.source].hash) for merge in merges]
    if INDEX not in frozen:
        edits += _index(tree, material, retained, merges, resolve)
    return Wanted(tuple(edits), merges, listed=material.listed)


def absolute(text: str, at: float, resolve: Resolve) -> str:
    """Return a text with absolute dates, code left alone; unchanged where it would not be stable.

    ``at`` is when the text was written, in seconds since 1970.
    """

    def resolved(part: str) -> str:
        yield_to_requests()
        return resolve(part, at)

    done: list[str] = []
    for place, part in enumerate(fenced(text)):
        if place % 2:
            done.append(part)
            continue
        pieces = [resolved(piece) for piece in _PARAGRAPHS.split(part)]
        if [resolved(piece) for piece in pieces] != pieces:
            return text
        done += pieces
    return "".join(done)


def _changes(memory: Memory) -> bool:
    return memory.content != memory.file.content


def _within(memories: Sequence[Memory]) -> list[Memory]:
    """Return the memories with no more changed than a change set holds; the next pass goes on."""
    result: list[Memory] = []
    room = _FILES
    for memory in memories:
        if _changes(memory):
            room -= 1
        result.append(memory if room >= 0 or not _changes(memory) else _as_it_was(memory))
    return result


def _as_it_was(memory: Memory) -> Memory:
    file = memory.file
    head = file.content[: len(file.content) - len(file.body.encode())]
    text = compared(file.body, file.header.description)
    return replace(
        memory, head=head, body=file.body, description=file.header.description, text=text
    )


def _merged(
    memories: Sequence[Memory], room: int, hooks: dict[str, str]
) -> tuple[tuple[Memory, ...], tuple[Merge, ...]]:
    """Merge and lead links on, until neither makes anything new to merge."""
    every = {memory.path: memory.named for memory in memories}
    into: dict[str, str] = {}
    retained = tuple(memories)
    while True:
        retained, merges = merge_all(retained, room - 2 * len(into), hooks)
        into |= {merge.source: merge.into for merge in merges}
        moves = LinkMoves(
            [(every[source], every[in_the_end(into, source)]) for source in into],
            [memory.named for memory in retained],
        )
        led = tuple(_led(memory, moves) for memory in retained)
        if led == retained:
            break
        retained = led
    return retained, tuple(Merge(in_the_end(into, source), source) for source in into)


def _led(memory: Memory, moves: LinkMoves) -> Memory:
    """Return a memory whose links lead to what is still there, as far as it may change."""
    yield_to_requests()
    if memory.lasting:
        return memory
    body = moves.repointed(memory.body, memory.path)
    taken = tuple(
        (path, replace(said, body=moves.repointed(said.body, path))) for path, said in memory.says
    )
    if body == memory.body and taken == memory.says:
        return memory
    led = replace(memory.with_text(body), taken=taken)
    return led if carries(led) else memory


def _written_at(memory: Memory) -> float:
    """Return the stamp of a memory, or its mtime where it has none."""
    result = document.parse(memory.file.content, memory.path)
    return next(written(result, memory.file.header.mtime_ns / _NS))


def _with_dates(memory: Memory, resolve: Resolve) -> Memory:
    yield_to_requests()
    if memory.type is not MemoryType.PROJECT:
        return memory
    at = _written_at(memory)
    body = absolute(memory.body, at, resolve)
    description = absolute(memory.description, at, resolve)
    head = memory.head
    if description != memory.description:
        try:
            head = document.with_fields(head, {"description": description})
        except FrontmatterNotEditableError:
            description = memory.description
    if (head, body) == (memory.head, memory.body):
        return memory
    text = compared(body, description)
    return replace(memory, head=head, description=description, body=body, text=text)


def _index(
    tree: Tree,
    material: Material,
    retained: Sequence[Memory],
    merges: Sequence[Merge],
    resolve: Resolve,
) -> list[FileEdit]:
    """Return the edit of the index, if more is to change than the store sees to by itself.

    The store drops and adds pointers at each commit. They are counted here, so that a line is cut
    as the whole will need it. Where the whole is too large all the same, only the lines that are
    there already change, and none gets longer.
    """
    before = material.index
    if before is None:
        return []
    when = {m.path: _written_at(m) for m in material.memories if m.type is MemoryType.PROJECT}
    said = {m.path: shorten.WordRuns(m.text, Prose(m.description)) for m in retained}

    def dated(path: str, hook: str) -> str:
        new = absolute(hook, when[path], resolve) if path in when else hook
        return hook if new != hook and secrets.find(new) else new

    def stable(path: str, hook: str) -> bool:
        return dated(path, hook) == hook and not secrets.find(hook)

    def better(content: bytes, *, dates: bool = True) -> bytes:
        hooks = {e.line: dated(e.path, e.hook) for e in shorten.pointers(content) if dates}
        return shorten.shortened(shorten.with_hooks(content, hooks), said, stable)

    yield_to_requests()
    whole = _reconciled(tree, before, retained, merges)
    wanted = better(whole)
    if wanted == whole:
        return []
    if index.load(wanted).cut:
        tries = (better(before), better(before, dates=False))
        wanted = next((new for new in tries if _no_larger(before, new)), before)
    return [FileEdit(INDEX, wanted, sha256(before))] if wanted != before else []


def _reconciled(
    tree: Tree, before: bytes, retained: Sequence[Memory], merges: Sequence[Merge]
) -> bytes:
    """Return the index as the store will make it, but for pointers to what is not there."""
    gone = {merge.source for merge in merges}
    headers = [header for header in tree.headers() if header.path not in gone]
    lines = {h.path: Pointer(h.name, h.description) for h in headers}
    lines |= {m.path: Pointer(m.file.header.name, m.description) for m in retained}
    named = {entry.path for entry in shorten.pointers(before)} - gone
    files = lines.keys() if len(headers) <= limits.INDEX_ENTRIES else ()
    return index.reconcile(before, frozenset(files), lines, frozenset(named)) or b""


def _no_larger(before: bytes, after: bytes) -> bool:
    old, new = index.load(before), index.load(after)
    return not new.cut or (bool(old.cut) and new.lines <= old.lines and new.bytes < old.bytes)
