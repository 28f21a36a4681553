"""The deterministic pass: what can be tightened without understanding (spec 5.3). Pure.

Rules of this file
- Only memories of a known type that parse, are UTF-8 and hold nothing like a secret are touched;
  all others, and those shared with a team, stay byte for byte.
- Relative dates of ``project`` memories become absolute, counted from the ``modified`` stamp of
  the memory, else from its mtime. The memory does not become newer by that.
- Duplicates and near-duplicates of one type become one: the richer text stays as it is and gets
  every sentence that it lacks. It is as new as the newest of them.
- A second pass finds nothing: who takes in whom depends on the texts alone, and the pass goes on
  until no two memories are left that could be merged.
- The frontmatter, the line ends and every byte that needs no change stay.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from memd.core import limits
from memd.core.courtesy import give_way
from memd.core.errors import MemdError
from memd.core.text import sha256
from memd.core.values import FileEdit, MemoryFile, MemoryType, Pointer, Tree
from memd.dream.carried import holds
from memd.dream.similarity import FENCE, Text, alike, contradict, key, missing, words
from memd.dream.verdict import Merge, Wanted
from memd.store import document, index, secrets
from memd.store.frontmatter_edit import FrontmatterNotEditableError
from memd.store.names import INDEX, check_name

Resolve = Callable[[str, float], str]  # (text, when it was written) -> with absolute dates

_TEAM = "team/"
_FEW_WORDS = 5  # "See above." is no duplicate of "See above.": so short, the description decides
_COMMON = 200  # memories with the same three words; more is a template and says nothing
_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class _Memory:
    """A memory as the pass changes it: ``head`` is everything before the body."""

    file: MemoryFile
    type: MemoryType
    head: bytes
    description: str
    body: str
    mtime_ns: int
    text: Text

    @property
    def path(self) -> str:
        """The path below the memory directory."""
        return self.file.header.path

    @property
    def content(self) -> bytes:
        """The bytes that the file would have."""
        return self.head + self.body.encode()

    @property
    def rank(self) -> tuple[int, int, str]:
        """The richest first; by the text alone, so that a second pass decides the same."""
        return (-len(self.text.sentences), -len(self.text.words), self.path)


def consolidate(tree: Tree, resolve: Resolve) -> Wanted:
    """Return what the pass would change in a memory directory."""
    memories = _load(tree)
    dated = [_with_dates(memory, resolve) for memory in memories]
    room = limits.CHANGE_FILES - 1 - sum(a is not b for a, b in zip(memories, dated, strict=True))
    kept, merges = _merge_all(dated, room)
    before = {memory.path: memory.file for memory in memories}
    edits = [
        FileEdit(memory.path, memory.content, memory.file.hash, memory.mtime_ns)
        for memory in kept
        if memory.content != memory.file.content
    ]
    edits += [FileEdit(merge.source, None, before[merge.source].hash) for merge in merges]
    return Wanted(tuple(edits[: limits.CHANGE_FILES - 1] + _index(tree, memories, resolve)), merges)


def absolute(text: str, at: float, resolve: Resolve) -> str:
    """Return a text with absolute dates, code left alone; unchanged where it would not be stable.

    ``at`` is when the text was written, in seconds since 1970.
    """
    parts: list[str] = [""]
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark.group(1)
            parts += [line, ""]
        elif fence:
            parts[-2] += line
            fence = "" if mark and mark.group(1) == fence else fence
        else:
            parts[-1] += line
    done = [part if place % 2 else resolve(part, at) for place, part in enumerate(parts)]
    again = [part if place % 2 else resolve(part, at) for place, part in enumerate(done)]
    return "".join(done) if again == done else text


def _load(tree: Tree) -> list[_Memory]:
    found = []
    for header in tree.headers():
        give_way()
        if header.damaged or header.path.startswith(_TEAM):
            continue
        try:
            check_name(header.path)
            file = tree.read(header.path)
        except MemdError:  # too large, unreadable, or a name that memd never writes
            continue
        memory = None if file is None else _memory(file)
        if memory is not None:
            found.append(memory)
    return found


def _memory(file: MemoryFile) -> _Memory | None:
    encoded = file.body.encode(errors="replace")
    kind = file.header.type
    if kind is None or file.header.damaged or not file.content.endswith(encoded):
        return None
    try:
        text = file.content.decode()
    except UnicodeDecodeError:
        return None
    if secrets.find(text):
        return None
    head = file.content[: len(file.content) - len(encoded)]
    description = file.header.description
    comparable = Text(file.body) if words(file.body) else Text(description)
    return _Memory(file, kind, head, description, file.body, file.header.mtime_ns, comparable)


def _written_at(memory: _Memory) -> float:
    stamp = document.parse(memory.file.content, memory.path).metadata.get("modified", "")
    try:
        written = datetime.fromisoformat(stamp)
    except ValueError:
        return memory.file.header.mtime_ns / _NS
    return (written if written.tzinfo else written.replace(tzinfo=UTC)).timestamp()


def _with_dates(memory: _Memory, resolve: Resolve) -> _Memory:
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
    comparable = Text(body) if words(body) else Text(description)
    return replace(memory, head=head, description=description, body=body, text=comparable)


def _merge_all(
    memories: Sequence[_Memory], room: int
) -> tuple[tuple[_Memory, ...], tuple[Merge, ...]]:
    """Merge until nothing is left to merge, or the change set is full."""
    kept = {memory.path: memory for memory in memories}
    into: dict[str, str] = {}
    while True:
        ordered = sorted(kept.values(), key=lambda memory: memory.rank)
        before = len(into)
        for first, second in _pairs(ordered):
            give_way()
            both = first.path in kept and second.path in kept
            if both and 2 * len(into) + 2 <= room:
                merged = _merged(kept[first.path], kept[second.path])
                if merged is not None:
                    kept[first.path] = merged
                    into[second.path] = first.path
                    del kept[second.path]
        if len(into) == before:
            break
    merges = tuple(Merge(_last(into, source), source) for source in into)
    return tuple(kept.values()), merges


def _last(into: Mapping[str, str], path: str) -> str:
    """Return where a memory is now: who took it in may have gone into another one."""
    while path in into:
        path = into[path]
    return path


def _pairs(ordered: Sequence[_Memory]) -> Iterator[tuple[_Memory, _Memory]]:
    """Yield candidates, the richer one first: equal texts, then those that share shingles."""
    equal: dict[tuple[str, str], _Memory] = {}
    places: dict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
    for place, memory in enumerate(ordered):
        give_way()
        same = (memory.type.value, key(memory.text.text))
        if same in equal and _comparable(equal[same], memory):
            yield equal[same], memory
        equal.setdefault(same, memory)
        for shingle in memory.text.shingles:
            places[memory.type.value, shingle].append(place)
    for place, memory in enumerate(ordered):
        give_way()
        shared: Counter[int] = Counter()
        for shingle in memory.text.shingles:
            found = places[memory.type.value, shingle]
            if len(found) <= _COMMON:
                shared.update(other for other in found if other > place)
        for other in sorted(shared):
            if alike(memory.text, ordered[other].text, shared[other]) and _comparable(
                memory, ordered[other]
            ):
                yield memory, ordered[other]


def _comparable(first: _Memory, second: _Memory) -> bool:
    fewest = min(len(first.text.words), len(second.text.words))
    return bool(fewest) and (
        fewest >= _FEW_WORDS or key(first.description) == key(second.description)
    )


def _merged(winner: _Memory, loser: _Memory) -> _Memory | None:
    """Return the richer memory with all that the other says, ``None`` where that cannot be."""
    if contradict(winner.text, loser.text):
        return None
    if len(winner.content) + len(loser.content) > limits.MEMORY_BYTES:
        return None
    known = Text(winner.body).sentences.keys() | Text(winner.description).sentences.keys()
    extra = missing(Text(loser.body), known)
    body = _appended(winner.body, extra)
    merged = replace(winner, body=body, mtime_ns=max(winner.mtime_ns, loser.mtime_ns))
    target = document.parse(merged.content, winner.path)
    source = document.parse(loser.content, loser.path)
    if not holds(target, source):  # only the description is left
        merged = replace(merged, body=_appended(body, loser.description))
        target = document.parse(merged.content, winner.path)
    if not holds(target, source) or not holds(target, document.parse(winner.content, winner.path)):
        return None  # such as a code block without an end, which would swallow what follows
    return replace(merged, text=Text(merged.body) if words(merged.body) else merged.text)


def _appended(body: str, extra: str) -> str:
    if not extra:
        return body
    end = "\r\n" if "\r\n" in body else "\n"
    start = body.rstrip()
    return (start + end + end if start else "") + extra.replace("\n", end) + end


def _index(tree: Tree, memories: Sequence[_Memory], resolve: Resolve) -> list[FileEdit]:
    """Return the index with absolute dates in the lines of project memories, if any change."""
    before = tree.index()
    if before is None:
        return []
    written = {m.path: _written_at(m) for m in memories if m.type is MemoryType.PROJECT}
    content = before
    for entry in index.entries(before):
        if entry.path in written:
            hook = absolute(entry.hook, written[entry.path], resolve)
            if hook != entry.hook and not secrets.find(hook):
                content = index.with_pointer(content, entry.path, Pointer(entry.title, hook))
    return [FileEdit(INDEX, content, sha256(before))] if content != before else []
