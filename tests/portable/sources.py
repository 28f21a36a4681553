"""Sources of an import for tests: files in the memory, and archives of any shape."""

import io
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path


class Files:
    """An ImportSource over bytes by name, all changed at one time."""

    def __init__(self, files: Mapping[str, bytes | str], mtime_ns: int = 0) -> None:
        self._files = {
            name: content.encode() if isinstance(content, str) else content
            for name, content in files.items()
        }
        self._mtime_ns = mtime_ns

    def names(self) -> tuple[str, ...]:
        """All files, sorted."""
        return tuple(sorted(self._files))

    def size(self, name: str) -> int:
        """Bytes of one file."""
        return len(self._files[name])

    def mtime_ns(self, _: str) -> int:
        """Return the one time."""
        return self._mtime_ns

    def read(self, name: str) -> bytes:
        """One file whole."""
        return self._files[name]


def tar_of(
    members: Sequence[tarfile.TarInfo | tuple[str, bytes]],
    *,
    packed: bool = True,
    form: int = tarfile.PAX_FORMAT,
) -> bytes:
    """Return a tar archive of these members, in gzip unless it is not to be packed."""
    result = io.BytesIO()
    with tarfile.open(fileobj=result, mode="w:gz" if packed else "w", format=form) as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member, io.BytesIO(bytes(member.size)))
            else:
                info = tarfile.TarInfo(member[0])
                info.size, info.mtime = len(member[1]), 1_700_000_000
                archive.addfile(info, io.BytesIO(member[1]))
    return result.getvalue()


def zip_of(members: Sequence[zipfile.ZipInfo | tuple[str, bytes]]) -> bytes:
    """Return a zip archive of these members."""
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in members:
            name, content = (member, b"") if isinstance(member, zipfile.ZipInfo) else member
            archive.writestr(name, content)
    return result.getvalue()


def written(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write files below a folder and return it."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


SAMPLES = Path(__file__).parent / "samples"
SAMPLED_NS = 1_772_500_000_000_000_000


def sample(folder: str) -> Files:
    """Return a sample in the shape of another tool, all of it changed at one time."""
    root = SAMPLES / folder
    files = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    return Files(files, SAMPLED_NS)
