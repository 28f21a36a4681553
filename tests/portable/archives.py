"""Exports of memd made by hand, as docs/export-format.md says, to be damaged at will."""

from collections.abc import Mapping

from memd.base.text import sha256
from memd.portable.manifest import (
    FORMAT,
    MANIFEST,
    SUMS,
    VERSION,
    FileRecord,
    Manifest,
    ProjectRecord,
    encode,
    sum_line,
)

MTIME_NS = 1_700_000_000_123_456_789


def records(files: Mapping[str, bytes], origin: str = "") -> list[FileRecord]:
    """Return what a manifest says of files."""
    return [
        FileRecord(
            path=path,
            sha256=sha256(content),
            bytes=len(content),
            mtime_ns=MTIME_NS,
            origin=origin,
        )
        for path, content in sorted(files.items(), key=lambda item: item[0].encode())
    ]


def export_of(
    projects: Mapping[str, Mapping[str, bytes]],
    files: Mapping[str, bytes] | None = None,
    *,
    version: int = VERSION,
    origin: str = "",
    remotes: Mapping[str, str] | None = None,
) -> dict[str, bytes]:
    """Return the files of an archive: those of each project below its folder, and others.

    ``remotes`` are the repositories of projects.
    """
    named = {key: sha256(remote.encode()) for key, remote in (remotes or {}).items()}
    manifest = Manifest(
        format=FORMAT,
        version=version,
        projects=[
            ProjectRecord(
                id=key, name=key, remote=named.get(key, ""), files=records(inside, origin)
            )
            for key, inside in projects.items()
        ],
        files=records(files or {}),
    )
    every = {
        f"projects/{key}/{path}": c
        for key, inside in projects.items()
        for path, c in inside.items()
    }
    return sealed(encode(manifest), every | dict(files or {}))


def sealed(manifest: bytes, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return an archive of a manifest and files, with the sums of both."""
    lines = [sum_line(sha256(manifest), MANIFEST)]
    lines += [sum_line(sha256(files[name]), name) for name in sorted(files, key=str.encode)]
    return {MANIFEST: manifest, SUMS: b"".join(lines), **files}
