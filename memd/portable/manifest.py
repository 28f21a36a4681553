"""The manifest of an archive of memd, which lists its files (docs/export-format.md). Pure."""

import msgspec

from memd.base.errors import Refused
from memd.portable.errors import source_damaged

FORMAT = "memd-export"
VERSION = 1
MANIFEST = "manifest.json"
SUMS = "SHA256SUMS"
_NOT_OURS = "it is no manifest of memd"


class FileRecord(msgspec.Struct, kw_only=True):
    """A file: ``path`` below its project's folder (or the archive's), SHA-256 in hex, bytes.

    ``type`` and ``origin`` are those of a memory, "" if it has none or is no memory.
    """

    path: str
    sha256: str
    bytes: int
    mtime_ns: int = 0
    type: str = ""
    origin: str = ""


class ProjectRecord(msgspec.Struct, kw_only=True):
    """A project; ``remote`` is the SHA-256 of its canonical remote's name, "" if it has none.

    Its files lie below ``projects/<id>/``.
    """

    id: str
    name: str
    remote: str = ""
    files: list[FileRecord] = []  # msgspec copies it


class Manifest(msgspec.Struct, kw_only=True):
    """The contents of an archive: its projects, and the ``files`` that belong to no project.

    ``made`` is the time of its newest file, in ISO 8601; ``memd`` is the version that wrote it.
    ``scope`` are the exported parts besides the private memories, sorted.
    """

    format: str
    version: int
    made: str = ""
    memd: str = ""
    scope: list[str] = []
    projects: list[ProjectRecord] = []
    files: list[FileRecord] = []


class _Format(msgspec.Struct):
    """The members that all versions of the manifest have."""

    format: str = ""
    version: int = 0


def encode(manifest: Manifest) -> bytes:
    """Return a manifest as JSON; equal manifests give equal bytes."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def sum_line(digest: str, name: str) -> bytes:
    """Return the line of a file in ``SHA256SUMS``, as sha256sum writes it."""
    escaped = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    mark = "\\" if escaped != name else ""
    return f"{mark}{digest}  {escaped}\n".encode()


def is_manifest(content: bytes) -> bool:
    """Return whether the content of a file is a manifest of memd, of any version."""
    try:
        return msgspec.json.decode(content, type=_Format).format == FORMAT
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return False


def decode(content: bytes) -> Manifest:
    """Return the manifest in a JSON text; unknown members are ignored.

    Raises Refused and Invalid.
    """
    try:
        # The version first: a newer manifest may have members of other types.
        version = msgspec.json.decode(content, type=_Format).version
        if version > VERSION:
            raise Refused(
                f"the archive has version {version} of the format, "
                f"and this memd reads up to {VERSION}",
                hint="install a newer memd",
                version=version,
                known=VERSION,
            )
        result = msgspec.json.decode(content, type=Manifest)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        why = f"it is no manifest: {error}"
        raise source_damaged(MANIFEST, why) from error
    if result.format != FORMAT or result.version < 1:
        raise source_damaged(MANIFEST, _NOT_OURS)
    return result
