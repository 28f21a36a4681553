"""Judge a dream's changes of the index: it may only change the pointers of its memories. Pure.

A pointer is the line of a memory in the index: a title, a link and a hook, its few words.

Rules of this file
- A line that is no pointer was written by a person: it stays byte for byte and in its order. If a
  dream would change one, the pointers of accepted memories are still changed, in their places.
- A pointer's new words need a ground in its memory or its old line, as any new statement does
  (``grounds.py``). The index is read with every prompt, so it may not contain new orders.
- A pointer to a person's rule has only words of that rule or of the old pointer.
"""

from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet

from memd.base.names import INDEX
from memd.base.text import decode
from memd.base.values import Pointer
from memd.dream.grounds import Grounds
from memd.dream.groups import MemoryText
from memd.dream.values import quoted
from memd.store import secret
from memd.store.index import Index, load, pointers
from memd.text.statements import Statement, statements

_MORE = "\u2026"  # ends a text that was cut
_OUTSIDE = " (outside)"  # the store appends it to the line of a memory of outside origin


def judge(
    old: bytes,
    wanted: bytes,
    texts: Mapping[str, MemoryText],
    accepted: AbstractSet[str],
    waiting: Collection[str],
) -> tuple[bytes, list[str], bool]:
    """Return the index to write, the problems of the rest, and whether some of it is kept back.

    ``old`` is the index before, ``wanted`` as the dream wants it. ``texts`` are the memories as
    they will be, by path; ``accepted`` are the paths of those whose changes are accepted. Changes
    of the paths in ``waiting`` are kept back, with their lines.
    """
    problems = list(_hand_line_problems(old, wanted))
    old_pointers, new_pointers = pointers(old), pointers(wanted)
    changed = {
        path
        for path in old_pointers.keys() | new_pointers.keys()
        if old_pointers.get(path) != new_pointers.get(path)
    }
    allowed = changed & accepted
    compared = changed & new_pointers.keys() & texts.keys()
    for path in sorted(compared.difference(waiting)):
        problem = _pointer_problem(new_pointers[path], old_pointers.get(path), texts[path])
        if problem:
            allowed.discard(path)
            problems.append(f"{INDEX} {problem}")
        else:
            allowed.add(path)
    is_complete = not problems and changed == allowed
    content = wanted if is_complete else _with_allowed_pointers(old, wanted, allowed, texts)
    before, after = load(old), load(content)
    # Only the beginning of a long index is loaded; it must not become longer.
    if after.cut and (after.lines > before.lines or after.bytes > before.bytes):
        return old, [*problems, f"{INDEX} would be larger than what is loaded of it"], True
    if secret.find(decode(content)) and not secret.find(decode(old)):
        return old, [*problems, f"{INDEX} would hold what looks like a secret"], True
    is_kept_back = bool(problems or (waiting and changed != allowed))
    return content, problems, is_kept_back


def _hand_line_problems(before: bytes, after: bytes) -> Iterator[str]:
    """Yield a problem if lines that are no pointers would be lost, added or reordered."""
    old, new = _hand_lines(before), _hand_lines(after)
    lost = [line for line in old if old.count(line) > new.count(line)]
    added = [line for line in new if new.count(line) > old.count(line)]
    if lost:
        yield f"{INDEX} would lose a line that no pointer is: '{quoted(decode(lost[0]))}'"
    if added:
        yield f"{INDEX} would say more than pointers do: '{quoted(decode(added[0]))}'"
    if old != new and not (lost or added):
        yield f"{INDEX} would have its lines by hand in another order"


def _hand_lines(content: bytes) -> list[bytes]:
    """Return the lines of an index that are neither pointers nor empty."""
    pointer_lines = Index(content).entries
    lines = enumerate(content.splitlines())
    return [line for number, line in lines if number not in pointer_lines and line.strip()]


def _pointer_problem(new: Pointer, old: Pointer | None, text: MemoryText) -> str:
    """Return what is wrong with a pointer's new words about a memory, "" if nothing is."""
    stem = text.path.rpartition("/")[2].removesuffix(".md")
    names = f"{text.document.name} {stem}".replace("-", " ").replace("_", " ")
    earlier = [*text.statements, Statement(f"{names} {text.document.type or ''}")]
    earlier_text = text.raw
    if old is not None:
        old_line = f"{old.title}\n\n{old.hook}"
        earlier += [*statements(old_line), Statement(f"{old.title} {old.hook}")]
        earlier_text += f"\n{old_line}"
    grounds = Grounds(earlier, raw=earlier_text)
    earlier_words = frozenset[str]().union(*(one.words for one in earlier))
    new_hook = new.hook.removesuffix(_OUTSIDE).rstrip(_MORE + " ")
    for words in (new.title, new_hook):
        statement = Statement(words)
        problem = grounds.problem(statement)
        if not problem and text.is_rule and not statement.words <= earlier_words:
            problem = "would say something else of it"
        if problem:
            return f"{problem} ({text.path}): '{quoted(words)}'"
    return ""


def _with_allowed_pointers(
    before: bytes, after: bytes, allowed: AbstractSet[str], texts: Mapping[str, MemoryText]
) -> bytes:
    """Return the old index in which only the pointers of the ``allowed`` paths are changed.

    ``before`` and ``after`` are the old index and the wanted one; ``texts`` are the memories as
    they will be.
    """
    new_lines = after.splitlines()
    new_line_of = {entry.path: new_lines[n] + b"\n" for n, entry in Index(after).entries.items()}
    result = before.splitlines(keepends=True)
    if result and not result[-1].endswith(b"\n"):
        result[-1] += b"\n"
    old_entries = Index(before).entries
    for number, entry in old_entries.items():
        path = entry.path
        # The line of a memory that stays is replaced, but never removed.
        if path in allowed and (path in new_line_of or path not in texts):
            result[number] = new_line_of.get(path, b"")
    listed = {entry.path for entry in old_entries.values()}
    result += [line for path, line in new_line_of.items() if path in allowed - listed]
    return b"".join(result)
