"""What a dream may do with the lines that a person wrote into the index. Pure.

Rules of this file
- A line that is no pointer is a person's. It stays, below the headings that it stood below and in
  the order of the others, or it stands word for word in a person's rule.
- The index is read with every prompt, so nothing is said in it that did not stand there: a dream
  may add pointers, and headings that name something and order nothing.
- An index within its limits stays within; one beyond a limit goes no further: each memory keeps
  its line, so it cannot always become smaller.
- What a pointer says is the memory's, not the person's: cutting it is fine, and of new words half
  stand in the memory or stood there before. Where the dream did not write the memory they do not
  deny the old ones. What it says of a person's rule is what that said, or the beginning of it.
"""

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace

from memd.core import limits
from memd.core.names import INDEX
from memd.core.text import decode
from memd.core.values import PERSONAL
from memd.documents.document import Document
from memd.documents.index import IndexEntry, entries, load, read
from memd.dream.carried import Denials, Facts, statement
from memd.dream.values import quoted
from memd.dream.verbatim import Stand, Verbatim, key
from memd.dream.wording import QUALIFIERS, words

_HEADING = re.compile(r"(#{1,6})(?:[ \t]|$)")
_HEADING_CHARACTERS = 48
_HEADING_WORDS = 5
# "Deploys and releases" is a heading, "Always force the push" is an order.
_ORDERS = QUALIFIERS | frozenset(
    words("always must should shall do ignore obey run please important you your user")
)
_MORE = "\u2026"
_HALF = 0.5


def problems(
    before: bytes,
    after: bytes,
    memories: Mapping[str, Document],
    written: Container[str] = (),
) -> Iterator[str]:
    """Yield what is wrong with a new index.

    ``memories`` are at least those that ``reworded`` names, as they are after the dream.
    ``written`` are the ones with a new text that need not say what the old one said.
    """
    yield from _lost(before, after, memories)
    yield from _pointers(before, after, memories, written)
    yield from _size(before, after)


def reworded(before: bytes, after: bytes) -> frozenset[str]:
    """Return the memories of which an index says something new."""
    old = _said(before)
    return frozenset(
        entry.path for entry in entries(after) if not _is_cut(_line(entry), old.get(entry.path, ""))
    )


def _lost(before: bytes, after: bytes, memories: Mapping[str, Document]) -> Iterator[str]:
    """Yield the lines that are no pointers and would go, come or stand elsewhere."""
    old, new = list(_lines(before)), list(_lines(after))
    was, now = ({line for _, line in lines} for lines in (old, new))
    gone = [line for line in dict.fromkeys(line for _, line in old) if line not in now]
    stands = _rules(memories) if gone else frozenset()
    for line in gone:
        wanted = [said.stand for said in Verbatim(_document(line)).body]
        if not wanted or not stands.issuperset(wanted):
            yield f"{INDEX} would lose a line that no pointer is: '{quoted(line)}'"
    for line in dict.fromkeys(line for _, line in new):
        if line not in was and not _is_heading(line):
            yield f"{INDEX} would say more than pointers do: '{quoted(line)}'"
    retained = [(under, line) for under, line in old if line in now and not _HEADING.match(line)]
    there = [(under, line) for under, line in new if line in was and not _HEADING.match(line)]
    if retained != there:
        moved = next((one for one, two in zip(retained, there, strict=False) if one != two), None)
        _, line = moved or (*retained, *there)[-1]
        yield f"{INDEX} would have a line in another place: '{quoted(line)}'"


