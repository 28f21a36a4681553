"""An index on disk: the door to tantivy.

Rules of this file
- Whatever goes wrong inside the library, a panic of its Rust code among it, comes out as
  EngineBrokenError: what it keeps is a view of files that are still there, so nothing is lost. Only
  a file that another program cuts short while it is open ends the process: the kernel's SIGBUS.
- The folder holds ``engine`` and ``seal``. The seal names the files of the last commit with their
  sizes and checksums and is written last. An index whose files do not agree with its seal was
  never finished or was damaged, and is built anew. Memories are never touched.
- The engine proposes; ``ranking`` decides the order.
- Reading and writing may happen in two threads at once; reading sees what was committed when
  ``reload`` was called last.
- An open index has one thread of the library's own, which wakes twice a second for nothing (0.03 %
  of a core).
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

from memd.core.errors import MemdError
from memd.search.ranking import SearchDocument
from memd.text.words import ANALYSIS

TERMS = 32  # of a prompt's words the heaviest are looked for; the others still count in the order

_FORMAT = 2
_ENGINE, _SEAL = "engine", "seal"
_HEAP_BYTES = 15_000_000  # the least that the library takes
_HOLDERS = 2_000  # words whose number of memories is kept: prompts ask for the same ones
_WORDS, _PATH, _MTIME, _HEADING, _MARK = "words", "path", "mtime", "heading", "mark"
_BLOCK = 1024 * 1024
_EARLIEST, _LATEST = -(2**63), 2**63 - 1  # of what the library stores as a time
_FLAW = "its files are not those that were committed"


class EngineBrokenError(MemdError):
    """The engine failed: its files are damaged, or the disk does not do what it should."""

    kind = "engine_broken"
    code = 1090

    def __init__(self, cause: object) -> None:
        super().__init__(f"the search index cannot be used: {cause}", cause=str(cause))


class _Guard:
    """Turns whatever the library and the disk raise into EngineBrokenError.

    A panic is an exception that derives from BaseException and cannot be imported.
    """

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and (
            issubclass(kind, ValueError | OSError | RuntimeError | OverflowError | TypeError)
            or kind.__module__ == "pyo3_runtime"
        ):
            raise EngineBrokenError(error) from error


_guard = _Guard()


class _Seal(msgspec.Struct):
    """What was committed last: files by name with size and checksum."""

    form: int
    analysis: int
    files: dict[str, tuple[int, int]]


class Engine:
    """One index on disk, in a folder of its own. All methods block and raise EngineBrokenError."""

    def __init__(self, folder: str, *, new: bool = False) -> None:
        self._folder = folder
        self._holders: dict[str, int] = {}
        with _guard:
            if new:
                discard(folder)
                os.makedirs(folder, mode=0o700)
                os.mkdir(f"{folder}/{_ENGINE}", mode=0o700)
                index = _library().Index(_schema(), path=f"{folder}/{_ENGINE}", reuse=False)
            else:
                _check(folder)
                index = _library().Index.open(f"{folder}/{_ENGINE}")
            index.config_reader("manual")
            self._index = index
            self._schema = index.schema
            self._searcher = index.searcher()
        self.count: int = self._searcher.num_docs

    def reload(self) -> None:
        """See what was committed."""
        with _guard:
            self._index.reload()
            self._searcher = self._index.searcher()
        self.count = self._searcher.num_docs
        self._holders = {}

    def holders(self, word: str) -> int:
        """Return how many memories hold a word, some that were replaced lately among them."""
        result = self._holders.get(word)
        if result is None:
            if len(self._holders) >= _HOLDERS:
                self._holders.clear()
            with _guard:
                result = self._holders[word] = int(self._searcher.doc_freq(_WORDS, word))
        return result

    def propose(self, weights: Mapping[str, float], limit: int) -> list[SearchDocument]:
        """Return the memories that fit best by the library's own order, the best first.

        ``weights`` says what each word counts beside its rarity.
        """
        library = _library()
        rarity = {
            word: weight * math.log(1 + self.count / holders)
            for word, weight in weights.items()
            if (holders := self.holders(word))
        }
        with _guard:
            terms = [
                (library.Occur.Should, library.Query.boost_query(term, weights[word]))
                for word in nlargest(TERMS, rarity, key=rarity.__getitem__)
                for term in (self._term(_WORDS, word),)
            ]
            query = library.Query.boolean_query(terms)
            hits = self._searcher.search(query, limit, count=False).hits
            return [self._document(address) for _, address in hits]

    def versions(self) -> dict[int, Any]:
        """Return the mark of every memory, and under what ``path`` knows it."""
        if not self.count:
            return {}
        with _guard:
            hits = self._searcher.search(_library().Query.all_query(), self.count, count=False).hits
            addresses = [address for _, address in hits]
            versions: list[int] = self._searcher.fast_field_values(_MARK, addresses)
        return dict(zip(versions, addresses, strict=True))

    def path(self, address: Any) -> str:
        """Return the path of a memory by what ``versions`` gave for it."""
        with _guard:
            return _from_name(self._searcher.doc(address).get_first(_PATH))

    def write(self, documents: Mapping[str, tuple[SearchDocument, int] | None]) -> None:
        """Replace memories by path, with their versions, and remove those that are ``None``.

        Durable when it returns; seen after ``reload``. May run beside readers in other threads.
        """
        with _guard:
            writer = self._index.writer(_HEAP_BYTES, 1)
            for path, item in documents.items():
                writer.delete_documents_by_query(self._term(_PATH, _to_name(path)))
                if item is not None:
                    writer.add_document(_made(*item))
            writer.commit()
            writer.wait_merging_threads()
            _seal(self._folder)
        _give_back()

    def _document(self, address: Any) -> SearchDocument:
        result = self._searcher.doc(address)
        return SearchDocument(
            _from_name(result.get_first(_PATH)),
            result.get_first(_MTIME),
            result.get_first(_WORDS),
            result.get_first(_HEADING),
        )

    def _term(self, field: str, word: str) -> Any:
        return _library().Query.term_query(self._schema, field, word, index_option="freq")


def discard(folder: str) -> None:
    """Remove an index from the disk, or whatever else is at its place; raises OSError."""
    if os.path.isdir(folder) and not os.path.islink(folder):
        with suppress(OSError):
            os.unlink(f"{folder}/{_SEAL}")  # first, so that what is left is not believed
        shutil.rmtree(folder)
    elif os.path.lexists(folder):
        os.unlink(folder)


def exists(folder: str) -> bool:
    """Say whether something was ever committed there."""
    return os.path.lexists(f"{folder}/{_SEAL}")


def _check(folder: str) -> None:
    """Raise EngineBrokenError unless the files are those of the last commit.

    Others may lie beside them: what a commit that did not end has left. The library removes them.
    """
    data = Path(f"{folder}/{_SEAL}").read_bytes()
    seal = msgspec.msgpack.decode(data[4:], type=_Seal)
    whole = data[:4] == zlib.crc32(data[4:]).to_bytes(4, "little")
    if not whole or (seal.form, seal.analysis) != (_FORMAT, ANALYSIS):
        raise EngineBrokenError(_FLAW)
    if any(_sum(f"{folder}/{_ENGINE}/{name}") != result for name, result in seal.files.items()):
        raise EngineBrokenError(_FLAW)


def _seal(folder: str) -> None:
    """Write down which files the commit consists of, durably. What a file holds never changes."""
    names = sorted(name for name in os.listdir(f"{folder}/{_ENGINE}") if name[0] != ".")
    files = {name: _sum(f"{folder}/{_ENGINE}/{name}") for name in names}
    data = msgspec.msgpack.encode(_Seal(_FORMAT, ANALYSIS, files))
    with open(f"{folder}/{_SEAL}.new", "wb", opener=private) as file:
        file.write(zlib.crc32(data).to_bytes(4, "little") + data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{folder}/{_SEAL}.new", f"{folder}/{_SEAL}")


def _sum(path: str) -> tuple[int, int]:
    size, total = 0, 0
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            size += len(block)
            total = zlib.crc32(block, total)
    return size, total


def private(path: str, flags: int) -> int:
    """Open a file that nobody else reads: an opener for ``open``."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _to_name(path: str) -> str:
    """Return a path as text that any bytes have; the library takes UTF-8 only."""
    return path if path.isascii() else os.fsencode(path).decode("latin-1")


