"""The one door to tantivy: English stems, and a search engine on disk that knows only numbers.

Rules of this file
- Whatever goes wrong inside the library, a panic of its Rust code among it, comes out as
  EngineBrokenError: what it kept is a view of files that are still there, so nothing is lost.
- A document is the numbers of its words, one name by which it is replaced, and one number that
  says where the rest of it is kept. The engine stores nothing else and gives no order of its own:
  it proposes.
- Reading and writing may happen in two threads at once; reading sees what was committed when
  ``reload`` was called last.
- The library costs 7.6 MB and 15 ms; it is imported at first use. An open index has one thread of
  the library's own, which wakes twice a second for nothing (0.03 % of a core).
"""

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from heapq import nlargest
from types import TracebackType
from typing import Any

from memd.core.errors import MemdError

TERMS = 32  # of a prompt's words the heaviest are looked for; the others still count in the order

_HEAP_BYTES = 15_000_000  # the least that the library takes
_HOLDERS = 2_000  # words whose number of documents is kept: a prompt asks for each several times
_WORDS, _NAME, _AT = "words", "name", "at"
_FREQUENCIES, _BASIC = "freq", "basic"


class EngineBrokenError(MemdError):
    """The engine failed: its files are damaged, or the disk does not do what it should."""

    kind = "engine_broken"
    code = 1090

    def __init__(self, cause: object) -> None:
        super().__init__(f"the search index cannot be used: {cause}", cause=str(cause))


class _Guard:
    """Turns whatever the library raises into EngineBrokenError.

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
            issubclass(kind, ValueError | OSError | RuntimeError | OverflowError)
            or kind.__module__ == "pyo3_runtime"
        ):
            raise EngineBrokenError(error) from error


_guard = _Guard()


def stems(words: Sequence[str]) -> list[str]:
    """Return the English stems of words that are made of ASCII letters alone."""
    found: list[str] = _analyser().analyze(" ".join(words))
    return found


class Engine:
    """One index on disk, in a folder of its own. All methods block and raise EngineBrokenError."""

    def __init__(self, folder: str, *, new: bool) -> None:
        tantivy = _library()
        with _guard:
            if new:
                self._index = tantivy.Index(_schema(), path=folder, reuse=False)
            else:
                self._index = tantivy.Index.open(folder)
            self._index.config_reader("manual")
            self._schema = self._index.schema
            self._searcher = self._index.searcher()
            self._count: int = self._searcher.num_docs
        self._holders: dict[str, int] = {}

    @property
    def count(self) -> int:
        """How many documents there are."""
        return self._count

    def reload(self) -> None:
        """See what was committed."""
        with _guard:
            self._index.reload()
            self._searcher = self._index.searcher()
            self._count = self._searcher.num_docs
        self._holders.clear()

    def holders(self, word: str) -> int:
        """Return how many documents hold a word, some that were replaced lately among them."""
        found = self._holders.get(word)
        if found is None:
            if len(self._holders) >= _HOLDERS:
                self._holders.clear()
            with _guard:
                found = self._holders[word] = int(self._searcher.doc_freq(_WORDS, word))
        return found

    def find(self, name: str) -> int | None:
        """Return the number of the document of this name."""
        with _guard:
            if not self._searcher.doc_freq(_NAME, name):
                return None
            found = self._numbers(self._term(_NAME, name, _BASIC), 1)
            return found[0] if found else None

    def search(self, weights: Mapping[str, float], limit: int) -> list[int]:
        """Return the numbers of the documents that fit best, the best first.

        ``weights`` says what each word is worth where it stands in a document.
        """
        occur = _library().Occur.Should
        with _guard:
            clauses = [
                (occur, self._weighted(word, weight))
                for word, weight in nlargest(TERMS, weights.items(), key=lambda item: item[1])
                if weight > 0
            ]
            return self._numbers(_library().Query.boolean_query(clauses), limit)

    def writer(self) -> "Writer":
        """Return the one writer; what it did not commit is forgotten with it."""
        with _guard:
            return Writer(self._index.writer(_HEAP_BYTES, 1))

    def _numbers(self, query: Any, limit: int) -> list[int]:
        hits = self._searcher.search(query, limit, count=False).hits
        numbers: list[int] = self._searcher.fast_field_values(_AT, [hit[1] for hit in hits])
        if None in numbers:  # a damaged column
            raise EngineBrokenError(_AT)
        return numbers

    def _weighted(self, word: str, weight: float) -> Any:
        """Return a query whose score grows with our weight instead of the library's own."""
        term = self._term(_WORDS, word, _FREQUENCIES)
        holders = min(self.holders(word), self._count)
        own = math.log(1 + (self._count - holders + 0.5) / (holders + 0.5))
        return _library().Query.boost_query(term, weight / own)

    def _term(self, field: str, word: str, option: str) -> Any:
        return _library().Query.term_query(self._schema, field, word, index_option=option)


class Writer:
    """Changes of one engine. All methods block and raise EngineBrokenError."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def remove(self, name: str) -> None:
        """Forget the document of this name."""
        with _guard:
            self._writer.delete_documents_by_term(_NAME, name)

    def add(self, name: str, words: str, at: int) -> None:
        """Add a document; ``words`` has its words with a space between two."""
        document = _library().Document()
        with _guard:
            document.add_text(_NAME, name)
            document.add_text(_WORDS, words)
            document.add_unsigned(_AT, at)
            self._writer.add_document(document)

    def commit(self) -> None:
        """Make the changes durable and end the writer, with all that it still had to do."""
        with _guard:
            self._writer.commit()
            self._writer.wait_merging_threads()
        _give_back()


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
    builder.add_text_field(_WORDS, tokenizer_name="whitespace", index_option=_FREQUENCIES)
    builder.add_text_field(_NAME, tokenizer_name="raw", index_option=_BASIC)
    builder.add_unsigned_field(_AT, fast=True)
    # A long memory is as good as a short one. The builder cannot leave lengths out; a schema that
    # is made of its own pickled form can.
    make: Callable[[Any], Any]
    make, (form,) = builder.build().__reduce__()
    for field in form["inner"]:
        if "indexing" in field["options"]:
            field["options"]["indexing"]["fieldnorms"] = False
    return make(form)


@cache
def _analyser() -> Any:
    tantivy = _library()
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    lowered = builder.filter(tantivy.Filter.lowercase())
    return lowered.filter(tantivy.Filter.stemmer("english")).build()
