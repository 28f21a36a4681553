"""Select the sentences of a person's messages that are saved or suggested, without a model.

Rules of this file
- Only the person's own sentences are used, and copied word for word.
- A sentence is saved if it asks for something from now on (``_is_standing``) and nothing speaks
  against it. Suggested is every request to remember that was not saved, a sentence with a marker of
  rules, wishes or the person (``_MARKED``), and a sentence with one of facts (``_STATED``) in a
  message that only states something.
- What follows a sentence that ends with a colon may be another's text: it is suggested at most, and
  not as the person's words.
- A sentence with a credential is neither saved nor suggested.
The same words always give the same candidates. Pure.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache

from msgspec import Struct

from memd.base.covered import CoveredText
from memd.base.values import OUTSIDE, PERSON, MemoryType, Message, Suggestion
from memd.base.yielding import yield_to_requests
from memd.extract import credentials
from memd.extract.markers import has_any, is_question, markers, other_list, without
from memd.extract.sentences import Sentence, sentences
from memd.text.words import WIDE, words

_STATED_SENTENCES = 2  # at most, of a message that only states something
_CHARACTERS = 180  # of a sentence at most; a CJK character counts twice
_DOCUMENT_CHARACTERS, _DOCUMENT_SENTENCES = 1500, 12  # a longer message is mostly pasted
_MOST_SUGGESTIONS = 2  # of one message
_LEAST_WORDS = 2  # telling words of a sentence; one more if it has "this" or "it"
_LEAST_WIDE = 6  # Chinese, Japanese or Korean characters of a sentence without such words
# Names of markers (``markers``). With one of these a memory is a rule for the assistant.
_RULE = frozenset(
    {"always", "never", "future", "consent", "conduct", "preference", "answers", "prohibition"}
)
# With one of these a sentence is suggested.
_MARKED = (_RULE - {"answers", "prohibition"}) | {"starts:prohibition", "identity", "skill"}
# With one of these it is suggested if its message only states something.
_STATED = frozenset({"time", "decision", "possession", "reason", "place"})
# With one of these before a colon the words there are a request and not a speaker's name.
_ASKS = frozenset({"remember", "always", "never", "future", "consent"})
_LEAD = re.compile(r"([^:\uff1a]{1,40})[:\uff1a](?!//)")
_TASK = frozenset({"question", "order", "request"})
_UNFIT = frozenset({"starts:question", "doubt", "error", "observation"})
_PRODUCT = frozenset({"interface", "audience"})  # what the product should be or do
_NO_STATEMENT = _TASK | {"error", "doubt"}
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
_WIDE = f"[{WIDE}]"  # compiled by ``re`` at the first use: so large a set takes long
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


def find(messages: Iterable[Message], now: float, session: str = "") -> Candidates:
    """Return the saved and suggested sentences of a conversation.

    ``now`` replaces a missing time of a message; ``session`` is named in suggestions.
    """
    parts: list[Candidates] = []
    for message in messages:
        yield_to_requests()
        if message.origin == "user" and message.role == "user":
            at = now if message.at is None else message.at
            parts.append(_find_in_message(message.text, at, session))
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
    saved, corrections = [], []
    for number, sentence in enumerate(own[: _count_before_colon(own)]):
        lasting = has_any(sentence.plain, _LASTING)
        item = _Marked(sentence, markers(sentence.plain)) if lasting else None
        if item and item.is_saved:
            saved.append(sentence.text)
        elif before and not is_question(sentence.plain):
            denies = number == 0 and other_list("denial").match(sentence.plain)
            corrects = other_list("correction").search(sentence.plain)
            if denies or corrects or (item and item.is_rule):
                corrections.append(sentence.text)
    return tuple(saved), tuple(corrections)


def _is_pasted(text: str, own: Sequence[Sentence]) -> bool:
    """Return whether a message is longer than what a person types, so mostly pasted."""
    return len(text) > _DOCUMENT_CHARACTERS or len(own) >= _DOCUMENT_SENTENCES


def _count_before_colon(own: Sequence[Sentence]) -> int:
    """Return how many sentences do not follow a colon at a sentence's end.

    The colon of a request such as "remember:" does not count.
    """
    for number, sentence in enumerate(own):
        ends = sentence.plain.rstrip().endswith((":", "\uff1a"))
        if ends and not has_any(sentence.plain, _ASKS):
            return number + 1
    return len(own)


def _find_in_message(text: str, at: float, session: str) -> Candidates:
    """Return the saved and suggested sentences of one message, or why there are none."""
    own = sentences(text)
    if not own:
        return Candidates((), passed_over=(NOT_OWN,) if text.strip() else ())
    pasted = _is_pasted(text, own)
    items = [_Marked(sentence, markers(sentence.plain)) for sentence in own]
    before_colon = items[: _count_before_colon(own)]
    saved = [item for item in before_colon if item.is_saved and not pasted]
    only_states = len(own) <= _STATED_SENTENCES and all(item.states for item in items)
    names = _MARKED | _STATED if only_states else _MARKED
    suggested = [
        item
        for item in items
        if item not in saved
        and (item.is_request or (not pasted and item.is_suggested and item.names & names))
    ]
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
            passed_over=() if refused else (_skip_reason(items, pasted=pasted),),
        )
    return Candidates(
        tuple(Candidate(item.type, item.sentence.text, at) for item in retained if item in saved),
        tuple(
            Suggestion(
                session,
                item.sentence.text,
                at,
                PERSON if item in before_colon else OUTSIDE,
                item.type.value,
                UNCERTAIN,
            )
            for item in retained
            if item not in saved
        ),
        tuple(refused),
    )


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


@cache
def _occasion() -> frozenset[str]:
    """Return the words that say when or how to remember, and not what."""
    return frozenset(words(_OCCASION))


def _skip_reason(items: Sequence["_Marked"], *, pasted: bool) -> str:
    """Return the reason why a message has no result."""
    if pasted:
        return PASTED
    return QUESTION if all(item.asks for item in items) else NOT_LASTING


class _Marked(Struct, frozen=True, eq=False):
    """A sentence and its markers."""

    sentence: Sentence
    names: frozenset[str]  # of its markers

    @property
    def plain(self) -> str:
        """The sentence's text without quotations."""
        return self.sentence.plain

    @property
    def is_rule(self) -> bool:
        """Whether the sentence asks for something that holds from now on."""
        is_clear = not self.names & (_UNFIT | {"question"})
        return _is_standing(self.names) and is_clear and not self.opens_text

    @property
    def is_saved(self) -> bool:
        """Whether the sentence asks for something from now on and is clear without context."""
        is_about_product = self.names & _PRODUCT and not self.names & _OPENS
        return self.is_fit and self.is_rule and not is_about_product

    @property
    def is_request(self) -> bool:
        """Whether the sentence asks to remember what it says."""
        return "remember" in self.names and self.is_whole and not self.asks

    @property
    def is_suggested(self) -> bool:
        """Whether the sentence may be suggested for its markers."""
        return self.is_fit and not self.names & _PRODUCT

    @property
    def is_fit(self) -> bool:
        """Whether nothing speaks against a sentence: no question, doubt, error or speaker."""
        if self.asks or self.names & _UNFIT or _is_spoken_by_another(self.plain):
            return False
        return self.is_whole and self.length <= _CHARACTERS and not _SOURCE.search(self.plain)

    @property
    def is_whole(self) -> bool:
        """Whether the sentence says what it is about, and does not ask to forget it."""
        refusal = other_list("refusal").match(self.plain.replace("\u2019", "'"))
        return self.says_something and not self.opens_text and refusal is None

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
        return len(self.plain) + len(re.findall(_WIDE, self.plain))

    @property
    def says_something(self) -> bool:
        """Whether the sentence has enough telling words: "never do that again" has not."""
        if "remember" in self.names and not set(words(without(self.plain, _EMPTY))) - _occasion():
            return self.sentence.masked != self.plain  # a quotation may be what is to be remembered
        if len(re.findall(_WIDE, self.plain)) >= _LEAST_WIDE:
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
