"""Which daily logs a dream looks at. Blocks: call it from a worker thread."""

from memd.core.errors import MemdError
from memd.core.names import LOGS, SUFFIX
from memd.files.confined import Confined

MOST = 31  # a month of them; a dream a night reads one or two
_LEVELS = 2  # logs/YYYY/MM
_ENTRIES = 1_000  # of a folder
_NS = 1_000_000_000


def changed(memory: str, since: float | None) -> tuple[str, ...]:
    """Return the logs below a memory directory that changed since a time, the newest first.

    ``since`` is seconds since 1970, ``None`` for ever. What cannot be looked at has none.
    """
    found: list[str] = []
    after = -1.0 if since is None else since * _NS
    try:
        with Confined(memory) as folder:
            waiting = [(0, LOGS)]
            while waiting:
                level, name = waiting.pop()
                for seen in folder.entries(name, _ENTRIES):
                    path = f"{name}/{seen.name}"
                    if seen.folder and level < _LEVELS:
                        waiting.append((level + 1, path))
                    elif seen.name.endswith(SUFFIX) and seen.mtime_ns > after and not seen.folder:
                        found.append(path)
    except MemdError:
        return ()
    return tuple(sorted(found, reverse=True)[:MOST])
