"""Make a memory from an accepted suggestion. Pure.

If the suggestion quotes the person, the last line of the memory's body is that quotation with its
date, also if the statement is reworded. Other suggestions get no such line, and a new wording
cannot add one.
"""

import re
from contextlib import suppress

from memd.base.errors import Invalid
from memd.base.text import iso_time, said_line
from memd.base.values import PERSON, Draft, FileEdit, MemoryType, Tree
from memd.state.suggestions import OpenSuggestion, suggestion_taken
from memd.store import memory

# The label of a quotation, such as "**Said:**"; removed, so that no wording poses as a quotation.
_QUOTATION_LABEL = r"(?im)^[^\w\n]{0,8}said[^\w\n]{0,4}?[:\uff1a][ *]{0,4}"


def accepted(
    directory: str,
    suggestion: OpenSuggestion,
    tree: Tree,
    now: float,
    *,
    text: str = "",
    kind: str = "",
) -> tuple[str, Draft]:
    """Return the path of the memory for a suggestion, and the draft that writes it.

    A suggestion that corrects a memory takes the place of what that says.

    ``text`` and ``kind``, unless "", replace the suggestion's own words and its guessed type.
    ``now`` is seconds since 1970.
    """
    statement = text.strip() or suggestion.text
    statement = re.sub(_QUOTATION_LABEL, "", statement).strip() or statement
    taken = suggestion_taken(directory, suggestion.id)
    own_words = " ".join(suggestion.text.split())
    quotation = said_line(own_words, suggestion.at) if suggestion.origin == PERSON else ""
    if suggestion.corrects and (file := tree.read(suggestion.corrects)) is not None:
        with suppress(Invalid):  # it says more by now, so a memory of its own is made
            changed = memory.with_statement(file.content, statement, quotation, iso_time(now))
            edit = FileEdit(suggestion.corrects, changed, base=file.hash)
            return edit.path, Draft((edit,), effects=(taken,))
    worded = memory.of_statement(
        statement,
        _type_named(kind or suggestion.type),
        quotation,
        {header.path.casefold() for header in tree.headers()},
        session=suggestion.session,
        modified=iso_time(now),
    )
    return worded.path, Draft(
        edits=(FileEdit(worded.path, worded.content, base=""),),
        effects=(taken,),
    )


def _type_named(name: str) -> MemoryType:
    """Return the type with this name, or ``feedback`` for any other name."""
    return MemoryType(name) if name in set(MemoryType) else MemoryType.FEEDBACK
