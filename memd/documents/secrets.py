"""What looks like a credential.

Rules of this file
- The rules are data (``secret_rules.toml``); this file only applies them.
- A text is looked at in three forms: as it is, NFKC-normalised, and with invisible characters
  removed as well, so that a full-width letter or a zero-width joint hides nothing. Of each, what
  comes out of joined lines and decoded runs is looked at for the shapes of tokens as well.
- An answer names the rule and the line, never the value.
- Matching is linear in the text (google-re2 has no backtracking), and a rule whose words do not
  stand in the text is not tried at all.
"""

import hashlib
import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from importlib import resources

import msgspec
from msgspec import Struct

from memd.core import regex
from memd.core.errors import MemdError
from memd.core.yielding import yield_to_requests
from memd.documents.secret_forms import compiled, derived, subject
from memd.documents.secret_values import CHECKS
from memd.text.invisible import removed
from memd.text.normal import normal


class Finding(Struct, frozen=True):
    """One thing that looks like a credential: the rule's id and its line, counted from 1."""

    rule: str
    line: int


class _Rule(Struct, frozen=True):
    id: str
    words: tuple[str, ...]
    pattern: str
    entropy: float = 0.0
    mixed: bool = False
    value: str = ""
    signs: bool = False
    prose: bool = False
    needs: str = ""


class _Table(Struct, frozen=True):
    rules: tuple[_Rule, ...]
    placeholder: str
    syntax: str
    ordinary: str
    names: str
    identifiers: str
    published: frozenset[str]


class _Name(Struct, frozen=True):
    """What a pattern matched before a value, and what stands before that in the line."""

    before: str
    own: str


class _Hit(Struct, frozen=True):
    rule: str
    start: int
    end: int


_VARIETY = 5  # different characters that a credential has at least: `xxxx-xxxx` has two
_MIXED = re.compile(r"\d.*[A-Za-z]|[A-Za-z].*\d|^\d{15,}$")
_FINGERPRINT_DIGITS = 32
_NEAR = 64  # lines: a rule looks for 64 characters of a key, which may stand on as many
_BEFORE = 24  # characters that may say what kind of key it is: "idempotency key"
_NAME_END = re.compile(r"[\w.$-]*\Z")
_ASSIGNED = "assigned"  # a check of values that may be identifiers, by their name as well
_RUN = re.compile(r"(.)\1{7,}")
_LONG = 64 * 1024  # characters of a text with which one rule takes a moment


def find(text: str) -> tuple[Finding, ...]:
    """Return what looks like a credential, by line and then the most telling rule first."""
    result: dict[tuple[int, str], None] = {}
    for form in _forms(text):
        # Rules come in the table's order: vendors' shapes before the general ones.
        looked_at = form if form is text else _changed(text, form)
        for hit in _hits(looked_at):
            result[looked_at.count("\n", 0, hit.start) + 1, hit.rule] = None
    return tuple(Finding(rule, line) for line, rule in sorted(result, key=lambda item: item[0]))


def scrub(text: str) -> str:
    """Return a text with each credential replaced by ``[secret: rule]``, for logs and errors.

    Where one is only visible in a normalised form, that form is what comes back.
    """
    return _scrubbed(text, lines=False)


def blank(text: str) -> str:
    """Return a text as ``scrub`` does, with every line end where it was: line numbers stay."""
    return _scrubbed(text, lines=True)


def scrub_error(error: MemdError) -> None:
    """Take credentials out of a failure's sentence and facts before anybody is told of it."""
    error.sentence = scrub(error.sentence)
    error.args = (error.sentence,)
    facts = error.facts.items()
    error.facts = {key: scrub(v) if isinstance(v, str) else v for key, v in facts}


def _scrubbed(text: str, *, lines: bool) -> str:
    hits = tuple(_hits(text))
    text = result = _replace(text, hits, lines=lines) if hits else text
    for form in _forms(text):
        # What stands in the text as it is was found; only what is left may change its form.
        if form is not text and (hits := tuple(_hits(form))):
            result = _replace(form, hits, lines=lines)
    return result


def _replace(text: str, hits: tuple[_Hit, ...], *, lines: bool) -> str:
    """Return a text with each hit replaced by the name of its rule."""
    parts: list[str] = []
    position = 0
    for hit in sorted(hits, key=lambda hit: (hit.start, -hit.end)):
        if hit.start >= position:
            parts += [text[position : hit.start], f"[secret: {hit.rule}]"]
        if lines:
            parts.append("\n" * text.count("\n", max(position, hit.start), hit.end))
        position = max(position, hit.end)
    return "".join((*parts, text[position:]))


