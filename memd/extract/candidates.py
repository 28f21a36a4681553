"""Select the sentences of a person's messages that are saved or suggested, without a model.

Rules of this file
- Only the person's own sentences are used, and copied word for word.
- A sentence is saved if it asks for something from now on (``_is_standing``), nothing speaks
  against it and its score is high enough. A sentence that is probably lasting is suggested, and so
  is every request to remember that was not saved.
- A sentence with a credential is neither saved nor suggested.
The same words always give the same candidates. Pure.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from memd.core.covered import CoveredText
from memd.core.values import OUTSIDE, PERSON, MemoryType, Message, Suggestion
from memd.core.yielding import yield_to_requests
from memd.extract import credentials, scorer
from memd.extract.markers import has_any, is_question, markers, other_list, without
from memd.extract.scorer import TASK, Scores, SentencePlace
from memd.extract.sentences import Sentence, sentences
from memd.text.words import WIDE, words

# Least log odds of a saved or suggested sentence, chosen so that at most six of a hundred messages
# of other people's conversations yield one (benchmarks/train_extractor.py prints the figures).
SAVED, MARKED, LASTING = -4.5, -2.9, -1.45
# The same for a message that only states something (no task, question, doubt or error), at the
# start of a conversation and later. The only purpose of such a message is to be known.
OPENING, STATED = -2.6, -1.0
_STATED_SENTENCES = 2  # of such a message at most
_SAVED_CHARACTERS = 180  # of a saved sentence at most; a CJK character counts twice
_DOCUMENT_CHARACTERS, _DOCUMENT_SENTENCES = 1500, 12  # a longer message is mostly pasted
_MOST_SUGGESTIONS = 2  # of one message
_LEAST_WORDS = 2  # telling words of a sentence; one more if it has "this" or "it"
_LEAST_WIDE = 6  # Chinese, Japanese or Korean characters of a sentence without such words
# Names of markers (``markers``). With one of these a memory is a rule for the assistant.
_RULE = frozenset(
    {"always", "never", "future", "consent", "conduct", "preference", "answers", "prohibition"}
)
# With one of these a sentence may be suggested for the score that it is marked as lasting.
_MARKED = (_RULE - {"prohibition"}) | {"remember", "identity"}
# With one of these before a colon the words there are a request and not a speaker's name.
_ASKS = frozenset({"remember", "always", "never", "future", "consent"})
_LEAD = re.compile(r"([^:\uff1a]{1,40})[:\uff1a](?!//)")
_UNFIT = frozenset({"question", "starts:question", "doubt", "error", "observation"})
_PRODUCT = frozenset({"interface", "audience"})  # about the product, unless a rule opens the text
_NO_STATEMENT = TASK | {"error", "doubt"}
# Without any of these a sentence asks for nothing that holds from now on.
_LASTING = frozenset(
    {"never", "always", "future", "next_time", "remember", "consent", "preference"}
)
_OPENS = frozenset({"starts:never", "starts:always", "starts:future", "remember", "consent"})
# Words of a request that do not say what to remember: "remember this for all future sessions".
_EMPTY = frozenset(
    {"remember", "future", "next_time", "deictic", "always", "everything", "address", "thanks"}
)
_OCCASION = (
    "session sessions conversation conversations chat chats time times later future next again"
    " memory mind please important forget note save fact rule thing"
    " für alle künftigen künftige sitzungen gespräche todas las sesiones futuras para toutes les"
    " prochaines pour todas as sessões para tutte le sessioni per всех будущих сессий для"
)
_URL = re.compile(r"https?://\S+|\bwww\.\S+")
# A path in the source code: what a sentence says about it changes soon and is easily read there.
_SOURCE = re.compile(
    r"(?<![\w:/.])(?:src|lib|apps?|cmd|pkg|internal|tests?|docs?|scripts|packages|web)/\w",
    re.IGNORECASE,
)
_WIDE = re.compile(f"[{WIDE}]")
# The reasons why a message has no result.
QUESTION, PASTED, NOT_LASTING, NOT_OWN = "question", "pasted", "not_lasting", "not_own_words"
UNCERTAIN = "uncertain"  # why a sentence is suggested and not saved


class Candidate(Struct, frozen=True):
    """A sentence to be saved: ``text`` is the person's, said ``at`` (seconds since 1970)."""

    type: MemoryType
    text: str
    at: float


class Candidates(Struct, frozen=True):
    """The sentences of some messages that are saved or suggested.

    ``refused`` has the secret rule of each sentence with a credential, ``passed_over`` the reason
    for each message without a result, ``already_said`` what an instruction file says.
    """

    candidates: tuple[Candidate, ...]
    suggestions: tuple[Suggestion, ...] = ()
    refused: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()
    already_said: tuple[CoveredText, ...] = ()


