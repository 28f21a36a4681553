"""What becomes of candidates beside the memories that are there: the plan of a change set. Pure.

Rules of this file
- What a memory already says is nothing new, whatever its type; ``sameness`` compares. One that came
  from outside gives no orders, so the person's words never go into it and count as new beside it.
- A restatement that says more and a correction update that memory: one in the form that memd
  writes is written anew, any other gets a dated paragraph and keeps every line.
- Everything else is a memory of its own, unless an instruction file says it and no memory is about
  the same: beside one that is, it may be what holds. A damaged memory is never touched.
- The same candidates again change nothing: a stretch that a crash made run twice is harmless.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial

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

_MOST_BYTES = 32 * 1024  # a memory above is not made longer
_MOST_COMPARED = 8  # memories that share most words with a candidate
_OWN_BODY = re.compile(rf'[^\n]+\n\n{re.escape(SAID)} "[^\n]*" \(\d{{4}}-\d\d-\d\d\)\n')
_UPDATE = re.compile(r"^\*\*Update \d{4}-\d\d-\d\d:\*\* (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Merged:
    """The change set of candidates, and what is not in it since an instruction file says it.

    ``said_again`` are the memories that say already what a candidate does.
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
    """Return what brings candidates into a directory; ``at`` stamps the files.

    Raises what reading the tree raises.
    """
    if not candidates:  # the directory, which may be long, need not be looked at
        return Merged(Draft())
    work = _Work(tree, session, text.iso_time(at), covered)
    for statement, candidate in _last_words(candidates).items():
        yield_to_requests()
        work.take(candidate, statement)
    return Merged(work.draft(), tuple(work.already_said), tuple(work.said_again))


def _last_words(candidates: Sequence[Candidate]) -> dict[str, Candidate]:
    """Return by their statements the candidates that no later one corrects or says again."""
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
    """What the plan has decided so far; a memory is updated once."""

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

    def take(self, candidate: Candidate, new: str) -> None:
        """Take in a candidate and what it states, where nothing says it yet."""
        near: MemoryFile | None = None
        others: list[str] = []
        for path in self._nearest(crude_words(new)):
            file = self._read(path)
            if file is None or not file.content:
                continue  # it is gone
            known = (file.header.description, _current(file.body))
            others += known
            results = [compare(new, statement) for statement in known]
            if Sameness.NOTHING in results:
                self.said_again.append(path)
                return
            if Sameness.UPDATE in results and path not in self._edits:
                near = near or file
        said = [] if near else [*already_said(new, self._covered)]
        if said and not any(_alike(new, other) for other in others):
            self.already_said += said
            return
        quotation = said_line(" ".join(candidate.text.split()), candidate.at)
        worded = self._word(new, candidate.type, quotation, self._taken)
        if near:
            note = f"**Update {text.iso_time(candidate.at)[:10]}:** {new}\n\n{quotation}\n"
            self._update(worded, note, near)
            return
        self._taken.add(worded.path.casefold())
        self._edits[worded.path] = FileEdit(worded.path, worded.content, base="")
        self._pointers[worded.path] = worded.pointer

    def draft(self) -> Draft:
        """Return the change set."""
        return Draft((*self._edits.values(), *self._index_edit()), self._pointers)

    def _nearest(self, words: set[str]) -> list[str]:
        """Return the paths of the memories that are most alike by their words, best first."""
        alike = {
            path: len(words & own) / len(words | own)
            for path, own in self._words.items()
            if words & own
        }
        return sorted(alike, key=lambda path: (-alike[path], path))[:_MOST_COMPARED]

    def _update(self, worded: WordedMemory, note: str, near: MemoryFile) -> None:
        path, old = near.header.path, near.body.encode("utf-8", "replace")
        if len(near.content) > _MOST_BYTES or not near.content.endswith(old):
            return  # too long, or its head cannot be told from its body for certain
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
        """Return the edit of the hooks of updated memories, where memd wrote the old hook."""
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
    """Return what a candidate says: with absolute dates, without the words that ask for it."""
    said = " ".join(candidate.text.split())
    asking = other("asking").match(said)
    plain = said[asking.end() :].strip(" ,:") if asking else ""
    return resolve(plain[:1].upper() + plain[1:] if plain else said, candidate.at)


def _alike(one: str, two: str) -> bool:
    return resemblance(Statement(one), Statement(two)) >= RESEMBLING


def _current(body: str) -> str:
    """Return what a body says now: its latest dated paragraph, else its first one."""
    updates = _UPDATE.findall(body)
    return str(updates[-1]) if updates else body.strip().split("\n\n", 1)[0]
