"""Finding and removing what looks like a credential in a text.

Rules of this file
- The rules are data (``secret_rules.toml``); this file only applies them.
- A text is searched in three forms: as it is, NFKC-normalised, and with invisible characters
  removed as well, so that a full-width letter or a zero-width joint hides nothing. Broken lines,
  base64 and hex are not undone.
- A finding names the rule and the line, never the value.
- Matching is linear in the text (google-re2 has no backtracking), and a rule whose words do not
  stand in the text is not tried at all.
"""

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from memd.base import regex
from memd.base.errors import MemdError
from memd.base.package_files import read_text
from memd.base.text import sha256
from memd.base.yielding import yield_to_requests
from memd.text.invisible import removed
from memd.text.normal import normal


class Finding(Struct, frozen=True):
    """One thing that looks like a credential: the rule's id and its line, counted from 1."""

    rule: str
    line: int


class _Rule(Struct, frozen=True):
    """A rule of ``secret_rules.toml``, which explains the fields."""

    id: str
    words: tuple[str, ...]
    pattern: str
    entropy: float = 0.0
    mixed: bool = False
    holds: str = ""
    assigned: bool = False
    prose: bool = False
    signs: bool = False
    needs: str = ""


class _Table(Struct, frozen=True):
    """All of ``secret_rules.toml``: the rules, and patterns of values that are no credentials."""

    rules: tuple[_Rule, ...]
    placeholder: str
    syntax: str
    ordinary: str
    prose: str
    names: str
    identifiers: str
    published: frozenset[str]


class _Hit(Struct, frozen=True):
    """Where the value of a rule's match lies in a text."""

    rule: str
    start: int
    end: int


_LEAST_DISTINCT_CHARACTERS = 5  # of a credential; `xxxx-xxxx` has two
_MIXED = r"\d.*[A-Za-z]|[A-Za-z].*\d|^\d{15,}$"
_HASH_DIGITS = 32  # under which the table lists published examples
_CHARACTERS_BEFORE = 24  # that may say what kind of key it is: "idempotency key"
_NAME_END = r"[\w.$-]*\Z"
_REPEATED_CHARACTER = r"(.)\1{7,}"
# Any character but ASCII and the dashes and quotes of typography, which have no other form.
_CHANGED_BY_FORMS = "[^\x00-\x7f\u2013\u2014\u2018\u2019\u201c\u201d]"
_ROUNDS = 3  # of replacing; the third finds nothing in any text that was seen
_REPLACED = r"\[secret: [a-z0-9-]+\]"
_LONG_TEXT = 64 * 1024  # characters, with which one rule takes a moment


def find(text: str) -> tuple[Finding, ...]:
    """Return what looks like a credential, by line and then the most specific rule first."""
    if text.isascii() and not _words()(text.lower()):  # as of most texts; ASCII has no other form
        return ()
    lines_and_rules: dict[tuple[int, str], None] = {}  # an ordered set of line and rule
    for form, hits, _ in _passes(text, keep_lines=True):
        # Rules come in the table's order: vendors' shapes before the general ones.
        for hit in hits:
            lines_and_rules[form.count("\n", 0, hit.start) + 1, hit.rule] = None
    by_line = sorted(lines_and_rules, key=lambda line_and_rule: line_and_rule[0])
    return tuple(Finding(rule, line) for line, rule in by_line)


def scrub(text: str) -> str:
    """Return a text with each credential replaced by ``[secret: rule]``, for logs and errors.

    Where one is only visible in a normalised form, that form is what comes back.
    """
    for _, _, rest in _passes(text, keep_lines=False):
        text = rest
    return text


def blank(text: str) -> str:
    """Return what ``scrub`` returns, but keep all line ends, so that line numbers stay."""
    for _, _, rest in _passes(text, keep_lines=True):
        text = rest
    return text


def scrub_error(error: MemdError) -> None:
    """Take credentials out of a failure's sentence and facts before anybody is told of it."""
    error.sentence = scrub(error.sentence)
    error.args = (error.sentence,)
    facts = error.facts.items()
    error.facts = {key: scrub(v) if isinstance(v, str) else v for key, v in facts}


def _passes(text: str, *, keep_lines: bool) -> Iterator[tuple[str, tuple[_Hit, ...], str]]:
    """Yield a text, its hits and the text without them; then the same for that, to the end.

    The text is searched as it is, normalised, and without invisible characters. In each form some
    rounds are needed, since a rule takes the character behind a credential along, with which the
    next one may begin. What was put in is no credential, although "secret: " in front of a path
    may look like one.
    """
    is_replaced = False  # until then "[secret: x]" is the writer's own, and may hide something
    form: str | None = None
    forms = (str, normal, _visible) if re.search(_CHANGED_BY_FORMS, text) else (str,)
    for normalise in forms:
        searched, form = form, normalise(text)
        if form == searched:
            continue
        for _ in range(_ROUNDS):
            hits = tuple(_matches(form))
            if is_replaced:
                hits = _outside_replaced(form, hits)
            if not hits:
                break
            rest = _replace(form, hits, keep_lines=keep_lines)
            yield form, hits, rest
            text = form = rest
            is_replaced = True


