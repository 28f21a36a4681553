"""Find live memories that have the same statements as an imported one in other words. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum

from memd.core.errors import MemdError
from memd.core.names import TEAM
from memd.core.values import MemoryFile, Tree
from memd.core.yielding import yield_to_requests
from memd.documents.document import parse
from memd.text.similarity import contradiction, resemblance
from memd.text.statements import Statement, crude_words, statements

_COMMON_WORD = 50  # a word that more memories have is too common to find similar ones
_MOST_COMPARED = 8  # the most memories that are compared with a new one
_TEXT_BYTES = 32 * 1024  # longer texts are not compared
_ALL_BYTES = 32 * 1024 * 1024  # limit for all indexed texts together


class Overlap(Enum):
    """Which of two memories has all statements of the other."""

    LIVE_HAS_ALL = "live"  # the live one has all statements of the new one
    NEW_HAS_ALL = "new"  # the new one has all statements of the live one, and more
    NEITHER = "neither"


class NearMemories:
    """An index of a tree's private memories by their words; it is built at the first query."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._paths: list[str] = []  # of the indexed memories; a memory's number is its index here
        self._numbers: Mapping[str, list[int]] | None = None  # of the memories that have a word

    def of(self, content: bytes) -> Iterator[MemoryFile]:
        """Yield the eight memories that share most rare words with a new one, the best first."""
        if self._numbers is None:
            self._numbers = self._index_words()
        if not self._numbers or len(content) > _TEXT_BYTES:
            return
        memory = parse(content, "")
        shared_words: Counter[int] = Counter()  # how many words each memory shares, by its number
        for word in crude_words(f"{memory.description}\n{memory.body}"):
            numbers = self._numbers.get(word, ())
            if len(numbers) <= _COMMON_WORD:
                shared_words.update(numbers)
        best_first = sorted(shared_words, key=lambda number: (-shared_words[number], number))
        for number in best_first[:_MOST_COMPARED]:
            file = self._tree.read(self._paths[number])
            if file is not None:
                yield file

    def _index_words(self) -> Mapping[str, list[int]]:
        """Read the tree's private memories; return for each word the numbers of its memories."""
        numbers: defaultdict[str, list[int]] = defaultdict(list)
        bytes_left = _ALL_BYTES
        for header in self._tree.headers():
            yield_to_requests()
            if header.damaged or header.size > _TEXT_BYTES or header.path.startswith(TEAM):
                continue
            bytes_left -= header.size
            if bytes_left < 0:
                break
            with suppress(MemdError):  # an unreadable memory is not compared
                file = self._tree.read(header.path)
                if file is not None:
                    for word in crude_words(f"{header.description}\n{file.body}"):
                        numbers[word].append(len(self._paths))
                    self._paths.append(header.path)
        return numbers


def overlap(content: bytes, live: MemoryFile) -> Overlap:
    """Return which of a new memory (its file content) and a live one has the other's statements.

    ``NEITHER`` also if their types differ or the new one's frontmatter is damaged.
    """
    new = parse(content, "")
    if new.type is None or new.damaged or new.type is not live.header.type:
        return Overlap.NEITHER
    new_statements = _all_statements(new.description, new.body)
    live_statements = _all_statements(live.header.description, live.body)
    if _covers_all(live_statements, new_statements):
        return Overlap.LIVE_HAS_ALL
    if _covers_all(new_statements, live_statements):
        return Overlap.NEW_HAS_ALL
    return Overlap.NEITHER


def _all_statements(description: str, body: str) -> Sequence[Statement]:
    """Return the statements of a memory's body and its description."""
    return (*statements(body), Statement(description))


def _covers_all(own: Sequence[Statement], others: Sequence[Statement]) -> bool:
    """Return whether each statement in ``others`` is covered by a statement in ``own``."""
    return all(
        any(_covers(statement, other) for statement in own) for other in others if other.raw.strip()
    )


def _covers(statement: Statement, other: Statement) -> bool:
    """Return whether a statement has every word of another one and does not contradict it."""
    if statement.key == other.key:
        return True
    is_part = len(other.words) <= len(statement.words) and other.facts <= statement.facts
    is_alike = bool(other.words) and resemblance(statement, other) >= 1.0
    return is_part and is_alike and not contradiction(statement, other)