def find(
    messages: Iterable[Message],
    now: float,
    session: str = "",
    score: Callable[[frozenset[str]], Scores] = scorer.score,
) -> Candidates:
    """Return the saved and suggested sentences of a conversation.

    ``now`` replaces a missing time of a message; ``session`` is named in suggestions.
    """
    parts: list[Candidates] = []
    before, first = "", True
    for message in messages:
        yield_to_requests()
        if message.origin == "user" and message.role == "user":
            at = now if message.at is None else message.at
            place = SentencePlace(characters=len(message.text), first=first, before=before)
            parts.append(_find_in_message(message.text, at, session, place, score))
            first = False
        elif message.origin == "assistant":
            before = message.text
    return Candidates(
        tuple(item for part in parts for item in part.candidates),
        tuple(item for part in parts for item in part.suggestions),
        tuple(item for part in parts for item in part.refused),
        tuple(item for part in parts for item in part.passed_over),
    )


def statements(text: str, before: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the sentences of a message that would be saved, and those that correct the assistant.

    ``before`` is the assistant's last message, "" if the message opens the conversation. Blocks at
    the first call, which loads the lists.
    """
    own = sentences(text)
    if _is_pasted(text, own):
        return (), ()
    place = SentencePlace(characters=len(text), first=not before, before=before, sentences=len(own))
    saved, corrections = [], []
    for number, sentence in enumerate(own):
        if sentence.announced:
            continue
        lasting = has_any(sentence.plain, _LASTING)
        scored = _score(sentence, replace(place, number=number), scorer.score) if lasting else None
        if scored and _is_saved(scored):
            saved.append(sentence.text)
        elif before and not is_question(sentence.plain):
            denies = number == 0 and other_list("denial").match(sentence.plain)
            corrects = other_list("correction").search(sentence.plain)
            if denies or corrects or (scored and _is_rule(scored)):
                corrections.append(sentence.text)
    return tuple(saved), tuple(corrections)


def _is_rule(item: "_Scored") -> bool:
    """Return whether a sentence asks for something that holds from now on."""
    return _is_standing(item.names) and not item.opens_text and not item.names & _UNFIT


def _is_pasted(text: str, own: Sequence[Sentence]) -> bool:
    """Return whether a message is longer than what a person types, so mostly pasted."""
    return len(text) > _DOCUMENT_CHARACTERS or len(own) >= _DOCUMENT_SENTENCES


def _find_in_message(
    text: str,
    at: float,
    session: str,
    place: SentencePlace,
    score: Callable[[frozenset[str]], Scores],
) -> Candidates:
    """Return the saved and suggested sentences of one message, or why there are none."""
    own = sentences(text)
    if not own:
        return Candidates((), passed_over=(NOT_OWN,) if text.strip() else ())
    pasted = _is_pasted(text, own)
    place = replace(place, sentences=len(own))
    scored = [_score(sentence, replace(place, number=n), score) for n, sentence in enumerate(own)]
    saved = [] if pasted else [item for item in scored if _is_saved(item)]
    least_stated = inf  # no score reaches it
    if len(own) <= _STATED_SENTENCES and all(item.states for item in scored):
        least_stated = OPENING if place.first else STATED
    suggested = [
        item
        for item in scored
        if item not in saved and _is_suggested(item, least_stated, pasted=pasted)
    ]
    suggested.sort(key=_rank)
    retained, refused = [], []
    for item in (*saved, *suggested[:_MOST_SUGGESTIONS]):
        found_credentials = credentials.find(item.sentence.text)
        if found_credentials:
            refused.append(found_credentials[0])
        else:
            retained.append(item)
    if not retained:
        return Candidates(
            (),
            refused=tuple(refused),
            passed_over=() if refused else (_skip_reason(scored, pasted=pasted),),
        )
    return Candidates(
        tuple(Candidate(item.type, item.sentence.text, at) for item in retained if item in saved),
        tuple(
            Suggestion(session, item.sentence.text, at, item.origin, item.type.value, UNCERTAIN)
            for item in retained
            if item not in saved
        ),
        tuple(refused),
    )


def _score(
    sentence: Sentence, place: SentencePlace, score: Callable[[frozenset[str]], Scores]
) -> "_Scored":
    """Return a sentence with its markers and scores."""
    names = markers(sentence.plain)
    return _Scored(sentence, names, score(scorer.features(sentence, names, place)))


def _is_saved(item: "_Scored") -> bool:
    """Return whether a sentence asks for something from now on and is clear without context."""
    if not _is_standing(item.names) or item.names & _UNFIT or item.asks or item.opens_text:
        return False
    if item.sentence.announced:  # it may be another's text
        return False
    if item.opens_with("supposition") or item.opens_with("refusal"):
        return False
    if item.names & _PRODUCT and not item.names & _OPENS:
        return False
    if _SOURCE.search(item.plain) or _is_spoken_by_another(item.plain):
        return False
    return item.scores.marked >= SAVED and item.length <= _SAVED_CHARACTERS and item.says_something


def _is_spoken_by_another(plain: str) -> bool:
    """Return whether a sentence begins with a speaker and a colon: "Bob wrote: always …"."""
    lead = _LEAD.match(plain)
    return lead is not None and not markers(lead.group(1)) & _ASKS


def _is_standing(names: frozenset[str]) -> bool:
    """Return whether a sentence's markers ask for something that holds from now on.

    One marker is enough if it opens the sentence, asks to remember or asks for consent. "Always", a
    later "in future" and a preference need a second marker that addresses the assistant.
    """
    if names & _OPENS:
        return True
    ordered = names & {"prohibition", "obligation", "answers", "conduct", "preference"}
    spoken_to = "address" in names and "starts:order" not in names
    if names & {"future", "next_time"}:
        return bool(ordered or spoken_to or names & {"practice", "always", "never"})
    if names & {"always", "never"}:
        return bool(ordered or spoken_to or "starts:order" in names)
    return "preference" in names and bool(names & {"practice", "answers"})


def _is_suggested(item: "_Scored", least: float, *, pasted: bool) -> bool:
    """Return whether to suggest a sentence: it asks to remember, or one of its scores is high.

    ``least`` is the least score of a sentence in a message that only states something.
    """
    if not item.says_something or item.opens_text or item.opens_with("refusal"):
        return False
    if "remember" in item.names and not item.asks and not _SOURCE.search(item.plain):
        return True
    is_general = item.names >= {"everything", "obligation"}
    is_own_rule = is_general and item.names & {"first_person", "ours"}
    may_be_marked = bool(item.names & _MARKED or is_own_rule) and not item.asks and not pasted
    if may_be_marked and item.scores.marked >= MARKED:
        return True
    return item.scores.lasting >= LASTING or item.scores.stated >= least


@cache
def _occasion() -> frozenset[str]:
    """Return the words that say when or how to remember, and not what."""
    return frozenset(words(_OCCASION))


def _rank(item: "_Scored") -> tuple[bool, float]:
    """Return the sort key of a suggestion: what may be another's text comes last."""
    return item.sentence.announced, -max(item.scores.marked, item.scores.lasting)


def _skip_reason(scored: Sequence["_Scored"], *, pasted: bool) -> str:
    """Return the reason why a message has no result."""
    if pasted:
        return PASTED
    return QUESTION if all(item.asks for item in scored) else NOT_LASTING


class _Scored(Struct, frozen=True, eq=False):
    """A sentence, its markers and scores."""

    sentence: Sentence
    names: frozenset[str]  # of its markers
    scores: Scores

    @property
    def plain(self) -> str:
        """The sentence's text without quotations."""
        return self.sentence.plain

    @property
    def origin(self) -> str:
        """Whose words the sentence has: another's if they were announced before it."""
        return OUTSIDE if self.sentence.announced else PERSON

    def opens_with(self, name: str) -> bool:
        """Return whether the sentence opens with words of another list (``markers.other_list``)."""
        return other_list(name).match(self.plain.replace("\u2019", "'")) is not None

    @property
    def asks(self) -> bool:
        """Whether the sentence is a question."""
        return is_question(self.plain)

    @property
    def states(self) -> bool:
        """Whether the sentence only states something: no question, task, error or doubt."""
        return not self.asks and not self.names & _NO_STATEMENT

    @property
    def opens_text(self) -> bool:
        """Whether the sentence ends with a colon, so that the next one completes it."""
        return self.plain.rstrip().endswith((":", "\uff1a"))

    @property
    def length(self) -> int:
        """The number of characters; a Chinese, Japanese or Korean one counts twice."""
        return len(self.plain) + len(_WIDE.findall(self.plain))

    @property
    def says_something(self) -> bool:
        """Whether the sentence has enough telling words: "never do that again" has not."""
        if "remember" in self.names and not set(words(without(self.plain, _EMPTY))) - _occasion():
            return self.sentence.masked != self.plain  # a quotation may be what is to be remembered
        if len(_WIDE.findall(self.plain)) >= _LEAST_WIDE:
            return True
        least = _LEAST_WORDS + ("deictic" in self.names)
        return len(set(words(self.sentence.text))) >= least

    @property
    def type(self) -> MemoryType:
        """The likely type of a memory of this sentence, by its markers."""
        if self.names & _RULE:
            return MemoryType.FEEDBACK
        if "obligation" in self.names and not self.names & {"ours", "possession", "time"}:
            return MemoryType.FEEDBACK
        if _URL.search(self.sentence.text):
            return MemoryType.REFERENCE
        first_person = "starts:first_person" in self.names and "ours" not in self.names
        if first_person or self.names & {"identity", "skill"}:
            return MemoryType.USER
        return MemoryType.PROJECT
