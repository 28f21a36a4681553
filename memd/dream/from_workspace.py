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
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

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
    changes = _Changes(proposal, tree, session, iso_time(at))
    result = changes.wanted(())
    again = repeats([edit for edit in result.edits if edit.path != INDEX])
    return replace(changes.wanted(again) if again else result, sources=proposal.sources)


class _Changes:
    """One proposal on one tree; ``now`` is ISO 8601."""

    def __init__(self, proposal: RunProposal, tree: Tree, session: str, now: str) -> None:
        self._files = {file.path: file for file in proposal.files}
        self._paths = [header.path for header in tree.headers()]
        self._damaged = [header.path for header in tree.headers() if header.damaged]
        self._session = session
        self._now = now
        self._times: dict[str, int] = {}  # mtimes in ns
        self._others = {path: self._meanwhile(file, tree) for path, file in self._files.items()}
        gone = [file for file in proposal.files if file.content is None]
        targets = {file.path: self._target(file.reason) for file in gone}
        self._claims = {path: into for path, into in targets.items() if into}

    def wanted(self, taken_back: Collection[str]) -> Wanted:
        """Return the edits, the claims and what is left alone, what was taken back among it."""
        left = self._left(taken_back)
        retained = [file for path, file in self._files.items() if path not in left]
        gone = [file for file in retained if file.content is None]
        merged = [file.path for file in gone if file.path in self._claims]
        edits = [self._edit(file) for file in retained]
        return Wanted(
            edits=tuple(edit for edit in edits if edit is not None),
            merges=tuple(Merge(in_the_end(self._claims, path), path) for path in merged),
            reasons={file.path: file.reason for file in gone if file.path not in merged},
            left=tuple(Reasoned(path, left[path]) for path in self._files if path in left),
            listed=tuple(Reasoned(path, DAMAGED) for path in self._damaged[:LISTED]),
        )

    def _meanwhile(self, file: Proposed, tree: Tree) -> str:
        """Return what became of a file since the agent read it, "" for nothing."""
        live = tree.index() if file.path == INDEX else None
        if file.path != INDEX:
            try:
                there = tree.read(file.path)
            except MemdError as error:  # a link, a folder or something too large is there by now
                return error.sentence
            if there is not None:
                live, self._times[file.path] = there.content, there.header.mtime_ns
        if live == file.base:
            return ""
        return _GONE if live is None else _CREATED if file.base is None else _CHANGED

    def _target(self, reason: str) -> str:
        """Return the memory that a reason names as the one that took it in, "" for none."""
        result = _CLAIM.match(reason.strip())
        if result is None:
            return ""
        said = result.group(1).rstrip(".,;:").removeprefix("./")
        if not said.startswith("/"):
            return said
        known = (*self._files, *self._paths)
        return max((path for path in known if said.endswith(f"/{path}")), key=len, default=said)

    def _left(self, taken_back: Collection[str]) -> dict[str, str]:
        """Return what stays as it is, with the reason."""
        left = {path: why for path, why in self._others.items() if why}
        left |= {path: _TAKEN_BACK for path in taken_back if path not in left}
        waiting = list(left)
        for path in waiting:  # which grows
            beside = [source for source, into in self._claims.items() if into == path]
            for other in (self._claims.get(path, ""), *beside):
                if other in self._files and other not in left:
                    left[other] = f"it was to become one with {path}, which stays as it is"
                    waiting.append(other)
        return left

    def _edit(self, file: Proposed) -> FileEdit | None:
        """Return the edit on a file that is as the agent read it, ``None`` if nothing is to do."""
        base = "" if file.base is None else sha256(file.base)
        if file.content is None or file.base is None or file.path == INDEX:
            new = stamped(file, session=self._session, modified=self._now)
            return FileEdit(file.path, new.content, base)
        sources = [path for path in self._claims if in_the_end(self._claims, path) == file.path]
        taken_in = [self._files[path].base or b"" for path in sources]
        says, said = _says(file.content), _says(file.base)
        mtime_ns, modified = None, self._now
        if said <= says <= said.union(*map(_says, taken_in)):
            mtime_ns = max(self._times.get(path, 0) for path in (file.path, *sources))
            modified = _modified(file.base)
        if modified != _modified(file.content):
            stamp = modified or iso_time(self._times[file.path] / _NS)
            file = stamped(file, session=self._session, modified=stamp)
        if file.content == file.base:
            return None
        return FileEdit(file.path, file.content, base, mtime_ns)


def _modified(content: bytes) -> str:
    """Return a memory's own word on when it was changed, "" for none."""
    return document.parse(content, "").metadata.get("modified", "")


def _says(content: bytes) -> frozenset[str]:
    """Return a memory's type and statements; a date behind a relative one adds nothing."""
    read = document.parse(content, "")
    text = undated(f"{read.description}\n\n{read.body}")
    return frozenset((str(read.type), *(one.key for one in statements(text))))
