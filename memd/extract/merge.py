"""Plan the change set that adds candidates to the existing memories. Pure.

A candidate is a sentence of the person that is to be saved.

Rules of this file
- A candidate that a memory already says is dropped, whatever its type; ``sameness`` compares.
  Memories of outside origin are not compared or updated with the person's words.
- A correction, or a restatement that says more, updates that memory. A memory in the form that memd
  writes gets a new body; any other keeps all lines and gets a dated paragraph.
- Other candidates become new memories. One that an instruction file says is dropped, unless a
  similar memory exists, which it may correct. Damaged memories are not changed.
- Merging the same candidates again changes nothing, so an extraction may be repeated after a crash.
"""

import re
from collections.abc import Sequence
from functools import cache, partial

from msgspec import Struct

from memd.core import text
from memd.core.covered import Covered, CoveredText, in_no_file
from memd.core.names import INDEX
from memd.core.text import SAID, said_line
from memd.core.values import FOREIGN, Draft, FileEdit, MemoryFile, Pointer, Tree
from memd.core.yielding import yield_to_requests
from memd.documents import document
from memd.documents.document import FrontmatterNotEditableError, WordedMemory
from memd.documents.index import entries, with_pointer
from memd.extract.already_said import already_said
from memd.extract.candidates import Candidate
from memd.extract.markers import other
from memd.extract.sameness import Sameness, compare
from memd.text.dates import resolve
from memd.text.similarity import RESEMBLING, resemblance
from memd.text.statements import Statement, crude_words

_MOST_BYTES = 32 * 1024  # a larger memory is not updated
_MOST_COMPARED = 8  # memories that are compared with a candidate, by shared words
_OWN_BODY = re.compile(rf'[^\n]+\n\n{re.escape(SAID)} "[^\n]*" \(\d{{4}}-\d\d-\d\d\)\n')
_UPDATE = re.compile(r"^\*\*Update \d{4}-\d\d-\d\d:\*\* (.+)$", re.MULTILINE)


class Merged(Struct, frozen=True):
    """The change set of candidates, and the texts left out since an instruction file says them.

    ``said_again`` are the paths of memories that already say a candidate.
    """

    draft: Draft
    already_said: tuple[CoveredText, ...] = ()
    said_again: tuple[str, ...] = ()


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
    return Merged(work.draft(), tuple(work.already_said), tuple(work.said_again))


def _latest_statements(candidates: Sequence[Candidate]) -> dict[str, Candidate]:
    """Return the candidates that no later one corrects or repeats, by their statements."""
    retained: dict[str, Candidate] = {}
    for candidate in candidates:
        yield_to_requests()
        new = stated(candidate)
        results = {known: compare(new, known) for known in retained}
        if Sameness.NOTHING not in results.values():
            retained = {k: c for k, c in retained.items() if results[k] is Sameness.ADD}
            retained[new] = candidate
    return retained


