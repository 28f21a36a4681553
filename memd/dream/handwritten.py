"""What a dream may do with the lines that a person wrote into the index. Pure.

Rules of this file (spec 1.6)
- A line that is no pointer is a person's. It stays, or stands word for word in a memory.
- The index is read with every prompt, so nothing is said in it that did not stand there: a dream
  may add pointers and headings.
- An index within its limits stays within; a larger one gets smaller.
"""

from collections.abc import Iterable, Iterator, Sequence

from memd.core import limits
from memd.core.text import decode
from memd.dream.similarity import Text, key
from memd.dream.verdict import quoted
from memd.store.document import Document
from memd.store.entries import read
from memd.store.index import load
from memd.store.names import INDEX

_HEADING_CHARACTERS = 80


def problems(before: bytes, after: bytes, memories: Sequence[Document]) -> Iterator[str]:
    """Yield what is wrong with a new index; ``memories`` are those that may have taken lines."""
    old, new = _lines(before), _lines(after)
    said: list[frozenset[str]] | None = None
    for line in old:
        if line in new:
            continue
        if said is None:
            said = [_sentences([memory.description, memory.body]) for memory in memories]
        wanted = _sentences([line])
        if not wanted or not any(wanted <= sentences for sentences in said):
            yield f"{INDEX} would lose a line that no pointer is: '{quoted(line)}'"
    for line in new:
        if line not in old and not (line.startswith("#") and len(line) <= _HEADING_CHARACTERS):
            yield f"{INDEX} would say more than pointers do: '{quoted(line)}'"
    yield from _size(before, after)


def _lines(content: bytes) -> dict[str, None]:
    """Return the lines that are no pointers, without the white space around them."""
    pointers = {line.number for line in read(content).lines}
    lines = (
        decode(raw).strip()
        for number, raw in enumerate(content.splitlines())
        if number not in pointers
    )
    return dict.fromkeys(line for line in lines if line)


def _sentences(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(name for text in texts for name in Text(text).sentences) - {key("")}


def _size(before: bytes, after: bytes) -> Iterator[str]:
    old, new = load(before), load(after)
    if not new.cut:
        return
    sizes, was = (new.lines, new.bytes), (old.lines, old.bytes)
    if not old.cut or sizes == was or any(a > b for a, b in zip(sizes, was, strict=True)):
        yield (
            f"{INDEX} would have {new.lines} lines and {new.bytes} bytes, "
            f"the limits are {limits.INDEX_LINES} and {limits.INDEX_BYTES}"
        )
