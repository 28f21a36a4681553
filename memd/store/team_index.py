"""``team/MEMORY.md``, derived from the memories beside it, so nobody can plant text in prompts.

It is updated in the set that changes those memories. A person's own lines stay, after the entries,
and are never sent to the team. An index that is a link, or cannot be read, is left as it is.
"""

from collections.abc import Iterable

from memd.base import limits
from memd.base.errors import MemdError
from memd.base.names import TEAM, TEAM_INDEX, in_catalogue
from memd.base.values import FileEdit, MemoryType, Pointer
from memd.state.changes import Step
from memd.store import index, memory
from memd.store.memory import Fields
from memd.store.tree import LiveTree

_TYPE_ORDER = {kind: number for number, kind in enumerate((*MemoryType, None))}


def derive_team_index(
    wanted: FileEdit | None, steps: Iterable[Step], bodies: dict[str, bytes], tree: LiveTree
) -> tuple[FileEdit | None, str]:
    """Return the edit of the team's index after a set, or ``None`` and the reason against one.

    ``wanted`` is an edit that restores an earlier index with a person's own lines. ``bodies`` are
    the texts of the steps by hash.
    """
    team_steps = [step for step in steps if step.path.startswith(TEAM)]
    try:
        live = tree.file(TEAM_INDEX)
    except MemdError as error:
        # Without a step of a team's memory the set does not concern this index.
        return None, error.sentence if team_steps else ""
    live_content = live.content if live else None
    content = wanted.content if wanted else live_content
    entries: dict[str, Fields] = {
        header.path: (header.name, header.description, header.type, "") for header in tree.team()
    }
    for step in team_steps:
        entries.pop(step.path, None)
        if step.after:
            entries[step.path] = memory.parse(bodies[step.after], step.path).fields
    derived = index.derive(content, _index_lines(entries))
    if len(derived or b"") > limits.READ_BYTES:
        return None, f"{TEAM_INDEX} would have more than {limits.READ_BYTES} bytes"
    # The restored mtime counts only where the text is the restored one, or the file comes back.
    if wanted and (derived == wanted.content or wanted.base == ""):
        return FileEdit(TEAM_INDEX, derived, mtime_ns=wanted.mtime_ns), ""
    return FileEdit(TEAM_INDEX, derived), ""


def _index_lines(entries: dict[str, Fields]) -> dict[str, Pointer]:
    """Return index lines by path relative to ``team/``, ordered by type, name and path.

    ``entries`` are the fields of the team's memories by path.
    """
    rows = [
        (_TYPE_ORDER[kind], name.casefold(), path, index.of_memory(name, description))
        for path, (name, description, kind, _) in entries.items()
    ]
    rows.sort(key=lambda row: row[:3])  # a pointer has no order
    lines = {path.removeprefix(TEAM): pointer for _, _, path, pointer in rows}
    return {path: pointer for path, pointer in lines.items() if in_catalogue(path)}
