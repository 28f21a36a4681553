"""Making new memories: from their fields, or from one statement alone. Pure.

A file is named after plain words of its statement: no number and no token gets into a name.
"""

import re
from collections.abc import Container

from msgspec import Struct

from memd.base import limits
from memd.base.names import SUFFIX
from memd.base.text import one_line, sha256
from memd.base.values import MemoryType
from memd.documents.frontmatter import scalar
from memd.text.words import words

_WORD = re.compile(r"(?<![\w'])[A-Za-z]{2,20}(?![\w'])")
_ARTICLES = frozenset({"a", "an", "the"})
_NAME_WORDS = 6
_MOST_NAME_WORDS = 10  # of a name whose first words say nothing
_LEAST_WORDS = 2  # fewer say nothing about a memory
_HASH_CHARACTERS = 8  # of the name of a memory whose statement has too few words


class WordedMemory(Struct, frozen=True):
    """A new memory that says one thing."""

    path: str
    name: str
    description: str
    body: str
    content: bytes


def new(
    name: str,
    description: str,
    type: MemoryType | None,  # noqa: A002 - the word of the format
    body: str,
    *,
    session: str,
    modified: str,
    origin: str = "",
) -> bytes:
    """Return a new memory in the layout that Claude Code stamps.

    ``session`` may be empty; ``modified`` is ISO 8601 in UTC, or empty. White space in name and
    description is folded, so that each stands on one line. What came from elsewhere may have no
    ``type``, and has an ``origin``.
    """
    lines = [
        "---",
        f"name: {scalar(name)}",
        f"description: {scalar(description)}",
        "metadata:",
        "  node_type: memory",
        *([f"  type: {type.value}"] if type else []),
        *([f"  origin: {origin}"] if origin else []),
        *([f"  originSessionId: {scalar(session)}"] if session else []),
        *([f"  modified: {scalar(modified)}"] if modified else []),
        "---",
        "",
        body,
    ]
    text = "\n".join(lines)
    return (text if text.endswith("\n") else text + "\n").encode("utf-8", errors="replace")


def memory_of_statement(
    statement: str,
    kind: MemoryType,
    quotation: str,
    taken: Container[str] = (),
    *,
    session: str,
    modified: str,
) -> WordedMemory:
    """Return a new memory that says one statement, and ends with a quotation if there is one.

    No path of ``taken``, in folded case, is used again. ``session`` and ``modified`` are as in
    ``new``. Reads word lists at the first call.
    """
    name = first_name = name_of_statement(statement)
    path, number = f"{kind}_{name}{SUFFIX}", 1
    while path.casefold() in taken:
        number += 1
        name = f"{first_name}-{number}"
        path = f"{kind}_{name}{SUFFIX}"
    description = one_line(statement, limits.INDEX_HOOK_CHARACTERS)
    body = f"{statement}\n\n{quotation}\n" if quotation else f"{statement}\n"
    content = new(name, description, kind, body, session=session, modified=modified)
    return WordedMemory(path, name, description, body, content)


def is_name_of_statement(name: str, statement: str) -> bool:
    """Return whether memd gives this name to a memory of a statement, or did so."""
    own = name_of_statement(statement)
    return name == own or re.fullmatch(rf"{re.escape(own)}-\d+", name) is not None


def name_of_statement(statement: str) -> str:
    """Return a name made of the first words of a statement, or of its hash.

    Reads word lists at the first call.
    """
    all_words = [word.lower() for word in _WORD.findall(statement)]
    name_words = [word for word in all_words if word not in _ARTICLES]
    # A few words more where the first ones, such as "from now on always", say nothing: those that
    # ``words`` leaves out.
    for count in range(_NAME_WORDS, _MOST_NAME_WORDS + 1):
        if len(words(" ".join(name_words[:count]))) >= _LEAST_WORDS:
            return "-".join(name_words[:count])
    return f"note-{sha256(statement.encode('utf-8', 'replace'))[:_HASH_CHARACTERS]}"
