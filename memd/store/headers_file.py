"""Headers that outlive the process, so that a warm start reads no memory anew.

One file a directory in the state directory: a line that says what it is, then blocks of headers,
each with its length and checksum. It is a cache: whatever is not as it should be is as if it were
not there, and no header of it is believed without the status of its file.
"""

import hashlib
import os
import shutil
import stat
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice

import msgspec

from memd.core.values import Header

_FORMAT = b"memd headers 2\n"
_BLOCK = 2000  # headers; one is made in a few milliseconds, so that nobody waits for long
_LENGTHS = struct.Struct("<II")
_NUMBERS = range(-(2**63), 2**64)  # what the format can hold
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[Header])


class HeadersFiles:
    """The files of all directories, below one folder. Blocks; never raises but in ``clear``."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def load(self, directory: str) -> dict[str, Header]:
        """Return the headers of a directory (its real path) by path, as far as they are whole."""
        headers: dict[str, Header] = {}
        with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            for block in _blocks(self._path(directory), _title(directory)):
                headers.update((header.path, header) for header in _DECODER.decode(block))
        return headers

    def save(self, directory: str, headers: Iterable[Header]) -> bool:
        """Write down the headers of a directory; say whether that worked."""
        path = self._path(directory)
        temporary = f"{path}.{os.getpid()}.tmp"
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(temporary, flags, 0o600), "wb") as file:
                file.write(_title(directory))
                storable = (header for header in headers if header.mtime_ns in _NUMBERS)
                while block := list(islice(storable, _BLOCK)):
                    data = _ENCODER.encode(block)
                    file.write(_LENGTHS.pack(len(data), zlib.crc32(data)))
                    file.write(data)
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
        key = hashlib.sha256(os.fsencode(directory)).hexdigest()[:32]
        return f"{self._folder}/{key}"


def _title(directory: str) -> bytes:
    return _FORMAT + os.fsencode(directory) + b"\0"


def _blocks(path: str, title: bytes) -> Iterator[bytes]:
    """Yield the blocks of a file up to the first that is not whole. Raises OSError."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return
        if file.read(len(title)) != title:
            return
        while len(lengths := file.read(_LENGTHS.size)) == _LENGTHS.size:
            length, checksum = _LENGTHS.unpack(lengths)
            data = file.read(min(length, status.st_size))
            if len(data) != length or zlib.crc32(data) != checksum:
                return
            yield data


def storable(headers: Mapping[str, Header], young: Iterable[str]) -> list[Header]:
    """Return the headers whose status vouches for them, of a catalogue."""
    left_out = set(young)
    return [header for path, header in headers.items() if path not in left_out]
