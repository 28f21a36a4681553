"""Which file systems tell of every change below them: those that only this machine writes to."""

from collections.abc import Iterable

_MOUNTS = "/proc/self/mountinfo"
# What another machine, or a program outside this kernel, changes is told to nobody here.
_SILENT = frozenset(
    {"9p", "afs", "ceph", "cifs", "coda", "fuse", "gfs2", "glusterfs", "lustre", "ncpfs", "nfs"}
    | {"nfs4", "ocfs2", "orangefs", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs"}
)


def tells(directory: str, mounts: str = _MOUNTS) -> bool:
    """Say whether the file system of a directory (its real path) tells of every change. Blocks."""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            kind = kind_of(directory, file)
    except OSError:
        return False
    return bool(kind) and kind not in _SILENT and not kind.startswith("fuse.")


def kind_of(directory: str, mounts: Iterable[str]) -> str:
    """Return the kind of a directory's file system by the lines of mountinfo, "" if unknown."""
    best, kind = "", ""
    for line in mounts:
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) > _POINT and after:
            point = _unescaped(fields[_POINT])
            below = directory == point or directory.startswith(point.rstrip("/") + "/")
            if below and len(point) >= len(best):  # a later mount hides an earlier one
                best, kind = point, after.split(" ", 1)[0]
    return kind


_POINT = 4  # the field of a line that has the mount point


def _unescaped(text: str) -> str:
    for code, character in (("040", " "), ("011", "\t"), ("012", "\n"), ("134", "\\")):
        text = text.replace(f"\\{code}", character)
    return text
