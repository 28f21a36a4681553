"""Which memories a dream asks about, since nobody used them for 90 days. Pure.

Rules of this file
- It is a question: nothing goes unless a person accepts it, file by file.
- Never asked about are memories that are pinned (``pinned: true`` in their frontmatter), that
  belong to a team or to agents, that changed since they were counted, that the dream itself
  touches, or that the door would refuse to show or to remove.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from memd.core.errors import MemdError
from memd.core.names import TEAM, check_name
from memd.core.text import decode, iso_time
from memd.core.values import MemoryFile, Tree
from memd.core.yielding import yield_to_requests
from memd.documents import secrets
from memd.documents.document import parse
from memd.state.changes import ProposedEdit
from memd.state.tables import FileEvent

MOST = 10  # memories at a time
_OTHERS = (TEAM, "agents/")
_TRUE = ("true", "yes", "on")
_SLACK_NS = 1_000_000_000  # between a file's time and the one that is noted with its change


def question(
    unused: Sequence[FileEvent], tree: Tree, touched: Collection[str]
) -> tuple[ProposedEdit, ...]:
    """Return the removals to ask about: ten of the ``unused``, in their order, at most.

    ``touched`` are paths that the dream itself changes.
    """
    return tuple(islice(_edits(unused, tree, touched), MOST))


def _edits(
    unused: Sequence[FileEvent], tree: Tree, touched: Collection[str]
) -> Iterator[ProposedEdit]:
    for event in unused:
        yield_to_requests()
        if event.path.startswith(_OTHERS) or event.path in touched:
            continue
        with suppress(MemdError):  # an odd name, or a file that cannot be read
            file = tree.read(check_name(event.path))
            if file is not None and _may_be_asked(file, event.at):
                reason = f"not surfaced, read or changed since {iso_time(event.at)[:10]}"
                yield ProposedEdit(event.path, None, file.hash, file.content, reason)


def _may_be_asked(file: MemoryFile, at: float) -> bool:
    """Say whether a person may be asked about a memory to which nothing happened since a time."""
    pinned = parse(file.content, file.header.path).metadata.get("pinned", "")
    changed = file.header.mtime_ns > at * 1e9 + _SLACK_NS
    return not (changed or pinned.lower() in _TRUE or secrets.find(decode(file.content)))
