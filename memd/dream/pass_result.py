"""Run a pass on a directory's files and judge it; build the report and the proposal. Pure.

A pass is a function that returns the edits a dream wants, by a model or by fixed rules.

Rules of this file
- Every pass is judged here, before the commit or within it. Accepted edits are committed, the rest
  becomes a proposal. ``still_holds`` says whether the result for one tree is true for another.
- A proposal has what a person needs to decide: each file before and after, and the reason. Text
  that the judge took for a secret is not stored.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress

from msgspec import Struct, field
from msgspec.structs import replace

from memd.base.errors import MemdError
from memd.base.names import INDEX
from memd.base.text import decode, sha256
from memd.base.values import FileEdit, Header, MemoryFile, Tree
from memd.base.yielding import yield_to_requests
from memd.dream.judge import Judged, judge
from memd.dream.values import DirectorySize, DreamReport, Wanted
from memd.state.proposals import Proposal, ProposedEdit
from memd.store.index import entries
from memd.store.past import Past

_MOST_ORPHANS = 50  # that a report lists
Work = Callable[[Tree], Wanted]  # returns the edits that a pass wants
Pass = Callable[[Past, Tree], Wanted]  # the same, with the history of changes


class ReadyPass(Struct, frozen=True):
    """A pass that is ready to be judged; ``report`` names its model and cost."""

    work: Pass
    report: DreamReport = field(default_factory=DreamReport)


class PassResult(Struct, frozen=True):
    """The judged result of a pass on one tree."""

    ready: ReadyPass  # the pass
    wanted: Wanted  # the edits that it wants
    judged: Judged  # which of them may be made
    texts: Mapping[str, bytes]  # by path, the files that it would change, as they were
    report: DreamReport  # complete except for what the commit adds

    def still_holds(self, tree: Tree) -> bool:
        """Return whether a tree still has the files that the pass would change as it saw them."""
        if tree.index() != self.texts.get(INDEX):
            return False
        paths = self.judged.members - {INDEX}
        current = {file.header.path: file.content for file in _files(tree, paths)}
        return all(current.get(path) == self.texts.get(path) for path in paths)

    def proposal(self, directory: str, job: str, at: float) -> Proposal:
        """Return the proposal of the edits that are kept back, except those with secrets."""
        target_of = {merge.source: merge.into for merge in self.wanted.merges}
        edits = tuple(
            self._proposed_edit(edit, target_of.get(edit.path, ""))
            for edit in self.judged.kept_back
            if edit.path not in self.judged.secrets
        )
        last_message, problems = self.report.said, self.report.problems
        return Proposal(
            "", directory, at, job=job, said=last_message, problems=problems, edits=edits
        )

    def _proposed_edit(self, edit: FileEdit, into: str) -> ProposedEdit:
        """Return an edit as part of a proposal; ``into`` is the memory it merges into, or ""."""
        before, base = self.texts.get(edit.path), edit.base
        if base is None:  # an edit without a base is based on the file as it is
            base = "" if before is None else sha256(before)
        reason = self.wanted.reasons.get(edit.path, "")
        return ProposedEdit(
            edit.path, edit.content, base, before, reason, into, mtime_ns=edit.mtime_ns
        )


def judged_pass(
    tree: Tree,
    ready: ReadyPass,
    past: Past,
    now: float,
    recent_losses: tuple[AbstractSet[str], Mapping[str, int]],
) -> PassResult:
    """Run a pass on a tree and return its judged result. Raises the errors of pass and tree.

    ``recent_losses`` are the paths that dreams removed for a reason in 30 days, and by path how
    many words they took from each other memory. Paths that exist again do not count.
    """
    wanted = ready.work(past, tree)
    headers, index = tree.headers(), tree.index()
    paths = {header.path for header in headers}
    files = {file.header.path: file for file in _files(tree, paths)}
    recently_removed, words_lost = recent_losses
    judged = judge(
        files,
        wanted,
        ready.report,
        index=index,
        now=now,
        recent_losses=(len(recently_removed - paths), words_lost),
    )
    report = replace(
        judged.report, left=wanted.left, listed=wanted.listed, before=size(headers, index)
    )
    texts = {path: files[path].content for path in judged.members if path in files}
    if index is not None:
        texts[INDEX] = index
    return PassResult(ready, wanted, judged, texts, report)


def _files(tree: Tree, paths: AbstractSet[str]) -> Iterator[MemoryFile]:
    """Yield the memories at these paths that can be read."""
    for path in sorted(paths):
        yield_to_requests()
        with suppress(MemdError):  # a path that a model claims may be no valid name
            file = tree.read(path)
            if file is not None:
                yield file


def orphans(headers: Sequence[Header], index: bytes | None) -> tuple[str, ...]:
    """Return the paths of memories that the index does not name, 50 at most."""
    listed = {path for entry in entries(index) for path in entry.paths}
    unlisted = sorted(header.path for header in headers if header.path not in listed)
    return tuple(unlisted[:_MOST_ORPHANS])


def size(headers: Sequence[Header], index: bytes | None) -> DirectorySize:
    """Return the size of a memory directory and its index."""
    return DirectorySize(
        memories=len(headers),
        memory_bytes=sum(header.size for header in headers),
        index_lines=len(decode(index or b"").splitlines()),
        index_bytes=len(index or b""),
    )
