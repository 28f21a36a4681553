"""The manifest of an archive of memd: what it holds, as docs/export-format.md says. Pure."""

import msgspec

from memd.portable.errors import SourceDamagedError, VersionTooNewError

FORMAT = "memd-export"
VERSION = 1
MANIFEST = "manifest.json"
SUMS = "SHA256SUMS"
_NOT_OURS = "it is no manifest of memd"


class FileRecord(msgspec.Struct, kw_only=True):
    """One file: ``path`` below its project's folder (or the archive's), its SHA-256 in hex, bytes.

    ``type`` and ``origin`` are those of a memory, "" where it is none or says nothing.
    """

    path: str
    sha256: str
    bytes: int
    mtime_ns: int = 0
    type: str = ""
    origin: str = ""


class ProjectRecord(msgspec.Struct, kw_only=True):
    """One project; ``remote`` is the SHA-256 of its canonical remote's name, "" where it has none.

    Its files lie below ``projects/<id>/``, except its history.
    """

    id: str
    name: str
    remote: str = ""
    files: list[FileRecord] = []  # msgspec copies it


class Manifest(msgspec.Struct, kw_only=True):
    """All of an archive. ``made`` is the time of its newest file, in ISO 8601; ``memd`` a version.

    ``scope`` are the parts beside the private memories, sorted. ``files`` are those of no project.
    """

    format: str
    version: int
    made: str = ""
    memd: str = ""
    scope: list[str] = []
    projects: list[ProjectRecord] = []
    files: list[FileRecord] = []


class _Format(msgspec.Struct):
    format: str = ""
    version: int = 0


def encode(manifest: Manifest) -> bytes:
    """Return a manifest as JSON, the same bytes for the same content."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def sum_line(digest: str, name: str) -> bytes:
    """Return the line of a file in ``SHA256SUMS``, as sha256sum writes it."""
    escaped = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    mark = "\\" if escaped != name else ""
    return f"{mark}{digest}  {escaped}\n".encode()


def is_manifest(content: bytes) -> bool:
    """Say whether a file is a manifest of memd, of any version."""
    try:
        return msgspec.json.decode(content, type=_Format).format == FORMAT
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return False


def decode(content: bytes) -> Manifest:
    """Return a manifest; unknown members are ignored.

    Raises VersionTooNewError and SourceDamagedError.
    """
    try:
        version = msgspec.json.decode(content, type=_Format).version
        if version > VERSION:
            raise VersionTooNewError(version, VERSION)
        result = msgspec.json.decode(content, type=Manifest)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        why = f"it is no manifest: {error}"
        raise SourceDamagedError(MANIFEST, why) from error
    if result.format != FORMAT or result.version < 1:
        raise SourceDamagedError(MANIFEST, _NOT_OURS)
    return result
