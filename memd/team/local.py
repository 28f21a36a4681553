"""List and read the files of a directory below ``team/``, with their hashes. Blocks."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice

from msgspec import Struct

from memd.base.errors import MemdError
from memd.base.names import TEAM
from memd.store.read import MemoryReader

_FILES_PER_READ = 200  # the most files that are read while the directory is open


class LocalFile(Struct, frozen=True):
    """A file below ``team/``: its hash, its bytes and when it was changed (seconds since 1970)."""

    hash: str
    size: int
    at: float


class LocalFiles:
    """The files of one directory below ``team/``."""

    def __init__(self, reading: MemoryReader, directory: str) -> None:
        self._reading = reading
        self._directory = directory

    def files(self) -> dict[str, LocalFile]:
        """Return the files by key, without those that cannot be read."""
        return {
            header.path.removeprefix(TEAM): LocalFile(
                header.hash, header.size, header.mtime_ns / 1e9
            )
            for header in self._reading.headers(self._directory)
            if header.path.startswith(TEAM)
        }

    def read(self, keys: Iterable[str]) -> Iterator[tuple[str, str, bytes]]:
        """Yield the key, hash and content of each of the files that can be read."""
        remaining = iter(keys)
        while part := list(islice(remaining, _FILES_PER_READ)):
            with suppress(MemdError), self._reading.tree(self._directory) as tree:
                for key in part:
                    with suppress(MemdError):
                        file = tree.read(f"{TEAM}{key}")
                        if file is not None:
                            yield key, file.hash, file.content


def hashes(files: Mapping[str, LocalFile], keys: Collection[str] | None = None) -> dict[str, str]:
    """Return the hashes of the files by key; with ``keys`` only those of these keys."""
    return {key: file.hash for key, file in files.items() if keys is None or key in keys}
