"""Find memories with the same statements in other words, by the program's similarity. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import Enum

from memd.core.errors import MemdError
from memd.core.names import TEAM
from memd.core.values import MemoryFile, Tree
from memd.core.yielding import yield_to_requests
from memd.documents.document import parse
from memd.text.similarity import contradiction, resemblance
from memd.text.statements import Statement, crude_words, statements

_COMMON = 50  # memories that have a word, above which it says little
_COMPARED = 8  # memories that share most rare words with a text
_BYTES = 32 * 1024  # of a text that is compared
_ALL_BYTES = 32 * 1024 * 1024  # of all of them


class Overlap(Enum):
    """Which of two memories has all statements of the other."""

    SAID = "said"  # the live one has all statements of the new one
    MORE = "more"  # the new one has all statements of the live one, and more
    LITTLE = "little"


class NearMemories:
    """The private memories of a tree, indexed by their words; read at the first query."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._paths: list[str] = []
        self._holders: defaultdict[str, list[int]] | None = None

    def of(self, content: bytes) -> Iterator[MemoryFile]:
        """Yield the memories that share most rare words with a new one, the best first."""
        if self._holders is None:
            self._holders = self._read()
        if not self._holders or len(content) > _BYTES:
            return
        memory = parse(content, "")
        counts: Counter[int] = Counter()
        for word in crude_words(f"{memory.description}\n{memory.body}"):
            holders = self._holders.get(word, ())
            if len(holders) <= _COMMON:
                counts.update(holders)
        for number, _ in sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:_COMPARED]:
            file = self._tree.read(self._paths[number])
            if file is not None:
                yield file

    def _read(self) -> defaultdict[str, list[int]]:
        holders: defaultdict[str, list[int]] = defaultdict(list)
        left = _ALL_BYTES
        for header in self._tree.headers():
            yield_to_requests()
            if header.damaged or header.size > _BYTES or header.path.startswith(TEAM):
                continue
            left -= header.size
            if left < 0:
                break
            with suppress(MemdError):  # what cannot be read is no duplicate
                file = self._tree.read(header.path)
                if file is not None:
                    for word in crude_words(f"{header.description}\n{file.body}"):
                        holders[word].append(len(self._paths))
                    self._paths.append(header.path)
        return holders


def overlap(content: bytes, live: MemoryFile) -> Overlap:
    """Return which of a new and a live memory has the other's statements.

    ``LITTLE`` if neither has, or if their types differ.
    """
    new = parse(content, "")
    if new.type is None or new.damaged or new.type is not live.header.type:
        return Overlap.LITTLE
    mine = _stated(new.description, new.body)
    theirs = _stated(live.header.description, live.body)
    if _says(theirs, mine):
        return Overlap.SAID
    return Overlap.MORE if _says(mine, theirs) else Overlap.LITTLE


def _stated(description: str, body: str) -> Sequence[Statement]:
    return (*statements(body), Statement(description))


def _says(one: Sequence[Statement], other: Sequence[Statement]) -> bool:
    """Return whether one memory's statements cover all of another's."""
    return all(any(_covers(mine, theirs) for mine in one) for theirs in other if theirs.raw.strip())


def _covers(mine: Statement, theirs: Statement) -> bool:
    """Return whether a statement has every word of another one and does not contradict it."""
    if mine.key == theirs.key:
        return True
    fewer = len(theirs.words) <= len(mine.words) and theirs.facts <= mine.facts
    alike = bool(theirs.words) and resemblance(mine, theirs) >= 1.0
    return fewer and alike and not contradiction(mine, theirs)
