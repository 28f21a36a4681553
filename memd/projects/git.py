"""The root that all worktrees of a git repository share, found by reading files only.

Rules of this file
- A checkout may claim anything in its ``.git`` file. It counts as a linked worktree only if the
  main repository confirms it: its git directory lies in ``<common>/worktrees/`` and points to this
  very ``.git`` file. Otherwise a hostile checkout could read another project's memories.
- A ``.git`` that is itself a link is never followed: the repository there is another one.
- An unproven claim is no error. The checkout is then its own project.
"""

import os
import stat

_POINTER_BYTES = 8 * 1024  # two longest paths; git writes one


def find_root(directory: str) -> str:
    """Return the project's root for a real, existing directory, from its nearest ``.git``."""
    here, status = _nearest(directory)
    is_file = status is not None and stat.S_ISREG(status.st_mode)
    return (_main_root(here) if is_file else "") or here


def find_checkout(directory: str) -> str:
    """Return the folder with the nearest ``.git``, or the directory itself if there is none.

    A linked worktree is its own checkout. ``directory`` must be a real, existing path.
    """
    return _nearest(directory)[0]


def git_paths(directory: str) -> tuple[str, ...]:
    """Return the paths at which ``find_checkout`` looks for a ``.git``."""
    checkout, paths = find_checkout(directory), [f"{directory}/.git"]
    while directory not in (checkout, "/"):
        directory = os.path.dirname(directory)
        paths.append(f"{directory}/.git")
    return tuple(paths)


def _nearest(directory: str) -> tuple[str, os.stat_result | None]:
    """Return the folder with the nearest ``.git``, and the status of that ``.git``.

    Without one, the result is the directory itself and ``None``.
    """
    here = directory
    while True:
        try:
            return here, os.lstat(os.path.join(here, ".git"))
        except OSError:
            above = os.path.dirname(here)
            if above == here:
                return directory, None
            here = above


def _main_root(checkout: str) -> str:
    """Return the root of a linked worktree's main repository, "" if that does not confirm it."""
    claim = _pointer(os.path.join(checkout, ".git"))
    if not claim.startswith("gitdir:"):
        return ""
    git_dir = os.path.realpath(os.path.join(checkout, claim.removeprefix("gitdir:").strip()))
    common = _pointer(os.path.join(git_dir, "commondir"))
    back_link = _pointer(os.path.join(git_dir, "gitdir"))
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
    """Return the first line of a small regular file, "" if there is no such file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            is_regular = stat.S_ISREG(os.fstat(fd).st_mode)
            text = os.fsdecode(os.read(fd, _POINTER_BYTES)) if is_regular else ""
        finally:
            os.close(fd)
    except (OSError, ValueError):  # ValueError: a NUL in a path that another file named
        return ""
    return "" if "\0" in text else text.split("\n", 1)[0].strip()
