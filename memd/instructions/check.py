"""Find what a person may want to correct in a project's instruction files. Pure; reads by a port.

What a view itself finds (long files, broken rules) comes as its problems; here is what only a look
at several files, at the project's other files, or at the memories tells.
"""

import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import combinations, islice

from msgspec import Struct

from memd.core.covered import Covered
from memd.core.yielding import yield_to_requests
from memd.instructions import includes
from memd.instructions.loading import MISSING
from memd.instructions.values import TOUCHED_FILES, InstructionDisk, Resolution, View
from memd.text.blocks import FENCE
from memd.text.quoting import code_span
from memd.text.similarity import RESEMBLING, contradiction, resemblance
from memd.text.statements import Statement, statements

WALKED_ENTRIES = 20_000  # of the project, for rules that match nothing
_FOLDERS_PASSED_OVER = frozenset({"node_modules", "__pycache__", "target", "dist", "build"})
_STATEMENTS = 2000  # of all files, that are compared
_WORK = 100_000  # pairs that words name, the rarest words first
_MOST = 20  # issues of a kind that looks at pairs
_SHOWN_CHARACTERS = 120

Touch = Callable[[Sequence[str]], Resolution]


class IssueKind(StrEnum):
    """What is to be mended."""

    PROBLEM = "problem"  # what a view names: a long file, a rule whose head is broken
    DEAD_INCLUDE = "dead_include"
    CYCLE = "cycle"
    UNMATCHED_RULE = "unmatched_rule"
    CONTRADICTION = "contradiction"
    REPEATED_MEMORY = "repeated_memory"


class InstructionIssue(Struct, frozen=True):
    """One thing to mend: the file or the memory, and a sentence; ``path`` is "" with a problem."""

    kind: IssueKind
    path: str
    text: str


def of_files(union: Resolution, home: str) -> Iterator[InstructionIssue]:
    """Yield what the files of all views say of themselves and of each other by includes."""
    for problem in union.problems:
        yield InstructionIssue(IssueKind.PROBLEM, "", problem)
    for file in union.files:
        if file.why_not == MISSING:
            yield InstructionIssue(
                IssueKind.DEAD_INCLUDE, file.included_by, f"includes {file.path}: {MISSING}"
            )
    yield from islice(_cycles(union, home), _MOST)


def unmatched_rules(
    project: Resolution,
    cwd: str,
    disk: InstructionDisk,
    touch: Touch,
    entries: int = WALKED_ENTRIES,
) -> Iterator[InstructionIssue]:
    """Yield the project's rules whose condition no file below a folder fulfils.

    ``touch`` is what a view makes of touched files. Hidden folders and those of packages and of
    what is built are passed over. Where the project has more ``entries`` the sentence says so.
    """
    waiting = {f.path: f for f in project.files if f.condition and f.scope == "project"}
    waiting = {path: file for path, file in waiting.items() if not file.loaded}
    if not waiting:
        return
    files, whole = _walked(cwd, disk, entries)
    for start in range(0, len(files), TOUCHED_FILES):
        for file in touch(files[start : start + TOUCHED_FILES]).files:
            known = waiting.get(file.path)
            if known and (file.loaded or file.why_not != known.why_not):
                del waiting[file.path]
        if not waiting:
            return
    of = "no file of the project" if whole else f"none of the first {len(files):,} files"
    for path, file in waiting.items():
        globs = ", ".join(file.condition)
        yield InstructionIssue(IssueKind.UNMATCHED_RULE, path, f"never loads: {of} matches {globs}")


def contradictions(views: Mapping[View, Resolution]) -> Iterator[InstructionIssue]:
    """Yield sentences of two files that cannot both hold, where no assistant loads both files.

    An assistant that loads both knows which one counts more.
    """
    readers: dict[str, set[View]] = defaultdict(set)
    texts: dict[str, str] = {}
    for view, resolution in views.items():
        for path, text in resolution.texts.items():
            readers[path].add(view)
            texts[path] = text
    return islice(_contradictions(texts, readers), _MOST)


