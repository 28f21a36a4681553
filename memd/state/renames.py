"""Detect which removed and new files of a change set are one memory under another name. Pure."""

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Sequence

from msgspec import Struct

from memd.base.names import TEAM

# Makes a key of a file's path, hash and mtime, ``None`` if they make none.
Key = Callable[[str, object, int | None], Hashable]


class Move(Struct, frozen=True):
    """What a change did to one file: hashes before and after, ``None`` for no file; and mtimes."""

    path: str
    before: object
    after: object
    before_mtime_ns: int | None = None
    after_mtime_ns: int | None = None


def renamed_paths(steps: Sequence[Move]) -> dict[str, str]:
    """Return the new path of each renamed file by its old path.

    A removed and a new file are the same memory if their bytes are equal, if one is the other's
    copy below ``team/``, or if their mtimes are equal, since memd changes the name in the
    frontmatter of a renamed file. Pairs with the same file name are preferred.
    """
    gone = {step.path: step for step in steps if step.before is not None and step.after is None}
    new = {step.path: step for step in steps if step.before is None and step.after is not None}
    result: dict[str, str] = {}
    if not gone or not new:
        return result
    # Each key is tried on the files that the ones before it did not match.
    for key_of in _KEYS:
        new_paths_by_key: dict[Hashable, deque[str]] = defaultdict(deque)
        for path, step in new.items():
            new_paths_by_key[key_of(path, step.after, step.after_mtime_ns)].append(path)
        for path, step in list(gone.items()):
            key = key_of(path, step.before, step.before_mtime_ns)
            if key is not None and new_paths_by_key.get(key):
                result[path] = new_paths_by_key[key].popleft()
                del gone[path], new[result[path]]
    return result


def _file_name(path: str) -> str:
    """Return the last component of a path."""
    return path.rpartition("/")[2]


# Tried in this order. A removed and a new file with equal keys are the same memory.
_KEYS: tuple[Key, ...] = (
    lambda path, body_hash, _mtime_ns: (body_hash, _file_name(path)),
    lambda _path, body_hash, _mtime_ns: body_hash,
    lambda path, _body_hash, _mtime_ns: path.removeprefix(TEAM),
    lambda path, _body_hash, mtime_ns: None if mtime_ns is None else (mtime_ns, _file_name(path)),
    lambda _path, _body_hash, mtime_ns: mtime_ns,
)
