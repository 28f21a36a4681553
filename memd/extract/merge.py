"""Plan the change set that adds candidates to the existing memories. Pure.

A candidate is a sentence of the person that is to be saved.

Rules of this file
- A candidate that is a sentence of a memory, or stands in an instruction file, is dropped. Memories
  of outside origin do not count.
- A candidate that denies the value of a memory ("on Fridays now, not on Mondays") takes the place
  of what that memory says. A suggestion that does so names the memory; one that names none goes.
- Other candidates become new memories.
- A candidate whose memory would hold a credential is left out, and the others are written.
- Merging the same candidates again changes nothing, so an extraction may be repeated after a crash.
"""

import re
from collections.abc import Container, Iterable, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from memd.base.covered import Covered, CoveredText, in_no_file
from memd.base.errors import Invalid, Secret
from memd.base.names import INDEX
from memd.base.text import iso_time, one_line, said_line
from memd.base.values import FOREIGN, Draft, FileEdit, Header, Suggestion, Tree
from memd.base.yielding import yield_to_requests
from memd.extract import phrases
from memd.extract.candidates import CHANGED, Candidate
from memd.state.suggestions import letters
from memd.store import memory, secret
from memd.store.check import check_secrets
from memd.store.index import of_memory, pointer_line
from memd.text.bounds import FUNCTION_WORDS
from memd.text.words import words

_MOST_COMPARED = 8  # memories that are compared with a candidate, by shared words
_SHOWN = 200  # characters of what a result names
_NEXT_POINTER = "\n- [Next](next.md)"  # what follows a line of the index
_SENTENCE_END = r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])\s*|\n"
_CLAUSE_END = r"[,;.!\u3002\uff0c\u3001]| to "
_TOPIC_END = r"[,;.!\u3002\uff0c\u3001はが]|[은는]\s|이제\s"


class MergedDraft(Struct, frozen=True):
    """The change set of candidates, and the texts left out since an instruction file says them.

    ``refused`` has the secret rule of each candidate whose memory would hold a credential.
    ``suggestions`` are those of the candidates, with the memories that they correct.
    """

    draft: Draft
    already_said: tuple[CoveredText, ...] = ()
    refused: tuple[str, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()

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
    suggestions: Sequence[Suggestion] = (),
    covered: Covered = in_no_file,
) -> MergedDraft:
    """Return the changes that add candidates to a directory; ``at`` stamps the files.

    Raises the errors of reading the tree.
    """
    if not candidates and not any(each.reason == CHANGED for each in suggestions):
        return MergedDraft(Draft(), suggestions=tuple(suggestions))  # the directory may be large
    work = _Work(tree, session, iso_time(at), covered)
    for candidate in _distinct(candidates):
        yield_to_requests()
        work.add(candidate)
    return MergedDraft(
        Draft(tuple(work.edits.values())),
        tuple(work.already_said),
        tuple(work.refused),
        tuple(work.naming_memories(suggestions)),
    )


