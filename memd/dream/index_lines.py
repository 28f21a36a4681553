"""What a dream may do with the index: the pointers of its memories, and nothing else. Pure.

Rules of this file
- A line that is no pointer is a person's and stays byte for byte, in its order. Where a dream would
  change one, the pointers of its groups change all the same, in their places.
- A pointer's new words rest on its memory, its description and its old line, as any new statement
  does (``grounds.py``); the index is read with every prompt, so nothing is ordered in it anew.
- A pointer of a person's rule says only words that stand there.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from memd.core.names import INDEX
from memd.core.text import decode
from memd.documents import secrets
from memd.documents.index import IndexEntry, entries, load, read
from memd.dream.grounds import Grounds
from memd.dream.groups import Text
from memd.dream.links import Known
from memd.dream.values import quoted
from memd.text.bounds import DENIAL
from memd.text.similarity import resemblance
from memd.text.statements import Statement, statements

_MORE = "\u2026"
_OUTSIDE = " (outside)"  # what the store puts behind the line of such a memory
_NEARLY = 0.75


@dataclass(frozen=True, slots=True)
class JudgedIndex:
    """The index that may stand, ``None`` where it stays as it is, and what is wrong with the rest.

    ``held_back`` says that lines of memories that are kept back were to change.
    """

    content: bytes | None = None
    problems: tuple[str, ...] = ()
    held_back: bool = False


def judge(
    before: bytes | None,
    after: bytes | None,
    texts: Mapping[str, Text],
    accepted: Collection[str],
    waiting: Collection[str] = (),
) -> JudgedIndex:
    """Return what may stand of a new index.

    ``texts`` are the memories as they will be, those ``accepted`` among them that change; those
    ``waiting`` are kept back, with their lines.
    """
    old = before or b""
    if after is None or after == old:
        return JudgedIndex()
    problems = [*_by_hand(old, after)]
    was, now = _pointers(old), _pointers(after)
    stands = set(accepted)
    for path, entry in now.items():
        if path in waiting:
            continue
        if path in was and (was[path].title, was[path].hook) == (entry.title, entry.hook):
            stands.add(path)
        elif path in texts:
            problem = _line(entry, was.get(path), texts[path])
            if problem:
                problems.append(f"{INDEX} {problem}")
                stands.discard(path)
            else:
                stands.add(path)
    held_back = bool(
        {path for path in was.keys() | now.keys() if was.get(path) != now.get(path)} - stands
    )
    whole = not problems and not held_back
    content = after if whole else _composed(old, after, stands, texts)
    before_size, size = load(old), load(content)
    if size.cut and (size.lines > before_size.lines or size.bytes > before_size.bytes):
        return JudgedIndex(None, (*problems, f"{INDEX} would be larger than what is loaded of it"))
    if secrets.find(decode(content)) and not secrets.find(decode(old)):
        return JudgedIndex(None, (*problems, f"{INDEX} would hold what looks like a secret"))
    return JudgedIndex(content if content != old else None, tuple(problems), held_back)


def _by_hand(before: bytes, after: bytes) -> Iterator[str]:
    """Yield where a line that is no pointer would go, come or change."""
    old, new = list(_hand_lines(before)), list(_hand_lines(after))
    lost = [line for line in old if old.count(line) > new.count(line)]
    fresh = [line for line in new if new.count(line) > old.count(line)]
    if lost:
        yield f"{INDEX} would lose a line that no pointer is: '{quoted(decode(lost[0]))}'"
    if fresh:
        yield f"{INDEX} would say more than pointers do: '{quoted(decode(fresh[0]))}'"
    if old != new and not (lost or fresh):
        yield f"{INDEX} would have its lines by hand in another order"


def _hand_lines(content: bytes) -> Iterator[bytes]:
    numbers = {line.number for line in read(content).lines}
    for number, line in enumerate(content.splitlines()):
        if number not in numbers and line.strip():
            yield line


def _pointers(content: bytes) -> dict[str, IndexEntry]:
    result: dict[str, IndexEntry] = {}
    for entry in entries(content):
        result.setdefault(entry.path, entry)
    return result


def _line(entry: IndexEntry, old: IndexEntry | None, text: Text) -> str:
    """Return what is wrong with the new words of a pointer."""
    stem = text.path.rpartition("/")[2].removesuffix(".md")
    names = f"{text.document.name} {stem}".replace("-", " ").replace("_", " ")
    known = [*text.statements, Statement(names), Statement(f"{names} {text.document.type or ''}")]
    raw = text.raw
    if old is not None:
        known += [
            *statements(old.title),
            *statements(old.hook),
            Statement(f"{old.title} {old.hook}"),
        ]
        raw += f"\n{old.title}\n{old.hook}"
    hooks = Text(raw.encode(), text.path, text.at, Known(())) if old else text
    grounds = Grounds(known, raw=raw, days=text.days | hooks.days)
    for said in (entry.title, entry.hook.removesuffix(_OUTSIDE).rstrip(_MORE + " ")):
        one = Statement(said)
        if not said or one.key in grounds.keys:
            continue
        strange = text.fixed and not one.words <= frozenset().union(*(k.words for k in known))
        near = max(text.statements, key=lambda other: len(other.words & one.words), default=one)
        denies = (DENIAL in near.limits) != (DENIAL in one.limits)
        problem = grounds.problem(one) or (
            "would say something else of it"
            if strange
            else "would say the opposite of it"
            if denies and resemblance(one, near) >= _NEARLY
            else ""
        )
        if problem:
            return f"{problem} ({text.path}): '{quoted(said)}'"
    return ""


def _composed(
    before: bytes, after: bytes, stands: Collection[str], texts: Mapping[str, Text]
) -> bytes:
    """Return the index with the pointers of ``stands`` as they are wanted, all else as it was."""
    wanted = after.splitlines(keepends=True)
    lines = {line.paths[0]: wanted[line.number] for line in reversed(read(after).lines)}
    result = before.splitlines(keepends=True)
    if result and not result[-1].endswith(b"\n"):
        result[-1] += b"\n"
    there = set()
    for line in read(before).lines:
        path = line.paths[0]
        there.add(path)
        if path in stands and path in lines:
            result[line.number] = lines[path].rstrip(b"\r\n") + b"\n"
        elif path in stands and path not in texts:
            result[line.number] = b""
    result += [
        line.rstrip(b"\r\n") + b"\n"
        for path, line in lines.items()
        if path in stands and path not in there
    ]
    return b"".join(result)
