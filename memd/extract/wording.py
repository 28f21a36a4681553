"""How a candidate becomes a memory's text: name, description, body, index line. Pure."""

import re
from collections.abc import Container
from dataclasses import dataclass

from memd.core import limits, text
from memd.core.values import MemoryType, Pointer
from memd.documents.index import pointer_line
from memd.extract import cues
from memd.extract.candidates import Candidate
from memd.extract.cues import Language
from memd.extract.sentences import BLANK, mask

_WORD = re.compile(r"[A-Za-z0-9]+")
_CLAUSE = re.compile(r"[,;:()\u2013\u2014\uff0c\uff1b\uff1a]|\s-+\s|[.!?](?:\s|$)")
_ARTICLE = re.compile(r"\b(?:an?|the)\s+(?!user\b)", re.IGNORECASE)
_DATED = re.compile(r" ?\((?:week of )?\d{4}-[^)]*\)")
_URL = re.compile(r"https?://\S+")
_DATE = re.compile(r"\d{4}-\d\d")
_SLUG_WORDS = 6  # articles not counted
_TITLE_WORDS = 8
_SLUG_CHARACTERS = 48
_TITLE_CHARACTERS = 50
_CJK_TITLE_CHARACTERS = 20
_LEAST_WORDS = 2  # fewer say nothing about a memory
_HASH_CHARACTERS = 8


@dataclass(frozen=True, slots=True)
class Worded:
    """A memory in words. ``statement`` is the first line of the body; ``given`` says for why."""

    type: MemoryType
    name: str
    path: str
    statement: str
    description: str
    body: str
    pointer: Pointer
    has_why: bool


def word(candidate: Candidate, taken: Container[str] = ()) -> Worded:
    """Return the memory of a candidate; no path of ``taken``, in folded case, is used again."""
    language = cues.language(candidate.language)
    statement = state(candidate)
    name = _name(statement, language)
    path = f"{candidate.type.value}_{name}.md"
    if path.casefold() in taken:
        name = f"{name}-{text.sha256(statement.encode())[:_HASH_CHARACTERS]}"
        path = f"{candidate.type.value}_{name}.md"
    description = text.one_line(statement.rstrip(".。"), limits.INDEX_LINE_CHARACTERS)
    return Worded(
        type=candidate.type,
        name=name,
        path=path,
        statement=statement,
        description=description,
        body=compose(candidate, statement),
        pointer=_pointer(path, description, language),
        has_why=bool(candidate.why),
    )


def state(candidate: Candidate) -> str:
    """Return what a candidate says as one sentence about the person."""
    language = cues.language(candidate.language)
    return _sentence(in_third_person(candidate.content, language), language)


def compose(candidate: Candidate, statement: str, why: str = "") -> str:
    """Return the body; ``why`` is an older reason, for when the candidate has none."""
    language = cues.language(candidate.language)
    words = language.wording
    day = text.iso_time(candidate.at)[:10]
    if candidate.type in (MemoryType.USER, MemoryType.REFERENCE):
        reason = _sentence(candidate.why, language) + "\n\n" if candidate.why else ""
        return f"{statement}\n\n{reason}{words['said'].format(date=day)}\n"
    given = in_third_person(candidate.why, language) or why or words["stated"].format(date=day)
    return (
        f"{statement}\n\n**Why:** {given.rstrip('.。')}{words['stop']}\n\n"
        f"**How to apply:** {_apply(candidate, language)}\n"
    )


def update_note(candidate: Candidate, statement: str) -> str:
    """Return the paragraph that brings an elaborate memory up to date without rewriting it."""
    words = cues.language(candidate.language).wording
    return words["update"].format(date=text.iso_time(candidate.at)[:10], content=statement)


def in_third_person(content: str, language: Language) -> str:
    """Return a person's words as said about them; code and quotations stay as they are."""
    masked = mask(content)
    for pattern, replacement in language.person:
        if pattern.search(masked):
            content = _replaced(content, masked, pattern, replacement)
            masked = mask(content)
    return content


def _replaced(content: str, masked: str, pattern: re.Pattern[str], replacement: str) -> str:
    parts: list[str] = []
    position = 0
    for match in pattern.finditer(masked):
        parts += [content[position : match.start()], match.expand(replacement)]
        position = match.end()
    return "".join((*parts, content[position:]))


def _sentence(content: str, language: Language) -> str:
    content = " ".join(content.split()).rstrip(" .。")
    first = mask(content)[:1]
    if first != BLANK and not _URL.match(content):
        content = content[:1].upper() + content[1:]
    end = "" if content.endswith(("!", "\uff01", "?", "\uff1f")) else language.wording["stop"]
    return content + end


def _apply(candidate: Candidate, language: Language) -> str:
    words = language.wording
    if candidate.type is not MemoryType.FEEDBACK:
        return words["apply_dated" if _DATE.search(candidate.content) else "apply_fact"]
    if not candidate.when:
        return words["apply_rule"]
    when = candidate.when[:1].upper() + candidate.when[1:]
    return words["apply_when"].format(when=when.rstrip(" .。"))


def _name(statement: str, language: Language) -> str:
    slug = ""
    plain = _ARTICLE.sub("", statement)
    for token in _WORD.findall(" ".join(_phrase(plain, _SLUG_WORDS, language)).replace("'", "")):
        longer = f"{slug}-{token.lower()}" if slug else token.lower()
        if len(longer) > _SLUG_CHARACTERS:
            break
        slug = longer
    if slug.count("-") + 1 < _LEAST_WORDS or language.name != "en":
        digest = text.sha256(statement.encode())[:_HASH_CHARACTERS]
        slug = f"{slug}-{digest}" if slug else f"note-{digest}"
    return slug


def _phrase(statement: str, most: int, language: Language) -> list[str]:
    """Return the first words that say something, in their order, without a loose end."""
    plain = _DATED.sub("", _URL.sub(";", statement.replace("\u2019", "'")))
    lead = language.lead.match(plain)
    plain = plain[lead.end() :] if lead else plain
    result: list[str] = []
    for clause in _CLAUSE.split(plain):
        result += [piece for piece in clause.split() if _WORD.search(piece)]
        if len(result) >= _LEAST_WORDS:
            break
    result = result[:most]
    while len(result) > _LEAST_WORDS and result[-1].lower() in language.loose:
        result.pop()
    return result


def _pointer(path: str, description: str, language: Language) -> Pointer:
    phrase = " ".join(_phrase(description, _TITLE_WORDS, language)) if language.name == "en" else ""
    limit = _TITLE_CHARACTERS if phrase else _CJK_TITLE_CHARACTERS
    title = text.one_line(phrase or description, limit)
    title = title[:1].upper() + title[1:]
    room = limits.INDEX_LINE_CHARACTERS - len(pointer_line(path, Pointer(title, "")))
    return Pointer(title, text.one_line(description, max(room, _TITLE_CHARACTERS)))