class _Work:
    """The change set being planned; a memory is updated once."""

    def __init__(self, tree: Tree, session: str, modified: str, covered: Covered) -> None:
        self.already_said: list[CoveredText] = []
        self.said_again: list[str] = []
        self._tree = tree
        self._covered = covered
        self._read = cache(tree.read)
        self._word = partial(document.worded, session=session, modified=modified)
        self._modified = modified
        self._taken: set[str] = set()
        self._words: dict[str, set[str]] = {}  # of the descriptions
        self._edits: dict[str, FileEdit] = {}
        self._pointers: dict[str, Pointer] = {}  # of new memories
        self._hooks: dict[str, tuple[str, str]] = {}  # old and new ones of updated memories
        for header in tree.headers():
            self._taken.add(header.path.casefold())
            if header.type and not header.damaged and header.origin not in FOREIGN:
                self._words[header.path] = crude_words(header.description)

    def add(self, candidate: Candidate, new: str) -> None:
        """Add a candidate, whose statement is ``new``, unless something says it already."""
        target: MemoryFile | None = None
        others: list[str] = []
        for path in self._similar_memories(crude_words(new)):
            file = self._read(path)
            if file is None or not file.content:
                continue  # it was removed meanwhile
            statements = (file.header.description, _current_statement(file.body))
            others += statements
            results = [compare(new, statement) for statement in statements]
            if Sameness.NOTHING in results:
                self.said_again.append(path)
                return
            if Sameness.UPDATE in results and path not in self._edits:
                target = target or file
        covered = [] if target else [*already_said(new, self._covered)]
        if covered and not any(_resemble(new, other) for other in others):
            self.already_said += covered
            return
        quotation = said_line(" ".join(candidate.text.split()), candidate.at)
        worded = self._word(new, candidate.type, quotation, self._taken)
        if target:
            note = f"**Update {text.iso_time(candidate.at)[:10]}:** {new}\n\n{quotation}\n"
            self._update(worded, note, target)
            return
        self._taken.add(worded.path.casefold())
        self._edits[worded.path] = FileEdit(worded.path, worded.content, base="")
        self._pointers[worded.path] = worded.pointer

    def draft(self) -> Draft:
        """Return the change set."""
        return Draft((*self._edits.values(), *self._index_edit()), self._pointers)

    def _similar_memories(self, words: set[str]) -> list[str]:
        """Return the paths of the memories whose descriptions share most words, best first."""
        alike = {
            path: len(words & own) / len(words | own)
            for path, own in self._words.items()
            if words & own
        }
        return sorted(alike, key=lambda path: (-alike[path], path))[:_MOST_COMPARED]

    def _update(self, worded: WordedMemory, note: str, near: MemoryFile) -> None:
        """Update an existing memory: replace the body that memd wrote, or append a note.

        A memory that is too large or whose frontmatter cannot be edited is not changed.
        """
        path, old = near.header.path, near.body.encode("utf-8", "replace")
        if len(near.content) > _MOST_BYTES or not near.content.endswith(old):
            return  # too large, or its body cannot be separated from its head
        body = worded.body
        if not _OWN_BODY.fullmatch(near.body):
            body = f"{near.body.rstrip()}\n\n{note}"
        try:
            fields = {"description": worded.description, "metadata.modified": self._modified}
            head = document.with_fields(near.content[: len(near.content) - len(old)], fields)
        except FrontmatterNotEditableError:
            return
        self._edits[path] = FileEdit(path, head + body.encode("utf-8", "replace"), near.hash)
        self._hooks[path] = (near.header.description, worded.description)

    def _index_edit(self) -> list[FileEdit]:
        """Return an edit of the index that updates the hooks of updated memories, if any.

        A hook is replaced only if it is the beginning of the old description.
        """
        before = self._tree.index() if self._hooks else None
        content = before or b""
        for entry in entries(content):
            old, new = self._hooks.get(entry.path, ("", ""))
            if new and entry.hook and old.startswith(entry.hook.rstrip("…")):
                content = with_pointer(content, entry.path, Pointer(entry.title, new))
        if before is None or content == before:
            return []
        return [FileEdit(INDEX, content, base=text.sha256(before))]


def stated(candidate: Candidate) -> str:
    """Return a candidate's statement: with absolute dates, without "remember that" and the like."""
    text_line = " ".join(candidate.text.split())
    asking = other("asking").match(text_line)
    plain = text_line[asking.end() :].strip(" ,:") if asking else ""
    return resolve(plain[:1].upper() + plain[1:] if plain else text_line, candidate.at)


def _resemble(one: str, two: str) -> bool:
    """Return whether two statements share enough of their words."""
    return resemblance(Statement(one), Statement(two)) >= RESEMBLING


def _current_statement(body: str) -> str:
    """Return the last dated update in a body, or its first paragraph if there is none."""
    updates = _UPDATE.findall(body)
    return str(updates[-1]) if updates else body.strip().split("\n\n", 1)[0]
