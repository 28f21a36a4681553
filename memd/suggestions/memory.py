"""Make a memory of an accepted suggestion. Pure.

If the person said it, the last line of the body quotes them with the date, whatever words the
statement gets. A model's statement has no such line, and a new wording cannot add one.
"""

import re

from memd.core.text import iso_time, said_line
from memd.core.values import PERSON, Draft, FileEdit, MemoryType, SuggestionDecided, Tree
from memd.documents import document
from memd.state.tables import TAKEN, OpenSuggestion
from memd.text.dates import resolve

_MARK = re.compile(  # the label of a quotation
    r"^[^\w\n]{0,8}said[^\w\n]{0,4}?[:\uff1a][ *]{0,4}", re.IGNORECASE | re.MULTILINE
)


def accepted(
    suggestion: OpenSuggestion, tree: Tree, now: float, *, text: str = "", kind: str = ""
) -> tuple[str, Draft]:
    """Return the path of a suggestion's memory, and the change set that creates it.

    ``text`` and ``kind``, unless "", replace the suggestion's own words and its guessed type.
    """
    statement = text.strip() or resolve(suggestion.text, suggestion.at)
    statement = _MARK.sub("", statement).strip() or statement
    own_words = " ".join(suggestion.text.split())
    quotation = said_line(own_words, suggestion.at) if suggestion.origin == PERSON else ""
    worded = document.worded(
        statement,
        _type(kind or suggestion.type),
        quotation,
        {header.path.casefold() for header in tree.headers()},
        session=suggestion.session,
        modified=iso_time(now),
    )
    return worded.path, Draft(
        edits=(FileEdit(worded.path, worded.content, base=""),),
        pointers={worded.path: worded.pointer},
        effects=(SuggestionDecided(suggestion.id, TAKEN),),
    )


def _type(name: str) -> MemoryType:
    """Return the type with this name, or ``feedback`` for any other name."""
    return MemoryType(name) if name in set(MemoryType) else MemoryType.FEEDBACK
