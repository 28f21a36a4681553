"""Compare statements: which ones resemble each other, and which of these contradict. Pure.

Similarity is the share of telling words that two statements have in common; synonyms are not
known. Where two similar sentences differ in one place only, that counts as a contradiction.
"""

from difflib import SequenceMatcher
from functools import cache, lru_cache

from memd.text.bounds import DENIAL
from memd.text.statements import CODE, Statement, is_telling, stem

RESEMBLING = 0.5  # of the telling words of the shorter one: below, two sentences differ in subject
_EXCHANGED_WORDS = 2  # in a row that take the place of others, at most
_EQUAL_SHARE = 0.5  # of the words in order, at least, in a sentence that otherwise stays
_PREFIXES = ("un", "dis", "de", "in", "im", "ir", "non", "mis", "anti")  # turn a meaning round
_NO_WORDS: frozenset[str] = frozenset()
_SWAPPED_WORDS = 2
_OPPOSITES = (
    "on off, before after, allow forbid, allowed denied, accept reject, first last, more less,"
    " most least, up down, include exclude, with without, true false, public private, add remove,"
    " start stop, start end, begin end, open closed, required optional, primary secondary, old new,"
    " yes no, enable disable, all none, increase decrease, manual automatic, success failure,"
    " mandatory optional, to from, in out, over under, inside outside,"
    " minimum maximum, some all, some every, few many,"
    " early late, above below, always never, hot cold, sync async, left right"
)


def resemblance(one: Statement, two: Statement) -> float:
    """Return the share of the shorter statement's telling words that the other one has too."""
    fewest = min(len(one.words), len(two.words))
    return len(one.words & two.words) / fewest if fewest else float(one.key == two.key)


def contradiction(new: Statement, old: Statement) -> str:
    """Return why two statements that resemble each other cannot both hold, "" if they can."""
    if (DENIAL in new.limits) != (DENIAL in old.limits):
        return "one denies what the other says"
    if opposed(new, old):
        return "one has the opposite word"
    for kind in {kind for kind, _ in new.facts}:
        new_forms = {form for fact_kind, form in new.facts if fact_kind == kind}
        old_forms = {form for fact_kind, form in old.facts if fact_kind == kind}
        if new_forms - old_forms and old_forms - new_forms:
            return "a fact differs"
    return "one word differs" if exchanged(new, old) else ""


def opposed(new: Statement, old: Statement) -> bool:
    """Return whether one statement has the opposite of a word that only the other one has."""
    new_forms = {token.form for token in new.tokens if token.kind != CODE}
    old_forms = {token.form for token in old.tokens if token.kind != CODE}
    only_new, only_old = new_forms - old_forms, old_forms - new_forms
    for word in only_new:
        has_opposite = not _opposites().get(word, _NO_WORDS).isdisjoint(only_old)
        has_prefix_more = _without_prefix(word) & only_old
        has_prefix_less = any(word in _without_prefix(other) for other in only_old)
        if has_opposite or has_prefix_more or has_prefix_less:
            return True
    return False


def exchanged(new: Statement, old: Statement) -> bool:
    """Return whether two sentences are equal but for one place with other words.

    It also counts if two words have exchanged their places.
    """
    new_forms, old_forms = _forms(new), _forms(old)
    if swapped(new, old):
        return True
    matcher = SequenceMatcher(None, new_forms, old_forms, autojunk=False)
    if matcher.ratio() < _EQUAL_SHARE:
        return False
    for tag, new_start, new_end, old_start, old_end in matcher.get_opcodes():
        new_words, old_words = new_forms[new_start:new_end], old_forms[old_start:old_end]
        is_short = max(len(new_words), len(old_words)) <= _EXCHANGED_WORDS
        if tag == "replace" and is_short and set(new_words).isdisjoint(old_words):
            return True
    return False


def swapped(new: Statement, old: Statement) -> bool:
    """Return whether two words have exchanged places: "A calls B" and "B calls A"."""
    kinds = dict(sorted((form, kind) for kind, form in new.facts | old.facts))
    common = set(_forms(new)) & set(_forms(old))
    new_forms = [form for form in _forms(new) if form in common]
    old_forms = [form for form in _forms(old) if form in common]
    # Facts of one kind stand in another order.
    for kind in set(kinds.values()):
        new_facts = [form for form in new_forms if kinds.get(form) == kind]
        old_facts = [form for form in old_forms if kinds.get(form) == kind]
        if len(new_facts) == len(old_facts) and new_facts != old_facts:
            return True
    if len(new_forms) != len(old_forms):
        return False
    pairs = enumerate(zip(new_forms, old_forms, strict=True))
    different = [(place, left, right) for place, (left, right) in pairs if left != right]
    if len(different) != _SWAPPED_WORDS:
        return False
    (first_place, left, right), (second_place, *_) = different
    # Neighbours do not count, except for the cells of two rows.
    are_rows = new.raw.startswith("|") and old.raw.startswith("|")
    are_apart = are_rows or second_place - first_place > 1
    return are_apart and kinds.get(left) == kinds.get(right)


@cache
def _opposites() -> dict[str, frozenset[str]]:
    """Return for the stem of each word of the table the stems of its opposites."""
    result: dict[str, frozenset[str]] = {}
    for pair in _OPPOSITES.split(","):
        first, second = map(stem, pair.split())
        result[first] = result.get(first, _NO_WORDS) | {second}
        result[second] = result.get(second, _NO_WORDS) | {first}
    return result


@lru_cache(8192)
def _without_prefix(word: str) -> frozenset[str]:
    """Return what is left of a word without a prefix that turns its meaning round."""
    return frozenset(word.removeprefix(p) for p in _PREFIXES if word.startswith(p))


def _forms(statement: Statement) -> list[str]:
    """Return the forms of the words that are compared, in order; all words of a table's row."""
    is_row = statement.raw.startswith("|")  # a cell says "yes" or "no"
    return [token.form for token in statement.tokens if is_row or is_telling(token)]
