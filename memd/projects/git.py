"""Where a working directory belongs: its checkout, and the root that all its worktrees share.

Rules of this file
- Files are read, and no ``git`` is run.
- A checkout may claim anything in its ``.git`` file. It counts as a linked worktree only if the
  main repository confirms it: its git directory lies in ``<common>/worktrees/`` and points to this
  very ``.git`` file. Otherwise a hostile checkout could read another project's memories. The
  checkout of an unproven claim is its own project.
- A ``.git`` that is itself a link is never followed: the repository there is another one.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct

_POINTER_BYTES = 8 * 1024  # two longest paths; git writes one


class ProjectPlace(Struct, frozen=True):
    """The real paths of a working directory, of its checkout and of its project's root.

    The checkout is the folder with the nearest ``.git``, a linked worktree's its own; without a
    ``.git`` all three are the working directory. ``files`` are the paths that decided.
    """

    cwd: str
    checkout: str
    root: str
    files: tuple[str, ...] = ()


def find_place(cwd: str) -> ProjectPlace:
    """Return the place of a real, existing directory."""
    files: list[str] = []
    for folder in upwards(cwd):
        files.append(os.path.join(folder, ".git"))
        try:
            mode = os.lstat(files[-1]).st_mode
        except OSError:
            continue
        root = _main_root(folder, files) if stat.S_ISREG(mode) else ""
        return ProjectPlace(cwd, folder, root or folder, tuple(files))
    return ProjectPlace(cwd, cwd, cwd, tuple(files))


def upwards(path: str) -> Iterator[str]:
    """Yield an absolute path and each directory above it."""
    yield path
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _main_root(checkout: str, files: list[str]) -> str:
    """Return the root of a linked worktree's main repository, "" if that does not confirm it.

    The paths of the repository's files that were read are added to ``files``.
    """
    claim = _pointer(os.path.join(checkout, ".git"))
    if not claim.startswith("gitdir:"):
        return ""
    git_dir = os.path.realpath(os.path.join(checkout, claim.removeprefix("gitdir:").strip()))
    files += (os.path.join(git_dir, "commondir"), os.path.join(git_dir, "gitdir"))
    common, back_link = map(_pointer, files[-2:])
    if not common or not back_link:  # a submodule, or a git directory kept elsewhere
        return ""
    common = os.path.realpath(os.path.join(git_dir, common))
    folder, name = os.path.split(os.path.join(git_dir, back_link))
    is_listed = os.path.dirname(git_dir) == os.path.join(common, "worktrees")
    if not is_listed or name != ".git" or os.path.realpath(folder) != checkout:
        return ""
    # A bare repository has no root of its own; its directory is what its worktrees share.
    return os.path.dirname(common) if os.path.basename(common) == ".git" else common


def _pointer(path: str) -> str:
    """Return the first line of a small file, "" if there is no such file."""
    text = os.fsdecode(read_beginning(path, _POINTER_BYTES))
    return "" if "\0" in text else text.split("\n", 1)[0].strip()


def read_beginning(path: str, most: int) -> bytes:
    """Return the beginning of a regular file, nothing if there is none. No link is followed."""
    with suppress(OSError, ValueError):  # ValueError: a NUL in a path that another file named
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return os.read(descriptor, most)
        finally:
            os.close(descriptor)
    return b""
