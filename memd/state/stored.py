"""The part of an index that lies on disk: an engine, the words of its memories, and a seal.

Rules of this file
- The folder holds ``engine``, ``words`` and ``seal``. The seal names every file of the last commit
  with its size and checksum; it is written last, so what does not agree with it was never finished
  or was spoilt, and is built anew by whoever asks. Memories are never touched.
- What a reader sees changes only in ``adopt``.
- Everything raises what ``Broken`` lists and nothing else; then nothing of the folder is to be
  trusted any more.
"""

import os
import shutil
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path

import msgspec

from memd.core.errors import MemdError
from memd.state import scoring
from memd.state.engine import Engine, EngineBrokenError, Writer
from memd.state.scoring import Document
from memd.state.search import Fingerprint, Skip
from memd.state.sequences import Sequences, SequencesDamagedError, bounded
from memd.state.words import ANALYSIS

_FORMAT = 1
_ENGINE, _WORDS, _SEAL = "engine", "words", "seal"
_META = "meta.json"  # the one file of the engine that is written anew
_DELETED = ".del"
_BLOCK = 1024 * 1024
_NAME_BYTES = 12  # of a path's hash: two of 100,000 are the same once in 10**19 stores
_DEAD = 10_000  # records that nobody needs; more than these and than living ones: build anew


class _Deletes(msgspec.Struct):
    opstamp: int


class _Segment(msgspec.Struct):
    """A part of the engine, as the library's own list of its files has it."""

    segment_id: str
    deletes: _Deletes | None = None

    def files(self, names: Sequence[str]) -> list[str]:
        """Return those of its files that count; of the deleted ones only the last list does."""
        start = self.segment_id.replace("-", "") + "."
        deleted = "" if self.deletes is None else f"{start}{self.deletes.opstamp}{_DELETED}"
        return [
            name
            for name in names
            if name.startswith(start) and (name == deleted or not name.endswith(_DELETED))
        ]


class _Meta(msgspec.Struct):
    segments: list[_Segment]


class Flaw(StrEnum):
    """Why an index on disk is not used."""

    FILES = "its files are not those that were committed"
    PARTS = "its parts do not agree"
    DEAD = "most of it is of memories that changed since"
    SEAL = "its seal is damaged"
    KIND = "its seal is of another kind"
    VERSION = "it is of another version of memd"
    LIST = "its list of files is damaged"


class SealBrokenError(MemdError):
    """The files of an index are not those that were committed."""

    kind = "engine_broken"
    code = 1090

    def __init__(self, folder: str, flaw: Flaw) -> None:
        super().__init__(f"the search index in {folder} is built anew: {flaw}", flaw=flaw)


Broken = (EngineBrokenError, SequencesDamagedError, SealBrokenError, OSError)


class _Seal(msgspec.Struct):
    """What was committed last: files of the engine by name with size and checksum."""

    form: int
    analysis: int
    words: int
    files: dict[str, tuple[int, int]]


class Stored:
    """An index on disk. All methods block; not for two threads but where it says so."""

    def __init__(self, folder: str, engine: Engine, words: Sequences) -> None:
        self.folder = folder
        self._engine = engine
        self._words = words

    @classmethod
    def create(cls, folder: str) -> "Stored":
        """Return an empty index in place of whatever was there; raises ``Broken``."""
        discard(folder)
        os.makedirs(f"{folder}/{_ENGINE}", mode=0o700)
        engine = Engine(f"{folder}/{_ENGINE}", new=True)
        return cls(folder, engine, Sequences(f"{folder}/{_WORDS}"))

    @classmethod
    def open(cls, folder: str) -> "Stored | None":
        """Return the index that was committed last, if there is one; raises ``Broken``."""
        if not os.path.lexists(folder):
            return None
        if os.path.isdir(folder) and not os.path.lexists(f"{folder}/{_SEAL}"):
            return None  # a first commit that did not come to its end
        seal = _unseal(folder)
        found = _files(folder, {})
        if found != seal.files:
            raise SealBrokenError(folder, Flaw.FILES)
        words = Sequences(f"{folder}/{_WORDS}", seal.words)
        try:
            return cls(folder, Engine(f"{folder}/{_ENGINE}", new=False), words)
        except EngineBrokenError:
            words.close()
            raise

    @property
    def count(self) -> int:
        """How many memories there are."""
        return self._engine.count

    def holders(self, key: int) -> int:
        """Return how many memories hold a word."""
        return self._engine.holders(_hex(key))

    def fingerprint(self, path: str) -> Fingerprint | None:
        """Return a memory's fingerprint as ``known`` does, ``None`` where there is none."""
        at = self._engine.find(_name(path))
        return None if at is None else self._words.read(at)[1]

    def known(self) -> dict[str, Fingerprint]:
        """Return every memory's fingerprint by path, as ``bounded`` gives it."""
        known: dict[str, Fingerprint] = {}
        records = 0
        for found in self._words.scan():
            records += 1
            if found.fingerprint is None:
                known.pop(found.path, None)
            else:
                known[found.path] = found.fingerprint
        self._words.release()
        if len(known) != self.count:
            raise SealBrokenError(self.folder, Flaw.PARTS)
        if records > _DEAD + 2 * len(known):
            raise SealBrokenError(self.folder, Flaw.DEAD)
        return known

    def propose(self, weights: Mapping[str, float], most: int, skip: Skip) -> list[Document]:
        """Return the memories that hold the heaviest words of ``scoring.terms``."""
        wanted = {_hex(scoring.key(word)): weight for word, weight in weights.items()}
        seen = 0
        ask = most
        found: list[Document] = []
        while True:
            numbers = self._engine.search(wanted, ask)
            for at in numbers[seen:]:
                document, _ = self._words.read(at)
                if not skip(document.path):
                    found.append(document)
            if len(found) >= most or len(numbers) < ask:
                break
            seen, ask = len(numbers), 4 * ask
        self._words.release()
        return found[:most]

    def change(self) -> "Changing":
        """Begin to change it; one at a time. Raises ``Broken``."""
        return Changing(self.folder, self._engine.writer(), self._words)

    def adopt(self) -> None:
        """See what a change has sealed; raises ``Broken``."""
        self._engine.reload()
        self._words.reveal()

    def close(self) -> None:
        """End reading."""
        self._words.close()


