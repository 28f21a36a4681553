"""Turn the changes in an agent's workspace into the edits that a dream wants. Pure.

Rules of this file
- A file that changed since the agent read it stays as it is; the next dream reads it again. Nothing
  is merged line by line.
- If one of several memories that were to be merged stays as it is, so do the others. Otherwise text
  would be lost, or would return after somebody removed it.
- Rewriting a memory does not make it newer if it says nothing new. A merged memory is as new as its
  newest source.
- An edit that an earlier dream made to the same text and that somebody took back is not repeated.
- The reason of a removal may claim a merge (``merged into x.md``); the judge checks the claim.
"""

import re
from collections.abc import Callable, Collection, Sequence

from msgspec.structs import replace

from memd.agent.proposal import Proposed, RunProposal, stamped
from memd.base.errors import MemdError
from memd.base.names import INDEX
from memd.base.text import iso_time, sha256
from memd.base.values import FileEdit, Tree
from memd.dream.values import DAMAGED, LISTED, Merge, Reasoned, Wanted, in_the_end
from memd.store.memory import parse
from memd.text.statements import statements

# "merged into x.md", with or without quotes or brackets.
_CLAIM = r"(?i)merged into:?\s+[`'\"<(\[]*([^\s`'\"<>()\[\]]+)"
_NS = 1_000_000_000

_CHANGED = "somebody changed it during the dream"
_CREATED = "somebody wrote it during the dream"
_GONE = "somebody removed it during the dream"
_TAKEN_BACK = "a dream did this before, and it was taken back"


def wanted_edits(
    proposal: RunProposal,
    tree: Tree,
    *,
    session: str,
    at: float,
    repeats: Callable[[Sequence[FileEdit]], Collection[str]] = lambda _edits: (),
) -> Wanted:
    """Return those edits of an agent's proposal that fit the directory as it is now.

    New memories are stamped with the ``session``, memories that say something new with the time
    ``at`` (seconds since 1970). ``repeats`` returns the paths of edits that a dream made before to
    the same text (``Past.repeats``).
    """
    changes = _Changes(proposal, tree, session, iso_time(at))
    result = changes.without(())
    taken_back = repeats([edit for edit in result.edits if edit.path != INDEX])
    if taken_back:
        result = changes.without(taken_back)
    return replace(result, sources=proposal.sources)


class _Changes:
    """A proposal compared with the directory's files; ``now`` is an ISO 8601 time.

    ``session`` is the session that new memories are stamped with.
    """

    def __init__(self, proposal: RunProposal, tree: Tree, session: str, now: str) -> None:
        self._files = {file.path: file for file in proposal.files}  # those that the agent changed
        self._paths = [header.path for header in tree.headers()]  # of all memories
        self._damaged = [header.path for header in tree.headers() if header.damaged]
        self._session = session
        self._now = now
        self._mtimes: dict[str, int] = {}  # in ns, by path; set by _external_change
        # By path: how a file was changed since the agent read it, "" if it was not.
        self._external_changes = {
            path: self._external_change(file, tree) for path, file in self._files.items()
        }
        removals = [file for file in proposal.files if file.content is None]
        targets = {file.path: self._merge_target(file.reason) for file in removals}
        # By path of a removal: the memory that it was merged into, as its reason says.
        self._claimed_targets = {path: target for path, target in targets.items() if target}

    def without(self, taken_back: Collection[str]) -> Wanted:
        """Return the edits except those of the paths ``taken_back``, which are left alone."""
        left = self._files_to_leave(taken_back)
        changed = [file for path, file in self._files.items() if path not in left]
        removals = [file for file in changed if file.content is None]
        merged = [file.path for file in removals if file.path in self._claimed_targets]
        edits = [self._make_edit(file) for file in changed]
        return Wanted(
            edits=tuple(edit for edit in edits if edit is not None),
            merges=tuple(Merge(in_the_end(self._claimed_targets, path), path) for path in merged),
            reasons={file.path: file.reason for file in removals if file.path not in merged},
            left=tuple(Reasoned(path, left[path]) for path in self._files if path in left),
            listed=tuple(Reasoned(path, DAMAGED) for path in self._damaged[:LISTED]),
        )

    def _external_change(self, file: Proposed, tree: Tree) -> str:
        """Return a sentence if a file changed since the agent read it, else "".

        The file's mtime is recorded for ``_make_edit``.
        """
        current = tree.index() if file.path == INDEX else None
        if file.path != INDEX:
            try:
                memory = tree.read(file.path)
            except MemdError as error:  # it has become a link, a folder or too large
                return error.sentence
            if memory is not None:
                current, self._mtimes[file.path] = memory.content, memory.header.mtime_ns
        if current == file.base:
            return ""
        if current is None:
            return _GONE
        return _CREATED if file.base is None else _CHANGED

    def _merge_target(self, reason: str) -> str:
        """Return the memory that a removal's reason claims a merge into, "" for none."""
        claim = re.match(_CLAIM, reason.strip())
        if claim is None:
            return ""
        target = claim.group(1).rstrip(".,;:").removeprefix("./")
        # A model may write an absolute path; find the memory that it ends with.
        if not target.startswith("/"):
            return target
        paths = (path for path in (*self._files, *self._paths) if target.endswith(f"/{path}"))
        return max(paths, key=len, default=target)

    def _files_to_leave(self, taken_back: Collection[str]) -> dict[str, str]:
        """Return the paths of files that stay as they are, each with the reason."""
        left = {path: change for path, change in self._external_changes.items() if change}
        left |= {path: _TAKEN_BACK for path in taken_back if path not in left}
        to_visit = list(left)
        for path in to_visit:  # grows within the loop
            sources = [source for source, t in self._claimed_targets.items() if t == path]
            for other in (self._claimed_targets.get(path, ""), *sources):
                if other in self._files and other not in left:
                    left[other] = f"it was to become one with {path}, which stays as it is"
                    to_visit.append(other)
        return left

    def _make_edit(self, file: Proposed) -> FileEdit | None:
        """Return the edit of a file that is as the agent read it, ``None`` if nothing changes."""
        base = "" if file.base is None else sha256(file.base)
        # Only the times of a memory that is rewritten depend on what it says.
        if file.content is None or file.base is None or file.path == INDEX:
            new = stamped(file, session=self._session, modified=self._now)
            return FileEdit(file.path, new.content, base)
        sources = [
            path
            for path in self._claimed_targets
            if in_the_end(self._claimed_targets, path) == file.path
        ]
        after, before = _statement_keys(file.content), _statement_keys(file.base)
        merged = [_statement_keys(self._files[path].base or b"") for path in sources]
        mtime_ns, modified = None, self._now
        if before <= after <= before.union(*merged):  # it says nothing new
            mtime_ns = max(self._mtimes.get(path, 0) for path in (file.path, *sources))
            modified = _modified_stamp(file.base)
        if modified != _modified_stamp(file.content):
            # A memory without a stamp gets one with its mtime.
            stamp = modified or iso_time(self._mtimes[file.path] / _NS)
            file = stamped(file, session=self._session, modified=stamp)
        if file.content == file.base:
            return None
        return FileEdit(file.path, file.content, base, mtime_ns)


def _modified_stamp(content: bytes) -> str:
    """Return the ``modified`` stamp of a memory, "" for none."""
    return parse(content, "").metadata.get("modified", "")


def _statement_keys(content: bytes) -> frozenset[str]:
    """Return the keys of a memory's statements, and its type, since that may change as well."""
    parsed = parse(content, "")
    text = f"{parsed.description}\n\n{parsed.body}"
    return frozenset((str(parsed.type), *(statement.key for statement in statements(text))))
