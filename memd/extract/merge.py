"""Plan the change set that adds candidates to the existing memories. Pure.

A candidate is a sentence of the person that is to be saved.

Rules of this file
- A candidate whose sentence stands in a memory or an instruction file is dropped. Memories of
  outside origin do not count.
- Other candidates become new memories.
- A candidate whose memory would hold a credential is left out, and the others are written.
- Merging the same candidates again changes nothing, so an extraction may be repeated after a crash.
"""

from collections.abc import Container, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from memd.base import text
from memd.base.covered import Covered, CoveredText, in_no_file
from memd.base.errors import Secret
from memd.base.names import INDEX
from memd.base.text import one_line, said_line
from memd.base.values import FOREIGN, Draft, FileEdit, MemoryFile, Tree
from memd.base.yielding import yield_to_requests
from memd.extract.candidates import Candidate
from memd.extract.markers import without_request
from memd.store import secret
from memd.store.check import check_secrets
from memd.store.index import of_memory, pointer_line
from memd.store.memory import StatementMemory, of_statement
from memd.text.statements import Statement, crude_words, statements

_MOST_COMPARED = 8  # memories that are compared with a candidate, by shared words
_SHOWN = 200  # characters of what a result names
_NEXT_POINTER = "\n- [Next](next.md)"  # what follows a line of the index


class MergedDraft(Struct, frozen=True):
    """The change set of candidates, and the texts left out since an instruction file says them.

    ``refused`` has the secret rule of each candidate whose memory would hold a credential.
    """

    draft: Draft
    already_said: tuple[CoveredText, ...] = ()
    refused: tuple[str, ...] = ()

    def without(self, paths: Container[str]) -> "MergedDraft":
        """Return this without the changes of some files."""
        draft = self.draft
        edits = tuple(edit for edit in draft.edits if edit.path not in paths)
        return replace(self, draft=replace(draft, edits=edits))


def merge(
    candidates: Sequence[Candidate],
    tree: Tree,
    *,
    session: str,
    at: float,
    covered: Covered = in_no_file,
) -> MergedDraft:
    """Return the changes that add candidates to a directory; ``at`` stamps the files.

    Raises the errors of reading the tree.
    """
    if not candidates:  # without reading the directory, which may be large
        return MergedDraft(Draft())
    work = _Work(tree, session, text.iso_time(at), covered)
    for statement, candidate in _distinct_statements(candidates).items():
        yield_to_requests()
        work.add(candidate, statement)
    return MergedDraft(work.draft(), tuple(work.already_said), tuple(work.refused))


def _distinct_statements(candidates: Sequence[Candidate]) -> dict[str, Candidate]:
    """Return the candidates without later repetitions, by their statements."""
    distinct: dict[str, Candidate] = {}
    keys: set[str] = set()
    for candidate in candidates:
        new = stated(candidate)
        key = Statement(new).key
        if key not in keys:
            keys.add(key)
            distinct[new] = candidate
    return distinct


class _Work:
    """The change set being planned; a memory is updated once."""

    def __init__(self, tree: Tree, session: str, modified: str, covered: Covered) -> None:
        self.already_said: list[CoveredText] = []  # candidates that an instruction file says
        self.refused: list[str] = []  # the secret rules of candidates that are not written
        self._tree = tree
        self._covered = covered
        self._new_memory = partial(of_statement, session=session, modified=modified)
        self._used_paths: set[str] = set()  # of all memories, with case folded
        self._words: dict[str, set[str]] = {}  # of the descriptions, by path
        self._edits: list[FileEdit] = []
        for header in tree.headers():
            self._used_paths.add(header.path.casefold())
            # Other memories are neither compared nor updated.
            if header.type and not header.damaged and header.origin not in FOREIGN:
                self._words[header.path] = crude_words(header.description)

    def add(self, candidate: Candidate, new: str) -> None:
        """Add a candidate, whose statement is ``new``, unless it stands somewhere already."""
        key = Statement(new).key
        for path in self._similar_memories(crude_words(new)):
            file = self._tree.read(path)
            if file is not None and key in _keys(file):
                return
        file_path = self._covered(new)
        if file_path:
            self.already_said.append(shown(new, file_path))
            return
        quotation = said_line(" ".join(candidate.text.split()), candidate.at)
        memory = self._new_memory(new, candidate.type, quotation, self._used_paths)
        if not self._is_refused(memory):
            self._used_paths.add(memory.path.casefold())
            self._edits.append(FileEdit(memory.path, memory.content, base=""))

    def draft(self) -> Draft:
        """Return the change set."""
        return Draft(tuple(self._edits))

    def _similar_memories(self, words: set[str]) -> list[str]:
        """Return the paths of the memories whose descriptions share most words, best first."""
        shares = {
            path: len(words & own) / len(words | own)
            for path, own in self._words.items()
            if words & own
        }
        return sorted(shares, key=lambda path: (-shares[path], path))[:_MOST_COMPARED]

    def _is_refused(self, memory: StatementMemory) -> bool:
        """Return whether the store would refuse a memory or its index line for a credential.

        The words around a sentence count too: a value that ends a line may go on in the next one.
        """
        pointer = of_memory(memory.name, memory.description)
        line = f"{pointer_line(memory.path, pointer)}{_NEXT_POINTER}"
        try:
            check_secrets(memory.path, None, memory.content)
            check_secrets(INDEX, b"", line.encode("utf-8", "replace"))
        except Secret as error:
            self.refused.append(str(error.facts["rule"]))
            return True
        return False


def _keys(file: MemoryFile) -> frozenset[str]:
    """Return the comparison keys of a memory's description and sentences."""
    texts = statements(f"{file.header.description}\n\n{file.body}")
    return frozenset(Statement(each.raw).key for each in texts)


def stated(candidate: Candidate) -> str:
    """Return a candidate's statement: without "remember that" and the like."""
    return without_request(" ".join(candidate.text.split()))


def shown(text: str, file: str) -> CoveredText:
    """Return a text for a result, on one line, cut and without credentials, with its file."""
    return CoveredText(one_line(secret.scrub(text), _SHOWN), file)