class Changing:
    """Changes that are seen when they were sealed and the index adopted them."""

    def __init__(self, folder: str, writer: Writer, words: Sequences) -> None:
        self._folder = folder
        self._writer = writer
        self._words = words

    def put(self, path: str, kept: tuple[Document, Fingerprint] | None) -> None:
        """Replace a memory, or remove it; raises ``Broken``."""
        name = _name(path)
        self._writer.remove(name)
        if kept is None:
            self._words.append_gone(path)
        else:
            document, fingerprint = kept
            at = self._words.append(document, fingerprint)
            self._writer.add(name, document.words.hex(" ", scoring.KEY_BYTES), at)

    def seal(self) -> None:
        """Make it durable, in whichever thread; others may read meanwhile. Raises ``Broken``."""
        size = self._words.save()
        try:
            old = _unseal(self._folder).files
        except (SealBrokenError, OSError):
            old = {}
        self._writer.commit()
        seal = _Seal(_FORMAT, ANALYSIS, size, _files(self._folder, old))
        data = msgspec.msgpack.encode(seal)
        data += zlib.crc32(data).to_bytes(4, "little")
        temporary = f"{self._folder}/{_SEAL}.new"
        with open(temporary, "wb", opener=_private) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, f"{self._folder}/{_SEAL}")


def discard(folder: str) -> None:
    """Remove an index from the disk, or whatever else is at its place; raises OSError."""
    with suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(f"{folder}/{_SEAL}")
    if os.path.islink(folder) or os.path.isfile(folder):
        os.unlink(folder)
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


def same(known: Fingerprint | None, fingerprint: Fingerprint) -> bool:
    """Say whether a fingerprint is the one that is known."""
    return known in (fingerprint, bounded(fingerprint))


def _unseal(folder: str) -> _Seal:
    data = Path(f"{folder}/{_SEAL}").read_bytes()
    if zlib.crc32(data[:-4]).to_bytes(4, "little") != data[-4:]:
        raise SealBrokenError(folder, Flaw.SEAL)
    try:
        seal = msgspec.msgpack.decode(data[:-4], type=_Seal)
    except msgspec.MsgspecError:
        raise SealBrokenError(folder, Flaw.KIND) from None
    if (seal.form, seal.analysis) != (_FORMAT, ANALYSIS):
        raise SealBrokenError(folder, Flaw.VERSION)
    return seal


def _files(folder: str, old: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """Return the files of the engine's last commit with size and checksum.

    What a segment's file holds never changes, so ``old`` ones are taken as they are. Other files
    are left over from what was never committed; the library removes them some time.
    """
    place = f"{folder}/{_ENGINE}"
    try:
        meta = msgspec.json.decode(Path(f"{place}/{_META}").read_bytes(), type=_Meta)
    except msgspec.MsgspecError:
        raise SealBrokenError(folder, Flaw.LIST) from None
    names = {name for segment in meta.segments for name in segment.files(os.listdir(place))}
    return {name: old.get(name) or _sum(f"{place}/{name}") for name in sorted(names)} | {
        _META: _sum(f"{place}/{_META}")
    }


def _sum(path: str) -> tuple[int, int]:
    size, total = 0, 0
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            size += len(block)
            total = zlib.crc32(block, total)
    return size, total


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _name(path: str) -> str:
    data = path.encode(errors="surrogateescape")
    return blake2b(data, digest_size=_NAME_BYTES).hexdigest()


def _hex(key: int) -> str:
    return scoring.pack_key(key).hex()
