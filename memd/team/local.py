"""The files below ``team/`` as they stand here, with their hashes. Blocks."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice

from msgspec import Struct

from memd.core.errors import MemdError
from memd.core.names import TEAM
from memd.store.service import DirectoryReader

_AT_ONCE = 200
_YOUNG_SECONDS = 2.0  # a file saved so lately may be saved again without looking different


class LocalFile(Struct, frozen=True):
    """A file below ``team/``: its hash, its size, when it was changed (seconds since 1970)."""

    hash: str
    size: int
    at: float


class LocalFiles:
    """Knows the hashes of a directory's team files; only what looks different is read again."""

    def __init__(self, reading: DirectoryReader, directory: str) -> None:
        self._reading = reading
        self._directory = directory
        self._known: dict[str, tuple[tuple[int, int, int], str]] = {}

    def files(self, now: float) -> dict[str, LocalFile]:
        """Return the files by key; what cannot be read is not among them."""
        headers = {
            header.path.removeprefix(TEAM): header
            for header in self._reading.listed(self._directory)
            if header.path.startswith(TEAM)
        }
        known = {key: self._known.get(key) for key in headers}
        unknown = [k for k, row in known.items() if not row or row[0] != headers[k].fingerprint]
        fresh = {key: file_hash for key, file_hash, _ in self.read(unknown)}
        result = {}
        self._known = {}
        for key, header in headers.items():
            row = known[key]
            file_hash = fresh.get(key) if key in fresh or row is None else row[1]
            if file_hash is None:
                continue
            at = header.mtime_ns / 1e9
            result[key] = LocalFile(file_hash, header.size, at)
            if not now - _YOUNG_SECONDS < at <= now:
                self._known[key] = (header.fingerprint, file_hash)
        return result

    def read(self, keys: Iterable[str]) -> Iterator[tuple[str, str, bytes]]:
        """Yield key, hash and text of each of these files that can be read."""
        left = iter(keys)
        while part := list(islice(left, _AT_ONCE)):
            with suppress(MemdError), self._reading.tree(self._directory) as tree:
                for key in part:
                    with suppress(MemdError):
                        if (file := tree.read(f"{TEAM}{key}")) is not None:
                            yield key, file.hash, file.content


def hashes(files: Mapping[str, LocalFile], keys: Collection[str] | None = None) -> dict[str, str]:
    """Return the hashes of some files, of all by default, by key."""
    return {key: file.hash for key, file in files.items() if keys is None or key in keys}
