"""Compare statements: which ones resemble each other, and which of these contradict. Pure.

Similarity is the share of telling words that two statements have in common; synonyms are not
known. Where two similar sentences differ in one place only, that counts as a contradiction.
"""

from difflib import SequenceMatcher
from functools import cache, lru_cache

from memd.text.bounds import DENIAL
from memd.text.statements import CODE, PLAIN, Statement, is_telling, stem

RESEMBLING = 0.5  # of the telling words of the shorter one: below, two sentences differ in subject
_EXCHANGED = 2  # words in a row that take the place of others
_EQUAL = 0.5  # of the words in order: a sentence that otherwise stays
_PREFIXES = ("un", "dis", "de", "in", "im", "ir", "non", "mis", "anti")
_NOBODY: frozenset[str] = frozenset()
_PAIRS = (
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
        left = {form for its, form in new.facts if its == kind}
        right = {form for its, form in old.facts if its == kind}
        if left - right and right - left:
            return "a fact differs"
    return "one word differs" if exchanged(new, old) else ""


def opposed(new: Statement, old: Statement) -> bool:
    """Return whether one statement has the opposite of a word that only the other one has."""
    left = {token.form for token in new.tokens if token.kind != CODE}
    right = {token.form for token in old.tokens if token.kind != CODE}
    mine, theirs = left - right, right - left
    return any(
        not _opposites().get(word, _NOBODY).isdisjoint(theirs)
        or _without_prefix(word) & theirs
        or any(_without_prefix(other) & {word} for other in theirs)
        for word in mine
    )


def exchanged(new: Statement, old: Statement) -> bool:
    """Return whether two sentences are equal but for one place with other words.

    It also counts if two words have exchanged their places.
    """
    left, right = _forms(new), _forms(old)
    if swapped(new, old):
        return True
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    if matcher.ratio() < _EQUAL:
        return False
    for tag, i, j, k, m in matcher.get_opcodes():
        short = j - i <= _EXCHANGED and m - k <= _EXCHANGED
        if tag == "replace" and short and not set(left[i:j]) & set(right[k:m]):
            return True
    return False


def swapped(new: Statement, old: Statement) -> bool:
    """Return whether two words have exchanged places: "A calls B" and "B calls A"."""
    kinds = dict(sorted((form, kind) for kind, form in new.facts | old.facts))
    both = set(_forms(new)) & set(_forms(old))
    for kind in {*kinds.values(), PLAIN}:
        sides = [[form for form in _forms(one) if form in both] for one in (new, old)]
        if kind != PLAIN:
            sides = [[form for form in side if kinds.get(form) == kind] for side in sides]
        pairs = [(n, a, b) for n, (a, b) in enumerate(zip(*sides, strict=False)) if a != b]
        if not pairs or len(sides[0]) != len(sides[1]):
            continue
        if kind != PLAIN:
            return True
        row = new.raw.startswith("|") and old.raw.startswith("|")
        apart = len(pairs) == 2 and (row or pairs[1][0] - pairs[0][0] > 1)  # noqa: PLR2004 - a pair
        if apart and kinds.get(pairs[0][1]) == kinds.get(pairs[0][2]):
            return True
    return False


@cache
def _opposites() -> dict[str, frozenset[str]]:
    """Return for the stem of each word of the table the stems of its opposites."""
    pairs = [tuple(map(stem, pair.split())) for pair in _PAIRS.split(",")]
    both = [*pairs, *(pair[::-1] for pair in pairs)]
    return {word: frozenset(other for one, other in both if one == word) for word, _ in both}


@lru_cache(8192)
def _without_prefix(word: str) -> frozenset[str]:
    """Return what is left of a word without a prefix that turns its meaning round."""
    return frozenset(word.removeprefix(p) for p in _PREFIXES if word.startswith(p))


def _forms(statement: Statement) -> list[str]:
    """Return the forms of the words that are compared, in order; all words of a table's row."""
    is_row = statement.raw.startswith("|")  # a cell says "yes" or "no"
    return [token.form for token in statement.tokens if is_row or is_telling(token)]
