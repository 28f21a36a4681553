"""Read notes of Basic Memory: Markdown with lines ``- [category] text #tag (context)``. Pure.

Such a line is an observation.
"""

import re
from collections import Counter

from memd.core import limits
from memd.core.values import MemoryType
from memd.documents.document import Document, parse
from memd.portable.decoding import files, seconds_of
from memd.portable.memories import ReadingBuilder

_OBSERVATION = re.compile(r"^[ \t]*[-*][ \t]+\[([^\[\]()\n]{2,60})\][ \t]+(\S.*)$", re.MULTILINE)
_HEADING = re.compile(r"\A\s*#[ \t]+(.+)")
_PEOPLE = frozenset(("person", "profile", "user", "people"))


def read(builder: ReadingBuilder) -> None:
    """Propose a memory for each note, with the note's whole text."""
    for name in files(builder, ".md"):
        size = builder.source.size(name)
        if size > limits.MEMORY_BYTES:
            builder.leave_out(name, f"it has {size} bytes, the limit is {limits.MEMORY_BYTES}")
            continue
        note = parse(builder.source.read(name), name)
        if note.metadata.get("type", "").casefold() == "schema":
            builder.leave_out(name, "it is a schema of Basic Memory and no note")
        else:
            _add_note(builder, name, note)


def _add_note(builder: ReadingBuilder, name: str, note: Document) -> None:
    """Propose a note as a memory, described by its title and first observation."""
    heading = _HEADING.match(note.body)
    title = note.metadata.get("title") or (heading[1].strip() if heading else note.name)
    observations = _OBSERVATION.findall(note.body)
    first = f"{title}: {observations[0][1]}" if observations else title
    tags = [tag.strip() for tag in note.metadata.get("tags", "").split(",")]
    named_time = seconds_of(note.metadata.get("modified") or note.metadata.get("created"))
    builder.add(
        note.body,
        name,
        title=title,
        description=note.description or first,
        kind=_memory_type(note, [category for category, _ in observations]),
        at=named_time or builder.changed_at(name),
        tags=tuple(tag for tag in tags if tag),
    )


def _memory_type(note: Document, categories: list[str]) -> MemoryType:
    """Return the memory type of a note, by the preferences and decisions that it records.

    - More preferences than decisions: ``USER`` if the note is about a person, else ``FEEDBACK``.
    - Otherwise, if there are decisions: ``PROJECT``.
    - Neither: ``REFERENCE``.

    ``categories`` are those of its observations.
    """
    kind = note.metadata.get("type", "").casefold()
    counts = Counter([kind, *(category.strip().casefold() for category in categories)])
    if counts["preference"] > counts["decision"]:
        return MemoryType.USER if kind in _PEOPLE else MemoryType.FEEDBACK
    return MemoryType.PROJECT if counts["decision"] else MemoryType.REFERENCE
