"""Check the form of a memory that a dream would write. Pure."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from memd.base import limits
from memd.base.names import TEAM, in_catalogue
from memd.base.text import decode
from memd.dream.groups import MemoryText
from memd.dream.values import quoted
from memd.store import secret
from memd.store.memory import split
from memd.text.orders import orders, wishes

# Fields that memd sets.
_STAMPS = frozenset({"modified", "originSessionId", "node_type", "type", "origin"})


def form_problems(
    new: MemoryText, old: MemoryText | None, group: Sequence[MemoryText]
) -> Iterator[tuple[bool, str]]:
    """Yield problems of size, path, secrets and frontmatter: whether it is a secret, the sentence.

    ``old`` is the memory before, ``None`` for a new one; ``group`` are the old memories of its
    group, whose fields and lines a new memory may have.
    """
    if len(new.content) > limits.MEMORY_BYTES:
        yield False, f"would have {len(new.content)} bytes, the limit is {limits.MEMORY_BYTES}"
    untyped = new.document.type is None and not (old and old.document.type is None)
    if new.document.damaged or untyped:
        yield False, "would be damaged or without a type"
    if not in_catalogue(new.path) or new.path.startswith(TEAM):
        yield False, "is no place for a memory of a dream"
    new_text, old_text = decode(new.content), decode(old.content if old else b"")
    for hit in secret.find(new_text):
        if new_text.split("\n")[hit.line - 1] not in old_text:
            yield True, f"would hold what looks like a secret in line {hit.line} ({hit.rule})"
    for problem in _frontmatter_problems(new, old, group):
        yield False, problem


def _frontmatter_problems(
    new: MemoryText, old: MemoryText | None, group: Sequence[MemoryText]
) -> Iterator[str]:
    """Yield a problem for each field that is added or lost and each comment that is added."""
    new_fields = _fields(new)
    old_fields = _fields(old) if old else frozenset[str]().union(*map(_fields, group))
    for field in sorted(new_fields - old_fields):
        yield f"would have a field that it had not: '{quoted(field)}'"
    if old:  # a new memory may be without fields that others of its group have
        for field in sorted(old_fields - new_fields):
            yield f"would lose the field '{quoted(field)}'"
    old_lines = {line for text in group for line in _frontmatter_lines(text)}
    for line in _frontmatter_lines(new):
        if line not in old_lines and (" #" in line or line.lstrip().startswith("#")):
            yield f"would have a comment in its head: '{quoted(line)}'"


def link_and_name_problems(
    new: MemoryText,
    old: MemoryText | None,
    group: Sequence[MemoryText],
    known_paths: AbstractSet[str],
) -> Iterator[str]:
    """Yield new links to nothing, and a new name that orders or wishes something.

    ``old`` is the memory before, ``None`` for a new one; ``group`` are the old memories of its
    group, and ``known_paths`` the paths that links may lead to.
    """
    old_links = frozenset[str]().union(*(text.links for text in group))
    for link in sorted(new.links - old_links - known_paths):
        if link.endswith(".md"):
            yield f"would link to what is not there: '{quoted(link)}'"
    new_names = []
    if old is None or old.document.name != new.document.name:
        new_names.append(new.document.name)
    if old is None:
        new_names.append(new.path.rpartition("/")[2].removesuffix(".md"))
    for name in new_names:
        spelled = name.replace("-", " ").replace("_", " ")
        if orders(spelled) or wishes(spelled):  # the index repeats it in every prompt
            yield f"would have a name that orders or wishes: '{quoted(name)}'"


def _fields(text: MemoryText) -> frozenset[str]:
    """Return the fields of a memory's frontmatter, except the stamps, as ``name: value``."""
    items = text.document.metadata.items()
    return frozenset(f"{name}: {value}" for name, value in items if name not in _STAMPS)


def _frontmatter_lines(text: MemoryText) -> list[str]:
    """Return the lines of a memory's frontmatter."""
    head = split(text.content)
    return [] if head is None else [line.rstrip() for line in head.text.split("\n")]
