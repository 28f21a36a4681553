"""Detect which removed and new files of a change set are one memory under another name. Pure."""

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Sequence

from memd.core.names import TEAM
from memd.state.records import Step

Key = Callable[[str, str | None, int | None], Hashable]


def renamed_paths(steps: Sequence[Step]) -> dict[str, str]:
    """Return the new path of each renamed file by its old path.

    A removed and a new file are the same memory if their bytes are equal, if one is the other's
    copy below ``team/``, or if their mtimes are equal, since memd changes the name in the
    frontmatter of a renamed file. Pairs with the same file name are preferred.
    """
    gone = {step.path: step for step in steps if step.before is not None and step.after is None}
    new = {step.path: step for step in steps if step.before is None and step.after is not None}
    result: dict[str, str] = {}
    # Each key is tried on the files that the ones before it did not match.
    for key in _KEYS if gone and new else ():
        unmatched: dict[Hashable, deque[str]] = defaultdict(deque)
        for path, step in new.items():
            unmatched[key(path, step.after, step.after_mtime_ns)].append(path)
        for path, step in list(gone.items()):
            match = key(path, step.before, step.before_mtime_ns)
            if match is not None and unmatched.get(match):
                result[path] = unmatched[match].popleft()
                del gone[path], new[result[path]]
    return result


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


# Tried in this order. Each makes a key of a file's path, hash and mtime; a removed and a new file
# with equal keys are the same memory.
_KEYS: tuple[Key, ...] = (
    lambda path, key, _: (key, _file_name(path)),
    lambda _path, key, _time: key,
    lambda path, _key, _time: path.removeprefix(TEAM),
    lambda path, _, time: None if time is None else (time, _file_name(path)),
    lambda _path, _key, time: time,
)