def _forms(text: str) -> Iterator[str]:
    """Yield a text as it is, normalised, and without invisible characters."""
    yield text
    if text.isascii():
        return
    plain = normal(text)
    if plain != text:
        yield plain
    visible = removed(plain)
    if visible != plain:
        yield visible


def _changed(text: str, form: str) -> str:
    """Return a form with the lines empty that lie far from any that it changes.

    Normalising makes and removes no line ends, so lines keep their numbers.
    """
    lines = form.split("\n")
    near: set[int] = set()
    for number, (before, after) in enumerate(zip(text.split("\n"), lines, strict=True)):
        if before != after:
            near.update(range(number - _NEAR, number + _NEAR + 1))
    return "\n".join(line if number in near else "" for number, line in enumerate(lines))


def _hits(text: str) -> Iterator[_Hit]:
    """Yield what the rules find in a text, and in what it says joined and decoded."""
    # A lone surrogate cannot be encoded for re2; it is no part of any credential.
    text = text.encode("utf-8", "replace").decode("utf-8")
    plain = tuple(_matches(text, _table().rules))
    yield from plain
    made = derived(text)
    shapes = tuple(rule for rule in _table().rules if not rule.prose) if made.text else ()
    for hit in _matches(made.text, shapes):
        start, end = made.source(hit.start, hit.end)
        # A token that is whole in its line would take the first word of the next one with it.
        if not any(known.start < end and start < known.end for known in plain):
            yield _Hit(hit.rule, start, end)


def _matches(text: str, rules: tuple[_Rule, ...]) -> Iterator[_Hit]:
    """Yield each match of a rule whose value may be a credential."""
    lowered = text.lower()
    words = _words()(lowered)
    if not words:  # as of most texts
        return
    searched = subject(text)
    long = len(text) > _LONG
    for rule in rules:
        if long:
            yield_to_requests()
        if words.isdisjoint(rule.words):
            continue
        if rule.needs and compiled(rule.needs).search(searched) is None:
            continue
        for match in compiled(rule.pattern).finditer(searched):
            group = match.lastindex or 0
            value = text[match.start(group) : match.end(group)]
            line = text.rfind("\n", 0, match.start()) + 1
            before = text[max(line, match.start() - _BEFORE) : match.start()]
            name = _Name(before, text[match.start() : match.start(group)])
            if _credible(value, name, rule):
                yield _Hit(rule.id, match.start(group), match.end(group))


def _credible(value: str, name: _Name, rule: _Rule) -> bool:
    """Say whether a matched value may be a credential of this rule."""
    table = _table()
    run = _RUN.search(value)
    if len(set(value.lower())) < _VARIETY or (run and 3 * len(run.group()) > len(value)):
        return False
    if compiled(table.placeholder).search(value):
        return False
    if not rule.signs and compiled(table.syntax).search(value):
        return False
    if rule.value == _ASSIGNED and _strange(value, name, table):
        return False
    return (
        (not rule.mixed or _MIXED.search(value) is not None)
        and CHECKS[rule.value](value)
        and _entropy(value) >= rule.entropy
        and _fingerprint(value) not in table.published
    )


def _fingerprint(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()[:_FINGERPRINT_DIGITS]


def _entropy(value: str) -> float:
    counts = Counter(value).values()
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts)


def _strange(value: str, name: _Name, table: _Table) -> bool:
    """Say whether a value is an identifier by its form, its name or the word before "key"."""
    word = _NAME_END.search(name.before)
    own = f"{word.group() if word else ''}{name.own}"
    return any(
        (
            compiled(table.ordinary).search(value),
            compiled(table.names).search(own),
            compiled(table.identifiers).search(name.before + name.own),
        )
    )


@cache
def _words() -> Callable[[str], frozenset[str]]:
    """Return what says which words of rules stand in a text."""
    return regex.words_in(sorted({word for rule in _table().rules for word in rule.words}))


@cache
def _table() -> _Table:
    source = resources.files("memd.documents").joinpath("secret_rules.toml").read_bytes()
    tables = tomllib.loads(source.decode("utf-8"))
    return msgspec.convert({"rules": tables["rule"], **tables["values"]}, _Table)
