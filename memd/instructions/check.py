"""Find what a person may want to correct in a project's instruction files. Pure; reads by a port.

A view lists the problems of single files (long files, broken rules). This module compares several
files with each other, with the project's other files, and with the memories.
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
_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "target", "dist", "build"})
_MOST_STATEMENTS = 2000  # of all files together are compared
_MOST_PAIRS = 100_000  # of statements that share a word; pairs with rare words come first
_MOST_ISSUES = 20  # of cycles, and of contradictions
_SHOWN_CHARACTERS = 120

Touch = Callable[[Sequence[str]], Resolution]


class IssueKind(StrEnum):
    """The kind of an issue."""

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


def file_issues(union: Resolution, home: str) -> Iterator[InstructionIssue]:
    """Yield the problems of the files of all views, includes of missing files, and cycles."""
    for problem in union.problems:
        yield InstructionIssue(IssueKind.PROBLEM, "", problem)
    for file in union.files:
        if file.why_not == MISSING:
            yield InstructionIssue(
                IssueKind.DEAD_INCLUDE, file.included_by, f"includes {file.path}: {MISSING}"
            )
    yield from islice(_cycles(union, home), _MOST_ISSUES)


def unmatched_rules(
    project: Resolution,
    cwd: str,
    disk: InstructionDisk,
    touch: Touch,
    entries: int = WALKED_ENTRIES,
) -> Iterator[InstructionIssue]:
    """Yield the project's rules whose condition is met by no file below a folder.

    ``touch`` returns what a view loads after some files were touched. Hidden folders, and folders
    of packages and of built files, are skipped. If the project has more than ``entries``, the issue
    says so.
    """
    unmatched = {
        file.path: file
        for file in project.files
        if file.condition and file.scope == "project" and not file.loaded
    }
    if not unmatched:
        return
    files, is_complete = _files_below(cwd, disk, entries)
    for start in range(0, len(files), TOUCHED_FILES):
        for file in touch(files[start : start + TOUCHED_FILES]).files:
            rule = unmatched.get(file.path)
            # Its condition is met if it loads, or if now another reason is against it.
            if rule and (file.loaded or file.why_not != rule.why_not):
                del unmatched[file.path]
        if not unmatched:
            return
    subject = "no file of the project" if is_complete else f"none of the first {len(files):,} files"
    for path, file in unmatched.items():
        text = f"never loads: {subject} matches {', '.join(file.condition)}"
        yield InstructionIssue(IssueKind.UNMATCHED_RULE, path, text)


def contradictions(views: Mapping[View, Resolution]) -> Iterator[InstructionIssue]:
    """Yield sentences that contradict each other, of files that no assistant loads together.

    An assistant that loads both knows which one counts more.
    """
    readers: dict[str, set[View]] = defaultdict(set)
    texts: dict[str, str] = {}
    for view, resolution in views.items():
        for path, text in resolution.texts.items():
            readers[path].add(view)
            texts[path] = text
    return islice(_contradictions(texts, readers), _MOST_ISSUES)


def _contradictions(
    texts: Mapping[str, str], readers: Mapping[str, set[View]]
) -> Iterator[InstructionIssue]:
    """Yield an issue for each two statements of different files that cannot both hold.

    Files that are read together are not compared: there one may correct the other.
    """
    all_statements = [
        (path, statement)
        for path in sorted(texts)
        for statement in statements(texts[path])
        if not FENCE.match(statement.raw)
    ]
    compared = all_statements[:_MOST_STATEMENTS]
    keys: dict[str, set[str]] = defaultdict(set)  # of the statements of each file
    for path, statement in compared:
        keys[path].add(statement.key)
    for first, second in _pairs_to_compare([statement for _, statement in compared]):
        yield_to_requests()
        (path, statement), (other_path, other) = compared[first], compared[second]
        is_in_both = statement.key in keys[other_path] or other.key in keys[path]
        if readers[path] & readers[other_path] or is_in_both:
            continue
        if resemblance(statement, other) < RESEMBLING:
            continue
        why = contradiction(statement, other)
        if why:
            text = f"says {_as_code(statement)}, but {other_path} says {_as_code(other)}: {why}"
            yield InstructionIssue(IssueKind.CONTRADICTION, path, text)


def _pairs_to_compare(compared: Sequence[Statement]) -> list[tuple[int, int]]:
    """Return the index pairs of statements that share a word, sorted.

    The rarest words are used first, until there are ``_MOST_PAIRS``.
    """
    numbers_by_word: dict[str, list[int]] = defaultdict(list)
    for number, statement in enumerate(compared):
        for word in statement.words:
            numbers_by_word[word].append(number)
    pairs: set[tuple[int, int]] = set()
    count = 0
    for numbers in sorted(numbers_by_word.values(), key=len):
        count += len(numbers) ** 2 // 2
        if count > _MOST_PAIRS:
            break
        pairs.update(combinations(numbers, 2))
    return sorted(pairs)


def repeated_memories(
    memories: Iterable[tuple[str, str]], covered: Covered
) -> Iterator[InstructionIssue]:
    """Yield the memories, given by path and text, that say what an instruction file says."""
    for path, text in memories:
        yield_to_requests()
        file = covered(text)
        if file:
            yield InstructionIssue(IssueKind.REPEATED_MEMORY, path, f"says what {file} says")


def _cycles(union: Resolution, home: str) -> Iterator[InstructionIssue]:
    """Yield the includes that lead back to a file on the way to them; a depth-first search."""
    edges = {path: _targets(path, text, home) for path, text in union.texts.items()}
    finished: set[str] = set()  # files whose includes are all searched
    for start, targets in edges.items():
        stack = [(start, iter(targets))]  # files on the way, with their includes to search
        while stack and start not in finished:
            path, remaining = stack[-1]
            target = next(
                (each for each in remaining if each in edges and each not in finished), None
            )
            if target is None:
                finished.add(path)
                stack.pop()
            elif target in (each for each, _ in stack):
                yield InstructionIssue(
                    IssueKind.CYCLE, path, f"includes {target}, which leads back to it"
                )
            else:
                stack.append((target, iter(edges[target])))


def _targets(path: str, text: str, home: str) -> tuple[str, ...]:
    """Return the paths of all files that a text includes."""
    return tuple(includes.target(name, path, home) for name in includes.parsed(text).includes)


def _files_below(cwd: str, disk: InstructionDisk, most: int) -> tuple[list[str], bool]:
    """Return the files below a folder, the nearest first, and whether these are all of them.

    ``most`` is the number of entries after which the search ends.
    """
    files, folders, count = list[str](), [cwd], 0
    for folder in folders:  # the list grows
        for entry in disk.entries(folder):
            count += 1
            yield_to_requests()
            if count > most:
                return files, False
            path = posixpath.join(folder, entry.name)
            if not entry.folder:
                files.append(path)
            elif path == entry.real and not _is_skipped(entry.name):  # links are not followed
                folders.append(path)
    return files, True


def _is_skipped(name: str) -> bool:
    """Return whether a folder of this name is not searched for instruction files."""
    return name in _SKIPPED_FOLDERS or (name.startswith(".") and name != ".github")


def _as_code(statement: Statement) -> str:
    """Return the beginning of a statement as inline code."""
    return code_span(statement.raw, _SHOWN_CHARACTERS)