def _visible(text: str) -> str:
    """Return a text normalised and without invisible characters."""
    return removed(normal(text))


def _outside_replaced(text: str, hits: tuple[_Hit, ...]) -> tuple[_Hit, ...]:
    """Return the hits that begin outside of each ``[secret: rule]``, up to the next of these."""
    replaced = [match.span() for match in re.finditer(_REPLACED, text)]
    result = []
    for hit in hits:
        following = bisect_left(replaced, (hit.start + 1,))
        if following and replaced[following - 1][1] > hit.start:
            continue  # it begins with words that were put in
        end = min(hit.end, replaced[following][0]) if following < len(replaced) else hit.end
        result.append(_Hit(hit.rule, hit.start, end))
    return tuple(result)


def _replace(text: str, hits: tuple[_Hit, ...], *, keep_lines: bool) -> str:
    """Return a text with each hit replaced by the name of its rule.

    Of hits that overlap only the first is named. With ``keep_lines`` their line ends stay.
    """
    parts: list[str] = []
    position = 0  # of the first character that is not handled yet
    for hit in sorted(hits, key=lambda hit: (hit.start, -hit.end)):
        if hit.start >= position:
            parts += [text[position : hit.start], f"[secret: {hit.rule}]"]
        if keep_lines:
            parts.append("\n" * text.count("\n", max(position, hit.start), hit.end))
        position = max(position, hit.end)
    return "".join((*parts, text[position:]))


def _matches(text: str) -> Iterator[_Hit]:
    """Yield each match of a rule whose value may be a credential."""
    # A lone surrogate cannot be encoded for re2; it is no part of any credential.
    text = text.encode("utf-8", "replace").decode("utf-8")
    lowered = text.lower()
    words = _words()(lowered)
    if not words:  # as of most texts
        return
    # In a text of characters re2 has to count bytes around each match. In ASCII a match is at the
    # same place in both forms.
    searched = text.encode() if text.isascii() else text
    is_long = len(text) > _LONG_TEXT
    for rule in _table().rules:
        if is_long:
            yield_to_requests()
        if words.isdisjoint(rule.words):
            continue
        if rule.needs and _compiled(rule.needs).search(searched) is None:
            continue
        for match in _compiled(rule.pattern).finditer(searched):
            group = match.lastindex or 0  # of the value; without a group it is all that matched
            start, value_start, value_end = match.start(), match.start(group), match.end(group)
            line_start = text.rfind("\n", 0, start) + 1
            name_start = max(line_start, start - _CHARACTERS_BEFORE)
            before, name = text[name_start:start], text[start:value_start]
            if _may_be_credential(text[value_start:value_end], before, name, rule):
                yield _Hit(rule.id, value_start, value_end)


def _may_be_credential(value: str, before: str, name: str, rule: _Rule) -> bool:
    """Say whether a matched value may be a credential of this rule, and no example or identifier.

    ``name`` are the words in front of it that the pattern has matched, ``before`` those before.
    """
    table = _table()
    run = re.search(_REPEATED_CHARACTER, value)
    if run is not None and 3 * len(run.group()) > len(value):  # "xxxxxxxx" for a third of it
        return False
    excluded = [table.placeholder]
    # A variable or a template is no credential; rules for passwords of any characters allow it.
    excluded += [] if rule.signs else [table.syntax]
    excluded += [table.prose] if rule.prose else []
    if any(_compiled(pattern).search(value) for pattern in excluded):
        return False
    if rule.assigned and _is_identifier(value, before, name, table):
        return False
    return (
        len(set(value.lower())) >= _LEAST_DISTINCT_CHARACTERS
        and (not rule.mixed or re.search(_MIXED, value) is not None)
        and (not rule.holds or _compiled(rule.holds).search(value) is not None)
        and _entropy(value) >= rule.entropy
        and sha256(value.encode())[:_HASH_DIGITS] not in table.published
    )


def _entropy(value: str) -> float:
    """Return the Shannon entropy of a value's characters, in bits per character."""
    frequencies = [times / len(value) for times in Counter(value).values()]
    return -sum(frequency * math.log2(frequency) for frequency in frequencies)


def _is_identifier(value: str, before: str, name: str, table: _Table) -> bool:
    """Say whether a value is an identifier by its form, its name or the word before "key"."""
    word_before = re.search(_NAME_END, before)
    whole_name = (word_before.group() if word_before else "") + name
    searches = (
        (table.ordinary, value),
        (table.names, whole_name),
        (table.identifiers, before + name),
    )
    return any(_compiled(pattern).search(text) for pattern, text in searches)


@cache
def _compiled(pattern: str) -> Any:
    """Return a pattern of the table, compiled when a text first needs it."""
    return regex.own(pattern)


@cache
def _words() -> Callable[[str], frozenset[str]]:
    """Return a function that returns which words of the rules occur in a text."""
    return regex.words_in(sorted({word for rule in _table().rules for word in rule.words}))


@cache
def _table() -> _Table:
    """Return the rules, read from the file at the first call."""
    tables = msgspec.toml.decode(read_text("store/secret_rules.toml"))
    return msgspec.convert({"rules": tables["rule"], **tables["values"]}, _Table)
