"""From what an agent left in its workspace to what the dream wants. Pure.

Rules of this file
- A file whose text is not what the agent had read stays as it is, whoever changed it: a dream has
  time, the next one sees both. Nothing is merged line by line.
- Memories that were to become one stay apart together: when one of them stays as it is, so do the
  others. Else a text would be gone, or would come back after somebody had taken it away.
- A memory that says nothing new does not become newer by being rewritten. One that took others in
  is as new as the newest of them.
- What an earlier dream did to the same text, and somebody took back, is not done again.
- What a removal says of itself (``merged into x.md``) is passed on as a claim; the judge looks.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from memd.agent.proposal import Proposed, RunProposal, stamped
from memd.core.errors import MemdError
from memd.core.names import INDEX
from memd.core.text import iso_time, sha256
from memd.core.values import FileEdit, Tree
from memd.documents import document
from memd.dream.values import DAMAGED, LISTED, Merge, Reasoned, Wanted, in_the_end
from memd.text.statements import statements, undated

_CLAIM = re.compile(r"merged into:?\s+[`'\"<(\[]*([^\s`'\"<>()\[\]]+)", re.IGNORECASE)
_NS = 1_000_000_000

_CHANGED = "somebody changed it during the dream"
_CREATED = "somebody wrote it during the dream"
_GONE = "somebody removed it during the dream"
_TAKEN_BACK = "a dream did this before, and it was taken back"


@dataclass(frozen=True, slots=True)
class _Live:
    """A file as it stands now; ``content`` is ``None`` where there is none."""

    content: bytes | None
    mtime_ns: int = 0
    trouble: str = ""


def wanted(
    proposal: RunProposal,
    tree: Tree,
    *,
    session: str,
    at: float,
    repeats: Callable[[Sequence[FileEdit]], Collection[str]] = lambda _edits: (),
) -> Wanted:
    """Return what an agent's proposal comes to on the directory as it is now.

    New memories are stamped with the ``session``; what says something new, with the time ``at``
    (seconds since 1970). ``repeats`` returns the paths of edits that a dream made before to the
    same text (``Past.repeats``).
    """
    result = _Changes(proposal, tree, session, at).wanted()
    again = repeats([edit for edit in result.edits if edit.path != INDEX])
    if again:
        result = _Changes(proposal, tree, session, at, again).wanted()
    return replace(result, sources=proposal.sources)


class _Changes:
    """One proposal on one tree."""

    def __init__(
        self,
        proposal: RunProposal,
        tree: Tree,
        session: str,
        at: float,
        taken_back: Collection[str] = (),
    ) -> None:
        self._files = {file.path: file for file in proposal.files}
        self._tree = tree
        self._session = session
        self._at = at
        self._taken_back = taken_back
        self._live = {path: _inspect(tree, path) for path in self._files}
        gone = [file for file in proposal.files if file.content is None]
        targets = {file.path: self._target(file.reason) for file in gone}
        self._claims = {path: into for path, into in targets.items() if into}

    def wanted(self) -> Wanted:
        """Return the edits, the claims and what is left alone."""
        left = self._left()
        retained = [file for path, file in self._files.items() if path not in left]
        gone = [file for file in retained if file.content is None]
        merges = [
            Merge(in_the_end(self._claims, f.path), f.path) for f in gone if f.path in self._claims
        ]
        edits = [self._edit(file) for file in retained]
        return Wanted(
            edits=tuple(edit for edit in edits if edit is not None),
            merges=tuple(merges),
            reasons={file.path: file.reason for file in gone if file.path not in self._claims},
            left=tuple(Reasoned(path, left[path]) for path in self._files if path in left),
            listed=tuple(Reasoned(path, DAMAGED) for path in islice(self._damaged(), LISTED)),
        )

    def _damaged(self) -> Iterator[str]:
        return (header.path for header in self._tree.headers() if header.damaged)

    def _target(self, reason: str) -> str:
        """Return the memory that a reason names as the one that took it in, "" for none."""
        result = _CLAIM.match(reason.strip())
        if result is None:
            return ""
        said = result.group(1).rstrip(".,;:").removeprefix("./")
        if not said.startswith("/"):
            return said
        known = (*self._files, *(header.path for header in self._tree.headers()))
        return max((path for path in known if said.endswith(f"/{path}")), key=len, default=said)

    def _left(self) -> dict[str, str]:
        """Return what stays as it is, with the reason."""
        left: dict[str, str] = {}
        for path, file in self._files.items():
            why = _meanwhile(file, self._live[path])
            if not why and path in self._taken_back:
                why = _TAKEN_BACK
            if why:
                left[path] = why
        waiting = list(left)
        while waiting:
            path = waiting.pop()
            for other in self._beside(path):
                if other in self._files and other not in left:
                    left[other] = f"it was to become one with {path}, which stays as it is"
                    waiting.append(other)
        return left

    def _beside(self, path: str) -> Iterator[str]:
        """Yield what a memory was to go into, and what was to go into it."""
        if path in self._claims:
            yield self._claims[path]
        yield from (source for source, into in self._claims.items() if into == path)

    def _edit(self, file: Proposed) -> FileEdit | None:
        """Return the edit on the live file, ``None`` where nothing is left to do."""
        live = self._live[file.path]
        base = "" if live.content is None else sha256(live.content)
        if file.content is None or file.base is None or file.path == INDEX:
            new = stamped(file, session=self._session, modified=iso_time(self._at))
            return FileEdit(file.path, new.content, base)
        sources = [path for path in self._claims if in_the_end(self._claims, path) == file.path]
        taken_in = [self._files[path].base or b"" for path in sources]
        mtime_ns = None
        modified = iso_time(self._at)
        if _says_nothing_new(file.content, file.base, taken_in):
            mtime_ns = max(self._live[path].mtime_ns for path in (file.path, *sources))
            modified = _Memory(file.base).modified
        if modified != _Memory(file.content).modified:
            stamp = modified or iso_time(live.mtime_ns / _NS)
            file = stamped(file, session=self._session, modified=stamp)
        if file.content == live.content:
            return None
        return FileEdit(file.path, file.content, base, mtime_ns)


class _Memory:
    """What a memory says, as far as its age hangs on it."""

    def __init__(self, content: bytes) -> None:
        self._read = document.parse(content, "")

    @cached_property
    def modified(self) -> str:
        """Its own word on when it was changed, "" for none."""
        return self._read.metadata.get("modified", "")

    @cached_property
    def says(self) -> frozenset[str]:
        """Its type and its statements; a date behind a relative one adds nothing."""
        text = undated(f"{self._read.description}\n\n{self._read.body}")
        return frozenset((str(self._read.type), *(one.key for one in statements(text))))


def _says_nothing_new(content: bytes, base: bytes, taken_in: Sequence[bytes]) -> bool:
    """Whether a memory says what it said, and beyond that only what those it took in said."""
    says, said = _Memory(content).says, _Memory(base).says
    return said <= says <= said.union(*(_Memory(other).says for other in taken_in))


def _inspect(tree: Tree, path: str) -> _Live:
    if path == INDEX:
        return _Live(tree.index())
    try:
        result = tree.read(path)
    except MemdError as error:  # a link, a folder or something too large stands there by now
        return _Live(None, trouble=error.sentence)
    return _Live(None) if result is None else _Live(result.content, result.header.mtime_ns)


def _meanwhile(file: Proposed, live: _Live) -> str:
    """Return what became of a file since the agent read it, "" for nothing."""
    if live.trouble or live.content == file.base:
        return live.trouble
    if live.content is None:
        return _GONE
    return _CREATED if file.base is None else _CHANGED
