"""Consolidate memories by fixed rules, without a model. Pure.

Rules of this file
- A memory is removed if another one of its type has all its statements, the words of its
  description and its index line, and its numbered steps in the same order. The other one stays
  byte for byte. Of a person's own rules only exact copies are removed.
- A memory that another file links to stays; of two equal memories that one stays.
- A memory is only changed if it has a known type, parses, is UTF-8, fits the size limit, holds
  nothing like a secret and is not shared with a team. The others are listed with the reason. Only
  memories that would change are searched for secrets.
- A second pass changes nothing. An edit that a person took back or refused is not made again while
  the file's text is the same.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from memd.base import limits
from memd.base.errors import MemdError
from memd.base.names import INDEX, TEAM, check_name
from memd.base.text import decode, sha256
from memd.base.values import PERSONAL, FileEdit, MemoryFile, MemoryType, Tree
from memd.base.yielding import yield_to_requests
from memd.dream import joining
from memd.dream.values import DAMAGED, LISTED, Group, Merge, Reasoned, Wanted, in_the_end
from memd.store import index, secret
from memd.store.memory import Memory, parse, with_readable_head
from memd.text.links import names, targets
from memd.text.statements import Statement, statements

Key = tuple[str, str]  # the type of a memory, and the comparison key of a statement
Repeats = Callable[[Sequence[FileEdit]], Collection[str]]  # returns paths of edits taken back

_MOST_ROUNDS = 8  # each plans again without the files whose edits were taken back
_MOST_FILES = limits.CHANGE_FILES - 1  # of one change, without the index
_MOST_HOLDERS = 200  # a statement that more memories share is a mere template
_TAKEN_BACK = "a dream changed this text before, and that was taken back or refused"
_CREDENTIAL = "it holds what looks like a credential"
_UNTYPED = f"its type is none of {', '.join(MemoryType)}"


class _Candidate(Struct, frozen=True, dict=True):
    """A memory that may be changed."""

    file: MemoryFile  # as it is now
    content: bytes  # as it will be
    read: Memory  # the parsed content

    @property
    def path(self) -> str:
        """The path below the memory directory."""
        return self.file.header.path

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """The statements of the memory's text."""
        return tuple(statements(self.read.body))

    @cached_property
    def keys(self) -> frozenset[Key]:
        """What another memory must have to contain this one.

        This is each statement, or the text, description and origin of a person's rule.
        """
        kind = self.read.type or ""
        if kind in PERSONAL:
            read = self.read
            return frozenset(
                (kind, part) for part in (read.body.strip(), read.description, read.origin)
            )
        return frozenset((kind, statement.key) for statement in self.statements if statement.key)


def fixed_pass(tree: Tree, repeats: Repeats, refused: Collection[tuple[str, str]]) -> Wanted:
    """Return the edits of the fixed pass, without those that a person took back or refused.

    ``repeats`` returns the paths of edits that a dream made before to the same text
    (``Past.repeats``). ``refused`` has paths with the hash of the text for which a person refused
    an edit. Such files are listed in ``left``; if the index is among them, its pointers are not
    mended either.
    """
    content = tree.index()
    # The store mends the index in any case, so it is always checked for an edit taken back.
    index_edit = () if content is None else (FileEdit(INDEX, None, sha256(content)),)
    frozen: frozenset[str] = frozenset()
    for _ in range(_MOST_ROUNDS):
        wanted = consolidate(tree, frozen)
        edits = [edit for group in wanted.groups for edit in group.edits]
        edits = [edit for edit in (*edits, *index_edit) if edit.path not in frozen]
        repeated = {edit.path for edit in edits if (edit.path, edit.base) in refused}
        repeated |= set(repeats(edits))
        if not repeated:
            break
        frozen |= repeated
    else:  # it still found such edits in the last round, so it changes nothing
        wanted = Wanted(listed=wanted.listed)
    left = tuple(Reasoned(path, _TAKEN_BACK) for path in sorted(frozen))
    return replace(wanted, left=left, mend_index=INDEX not in frozen)


def consolidate(tree: Tree, frozen: AbstractSet[str] = frozenset()) -> Wanted:
    """Return the edits of the fixed pass for a directory, except of the ``frozen`` paths."""
    old_index = tree.index()
    memories, linked, listed = _collect_memories(tree, frozen, old_index or b"")
    hooks = {entry.path: entry.hook for entry in reversed(index.entries(old_index or b""))}
    target_of = dict(_find_duplicates(memories, linked, hooks))
    changing = [m for m in memories if m.content != m.file.content or m.path in target_of]
    with_secret = {memory.path for memory in changing if secret.find(decode(memory.file.content))}
    listed += [Reasoned(path, _CREDENTIAL) for path in sorted(with_secret)]
    by_path = {memory.path: memory for memory in memories}
    groups = [
        _group(memory, by_path.get(in_the_end(target_of, memory.path)))
        for memory in sorted(changing, key=lambda memory: memory.path not in target_of)
        if memory.path not in with_secret
    ]
    return Wanted(tuple(groups[:_MOST_FILES]), listed=tuple(listed))