def _lines(content: bytes) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the lines that are no pointers, without white space, with the headings above them."""
    pointers = {line.number for line in read(content).lines}
    headings: list[tuple[int, str]] = []
    for number, raw in enumerate(content.splitlines()):
        line = decode(raw).strip()
        if number in pointers or not line:
            continue
        signs = _HEADING.match(line)
        if signs:
            headings = [(other, name) for other, name in headings if other < len(signs[1])]
        yield tuple(name for _, name in headings), line
        if signs:
            headings.append((len(signs[1]), line))


def _rules(memories: Mapping[str, Document]) -> frozenset[Stand]:
    rules = (Verbatim(memory) for memory in memories.values() if memory.type in PERSONAL)
    return frozenset[Stand]().union(*(rule.forms for rule in rules))


def _document(line: str) -> Document:
    return Document("", "", None, line, damaged=False, metadata={})


def _is_heading(line: str) -> bool:
    """Whether a line that comes in names what stands below it, and nothing more."""
    result = words(line)
    return (
        _HEADING.match(line) is not None
        and len(line) <= _HEADING_CHARACTERS
        and len(result) <= _HEADING_WORDS
        and _ORDERS.isdisjoint(result)
        and not line.endswith((".", "!", ":"))
    )


def _pointers(
    before: bytes, after: bytes, memories: Mapping[str, Document], written: Container[str]
) -> Iterator[str]:
    old, were = _said(before), {entry.path: entry for entry in entries(before)}
    for entry in entries(after):
        was, now = old.get(entry.path, ""), _line(entry)
        if _is_cut(now, was):
            continue
        memory = memories.get(entry.path)
        if memory is not None and memory.type in PERSONAL:
            foreign = _foreign(entry, were.get(entry.path), memory)
        elif memory is not None:
            foreign = _strange(now, was, memory)
        else:
            foreign = ""
        if foreign:
            yield f"{INDEX} would say of {entry.path} what it does not: '{quoted(foreign)}'"
        elif entry.path not in written and Denials([was]).of(now):
            yield f"{INDEX} would say the opposite of {entry.path}: '{quoted(now)}'"


def _strange(now: str, was: str, memory: Document) -> str:
    """Return a pointer's words when fewer than half of them have to do with its memory."""
    name, result = " ".join(_spellings(memory.name)), statement(now)
    known = Facts(replace(memory, body=f"{memory.body}\n\n{name}\n\n{was}")).words
    return now if len(result & known) < _HALF * len(result) else ""


def _foreign(entry: IndexEntry, old: IndexEntry | None, memory: Document) -> str:
    """Return what a pointer says of a person's rule that neither it nor the old one said."""
    stem = entry.path.rpartition("/")[2].removesuffix(".md")
    names = {*_spellings(memory.name), *_spellings(stem)}
    rule = Verbatim(memory)
    said = [memory.description, *(sentence.raw for sentence in rule.sentences)]
    titles = [*names, *said, *([old.title] if old else [])]
    hooks = [*titles, *([old.hook] if old else [])]
    if entry.title and not any(_is_cut(entry.title, known) for known in titles):
        return entry.title
    if entry.hook and not any(_is_cut(entry.hook, known) for known in hooks):
        return entry.hook
    return ""


def _spellings(name: str) -> tuple[str, str]:
    return name, name.replace("-", " ").replace("_", " ")


def _is_cut(text: str, known: str) -> bool:
    """Whether a text is another one or its beginning, up to a word's end."""
    short, whole = key(text.rstrip(_MORE + " ")), key(known)
    return whole.startswith(short) and not whole[len(short) : len(short) + 1].isalnum()


def _said(content: bytes) -> dict[str, str]:
    return {entry.path: _line(entry) for entry in entries(content)}


def _line(entry: IndexEntry) -> str:
    return f"{entry.title}: {entry.hook}"


def _size(before: bytes, after: bytes) -> Iterator[str]:
    old, new = load(before), load(after)
    lines = new.lines > max(limits.INDEX_LINES, old.lines)
    if lines or new.bytes > max(limits.INDEX_BYTES, old.bytes):
        yield (
            f"{INDEX} would have {new.lines} lines and {new.bytes} bytes, "
            f"the limits are {limits.INDEX_LINES} and {limits.INDEX_BYTES}"
        )
