"""Build the rule of a memory, and the hash of its words that a person consents to. Pure."""

import json
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from memd.core.text import one_line, sha256
from memd.core.values import FOREIGN, Header, MemoryFile, MemoryType
from memd.documents import document
from memd.rules.check import Check, CheckRefusedError, normal, parse
from memd.rules.values import Answer, NotARuleError, RuleCandidate, State, ToolRule
from memd.state.tables import StoredRule
from memd.text import invisible

_NO_LINE = "it has no line check:"
_NAME, _WORDS = 100, 300  # characters, so that a client shows the whole reason
_QUOTED = re.compile(r"`([^`\n]+ [^`\n]+)`")  # two words at least, since one may be any name


class RuleWords(Struct, frozen=True):
    """The words of a memory that make its rule: check, name and description."""

    check: str
    name: str
    description: str

    @property
    def digest(self) -> str:
        """The hash of the words, stored as what the person consented to."""
        return sha256(json.dumps([self.check, self.name, self.description]).encode())

    @property
    def said(self) -> str:
        """The reason that a tool's call is answered with, with hidden characters spelled out."""
        name, words = (
            one_line(invisible.spelled_out(text), most)
            for text, most in ((self.name, _NAME), (self.description, _WORDS))
        )
        return f"the person's rule {name} says: {words}"


class LoadedRule(Struct, frozen=True):
    """A stored rule with its memory's current words; ``check`` is set only if it is on."""

    stored: StoredRule
    state: State
    words: RuleWords | None
    check: Check | None = None

    @property
    def id(self) -> str:
        """The rule's id for callers: ``r`` and its number."""
        return f"r{self.stored.number}"

    @property
    def answer(self) -> Answer:
        """The answer to a call that breaks the rule."""
        return "deny" if self.stored.answer == "deny" else "ask"

    def shown(self) -> ToolRule:
        """Return the rule as it is sent to callers."""
        stored, words = self.stored, self.words
        stem = stored.path.rpartition("/")[2].removesuffix(".md")
        return ToolRule(
            id=self.id,
            path=stored.path,
            name=words.name if words else stem,
            check=words.check if words else "",
            answer=self.answer,
            state=self.state,
            at=stored.at,
            answered=stored.answered,
            last_at=stored.last_at,
            words=words.said if words else "",
        )


def consented(file: MemoryFile, check: str) -> tuple[bytes, RuleWords]:
    """Return a memory's content with ``check`` as its line, and the words of its rule.

    With "" for ``check`` the memory's own line is used. Raises NotARuleError, CheckRefusedError
    and FrontmatterNotEditableError.
    """
    header, content = file.header, file.content
    words = words_of(content, header.path)
    why = why_not(header)
    if not why and check and (words is None or words.check != check):
        content = document.with_fields(content, {"metadata.check": check})
        words = words_of(content, header.path)
    if why or words is None:
        raise NotARuleError(header.path, why or _NO_LINE)
    parse(words.check)
    return content, words


def why_not(header: Header) -> str:
    """Return why a memory cannot carry a rule, "" if it can."""
    if header.origin in FOREIGN:
        return f"its words are not the person's ({header.origin})"
    if header.damaged or header.type is not MemoryType.FEEDBACK:
        return "it is damaged" if header.damaged else f"its type is {header.type or 'not known'}"
    return ""


def words_of(content: bytes, path: str) -> RuleWords | None:
    """Return the rule's words in a memory, ``None`` if it is damaged or has no line ``check:``."""
    parsed = document.parse(content, path)
    check = normal(parsed.metadata.get("check", ""))
    return (
        RuleWords(check, parsed.name, parsed.description) if check and not parsed.damaged else None
    )


def loaded(stored: StoredRule, file: MemoryFile | None) -> LoadedRule:
    """Return a stored rule with its current state, given its memory or ``None`` if that is gone.

    It is ``changed`` unless the memory has exactly the words that were consented to; it is on again
    once the memory has them again.
    """
    if file is None:
        return LoadedRule(stored, "gone", None)
    words = words_of(file.content, stored.path)
    if words is None or why_not(file.header) or words.digest != stored.digest:
        return LoadedRule(stored, "changed", words)
    if not stored.enabled:
        return LoadedRule(stored, "off", words)
    try:
        return LoadedRule(stored, "on", words, parse(words.check))
    except CheckRefusedError:  # a later version of memd accepted it
        return LoadedRule(stored, "changed", words)


def candidates(
    files: Sequence[MemoryFile], repeated: Mapping[str, int]
) -> tuple[RuleCandidate, ...]:
    """Return the memories that could be rules, those repeated most often first.

    These have a valid line ``check:``, or quote a command and were repeated by the person.
    ``repeated`` has the number of repetitions by path.
    """
    result = []
    for file in files:
        path, times = file.header.path, repeated.get(file.header.path, 0)
        words = words_of(file.content, path)
        check = words.check if words else _quoted_command(file) if times else ""
        if check and _is_check(check):
            result.append(RuleCandidate(path, file.header.name, check, bool(words), times))
    return tuple(sorted(result, key=lambda each: (-each.repeated, each.path)))


def _quoted_command(file: MemoryFile) -> str:
    """Return the first text in backquotes that is a valid check, or "" if there is none."""
    texts = (file.header.description, file.body)
    quoted = (normal(words) for text in texts for words in _QUOTED.findall(text))
    return next(filter(_is_check, quoted), "")


def _is_check(text: str) -> bool:
    """Return whether a text can be parsed as a check."""
    try:
        parse(text)
    except CheckRefusedError:
        return False
    return True
