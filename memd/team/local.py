"""List and read the files of a directory below ``team/``, with their hashes. Blocks."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice

from msgspec import Struct

from memd.base.errors import MemdError
from memd.base.names import TEAM
from memd.store.service import DirectoryReader

_FILES_PER_READ = 200  # the most files that are read while the directory is open
_RECENT_SECONDS = 2.0  # a file saved this recently may change again without a new fingerprint


class LocalFile(Struct, frozen=True):
    """A file below ``team/``: its hash, its bytes and when it was changed (seconds since 1970)."""

    hash: str
    size: int
    at: float


class LocalFiles:
    """Computes and caches the hashes of a directory's team files."""

    def __init__(self, reading: DirectoryReader, directory: str) -> None:
        self._reading = reading
        self._directory = directory
        # The fingerprint and the hash of each file, by key.
        self._cache: dict[str, tuple[tuple[int, int, int], str]] = {}

    def files(self, now: float) -> dict[str, LocalFile]:
        """Return the files by key, without those that cannot be read.

        Only files with a new fingerprint are read. ``now`` is seconds since 1970.
        """
        headers = {
            header.path.removeprefix(TEAM): header
            for header in self._reading.listed(self._directory)
            if header.path.startswith(TEAM)
        }
        cache, no_entry = self._cache, (None, "")
        changed = [
            key
            for key, header in headers.items()
            if cache.get(key, no_entry)[0] != header.fingerprint
        ]
        read_hashes = {key: file_hash for key, file_hash, _ in self.read(changed)}
        result = {}
        self._cache = {}
        for key, header in headers.items():
            # A changed file that cannot be read keeps its last hash.
            file_hash = read_hashes.get(key) or cache.get(key, no_entry)[1]
            if not file_hash:
                continue
            changed_at = header.mtime_ns / 1e9
            result[key] = LocalFile(file_hash, header.size, changed_at)
            is_recent = now - _RECENT_SECONDS < changed_at <= now
            if not is_recent:
                self._cache[key] = (header.fingerprint, file_hash)
        return result

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
