"""What a pass comes to on a directory: what the judge says, the report, the proposal. Pure.

Rules of this file
- Model or fixed pass, before the commit or within it: all are judged here, on the tree that is
  given; what stands of it is committed, the rest is a proposal. ``holds`` says whether what came
  of one tree is true of another.
- A proposal holds what a person needs to decide: each file before and after, whence and why. What
  the judge took for a secret is kept nowhere.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field, replace

from memd.core.covered import Covered, in_no_file
from memd.core.errors import MemdError
from memd.core.names import INDEX
from memd.core.text import decode, sha256
from memd.core.values import FileEdit, Header, MemoryFile, Tree
from memd.core.yielding import yield_to_requests
from memd.documents.document import parse
from memd.documents.index import read as read_index
from memd.dream.judge import Judged, judge
from memd.dream.questions import Said, questions
from memd.dream.values import DirectorySize, Report, Wanted
from memd.state.changes import Proposal, ProposedEdit
from memd.store.history import Past

_ORPHANS = 50
Work = Callable[[Tree], Wanted]  # what a pass would change
Pass = Callable[[Past, Tree], Wanted]  # the same, and it may ask what was done before


@dataclass(frozen=True, slots=True)
class ReadyPass:
    """A pass that is ready to be judged; ``report`` has what a model had to do with it."""

    work: Pass
    report: Report = field(default_factory=Report)


@dataclass(frozen=True, slots=True)
class PassResult:
    """What a pass comes to on one tree; ``texts`` are the files that it would touch.

    ``report`` is complete but for what the commit brings.
    """

    done: ReadyPass
    wanted: Wanted
    judged: Judged
    texts: Mapping[str, bytes]
    report: Report

    def holds(self, tree: Tree) -> bool:
        """Whether the files that the pass would touch are in a tree as it saw them."""
        if tree.index() != self.texts.get(INDEX):
            return False
        paths = self.judged.members - {INDEX}
        now = {file.header.path: file.content for file in _files(tree, paths)}
        return all(now.get(path) == self.texts.get(path) for path in paths)

    def proposal(self, directory: str, job: str, at: float) -> Proposal:
        """Return the proposal of what is kept back."""
        into = {merge.source: merge.into for merge in self.wanted.merges}
        edits = tuple(
            self._edit(edit, into.get(edit.path, ""))
            for edit in self.judged.kept_back
            if edit.path not in self.judged.secrets
        )
        said, problems = self.report.said, self.report.problems
        return Proposal("", directory, at, job=job, said=said, problems=problems, edits=edits)

    def _edit(self, edit: FileEdit, into: str) -> ProposedEdit:
        before, base = self.texts.get(edit.path), edit.base
        if base is None:  # the fixed pass means the file as it is
            base = "" if before is None else sha256(before)
        reason = self.wanted.reasons.get(edit.path, "")
        return ProposedEdit(
            edit.path, edit.content, base, before, reason, into, mtime_ns=edit.mtime_ns
        )


def find(
    tree: Tree,
    done: ReadyPass,
    past: Past,
    now: float,
    lately: tuple[AbstractSet[str], Mapping[str, int]],
    *,
    covered: Covered = in_no_file,
) -> PassResult:
    """Return what a pass comes to on a tree. Raises what the pass and reading the tree raise.

    ``lately`` are the memories that dreams removed by reasons in 30 days, and how many words they
    took from each of the others; memories that came back do not count. ``covered`` tells what
    instruction files say.
    """
    wanted = done.work(past, tree)
    headers, index = tree.headers(), tree.index()
    known = {header.path for header in headers}
    files = {file.header.path: file for file in _files(tree, known)}
    gone, lost = lately
    took = (len(gone - known), lost)
    judged = judge(files, wanted, done.report, index=index, now=now, lately=took, covered=covered)
    edits = {edit.path: edit.content for edit in judged.edits if edit.path != INDEX}
    after = {path: file.content for path, file in files.items()} | edits
    report = replace(
        judged.report,
        left=wanted.left,
        listed=wanted.listed,
        before=size(headers, index),
        questions=questions([_said(path, after[path]) for path in sorted(after)], covered),
    )
    texts = {path: files[path].content for path in judged.members if path in files}
    shown = texts if index is None else texts | {INDEX: index}
    return PassResult(done, wanted, judged, shown, report)


def _said(path: str, content: bytes | None) -> Said:
    yield_to_requests()
    read = parse(content or b"", path)
    return path, read.type, f"{read.description}\n\n{read.body}"


def _files(tree: Tree, paths: AbstractSet[str]) -> Iterator[MemoryFile]:
    for path in sorted(paths):
        yield_to_requests()
        with suppress(MemdError):  # a model may claim a merge into what is no name at all
            file = tree.read(path)
            if file is not None:
                yield file


def orphans(headers: Sequence[Header], index: bytes | None) -> tuple[str, ...]:
    """Return memories that the index does not name; of very many only some."""
    listed = read_index(index or b"").named
    return tuple(sorted(header.path for header in headers if header.path not in listed)[:_ORPHANS])


def size(headers: Sequence[Header], index: bytes | None) -> DirectorySize:
    """Return how much a memory directory holds."""
    return DirectorySize(
        memories=len(headers),
        memory_bytes=sum(header.size for header in headers),
        index_lines=len(decode(index or b"").splitlines()),
        index_bytes=len(index or b""),
    )
