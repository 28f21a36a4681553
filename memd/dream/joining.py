"""Put memories together: whole sentences move, and no word of them changes. Pure.

Rules of this file
- A sentence of the source stays out only if the target has the same one. A ``**Why:**``, a
  ``**How to apply:**`` and a ``**Said:**`` stay out only with the sentence that they stand behind.
- The bytes of the target's body stay. What is added comes behind it, or before it if that is the
  only way in which each sentence has the heading or the lead that it had.
- The head keeps the target's name. Its description and ``when`` get what they did not say yet.
"""

import re
from collections.abc import Iterable

from memd.base import limits
from memd.base.errors import MemdError
from memd.store import memory
from memd.store.head import BELOW
from memd.store.memory import Memory, parse
from memd.text.blocks import fenced
from memd.text.statements import details, has_detail, keys, statements
from memd.text.statements import limits as limits_of
from memd.text.words import words

# Fields that memd sets or puts together.
OWN_FIELDS = frozenset(
    ("name", "description", "when", "type", "node_type", "origin", "originSessionId", "modified")
)
_LABELLED = r"(?i)\*\*(?:why|how to apply|said):\*\*"
_STRUCTURE = r"(?m)^[ \t]*(?:#{1,6}[ \t]|\||>|\d{1,3}[.)][ \t]|[-*+][ \t])"
_WHEN_CHARACTERS = 300
_CANNOT = "their headings, lists or steps cannot be put together; leave them apart"
_FIELD = "the field {} would be lost"


class CannotJoinError(Exception):
    """Memories cannot be put together without a change; the sentence is for the model."""


def joined(target: bytes, source: bytes) -> bytes:
    """Return the target with all that the source says and it does not. Raises CannotJoinError."""
    into, other = parse(target, ""), parse(source, "")
    for name, value in other.metadata.items():
        if name not in OWN_FIELDS and into.metadata.get(name) != value:
            raise CannotJoinError(_FIELD.format(name))
    added = _added_text(into.body, other.body)
    description = _description(into, other)
    if description is None:  # there is no room for it
        description, added = into.description, f"{other.description}\n\n{added}".strip()
    body = _with_text(into.body, added)
    when = _united(into.metadata.get("when", ""), other.metadata.get("when", ""), _WHEN_CHARACTERS)
    fields = {"description": description, f"{BELOW}when": when or ""}
    old = {"description": into.description, f"{BELOW}when": into.metadata.get("when", "")}
    fields = {name: text for name, text in fields.items() if text and text != old[name]}
    try:
        content = memory.with_fields(target, fields) if fields else target
    except MemdError as error:
        raise CannotJoinError(error.sentence) from error
    return content if body == into.body else memory.with_body(content, body)


def with_sentences(target: bytes, text: str) -> bytes:
    """Return the target with the sentences of a text that it does not say yet.

    Raises CannotJoinError.
    """
    body = parse(target, "").body
    new_body = _with_text(body, _added_text(body, text))
    return target if new_body == body else memory.with_body(target, new_body)


def _added_text(target: str, source: str) -> str:
    """Return the text of a source's body that a target's body does not say yet."""
    known = keys(target)
    if keys(source) <= known and has_steps(target, source):
        return ""
    if re.search(_STRUCTURE, source) and re.search(
        r"^[ \t]*(?:#{1,6}[ \t]|\d)", source, re.MULTILINE
    ):
        return source.strip()  # its headings and steps belong to all that follows
    result: list[str] = []
    is_added = False  # whether the last paragraph that is no label was added
    for paragraph in paragraphs(source):
        rest = paragraph
        if re.match(_LABELLED, paragraph):
            rest = paragraph if is_added or not keys(paragraph) <= known else ""
        else:
            rest = _unknown_part(paragraph, known)
            is_added = bool(rest)
        result += [rest] if rest else []
    return "\n\n".join(result)


def _with_text(body: str, added: str) -> str:
    """Return a body with another text behind or before it. Raises CannotJoinError.

    Each statement of both has the heading or lead above it that it had.
    """
    if not added:
        return body
    plain = body.strip("\n")
    wanted = keys(body) | keys(added)
    for text in (f"{plain}\n\n{added}\n", f"{added}\n\n{plain}\n"):
        if keys(text) == wanted and has_steps(text, body) and has_steps(text, added):
            return text
    raise CannotJoinError(_CANNOT)


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text; a block of code is one, whatever blank lines it has."""
    result: list[str] = []
    for number, part in enumerate(fenced(text)):
        if number % 2:
            result.append(part.rstrip("\n"))
        else:
            pieces = (piece.strip("\r\n") for piece in re.split(r"\r?\n[ \t]*\r?\n", part))
            result += [piece.rstrip() for piece in pieces if piece.strip()]
    return result


def says(text: str, short: str) -> bool:
    """Return whether a text has all words and details of a short one, and whatever limits them."""
    has_details = all(has_detail(text, detail) for detail in details(short))
    has_words = set(words(short)) <= set(words(text))
    return has_details and has_words and limits_of(short) <= limits_of(text)


def abridges(short: str, texts: Iterable[str]) -> bool:
    """Return whether one statement of the texts has all words of a short one, and its limits."""
    limits_of_short = limits_of(short)
    return any(
        each.limits == limits_of_short and says(each.raw, short)
        for text in texts
        for each in statements(text)
    )


def text_of(read: Memory) -> str:
    """Return all that a memory says: name, description and body."""
    return f"{read.name.replace('-', ' ')}\n\n{read.description}\n\n{read.body}"


def has_steps(text: str, part: str) -> bool:
    """Return whether a text has the numbered steps of a part of it in their order."""
    remaining = iter([each.key for each in statements(text) if each.step])
    return all(each.key in remaining for each in statements(part) if each.step)


def _unknown_part(paragraph: str, known: frozenset[str]) -> str:
    """Return a paragraph without the sentences that are known, "" if it has no others.

    A list, a row and a piece of code are taken as a whole.
    """
    all_statements = [each for each in statements(paragraph) if each.key]
    unknown = [each for each in all_statements if each.key not in known]
    if not unknown or len(unknown) == len(all_statements):
        return paragraph if unknown else ""
    is_plain = not (
        re.search(_STRUCTURE, paragraph) or any(each.context for each in all_statements)
    )
    return " ".join(each.raw for each in unknown) if is_plain else paragraph


def _description(into: Memory, other: Memory) -> str | None:
    """Return the description of two memories, ``None`` if it would be too long."""
    if not other.description or says(text_of(into), other.description):
        return into.description
    return _united(into.description, other.description, limits.INDEX_HOOK_CHARACTERS)


def _united(one: str, other: str, most: int) -> str | None:
    """Return two short texts as one, ``None`` if it would have more than ``most`` characters."""
    if not one or not other or says(one, other):
        return one or other
    text = f"{one.rstrip('.')}; {other}"
    return text if len(text) <= most else None
