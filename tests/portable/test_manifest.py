"""The manifest of an archive."""

import pytest

from memd.portable.errors import SourceDamagedError, VersionTooNewError
from memd.portable.manifest import FORMAT, FileRecord, Manifest, ProjectRecord, decode, encode


def test_a_manifest_comes_back() -> None:
    """A manifest that was written is read as it was."""
    file = FileRecord(path="memory/a.md", sha256="0" * 64, bytes=3, mtime_ns=5, type="user")
    project = ProjectRecord(id="a", name="a", files=[file])
    written = Manifest(format=FORMAT, version=1, scope=["notes"], projects=[project])
    assert decode(encode(written)) == written


def test_a_newer_version_is_named() -> None:
    """An archive of a newer format is refused with both versions."""
    with pytest.raises(VersionTooNewError, match="version 2"):
        decode(b'{"format": "memd-export", "version": 2, "projects": "otherwise"}')


@pytest.mark.parametrize(
    "content", [b"", b"[" * 100_000, b'{"format": "x", "version": 1}', b"\xff"]
)
def test_what_is_no_manifest_is_refused(content: bytes) -> None:
    """Bytes that are no manifest are refused as damage."""
    with pytest.raises(SourceDamagedError):
        decode(content)
