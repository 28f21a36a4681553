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
from dataclasses import asdict, dataclass, field
from types import MappingProxyType

from memd.core.errors import MemdError
from memd.core.names import INDEX
from memd.core.text import decode, sha256
from memd.core.values import FileEdit, Header, MemoryFile, Tree
from memd.core.yielding import yield_to_requests
from memd.documents.document import parse
from memd.documents.index import pointers
from memd.documents.index import read as read_index
from memd.dream.groups import named
from memd.dream.judge import judge
from memd.dream.links import targets
from memd.dream.questions import Said, questions
from memd.dream.report import Report
from memd.dream.values import DirectorySize, JudgeResult, Memory, Question, Wanted
from memd.model.port import LOCAL, Usage
from memd.state.changes import Proposal, ProposedEdit
from memd.store.history import Past

_ORPHANS = 50
_NONE: Mapping[str, int] = MappingProxyType({})
_NS = 1_000_000_000
Work = Callable[[Tree], Wanted]  # a pass: what it would change
Pass = Callable[[Past], Work]  # the pass of one dream, which may ask what was done before


@dataclass(frozen=True, slots=True)
class ReadyPass:
    """A pass that is ready to be judged, and what a model had to do with it.

    ``engine`` is ``local`` or the model's name, ``problem`` says why a model did not do it.
    ``said`` are a model's last words, without credentials; ``dollars`` is what it cost.
    """

    work: Pass
    engine: str = LOCAL
    problem: str = ""
    said: str = ""
    turns: int = 0
    usage: Usage = field(default_factory=Usage)
    dollars: float = 0.0

    @property
    def by_model(self) -> str:
        """The model's name, "" for the fixed pass."""
        return "" if self.engine == LOCAL else self.engine


@dataclass(frozen=True, slots=True)
class PassResult:
    """What a pass comes to on one tree; ``texts`` are the files that it would touch."""

    done: ReadyPass
    wanted: Wanted
    judged: JudgeResult
    texts: Mapping[str, bytes]
    before: DirectorySize
    questions: tuple[Question, ...] = ()

    def holds(self, tree: Tree) -> bool:
        """Whether the files that the pass would touch are in a tree as it saw them."""
        if tree.index() != self.texts.get(INDEX):
            return False
        named = {edit.path for edit in self.wanted.edits} | self.texts.keys()
        now = dict(_files(tree, named - {INDEX}))
        return all(
            (now[path].content if path in now else None) == self.texts.get(path)
            for path in named - {INDEX}
        )

    def report(self) -> Report:
        """Return the report as far as it is known before the commit."""
        judged, wanted, done = self.judged, self.wanted, self.done
        return Report(
            engine=done.engine,
            model_problem=done.problem,
            created=judged.created,
            changed=judged.changed,
            merged=judged.merged,
            removed=judged.removed,
            questions=self.questions,
            left=wanted.left,
            listed=wanted.listed,
            before=self.before,
            lost=judged.lost,
            problems=judged.problems,
            turns=done.turns,
            usage=asdict(done.usage) if any(asdict(done.usage).values()) else None,
            dollars=done.dollars,
            said=done.said,
        )

    def proposal(self, directory: str, job: str, at: float) -> Proposal:
        """Return the proposal of what is kept back."""
        into = {merge.source: merge.into for merge in self.wanted.merges}
        edits = tuple(
            self._edit(edit, into.get(edit.path, ""))
            for edit in self.judged.kept_back
            if edit.path not in self.judged.secrets
        )
        return Proposal(
            "",
            directory,
            at,
            job=job,
            said=self.done.said,
            problems=self.judged.problems,
            edits=edits,
        )

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
    lately: tuple[AbstractSet[str], Mapping[str, int]] = (frozenset(), _NONE),
) -> PassResult:
    """Return what a pass comes to on a tree. Raises what the pass and reading the tree raise.

    ``lately`` are the memories that dreams removed by reasons in 30 days, and how many words they
    took from each of the others; memories that came back do not count.
    """
    wanted = done.work(past)(tree)
    headers, index = tree.headers(), tree.index()
    known = {header.path for header in headers}
    files = dict(_files(tree, _named(wanted, index, known)))
    gone, lost = lately
    judged = judge(
        {path: Memory(file.content, file.header.mtime_ns / _NS) for path, file in files.items()},
        wanted,
        index=index,
        now=now,
        known=known,
        total=len(headers),
        gone_lately=len(gone - known),
        lost_lately=lost,
    )
    texts = {path: file.content for path, file in files.items()}
    shown = texts if index is None else texts | {INDEX: index}
    return PassResult(
        done, wanted, judged, shown, size(headers, index), _questions(tree, judged, headers)
    )


def _named(wanted: Wanted, index: bytes | None, known: AbstractSet[str]) -> set[str]:
    """Return the memories that a pass touches, names or links to."""
    result = {edit.path for edit in wanted.edits}
    result |= {merge.into for merge in wanted.merges}
    for reason in wanted.reasons.values():
        result.update(named(reason, known))
    for edit in wanted.edits:
        if edit.path == INDEX:
            old, new = pointers(index), pointers(edit.content)
            result |= {path for path in new if old.get(path) != new[path]} & known
        elif edit.content is not None:
            result |= targets(decode(edit.content), edit.path) & known
    return result - {INDEX}


def _questions(tree: Tree, judged: JudgeResult, headers: Sequence[Header]) -> tuple[Question, ...]:
    """Return what a person should look at, of the memories as the dream leaves them."""
    edits = {edit.path: edit.content for edit in judged.edits}
    said: list[Said] = []
    for path in sorted({header.path for header in headers} | edits.keys() - {INDEX}):
        yield_to_requests()
        content = edits.get(path, b"")
        if path not in edits:
            with suppress(MemdError):
                file = tree.read(path)
                content = file.content if file else None
        if content:
            read = parse(content, path)
            said.append((path, read.type, f"{read.description}\n\n{read.body}"))
    return questions(said)


def _files(tree: Tree, paths: AbstractSet[str]) -> Iterator[tuple[str, MemoryFile]]:
    for path in sorted(paths):
        with suppress(MemdError):  # a model may claim a merge into what is no name at all
            file = tree.read(path)
            if file is not None:
                yield path, file


def orphans(headers: Sequence[Header], index: bytes | None) -> tuple[str, ...]:
    """Return memories that the index does not name; of very many only some."""
    named = read_index(index or b"").named
    return tuple(sorted(header.path for header in headers if header.path not in named)[:_ORPHANS])


def size(headers: Sequence[Header], index: bytes | None) -> DirectorySize:
    """Return how much a memory directory holds."""
    lines = decode(index or b"").splitlines()
    return DirectorySize(
        memories=len(headers),
        memory_bytes=sum(header.size for header in headers),
        index_lines=len(lines),
        index_bytes=len(index or b""),
    )
