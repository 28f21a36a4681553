"""What is wrong with a new memory whatever it says: its place, size, head and secrets. Pure.

Rules of this file
- A dream writes no field into a head and takes none away, but the stamps. What a text claims of its
  own origin is replaced elsewhere; no comment comes into a head.
- A new text holds no secret that the old one did not hold; none is quoted.
"""

from collections.abc import Iterator, Sequence

from memd.core import limits
from memd.core.names import TEAM, in_catalogue
from memd.core.text import decode
from memd.documents import secrets
from memd.documents.document import split
from memd.dream.groups import Text
from memd.dream.values import quoted

SECRET, FORM = "secret", "form"
_STAMPS = frozenset({"modified", "originSessionId", "node_type", "type", "origin"})


def problems(new: Text, old: Text | None, group: Sequence[Text]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong, each with SECRET or FORM; ``group`` are the memories of before."""
    if len(new.content) > limits.MEMORY_BYTES:
        yield FORM, f"would have {len(new.content)} bytes, the limit is {limits.MEMORY_BYTES}"
    untyped = new.document.type is None and not (old and old.document.type is None)
    if new.document.damaged or untyped:
        yield FORM, "would be damaged or without a type"
    if not in_catalogue(new.path) or new.path.startswith(TEAM):
        yield FORM, "is no place for a memory of a dream"
    text, known = decode(new.content), decode(old.content if old else b"")
    for hit in secrets.find(text):
        if text.split("\n")[hit.line - 1] not in known:
            yield SECRET, f"would hold what looks like a secret in line {hit.line} ({hit.rule})"
    fields = _fields(new)
    for field in sorted(fields.difference(*[_fields(text) for text in ([old] if old else group)])):
        yield FORM, f"would have a field that it had not: '{quoted(field)}'"
    for field in sorted(_fields(old) - fields) if old else ():
        yield FORM, f"would lose the field '{quoted(field)}'"
    heads = {line for text in group for line in _head(text)}
    for line in _head(new):
        if line not in heads and (" #" in line or line.lstrip().startswith("#")):
            yield FORM, f"would have a comment in its head: '{quoted(line)}'"


def _fields(text: Text) -> set[str]:
    items = text.document.metadata.items()
    return {f"{name}: {value}" for name, value in items if name not in _STAMPS}


def _head(text: Text) -> list[str]:
    fenced = split(text.content)
    return [] if fenced is None else [line.rstrip() for line in fenced.lines]
