"""The root that all worktrees of a git repository share, found by reading files only.

Rules of this file
- A checkout may claim anything in its ``.git`` file. It is believed to be a linked worktree only if
  the main repository knows it: its git directory lies in ``<common>/worktrees/`` and names this
  very ``.git`` file. Otherwise a hostile checkout could borrow another project's memories.
- A ``.git`` that is itself a link is never followed: its target's answers are about the target.
- An unproven claim is no error. The checkout is then its own project.
"""

import functools
import os
import stat

_POINTER_BYTES = 8 * 1024  # two longest paths; git writes one
_MEMO = 256


def find_root(directory: str) -> str:
    """Return the root for a real, existing directory: the nearest ``.git`` decides.

    A proven link is remembered until the identity of its ``.git`` file changes.
    """
    here, status = _nearest(directory)
    if status is None or not stat.S_ISREG(status.st_mode):
        return here
    try:
        return _main_root(here, status.st_dev, status.st_ino, status.st_mtime_ns)
    except _UnprovenLinkError:
        return here


def find_checkout(directory: str) -> str:
    """Return the folder with the nearest ``.git``, of a linked worktree its own; or the directory.

    It is for a real, existing directory.
    """
    return _nearest(directory)[0]


def _nearest(directory: str) -> tuple[str, os.stat_result | None]:
    """Return the folder with the nearest ``.git`` and its status, the directory where none is."""
    here = directory
    while True:
        try:
            return here, os.lstat(os.path.join(here, ".git"))
        except OSError:
            above = os.path.dirname(here)
            if above == here:
                return directory, None
            here = above


class _UnprovenLinkError(Exception):
    """A ``.git`` file that does not prove to belong to a main repository; never remembered."""


@functools.lru_cache(maxsize=_MEMO)
def _main_root(checkout: str, _device: int, _inode: int, _mtime_ns: int) -> str:
    """Return the main repository's root of a linked worktree. Raises _UnprovenLinkError."""
    link = os.path.join(checkout, ".git")
    claim = _pointer(link)
    if not claim.startswith("gitdir:"):
        raise _UnprovenLinkError
    git_dir = os.path.realpath(os.path.join(checkout, claim.removeprefix("gitdir:").strip()))
    common = _pointer(os.path.join(git_dir, "commondir"))
    back = _pointer(os.path.join(git_dir, "gitdir"))
    if not common or not back:  # a submodule, or a git directory kept elsewhere
        raise _UnprovenLinkError
    common = os.path.realpath(os.path.join(git_dir, common))
    named = os.path.join(git_dir, back)
    proven = (
        os.path.dirname(git_dir) == os.path.join(common, "worktrees")
        and os.path.basename(named) == ".git"
        and os.path.realpath(os.path.dirname(named)) == checkout
    )
    if not proven:
        raise _UnprovenLinkError
    # A bare repository has no root of its own; its directory is what its worktrees share.
    return os.path.dirname(common) if os.path.basename(common) == ".git" else common


def _pointer(path: str) -> str:
    """Return the first line of a small regular file, "" when there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            regular = stat.S_ISREG(os.fstat(fd).st_mode)
            text = os.fsdecode(os.read(fd, _POINTER_BYTES)) if regular else ""
        finally:
            os.close(fd)
    except (OSError, ValueError):  # ValueError: a NUL in a path that another file named
        return ""
    return "" if "\0" in text else text.split("\n", 1)[0].strip()
