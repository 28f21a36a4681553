"""Plan the change set that adds candidates to the existing memories. Pure.

A candidate is a sentence of the person that is to be saved.

Rules of this file
- A candidate that a memory already says is dropped, whatever its type; ``sameness`` compares.
  Memories of outside origin are not compared or updated with the person's words.
- A correction, or a restatement that says more, updates that memory. A memory in the form that memd
  writes gets a new body; any other keeps all lines and gets a dated paragraph.
- Other candidates become new memories. One that an instruction file says is dropped, unless a
  similar memory exists, which it may correct. Damaged memories are not changed.
- A candidate whose memory would hold a credential is left out, and the others are written.
- Merging the same candidates again changes nothing, so an extraction may be repeated after a crash.
"""

import re
from collections.abc import Container, Sequence
from functools import cache, partial

from msgspec import Struct
from msgspec.structs import replace

from memd.core import text
from memd.core.covered import Covered, CoveredText, in_no_file
from memd.core.names import INDEX
from memd.core.text import SAID, said_line
from memd.core.values import FOREIGN, Draft, FileEdit, MemoryFile, Tree
from memd.core.yielding import yield_to_requests
from memd.documents import document
from memd.documents.document import FrontmatterNotEditableError, WordedMemory
from memd.documents.index import of_memory, pointer_line
from memd.extract.already_said import already_said
from memd.extract.candidates import Candidate
from memd.extract.markers import without_request
from memd.extract.sameness import Sameness, compare
from memd.store.drafts import SecretRefusedError, check_secrets
from memd.text.dates import resolve
from memd.text.similarity import RESEMBLING, resemblance
from memd.text.statements import Statement, crude_words

_MOST_BYTES = 32 * 1024  # a larger memory is not updated
_MOST_COMPARED = 8  # memories that are compared with a candidate, by shared words
_OWN_BODY = re.compile(rf'[^\n]+\n\n{re.escape(SAID)} "[^\n]*" \(\d{{4}}-\d\d-\d\d\)\n')
_NEXT_POINTER = "\n- [Next](next.md)"  # what follows a line of the index
_UPDATE = re.compile(r"^\*\*Update \d{4}-\d\d-\d\d:\*\* (.+)$", re.MULTILINE)


class Merged(Struct, frozen=True):
    """The change set of candidates, and the texts left out since an instruction file says them.

    ``said_again`` are the paths of memories that already say a candidate; ``refused`` has the
    secret rule of each candidate whose memory would hold a credential.
    """

    draft: Draft
    already_said: tuple[CoveredText, ...] = ()
    said_again: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    def without(self, paths: Container[str]) -> "Merged":
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
) -> Merged:
    """Return the changes that add candidates to a directory; ``at`` stamps the files.

    Raises the errors of reading the tree.
    """
    if not candidates:  # without reading the directory, which may be large
        return Merged(Draft())
    work = _Work(tree, session, text.iso_time(at), covered)
    for statement, candidate in _latest_statements(candidates).items():
        yield_to_requests()
        work.add(candidate, statement)
    return Merged(
        work.draft(), tuple(work.already_said), tuple(work.said_again), tuple(work.refused)
    )


def _latest_statements(candidates: Sequence[Candidate]) -> dict[str, Candidate]:
    """Return the candidates that no later one corrects or repeats, by their statements."""
    latest: dict[str, Candidate] = {}
    for candidate in candidates:
        yield_to_requests()
        new = stated(candidate)
        results = {old: compare(new, old) for old in latest}
        if Sameness.NOTHING not in results.values():
            # Those that the new statement corrects are left out.
            latest = {old: c for old, c in latest.items() if results[old] is Sameness.ADD}
            latest[new] = candidate
    return latest


