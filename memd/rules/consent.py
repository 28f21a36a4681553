"""Build the rule of a memory, and the hash of its words that a person consents to. Pure."""

import json
from collections.abc import Sequence

from msgspec import Struct

from memd.base.errors import Invalid
from memd.base.text import one_line, sha256
from memd.base.values import FOREIGN, Header, MemoryFile, MemoryType
from memd.rules.check import Check, normal, parse
from memd.rules.stored import StoredRule
from memd.rules.values import Answer, RuleCandidate, State, ToolRule, not_arule
from memd.store import memory
from memd.text import invisible

_NO_LINE = "it has no line check:"
_NAME_CHARACTERS, _WORDS_CHARACTERS = 100, 300  # so that a client shows the whole reason


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
    def reason(self) -> str:
        """The reason that a tool's call is answered with, with hidden characters spelled out."""
        name = one_line(invisible.spelled_out(self.name), _NAME_CHARACTERS)
        words = one_line(invisible.spelled_out(self.description), _WORDS_CHARACTERS)
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
            words=words.reason if words else "",
        )


def with_check(file: MemoryFile, check: str) -> tuple[bytes, RuleWords]:
    """Return a memory's content with ``check`` as its line, and the words of its rule.

    With "" for ``check`` the memory's own line is used. Raises Invalid.
    """
    header, content = file.header, file.content
    reason = reason_against_rule(header)
    if reason:
        raise not_arule(header.path, reason)
    words = words_of(content, header.path)
    if check and (words is None or words.check != check):
        content = memory.with_fields(content, {"metadata.check": check})
        words = words_of(content, header.path)
    if words is None:
        raise not_arule(header.path, _NO_LINE)
    parse(words.check)  # raises Invalid
    return content, words


def reason_against_rule(header: Header) -> str:
    """Return why a memory cannot carry a rule, "" if it can."""
    if header.origin in FOREIGN:
        return f"its words are not the person's ({header.origin})"
    if header.damaged:
        return "it is damaged"
    if header.type is not MemoryType.FEEDBACK:
        return f"its type is {header.type or 'not known'}"
    return ""


def words_of(content: bytes, path: str) -> RuleWords | None:
    """Return the rule's words in a memory, ``None`` if it is damaged or has no line ``check:``."""
    parsed = memory.parse(content, path)
    check = normal(parsed.metadata.get("check", ""))
    if not check or parsed.damaged:
        return None
    return RuleWords(check, parsed.name, parsed.description)


def load_rule(stored: StoredRule, file: MemoryFile | None) -> LoadedRule:
    """Return a stored rule with its current state, given its memory or ``None`` if that is gone.

    It is ``changed`` unless the memory has exactly the words that were consented to; it is on again
    once the memory has them again.
    """
    if file is None:
        return LoadedRule(stored, "gone", None)
    words = words_of(file.content, stored.path)
    if words is None or reason_against_rule(file.header) or words.digest != stored.digest:
        return LoadedRule(stored, "changed", words)
    if not stored.enabled:
        return LoadedRule(stored, "off", words)
    try:
        return LoadedRule(stored, "on", words, parse(words.check))
    except Invalid:  # a later version of memd accepted it
        return LoadedRule(stored, "changed", words)


def candidates(files: Sequence[MemoryFile]) -> tuple[RuleCandidate, ...]:
    """Return the memories that could be rules by path: those with a valid line ``check:``."""
    result = []
    for file in sorted(files, key=lambda file: file.header.path):
        words = words_of(file.content, file.header.path)
        if words and _is_check(words.check):
            result.append(RuleCandidate(file.header.path, file.header.name, words.check))
    return tuple(result)


def _is_check(text: str) -> bool:
    """Return whether a text can be parsed as a check."""
    try:
        parse(text)
    except Invalid:
        return False
    return True