def _distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates without repetitions and without those that a later one denies."""
    distinct: dict[str, Candidate] = {}
    for candidate in candidates:
        for key, earlier in list(distinct.items()):
            if _denies(candidate.statement, earlier.statement):
                del distinct[key]
        distinct.setdefault(letters(candidate.statement), candidate)
    return list(distinct.values())


class _Work:
    """The change set being planned."""

    def __init__(self, tree: Tree, session: str, modified: str, covered: Covered) -> None:
        self.already_said: list[CoveredText] = []  # candidates that an instruction file says
        self.refused: list[str] = []  # the secret rules of candidates that are not written
        self.edits: dict[str, FileEdit] = {}  # by path
        self._tree = tree
        self._covered = covered
        self._session, self._modified = session, modified
        headers = tree.headers()
        self._used_paths = {header.path.casefold() for header in headers}
        # Other memories are neither compared nor updated.
        self._headers = {
            header.path: header
            for header in headers
            if header.type and not header.damaged and header.origin not in FOREIGN
        }

    def add(self, candidate: Candidate) -> None:
        """Add a candidate unless it stands somewhere already."""
        statement = candidate.statement
        key = letters(statement)
        for header in self._similar(statement):
            file = self._tree.read(header.path)
            if file is not None:
                said = re.split(_SENTENCE_END, f"{header.description}\n{file.body}")
                if key in map(letters, said):
                    return
        file_path = self._covered(statement)
        if file_path:
            self.already_said.append(shown(statement, file_path))
            return
        quotation = said_line(" ".join(candidate.text.split()), candidate.at)
        if self._corrects(statement, quotation):
            return
        new = memory.of_statement(
            statement,
            candidate.type,
            quotation,
            self._used_paths,
            session=self._session,
            modified=self._modified,
        )
        if not self._is_refused(new.path, new.name, new.description, new.content):
            self._used_paths.add(new.path.casefold())
            self.edits[new.path] = FileEdit(new.path, new.content, base="")

    def naming_memories(self, suggestions: Iterable[Suggestion]) -> list[Suggestion]:
        """Return suggestions, those of changed values with the memory that says the old one."""
        named = []
        for suggestion in suggestions:
            if suggestion.reason != CHANGED:
                named.append(suggestion)
            elif (header := self._outdated(suggestion.text)) is not None:
                named.append(replace(suggestion, corrects=header.path))
        return named

    def _corrects(self, statement: str, quotation: str) -> bool:
        """Write a statement in the place of the one that it corrects, if there is one."""
        header = self._outdated(statement)
        file = self._tree.read(header.path) if header and header.path not in self.edits else None
        if header is None or file is None:
            return False
        try:
            content = memory.with_statement(file.content, statement, quotation, self._modified)
        except Invalid:  # it says more than one thing
            return False
        description = one_line(statement, _SHOWN)
        if not self._is_refused(header.path, header.name, description, content):
            self.edits[header.path] = FileEdit(header.path, content, base=file.hash)
        return True

    def _outdated(self, statement: str) -> Header | None:
        """Return the memory that says the value that a statement denies."""
        similar = self._similar(statement)
        return next((each for each in similar if _denies(statement, each.description)), None)

    @cached_property
    def _described(self) -> dict[str, frozenset[str]]:
        """The words of each memory's description by its path."""
        return {path: frozenset(words(each.description)) for path, each in self._headers.items()}

    def _similar(self, statement: str) -> list[Header]:
        """Return the memories whose descriptions share most words with a statement, best first."""
        own = set(words(statement))
        shared = {path: len(own & described) for path, described in self._described.items()}
        best = sorted((path for path in shared if shared[path]), key=lambda p: (-shared[p], p))
        return [self._headers[path] for path in best[:_MOST_COMPARED]]

    def _is_refused(self, path: str, name: str, description: str, content: bytes) -> bool:
        """Return whether the store would refuse a memory or its index line for a credential.

        The words around a sentence count too: a value that ends a line may go on in the next one.
        """
        line = f"{pointer_line(path, of_memory(name, description))}{_NEXT_POINTER}"
        try:
            check_secrets(path, None, content)
            check_secrets(INDEX, b"", line.encode("utf-8", "replace"))
        except Secret as error:
            self.refused.append(str(error.facts["rule"]))
            return True
        return False


def _denies(statement: str, earlier: str) -> bool:
    """Return whether a statement denies the value that an earlier one gives to the same thing."""
    denied = [word for word in _denied_words(statement) if word not in FUNCTION_WORDS]
    old, rest = set(words(earlier)), set(words(statement)) - set(denied)
    topic = old - set(denied) - FUNCTION_WORDS
    says_it = bool(denied) and denied[0] in old
    return says_it and bool(topic) and 2 * len(topic & rest) >= len(topic)


def _denied_words(statement: str) -> list[str]:
    """Return the words of the value that a statement denies, none if it denies nothing."""
    before = phrases.DENIED_BEFORE.span(statement)  # in Japanese and Korean
    if before is not None:
        return words(re.split(_TOPIC_END, statement[: before[0]])[-1])
    if not phrases.CHANGED.match(statement):
        return []
    span, start = phrases.DENIED.span(statement), 0
    denied = ""
    while span is not None:  # the last one: "it is not urgent, but now on Fridays, not Mondays"
        start += span[1]
        denied = re.split(_CLAUSE_END, statement[start:], maxsplit=1)[0]
        span = phrases.DENIED.span(statement[start:])
    return words(denied)


def shown(text: str, file: str) -> CoveredText:
    """Return a text for a result, on one line, cut and without credentials, with its file."""
    return CoveredText(one_line(secret.scrub(text), _SHOWN), file)
