"""Score how much a sentence looks worth remembering: a linear model over markers and words. Pure.

The scores are log odds: ``lasting``, that the sentence holds beyond its conversation; ``marked``,
that the person says so; ``stated``, that it is lasting in a message that only states something.
``benchmarks/train_extractor.py`` trains the weights (``weights.tsv``); docs/extraction.md has the
measured quality.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise

from msgspec import Struct

from memd.extract.markers import is_question
from memd.extract.sentences import BLANK, Sentence
from memd.text.words import WIDE

_TOKEN = re.compile(r"[^\W\d_]+(?:'[a-z]+)?|\d+|[^\w\s]")
_CJK = re.compile(f"[{WIDE}]+")
_QUESTION_MARK = re.compile("[?\uff1f]")
_LENGTHS = (15, 30, 60, 120, 250)  # characters, a CJK character counts twice
_SENTENCES = (2, 4, 9)  # in the message
_MESSAGE_LENGTHS = (200, 600, 2000)  # characters
_TOKENS = 60  # of a sentence that are used
# A question so near the end of the assistant's message was put to the person.
_QUESTION_CHARACTERS = 200
TASK = frozenset({"question", "order", "request"})
_NOT_PLAIN = TASK | {"doubt", "error", "observation", "thanks", "past"}
_TOGETHER = {  # markers that mean something of their own where both stand
    "prohibition": "everything address reason deictic never",
    "obligation": "everything always",
    "first_person": "skill copula place identity environment observation request",
    "ours": "possession place",
    "subject": "copula obligation",
    "preference": "practice",
    "order": "always future never prohibition",
    "future": "obligation address",
    "question": "future first_person always never",
    "doubt": "obligation",
    "observation": "never always",
    "interface": "always never obligation prohibition",
    "request": "always future",
    "now": "prohibition",
    "conduct": "prohibition",
    "consent": "prohibition address",
}
_PAIRS = tuple((one, other) for one, others in _TOGETHER.items() for other in others.split())


class SentencePlace(Struct, frozen=True):
    """The place of a sentence: its index in a message, and what is around it."""

    number: int = 0  # its index
    sentences: int = 1  # in the message
    characters: int = 0  # of the message
    first: bool = False  # whether the message is the session's first one
    before: str = ""  # the assistant's message before it


class Scores(Struct, frozen=True):
    """Log odds that a sentence is lasting, marked as such, and lasting where all is stated."""

    lasting: float
    marked: float
    stated: float


def score(features: frozenset[str]) -> Scores:
    """Return the scores of a sentence's features. Blocks at the first call."""
    return added(features, _weights())


def added(features: frozenset[str], weights: Mapping[str, Sequence[float]]) -> Scores:
    """Return the sums of the features' weights and of "", which counts for every sentence."""
    rows = [weights[feature] for feature in ("", *features) if feature in weights]
    columns = zip(*rows, strict=True)  # one for each score
    return Scores(*(sum(column) for column in columns))


def features(sentence: Sentence, names: frozenset[str], place: SentencePlace) -> frozenset[str]:
    """Return the names of a sentence's features; ``names`` are its markers.

    Blocks at the first call.
    """
    plain = sentence.plain
    result = {f"m:{name}" for name in names}
    result.update(f"p:{one}*{other}" for one, other in _PAIRS if one in names and other in names)
    if is_question(plain):
        result.add("question mark")
    elif not names & _NOT_PLAIN:
        result.add("plain")
    wide = sum(map(len, _CJK.findall(plain)))
    result.add(f"length {_count_reached(len(plain) + wide, _LENGTHS)}")
    result.update(_place_features(place, answers=not (names & TASK)))
    result.update(_word_features(sentence.masked))
    return frozenset(result)


def _place_features(place: SentencePlace, *, answers: bool) -> set[str]:
    """Return the features of a sentence's place; ``answers`` says that it may be an answer."""
    result = {
        f"sentences {_count_reached(place.sentences, _SENTENCES)}",
        f"message {_count_reached(place.characters, _MESSAGE_LENGTHS)}",
    }
    if place.first:
        result.add("first message")
    if place.number == 0:
        result.add("first sentence")
    if _QUESTION_MARK.search(place.before[-_QUESTION_CHARACTERS:]):
        result.add("after a question")
        if answers:
            result.add("answer")
    return result


def _word_features(masked: str) -> set[str]:
    """Return the features of words and pairs of words; of CJK text those of character pairs."""
    plain = masked.replace(BLANK, " Q ").lower().replace("\u2019", "'")
    runs = _CJK.findall(plain)
    typed = _TOKEN.findall(_CJK.sub(" ", plain))[:_TOKENS]
    tokens = ["^", *("0" if token.isdigit() else token for token in typed)]
    # "w:" marks a word or a pair of characters, "b:" a pair of words.
    result = {f"w:{token}" for token in tokens}
    result.update(f"b:{one} {other}" for one, other in pairwise(tokens))
    result.update(
        f"w:{run[at : at + 2]}" for run in runs for at in range(min(len(run), _TOKENS) - 1)
    )
    return result


def _count_reached(value: int, bounds: tuple[int, ...]) -> int:
    """Return how many of the bounds a value reaches."""
    return sum(value >= bound for bound in bounds)


@cache
def _weights() -> Mapping[str, Sequence[float]]:
    """Return the weights of each feature, one for each score."""
    lines = files("memd.extract").joinpath("weights.tsv").read_text("utf-8").splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return {feature: tuple(map(float, weights)) for *weights, feature in rows}
