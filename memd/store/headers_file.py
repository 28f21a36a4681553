"""Headers stored on the disk, so that the next process need not read every memory again.

There is one cache file per memory directory. A damaged one counts as missing, and a header is used
only if the status of its memory is still the same.
"""

import hashlib
import os
import shutil
import stat
import zlib
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from memd.base.values import Header

_FORMAT = b"memd headers 4\n"
_CHECKSUM_BYTES = 4
_NUMBERS = range(-(2**63), 2**64)  # what the format can hold
_DECODER = msgspec.msgpack.Decoder(list[Header])


class HeadersFiles:
    """The cache files of all directories, below one folder. Blocks; only ``clear`` raises."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def load(self, directory: str) -> dict[str, Header]:
        """Return a directory's stored headers by path; empty if missing or damaged."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            with open(os.open(self._path(directory), flags), "rb") as file:
                status = os.fstat(file.fileno())
                is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
                body = file.read() if is_ours else b""
            title = _title(directory)
            data = body[len(title) + _CHECKSUM_BYTES :]
            # Another title is of an older format, or of a directory with the same file name.
            is_valid = body.startswith(title + _checksum(data))
            if is_valid:
                return {header.path: header for header in _DECODER.decode(data)}
        return {}

    def save(self, directory: str, headers: Sequence[Header]) -> bool:
        """Write the headers of a directory to its cache file; say whether that worked."""
        path = self._path(directory)
        temporary = f"{path}.{os.getpid()}.tmp"
        storable = [header for header in headers if header.mtime_ns in _NUMBERS]
        data = msgspec.msgpack.encode(storable)
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(temporary, flags, 0o600), "wb") as file:
                file.writelines((_title(directory), _checksum(data), data))
            os.replace(temporary, path)
        except OSError:
            with suppress(OSError):
                os.unlink(temporary)
            return False
        return True

    def clear(self) -> None:
        """Remove the headers of all directories. Raises OSError."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self._folder)

    def _path(self, directory: str) -> str:
        """Return the path of a directory's cache file."""
        name = hashlib.sha256(os.fsencode(directory)).hexdigest()[:32]
        return f"{self._folder}/{name}"


def _title(directory: str) -> bytes:
    """Return the first bytes of a directory's cache file: the format and the directory."""
    return _FORMAT + os.fsencode(directory) + b"\0"


def _checksum(data: bytes) -> bytes:
    """Return the bytes that show whether the headers were stored whole."""
    return zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "little")
