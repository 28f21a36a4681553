"""Build a dream's change, its proposal and its report from the groups that were judged. Pure.

The good groups are one change. With it, in one transaction, become true: the proposal of the other
groups, the job's end, the marks of distilled logs and what the person's words in logs suggest. So a
dream that lost its lock, or died, leaves none of them.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from memd.base.errors import MemdError
from memd.base.names import INDEX
from memd.base.text import decode, sha256
from memd.base.values import Draft, Effect, FileEdit, Header, Reasoned, Tree
from memd.dream.values import DirectorySize, DreamReport, Group, Merge, Wanted, problems_of
from memd.state.database import Cursor
from memd.state.jobs import job_completed
from memd.state.logs import log_distilled
from memd.state.proposals import Proposal, ProposedEdit, propose
from memd.state.suggestions import suggestion_saved
from memd.store.index import with_pointer
from memd.store.past import Past

_CHANGED = "somebody changed it during the dream"
Pass = Callable[[Past, Tree], Wanted]  # returns what a pass wants


class Judged(Struct, frozen=True):
    """What a pass wants, and its report so far."""

    wanted: Wanted
    report: DreamReport


class Committing:
    """The commit of what a dream wants; ``report`` and ``proposal`` are set by it."""

    def __init__(self, judged: Judged) -> None:
        self._wanted = judged.wanted
        self._doubtful: list[Group] = []
        self._distilled = judged.wanted.distilled
        self.report = judged.report
        self.proposal: str | None = None

    def draft(self, tree: Tree, effects: Iterable[Effect]) -> Draft:
        """Return the edits of the good groups that fit the live tree. May run more than once."""
        wanted = self._wanted
        good, doubtful, left = list[Group](), list[Group](), list[Reasoned]()
        for group in wanted.groups:
            changed = next((path for path in group.before if not _is_same(group, path, tree)), "")
            if changed:
                left += group.left(changed, _CHANGED)
            else:
                (doubtful if group.problems else good).append(group)
        edits = [edit for group in good for edit in group.edits]
        self._doubtful, self._distilled = doubtful, {} if left else wanted.distilled
        self.report = self._completed(good, (*wanted.left, *left))
        edits += self._index_edit(tree)
        mend = wanted.mend_index
        return Draft(tuple(edits), effects=tuple(effects), mend_index=mend, drop_dangling=mend)

    def effect(self, directory: str, job: str, engine: str, at: float) -> Effect:
        """Return the effect that stores the proposal and ends the job, in this order."""

        def store(cursor: Cursor, change: str | None) -> None:
            self.proposal = None
            if self.report.problems:
                self.proposal = propose(cursor, self._proposal(directory, job, engine, at))
            facts = replace(self.report, proposal=self.proposal).facts()
            job_completed(job, facts, at)(cursor, change)
            for path, digest in self._distilled.items():
                log_distilled(directory, path, digest)(cursor, change)
            for suggestion in self._wanted.suggestions:
                suggestion_saved(directory, suggestion, at)(cursor, change)

        return store

    def _completed(self, good: Sequence[Group], left: tuple[Reasoned, ...]) -> DreamReport:
        """Return the report with what the good groups did."""
        gone = [each for group in good for each in group.removals.items()]
        written = [
            (edit.path, group.before.get(edit.path) is None)
            for group in good
            for edit in group.edits
            if edit.content is not None
        ]
        return replace(
            self.report,
            created=tuple(path for path, is_new in written if is_new),
            changed=tuple(path for path, is_new in written if not is_new),
            merged=tuple(Merge(why.into, path) for path, why in gone if why.into),
            removed=tuple(Reasoned(path, why.reason) for path, why in gone if not why.into),
            left=left,
            listed=self._wanted.listed,
            problems=problems_of(self._doubtful),
        )

    def _index_edit(self, tree: Tree) -> list[FileEdit]:
        """Return the edit of the index that sets the new titles and hooks, or no edit."""
        live = tree.index()
        if live is None or not self._wanted.pointers:
            return []
        content = live
        for path, pointer in self._wanted.pointers.items():
            content = with_pointer(content, path, pointer)
        return [] if content == live else [FileEdit(INDEX, content, sha256(live))]

    def _proposal(self, directory: str, job: str, engine: str, at: float) -> Proposal:
        """Return the proposal of the groups that have a problem."""
        edits = [
            ProposedEdit(
                edit.path,
                edit.content,
                edit.base or "",
                group.before.get(edit.path),
                group.removals[edit.path].reason if edit.path in group.removals else "",
                group.removals[edit.path].into if edit.path in group.removals else "",
                mtime_ns=edit.mtime_ns,
            )
            for group in self._doubtful
            for edit in group.edits
        ]
        return Proposal(
            "",
            directory,
            at,
            job=job,
            engine=engine,
            said=self.report.said,
            problems=self.report.problems,
            edits=tuple(edits),
        )


def _is_same(group: Group, path: str, tree: Tree) -> bool:
    """Return whether a member of a group is on the tree as the dream read it."""
    try:
        live = tree.read(path)
    except MemdError:
        return False
    return (live.content if live else None) == group.before[path]


def size(headers: Sequence[Header], index: bytes | None) -> DirectorySize:
    """Return the size of a memory directory and its index."""
    return DirectorySize(
        memories=len(headers),
        memory_bytes=sum(header.size for header in headers),
        index_lines=len(decode(index or b"").splitlines()),
        index_bytes=len(index or b""),
    )