def _contradictions(
    texts: Mapping[str, str], readers: Mapping[str, set[View]]
) -> Iterator[InstructionIssue]:
    """Yield an issue for each two statements of different files that cannot both hold.

    Files that are read together are not compared: there one may correct the other.
    """
    stated = [(path, one) for path in sorted(texts) for one in statements(texts[path])]
    stated = [(path, one) for path, one in stated if not FENCE.match(one.raw)][:_STATEMENTS]
    keys: dict[str, set[str]] = defaultdict(set)
    for path, one in stated:
        keys[path].add(one.key)
    for first, second in _near([one for _, one in stated]):
        yield_to_requests()
        (path, one), (other, two) = stated[first], stated[second]
        if readers[path] & readers[other] or one.key in keys[other] or two.key in keys[path]:
            continue
        if resemblance(one, two) >= RESEMBLING and (why := contradiction(one, two)):
            words = f"says {_quoted(one)}, but {other} says {_quoted(two)}: {why}"
            yield InstructionIssue(IssueKind.CONTRADICTION, path, words)


def _near(stated: Sequence[Statement]) -> list[tuple[int, int]]:
    """Return pairs of statements that share a telling word, those with rare words first."""
    holders: dict[str, list[int]] = defaultdict(list)
    for number, one in enumerate(stated):
        for word in one.words:
            holders[word].append(number)
    pairs: dict[tuple[int, int], None] = {}
    work = 0
    for numbers in sorted(holders.values(), key=len):
        work += len(numbers) ** 2 // 2
        if work > _WORK:
            break
        pairs |= dict.fromkeys(combinations(numbers, 2))
    return sorted(pairs)


def repeated_memories(
    memories: Iterable[tuple[str, str]], covered: Covered
) -> Iterator[InstructionIssue]:
    """Yield the memories, given by path and text, that say what an instruction file says."""
    for path, text in memories:
        yield_to_requests()
        if file := covered(text):
            yield InstructionIssue(IssueKind.REPEATED_MEMORY, path, f"says what {file} says")


def _cycles(union: Resolution, home: str) -> Iterator[InstructionIssue]:
    """Yield the includes that lead back to the file that they began with."""
    edges = {path: _targets(path, text, home) for path, text in union.texts.items()}
    done: set[str] = set()
    for start, first in edges.items():
        way = [(start, iter(first))]
        while way and start not in done:
            path, left = way[-1]
            target = next((each for each in left if each in edges and each not in done), None)
            if target is None:
                done.add(path)
                way.pop()
            elif target in (each for each, _ in way):
                yield InstructionIssue(
                    IssueKind.CYCLE, path, f"includes {target}, which leads back to it"
                )
            else:
                way.append((target, iter(edges[target])))


def _targets(path: str, text: str, home: str) -> tuple[str, ...]:
    """Return the paths of all files that a text includes."""
    return tuple(includes.target(name, path, home) for name in includes.parsed(text).includes)


def _walked(cwd: str, disk: InstructionDisk, most: int) -> tuple[list[str], bool]:
    """Return the files below a folder, the nearest first, and whether these are all of them."""
    files, folders, entries = list[str](), [cwd], 0
    for folder in folders:  # which grows
        for entry in disk.entries(folder):
            entries += 1
            yield_to_requests()
            if entries > most:
                return files, False
            path = posixpath.join(folder, entry.name)
            if not entry.folder:
                files.append(path)
            elif path == entry.real and not _is_passed_over(entry.name):
                folders.append(path)
    return files, True


def _is_passed_over(name: str) -> bool:
    """Return whether a folder of this name is not searched for instruction files."""
    return name in _FOLDERS_PASSED_OVER or (name.startswith(".") and name != ".github")


def _quoted(statement: Statement) -> str:
    """Return the beginning of a statement as inline code."""
    return code_span(statement.raw, _SHOWN_CHARACTERS)
