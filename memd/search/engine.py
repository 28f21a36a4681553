"""Store a search index on disk. This is the only file that uses tantivy.

Rules of this file
- All errors of the library, panics of its Rust code included, become EngineBrokenError. The index
  is only a copy of the memories, so nothing is lost. Only if another program truncates an open
  file, the kernel ends the process with SIGBUS.
- The folder has ``engine`` and ``seal``. The seal lists the files of the last commit with their
  sizes and checksums and is written last. An index whose files do not match its seal is incomplete
  or damaged, and is built again. Memories are never changed.
- The engine finds candidates; ``ranking`` decides their order.
- One thread may read while another one writes. A reader sees the state of the last ``reload``.
- An open index has one thread of the library's own, which wakes twice a second (0.03 % of a core).
"""

import ctypes
import math
import os
import shutil
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from heapq import nlargest
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from memd.base.errors import MemdError
from memd.search.ranking import SearchDocument
from memd.text.words import ANALYSIS

TERMS = 32  # heaviest words of a prompt that are searched for; the others count in the ranking

_FORMAT = 2  # of the seal and the index; another one is built again
_ENGINE, _SEAL = "engine", "seal"
_HEAP_BYTES = 15_000_000  # the least that the library accepts
_MOST_CACHED_WORDS = 2_000  # whose number of memories is cached
# Names of fields.
_WORDS, _PATH, _MTIME, _HEADING, _MARK = "words", "path", "mtime", "heading", "mark"
_READ_BYTES = 1024 * 1024
_LEAST_INTEGER, _GREATEST_INTEGER = -(2**63), 2**63 - 1  # bounds of an integer field of the library
_NOT_COMMITTED = "its files are not those that were committed"


class EngineBrokenError(MemdError):
    """The engine failed: its files are damaged, or the disk does not do what it should."""

    kind = "engine_broken"
    code = 1090

    def __init__(self, cause: object) -> None:
        super().__init__(f"the search index cannot be used: {cause}", cause=str(cause))


_LIBRARY_ERRORS = (ValueError, OSError, RuntimeError, OverflowError, TypeError)


class _Guard:
    """Turns all errors of the library and the disk into EngineBrokenError.

    A panic derives from BaseException, and its class cannot be imported.
    """

    def __enter__(self) -> None:
        """Begin the guarded block."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Raise EngineBrokenError in place of an error of the library or the disk."""
        if kind is None:
            return
        is_panic = kind.__module__ == "pyo3_runtime"
        if is_panic or issubclass(kind, _LIBRARY_ERRORS):
            raise EngineBrokenError(error) from error


_guard = _Guard()


class _Seal(msgspec.Struct):
    """The record of the last commit."""

    form: int  # _FORMAT
    analysis: int  # the version of how texts are split into words
    files: dict[str, tuple[int, int]]  # by name, the size and the checksum


class Engine:
    """One index on disk, in a folder of its own. All methods block and raise EngineBrokenError."""

    def __init__(self, folder: str, *, new: bool = False) -> None:
        self._folder = folder
        self._holders: dict[str, int] = {}  # by word, how many memories have it
        with _guard:
            if new:
                discard(folder)
                os.makedirs(folder, mode=0o700)
                os.mkdir(f"{folder}/{_ENGINE}", mode=0o700)
                index = _library().Index(_schema(), path=f"{folder}/{_ENGINE}", reuse=False)
            else:
                _check_seal(folder)
                index = _library().Index.open(f"{folder}/{_ENGINE}")
            index.config_reader("manual")  # a new commit is read only after ``reload``
            self._index = index
            self._schema = index.schema
            self._searcher = index.searcher()
        self.count: int = self._searcher.num_docs

    def reload(self) -> None:
        """Read the last commit from now on."""
        with _guard:
            self._index.reload()
            self._searcher = self._index.searcher()
        self.count = self._searcher.num_docs
        self._holders = {}

    def holders(self, word: str) -> int:
        """Return how many memories have a word; replaced ones may be counted too for a while."""
        result = self._holders.get(word)
        if result is None:
            if len(self._holders) >= _MOST_CACHED_WORDS:
                self._holders.clear()
            with _guard:
                result = self._holders[word] = int(self._searcher.doc_freq(_WORDS, word))
        return result

    def propose(self, weights: Mapping[str, float], limit: int) -> list[SearchDocument]:
        """Return the ``limit`` best memories for some words in the library's order, best first.

        ``weights`` are factors of the words' rarities.
        """
        library = _library()
        rarity: dict[str, float] = {}
        for word, weight in weights.items():
            holders = self.holders(word)
            if holders:
                rarity[word] = weight * math.log(1 + self.count / holders)
        terms = []
        with _guard:
            for word in nlargest(TERMS, rarity, key=rarity.__getitem__):
                term = self._word_query(_WORDS, word)
                boosted = library.Query.boost_query(term, weights[word])
                terms.append((library.Occur.Should, boosted))
            query = library.Query.boolean_query(terms)
            hits = self._searcher.search(query, limit, count=False).hits
            return [self._document(address) for _, address in hits]

    def versions(self) -> dict[int, Any]:
        """Return the library's address of each memory by the mark of its version."""
        if not self.count:
            return {}
        with _guard:
            hits = self._searcher.search(_library().Query.all_query(), self.count, count=False).hits
            addresses = [address for _, address in hits]
            versions: list[int] = self._searcher.fast_field_values(_MARK, addresses)
        return dict(zip(versions, addresses, strict=True))

    def path(self, address: Any) -> str:
        """Return the path of the memory at an address."""
        with _guard:
            return _from_name(self._searcher.doc(address).get_first(_PATH))

    def write(self, documents: Mapping[str, tuple[SearchDocument, int] | None]) -> None:
        """Replace memories by path, with their versions' marks, and remove those that are ``None``.

        The commit is durable on return and visible after ``reload``. Other threads may read.
        """
        with _guard:
            writer = self._index.writer(_HEAP_BYTES, 1)
            for path, item in documents.items():
                # The library cannot replace a document, only delete and add.
                writer.delete_documents_by_query(self._word_query(_PATH, _to_name(path)))
                if item is not None:
                    writer.add_document(_library_document(*item))
            writer.commit()
            writer.wait_merging_threads()
            _write_seal(self._folder)
        _release_memory()

    def _document(self, address: Any) -> SearchDocument:
        """Return the document at an address for the ranker."""
        result = self._searcher.doc(address)
        return SearchDocument(
            _from_name(result.get_first(_PATH)),
            result.get_first(_MTIME),
            result.get_first(_WORDS),
            result.get_first(_HEADING),
        )

    def _word_query(self, field: str, word: str) -> Any:
        """Return the library's query for a word in a field."""
        return _library().Query.term_query(self._schema, field, word, index_option="freq")


