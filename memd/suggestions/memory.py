"""The memory that a suggestion becomes when it is accepted. Pure.

A quotation stays what the memory rests on, in whatever words its statement is put: the last line
of the body has it with its date. A model's wording without evidence gets no such line, nor can
other words for a statement bring one along.
"""

import re

from memd.core.names import SUFFIX
from memd.core.text import iso_time, one_line, said_line, sha256
from memd.core.values import Draft, FileEdit, MemoryType, Pointer, SuggestionDecided, Tree
from memd.documents import document
from memd.state.tables import TAKEN, OpenSuggestion
from memd.text.dates import resolve
from memd.text.normal import normal

USER = "user"  # the origin of a quotation
_TITLE_CHARACTERS, _LINE_CHARACTERS, _NAME_CHARACTERS = 60, 120, 40
_NAME_WORDS = 6
_WORD = re.compile("[a-z0-9]+")
_MARK = re.compile(  # of a line that quotes
    r"^[^\w\n]{0,8}said[^\w\n]{0,4}?[:\uff1a][ *]{0,4}", re.IGNORECASE | re.MULTILINE
)


def accepted(
    suggestion: OpenSuggestion, tree: Tree, now: float, *, text: str = "", kind: str = ""
) -> tuple[str, Draft]:
    """Return the path of a suggestion's memory, and the change set that makes it.

    ``text`` and ``kind`` stand in the place of its own words and of its guessed type.
    """
    statement = text.strip() or resolve(suggestion.text, suggestion.at)
    statement = _MARK.sub("", statement).strip() or statement
    type_ = _type(kind or suggestion.type)
    name, path = _free_name(statement, type_, tree)
    body = statement
    if suggestion.origin == USER:
        quotation = " ".join(suggestion.text.split())
        body += f"\n\n{said_line(quotation, suggestion.at)}"
    line = one_line(statement, _LINE_CHARACTERS)
    content = document.new(
        name, line, type_, body, session=suggestion.session, modified=iso_time(now)
    )
    return path, Draft(
        edits=(FileEdit(path, content, base=""),),
        pointers={path: Pointer(one_line(statement, _TITLE_CHARACTERS), line)},
        effects=(SuggestionDecided(suggestion.id, TAKEN),),
    )


def _type(name: str) -> MemoryType:
    """Return a type by its name; what a person said and nobody could sort is a rule of theirs."""
    return MemoryType(name) if name in set(MemoryType) else MemoryType.FEEDBACK


def _free_name(statement: str, kind: MemoryType, tree: Tree) -> tuple[str, str]:
    words = _WORD.findall(normal(statement).lower())[:_NAME_WORDS]
    slug = "-".join(words)[:_NAME_CHARACTERS].strip("-")
    if len(words) < 2 or not statement.isascii():  # noqa: PLR2004 - one word says too little
        slug = f"note-{sha256(statement.encode(errors='replace'))[:8]}"
    taken = {header.path.casefold() for header in tree.headers()}
    number, name = 1, slug
    while f"{kind}_{name}{SUFFIX}".casefold() in taken:
        number += 1
        name = f"{slug}-{number}"
    return name, f"{kind}_{name}{SUFFIX}"