def _from_name(name: str) -> str:
    return name if name.isascii() else os.fsdecode(name.encode("latin-1"))


def _made(document: SearchDocument, mark: int) -> Any:
    made = _library().Document()
    made.add_text(_PATH, _to_name(document.path))
    made.add_text(_WORDS, document.words)
    made.add_integer(_MTIME, min(max(document.mtime_ns, _EARLIEST), _LATEST))
    made.add_unsigned(_HEADING, document.heading)
    made.add_unsigned(_MARK, mark)
    return made


@cache
def _trim() -> Callable[[int], object] | None:
    trim: Callable[[int], object] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim


def _give_back() -> None:
    """Return to the system what the writer's threads have freed: the C library keeps some 90 MB."""
    trim = _trim()
    if trim is not None:  # pragma: no branch - only the GNU C library has it
        trim(0)


@cache
def _library() -> Any:
    import tantivy  # noqa: PLC0415 - lazy start-up: a daemon that nobody asks does without it

    return tantivy


@cache
def _schema() -> Any:
    builder = _library().SchemaBuilder()
    builder.add_text_field(_WORDS, stored=True, tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field(_PATH, stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_integer_field(_MTIME, stored=True)
    builder.add_unsigned_field(_HEADING, stored=True)
    builder.add_unsigned_field(_MARK, fast=True)
    return builder.build()
