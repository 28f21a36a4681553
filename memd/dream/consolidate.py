"""Remove exact copies of memories, without a model. Blocks.

Rules of this file
- Of memories of one type and origin with the same body one stays, byte for byte. The others go if
  it also has the words of their descriptions, their fields and their lines of the index.
- A memory that another file links to stays, and so does one that holds what looks like a
  credential, one of no known type and one that is shared with a team.
- A second pass changes nothing. An edit that a person took back is not made again while the file's
  text is the same.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from memd.base import limits
from memd.base.errors import MemdError
from memd.base.names import INDEX, TEAM, check_name
from memd.base.text import decode, sha256
from memd.base.values import FileEdit, Header, MemoryFile, Reasoned, Tree
from memd.base.yielding import yield_to_requests
from memd.dream import joining
from memd.dream.joining import CannotJoinError
from memd.dream.values import TAKEN_BACK, Group, Removal, Wanted, damaged
from memd.store import index, secret
from memd.store.memory import parse
from memd.text.links import names, targets

Repeats = Callable[[Sequence[FileEdit]], Collection[str]]  # returns paths of edits taken back

_MOST_FILES = limits.CHANGE_FILES - 1  # of one change, without the index


def fixed_pass(tree: Tree, repeats: Repeats) -> Wanted:
    """Return the edits of the fixed pass, without those that a person took back.

    ``repeats`` returns the paths of edits that a dream made before to the same text
    (``Past.repeats``). Such files are listed in ``left``; if the index is among them, its pointers
    are not mended either.
    """
    content = tree.index()
    # The store mends the index in any case, so it is always checked for an edit taken back.
    edits = [] if content is None else [FileEdit(INDEX, None, sha256(content))]
    groups = list(islice(_find_copies(tree, content or b""), _MOST_FILES))
    edits += [edit for group in groups for edit in group.edits]
    repeated = set(repeats(edits))
    return Wanted(
        groups=tuple(group for group in groups if group.edits[0].path not in repeated),
        left=tuple(Reasoned(path, TAKEN_BACK) for path in sorted(repeated)),
        listed=damaged(tree),
        mend_index=INDEX not in repeated,
    )


def _find_copies(tree: Tree, index_content: bytes) -> Iterator[Group]:
    """Yield a group for each memory that goes, as another one says the same."""
    linked = set(targets("\n".join(map(decode, index.own_lines(index_content))), INDEX))
    alike: dict[tuple[str, str, str], list[MemoryFile]] = defaultdict(list)
    for header in tree.headers():
        yield_to_requests()
        with suppress(MemdError):  # its name is forbidden, or it is too large
            file = tree.read(header.path)
            if file is not None:
                linked |= targets(file.body, header.path)
                if _may_go(header, file):
                    alike[header.type or "", header.origin, file.body.strip()].append(file)
    hooks = {entry.path: entry.hook for entry in reversed(index.entries(index_content))}
    for files in alike.values():
        free = [f for f in files if linked.isdisjoint(names(f.header.path, f.header.name))]
        linked_to = [file for file in files if file not in free]
        # One that is linked to stays, or else the longest: a second pass decides the same.
        winner = min(linked_to or free, key=lambda f: (-len(f.content), f.header.path))
        for file in free:
            hook = hooks.get(file.header.path, "")
            if file is not winner and _says_all(winner, file, hook):
                yield _removal(file, winner)


def _may_go(header: Header, file: MemoryFile) -> bool:
    """Return whether a memory may be removed as a copy. Raises Refused for a forbidden name."""
    check_name(header.path)
    is_utf8 = file.content.endswith(file.body.encode())
    is_ours = header.type is not None and not header.path.startswith(TEAM)
    return is_ours and is_utf8 and not header.damaged


def _says_all(winner: MemoryFile, file: MemoryFile, hook: str) -> bool:
    """Return whether a memory says all that its copy and the copy's line of the index say."""
    yield_to_requests()
    try:
        has_all = joining.joined(winner.content, file.content) == winner.content
    except CannotJoinError:
        return False
    text = joining.text_of(parse(winner.content, winner.header.path))
    return has_all and joining.says(text, hook) and not secret.find(decode(file.content))


def _removal(file: MemoryFile, winner: MemoryFile) -> Group:
    """Return the group of a copy that goes."""
    path, into = file.header.path, winner.header.path
    return Group(
        (FileEdit(path, None, file.hash),),
        {path: file.content, into: winner.content},
        removals={path: Removal(f"merged into {into}", into)},
    )