def discard(folder: str) -> None:
    """Remove an index, or any other file at its path. Raises OSError."""
    if os.path.isdir(folder) and not os.path.islink(folder):
        with suppress(OSError):
            os.unlink(f"{folder}/{_SEAL}")  # first, so that a partly removed index is not used
        shutil.rmtree(folder)
    elif os.path.lexists(folder):
        os.unlink(folder)


def exists(folder: str) -> bool:
    """Return whether the folder has an index that was ever committed."""
    return os.path.lexists(f"{folder}/{_SEAL}")


def _check_seal(folder: str) -> None:
    """Raise EngineBrokenError unless the files of the last commit are intact.

    Other files of an unfinished commit may exist; the library removes them.
    """
    data = Path(f"{folder}/{_SEAL}").read_bytes()
    seal = msgspec.msgpack.decode(data[4:], type=_Seal)
    is_intact = data[:4] == zlib.crc32(data[4:]).to_bytes(4, "little")  # the seal's own checksum
    if not is_intact or (seal.form, seal.analysis) != (_FORMAT, ANALYSIS):
        raise EngineBrokenError(_NOT_COMMITTED)
    for name, size_and_checksum in seal.files.items():
        if _size_and_checksum(f"{folder}/{_ENGINE}/{name}") != size_and_checksum:
            raise EngineBrokenError(_NOT_COMMITTED)


def _write_seal(folder: str) -> None:
    """Write the seal of the present files durably. The library never changes a written file."""
    all_names = os.listdir(f"{folder}/{_ENGINE}")
    names = sorted(name for name in all_names if not name.startswith("."))
    files = {name: _size_and_checksum(f"{folder}/{_ENGINE}/{name}") for name in names}
    data = msgspec.msgpack.encode(_Seal(_FORMAT, ANALYSIS, files))
    with open(f"{folder}/{_SEAL}.new", "wb", opener=_private_opener) as file:
        file.write(zlib.crc32(data).to_bytes(4, "little") + data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{folder}/{_SEAL}.new", f"{folder}/{_SEAL}")


def _size_and_checksum(path: str) -> tuple[int, int]:
    """Return the size in bytes and the CRC-32 of a file."""
    size, checksum = 0, 0
    with open(path, "rb") as file:
        while block := file.read(_READ_BYTES):
            size += len(block)
            checksum = zlib.crc32(block, checksum)
    return size, checksum


def _private_opener(path: str, flags: int) -> int:
    """Open a file that only its owner may read; an opener for ``open``."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _to_name(path: str) -> str:
    """Return a path as text that is valid UTF-8, which the library requires."""
    return path if path.isascii() else os.fsencode(path).decode("latin-1")


def _from_name(name: str) -> str:
    """Return the path of a text that ``_to_name`` returned."""
    return name if name.isascii() else os.fsdecode(name.encode("latin-1"))


def _library_document(document: SearchDocument, mark: int) -> Any:
    """Return a memory as a document of the library, with the mark of its version."""
    result_document = _library().Document()
    result_document.add_text(_PATH, _to_name(document.path))
    result_document.add_text(_WORDS, document.words)
    result_document.add_integer(
        _MTIME, min(max(document.mtime_ns, _LEAST_INTEGER), _GREATEST_INTEGER)
    )
    result_document.add_unsigned(_HEADING, document.heading)
    result_document.add_unsigned(_MARK, mark)
    return result_document


@cache
def _malloc_trim() -> Callable[[int], object] | None:
    """Return the C library's ``malloc_trim``, ``None`` if it has none."""
    trim: Callable[[int], object] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim


def _release_memory() -> None:
    """Return the freed memory of the writer's threads, some 90 MB, to the system."""
    trim = _malloc_trim()
    if trim is not None:  # pragma: no branch - only the GNU C library has it
        trim(0)


@cache
def _library() -> Any:
    """Return the library, imported at first use."""
    import tantivy  # noqa: PLC0415 - lazy start-up: a daemon without prompts does not need it

    return tantivy


@cache
def _schema() -> Any:
    """Return the fields of a document in the library's index."""
    builder = _library().SchemaBuilder()
    builder.add_text_field(_WORDS, stored=True, tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field(_PATH, stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_integer_field(_MTIME, stored=True)
    builder.add_unsigned_field(_HEADING, stored=True)
    builder.add_unsigned_field(_MARK, fast=True)
    return builder.build()
