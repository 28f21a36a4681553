"""What a dream may do with the lines that a person wrote into the index. Pure.

Rules of this file (spec 1.6)
- A line that is no pointer is a person's. It stays, or stands word for word in a memory.
- The index is read with every prompt, so nothing is said in it that did not stand there: a dream
  may add pointers and headings.
- An index within its limits stays within; one beyond a limit goes no further: each memory keeps
  its line, so it cannot always become smaller.
- What a pointer says is the memory's, not the person's. But where the dream did not write the
  memory, or may not reword it, the new words do not deny the old ones; cutting them is fine.
"""

from collections.abc import Container, Iterable, Iterator, Sequence

from memd.core import limits
from memd.core.text import decode
from memd.dream.carried import Denials
from memd.dream.similarity import Text, key
from memd.dream.verdict import quoted
from memd.store.document import Document
from memd.store.entries import read
from memd.store.index import entries, load
from memd.store.names import INDEX

_HEADING_CHARACTERS = 80


def problems(
    before: bytes,
    after: bytes,
    memories: Sequence[Document],
    written: Container[str] = (),
) -> Iterator[str]:
    """Yield what is wrong with a new index; ``memories`` are those that may have taken lines.

    ``written`` are the memories with a new text that need not say what the old one said.
    """
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
    yield from _pointers(before, after, written)
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


def _pointers(before: bytes, after: bytes, written: Container[str]) -> Iterator[str]:
    old = {entry.path: f"{entry.title}: {entry.hook}" for entry in entries(before)}
    for entry in entries(after):
        was, now = old.get(entry.path, ""), f"{entry.title}: {entry.hook}"
        if now == was or entry.path in written or was.startswith(now.rstrip("\u2026 ")):
            continue
        if Denials([was]).of(now):
            yield f"{INDEX} would say the opposite of {entry.path}: '{quoted(now)}'"


def _size(before: bytes, after: bytes) -> Iterator[str]:
    old, new = load(before), load(after)
    lines = new.lines > max(limits.INDEX_LINES, old.lines)
    if lines or new.bytes > max(limits.INDEX_BYTES, old.bytes):
        yield (
            f"{INDEX} would have {new.lines} lines and {new.bytes} bytes, "
            f"the limits are {limits.INDEX_LINES} and {limits.INDEX_BYTES}"
        )
