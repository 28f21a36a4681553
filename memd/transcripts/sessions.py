"""The sessions whose transcripts lie in a folder, and when those last changed."""

import os
import stat
from contextlib import suppress

_SUFFIX = ".jsonl"


def sessions_of(folder: str) -> dict[str, float]:
    """Return the sessions of a folder with their last change, in seconds since 1970.

    Costs one scan of the folder and one ``stat`` per transcript. A folder that is not there, or
    that we may not read, has none; a transcript that goes away meanwhile is left out. Blocks.
    """
    result: dict[str, float] = {}
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_SUFFIX):
                with suppress(OSError):
                    facts = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(facts.st_mode):
                        result[entry.name.removesuffix(_SUFFIX)] = facts.st_mtime
    return result
