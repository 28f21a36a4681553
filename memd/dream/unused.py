"""Propose the removal of memories that were not used for 90 days. Pure.

Rules of this file
- A person decides: nothing is removed unless a person accepts it, file by file.
- Not proposed are memories that are pinned (``pinned: true`` in their frontmatter), belong to a
  team or to agents, changed since they were last used, are changed by the dream itself, hold a
  credential, or cannot be read.
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

MOST_REMOVALS = 10  # a person is asked about so many memories at a time
_OTHER_OWNERS = (TEAM, "agents/")  # folders of teams and of agents
_TRUE_VALUES = ("true", "yes", "on")
_NS = 1_000_000_000
_SLACK_NS = 1_000_000_000  # a file's mtime may be later than the recorded time of its change


def proposed_removals(
    unused: Sequence[FileEvent], tree: Tree, touched: Collection[str]
) -> tuple[ProposedEdit, ...]:
    """Return at most ten removals of ``unused`` memories, in their order.

    ``touched`` are the paths that the dream itself changes.
    """
    return tuple(islice(_removals(unused, tree, touched), MOST_REMOVALS))


def _removals(
    unused: Sequence[FileEvent], tree: Tree, touched: Collection[str]
) -> Iterator[ProposedEdit]:
    """Yield the removals of unused memories that may be proposed."""
    for event in unused:
        yield_to_requests()
        if event.path.startswith(_OTHER_OWNERS) or event.path in touched:
            continue
        with suppress(MemdError):  # an invalid name, or a file that cannot be read
            file = tree.read(check_name(event.path))
            if file is not None and _may_be_proposed(file, event.at):
                reason = f"not surfaced, read or changed since {iso_time(event.at)[:10]}"
                yield ProposedEdit(event.path, None, file.hash, file.content, reason)


def _may_be_proposed(file: MemoryFile, last_use: float) -> bool:
    """Return whether a memory is not pinned, unchanged since its last use, without credentials.

    ``last_use`` is in seconds since 1970.
    """
    pinned = parse(file.content, file.header.path).metadata.get("pinned", "")
    if pinned.lower() in _TRUE_VALUES or file.header.mtime_ns > last_use * _NS + _SLACK_NS:
        return False
    return not secrets.find(decode(file.content))