def _group(memory: _Candidate, target: _Candidate | None) -> Group:
    """Return the group of a memory that is written anew, or goes as the ``target`` says it."""
    path, before = memory.path, memory.file.content
    if target is None or target is memory:
        mtime_ns = memory.file.header.mtime_ns
        edit = FileEdit(path, memory.content, memory.file.hash, mtime_ns)
        return Group((edit,), {path: before})
    return Group(
        (FileEdit(path, None, memory.file.hash),),
        {path: before, target.path: target.file.content},
        merged=(Merge(target.path, path),),
        reasons={path: f"merged into {target.path}"},
    )


def _collect_memories(
    tree: Tree, frozen: AbstractSet[str], index_content: bytes
) -> tuple[list[_Candidate], set[str], list[Reasoned]]:
    """Return the memories that may change, the paths of linked ones, and files to report.

    ``frozen`` are paths of memories that stay as they are; ``index_content`` is the index. Files
    that cannot be read or may not be changed are reported.
    """
    candidates: list[_Candidate] = []
    listed: list[Reasoned] = []
    links: set[str] = set(targets(_without_pointers(index_content), INDEX))
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
        parsed = parse(file.content, header.path)
        reason = _reason_against_change(file, parsed)
        if not reason:
            content, problem = with_readable_head(file.content)
            reason = f"other programs cannot read its frontmatter: {problem}" if problem else ""
            if header.path not in frozen:
                candidates.append(_Candidate(file, content, parsed))
        if reason:
            listed.append(Reasoned(header.path, reason))
    linked = {m.path for m in candidates if not links.isdisjoint(names(m.path, m.read.name))}
    return candidates, linked, listed[:LISTED]


def _reason_against_change(file: MemoryFile, parsed: Memory) -> str:
    """Return why a memory may not be changed, "" if it may."""
    if len(file.content) > limits.MEMORY_BYTES:
        return f"it is larger than {limits.MEMORY_BYTES} bytes"
    if parsed.damaged:
        return DAMAGED
    # Bytes that are no UTF-8 are replaced when they are decoded.
    is_utf8 = decode(file.content).encode() == file.content
    if not (is_utf8 and file.content.endswith(file.body.encode())):
        return "it is not UTF-8"
    return _UNTYPED if parsed.type is None else ""


def _without_pointers(content: bytes) -> str:
    """Return the index with each pointer replaced by its hook, so that only other links remain."""
    lines = decode(content).splitlines()
    for number, entry in index.Index(content).entries.items():
        if number < len(lines):
            lines[number] = entry.hook
    return "\n".join(lines)


def _find_duplicates(
    memories: Sequence[_Candidate], linked: AbstractSet[str], hooks: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield each memory that another one contains, and that other one, as paths.

    Memories in ``linked`` stay. They are preferred as the other one, then those with the most
    statements, so that a second pass decides the same. ``hooks`` has the index's words on each
    path.
    """
    counts: Counter[Key] = Counter()  # how many memories have each key
    for memory in memories:
        yield_to_requests()
        counts.update(memory.keys)
    holders: dict[Key, list[_Candidate]] = defaultdict(list)  # those that stay, so far
    ranked = sorted(
        memories, key=lambda m: (m.path not in linked, -len(m.keys), -len(m.read.body), m.path)
    )
    for memory in ranked:
        yield_to_requests()
        # A memory that contains this one has its rarest statement too, so only such are compared.
        rarest = min(memory.keys, key=lambda key: (counts[key], key), default=("", ""))
        if memory.path not in linked and 1 < counts[rarest] <= _MOST_HOLDERS:
            hook = hooks.get(memory.path, "")
            containing = (one for one in holders[rarest] if _contains(one, memory, hook))
            winner = next(containing, None)
            if winner is not None:
                yield memory.path, winner.path
                continue
        for key in memory.keys:
            holders[key].append(memory)


def _contains(winner: _Candidate, loser: _Candidate, hook: str) -> bool:
    """Return whether the winner says all that the loser and its index line (``hook``) say."""
    if not (loser.keys <= winner.keys and joining.has_steps(winner.read.body, loser.read.body)):
        return False
    text = joining.text_of(winner.read)
    return joining.says(text, loser.read.description) and joining.says(text, hook)