class _Work:
    """The change set being planned; a memory is updated once."""

    def __init__(self, tree: Tree, session: str, modified: str, covered: Covered) -> None:
        self.already_said: list[CoveredText] = []  # candidates that an instruction file says
        self.said_again: list[str] = []  # paths of memories that say a candidate already
        self.refused: list[str] = []  # the secret rules of candidates that are not written
        self._tree = tree
        self._covered = covered
        self._read = cache(tree.read)
        self._new_memory = partial(document.memory_of_statement, session=session, modified=modified)
        self._modified = modified
        self._used_paths: set[str] = set()  # of all memories, with case folded
        self._words: dict[str, set[str]] = {}  # of the descriptions, by path
        self._edits: dict[str, FileEdit] = {}  # by path
        for header in tree.headers():
            self._used_paths.add(header.path.casefold())
            # Other memories are neither compared nor updated.
            if header.type and not header.damaged and header.origin not in FOREIGN:
                self._words[header.path] = crude_words(header.description)

    def add(self, candidate: Candidate, new: str) -> None:
        """Add a candidate, whose statement is ``new``, unless something says it already."""
        target: MemoryFile | None = None
        known_statements: list[str] = []  # of the similar memories
        for path in self._similar_memories(crude_words(new)):
            file = self._read(path)
            if file is None or not file.content:
                continue  # it was removed meanwhile
            statements = (file.header.description, _current_statement(file.body))
            known_statements += statements
            results = [compare(new, statement) for statement in statements]
            if Sameness.NOTHING in results:
                self.said_again.append(path)
                return
            if Sameness.UPDATE in results and path not in self._edits:
                target = target or file
        covered = [] if target else [*already_said(new, self._covered)]
        if covered and not any(_resemble(new, statement) for statement in known_statements):
            self.already_said += covered
            return
        quotation = said_line(" ".join(candidate.text.split()), candidate.at)
        memory = self._new_memory(new, candidate.type, quotation, self._used_paths)
        if target:
            note = f"**Update {text.iso_time(candidate.at)[:10]}:** {new}\n\n{quotation}\n"
            self._update(memory, note, target)
            return
        if self._is_refused(memory, memory.path, None, memory.content):
            return
        self._used_paths.add(memory.path.casefold())
        self._edits[memory.path] = FileEdit(memory.path, memory.content, base="")

    def draft(self) -> Draft:
        """Return the change set."""
        return Draft(tuple(self._edits.values()))

    def _similar_memories(self, words: set[str]) -> list[str]:
        """Return the paths of the memories whose descriptions share most words, best first."""
        shares = {
            path: len(words & own) / len(words | own)
            for path, own in self._words.items()
            if words & own
        }
        return sorted(shares, key=lambda path: (-shares[path], path))[:_MOST_COMPARED]

    def _update(self, memory: WordedMemory, note: str, file: MemoryFile) -> None:
        """Update an existing memory: replace the body that memd wrote, or append a note.

        ``memory`` is the candidate's new memory, ``file`` the existing one. A memory that is too
        large or whose frontmatter cannot be edited is not changed.
        """
        path, old_body = file.header.path, file.body.encode("utf-8", "replace")
        if len(file.content) > _MOST_BYTES or not file.content.endswith(old_body):
            return  # too large, or its body cannot be separated from its head
        body = memory.body
        if not _OWN_BODY.fullmatch(file.body):
            body = f"{file.body.rstrip()}\n\n{note}"
        try:
            fields = {"description": memory.description, "metadata.modified": self._modified}
            if document.is_name_of_statement(file.header.name, file.header.description):
                fields["name"] = document.name_of_statement(memory.description)
            head = document.with_fields(file.content[: len(file.content) - len(old_body)], fields)
        except FrontmatterNotEditableError:
            return
        content = head + body.encode("utf-8", "replace")
        if not self._is_refused(memory, path, file.content, content):
            self._edits[path] = FileEdit(path, content, file.hash)

    def _is_refused(
        self, memory: WordedMemory, path: str, before: bytes | None, content: bytes
    ) -> bool:
        """Return whether the store would refuse a file or its index line for a credential.

        The words around a sentence count too: a value that ends a line may go on in the next one.
        """
        pointer = of_memory(memory.name, memory.description)
        line = f"{pointer_line(path, pointer)}{_NEXT_POINTER}"
        try:
            check_secrets(path, before, content)
            check_secrets(INDEX, b"", line.encode("utf-8", "replace"))
        except SecretRefusedError as error:
            self.refused.append(str(error.facts["rule"]))
            return True
        return False


def stated(candidate: Candidate) -> str:
    """Return a candidate's statement: with absolute dates, without "remember that" and the like."""
    line = " ".join(candidate.text.split())
    return resolve(without_request(line), candidate.at)


def _resemble(first: str, second: str) -> bool:
    """Return whether two statements share enough of their words."""
    return resemblance(Statement(first), Statement(second)) >= RESEMBLING


def _current_statement(body: str) -> str:
    """Return the last dated update in a body, or its first paragraph if there is none."""
    updates = _UPDATE.findall(body)
    return str(updates[-1]) if updates else body.strip().split("\n\n", 1)[0]
