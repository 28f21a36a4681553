"""Select the sentences of a person's messages that are saved or suggested, without a model. Pure.

Rules of this file
- Only the person's own sentences are used, and copied word for word.
- A sentence is saved if it asks to remember what it says, or the sentence beside it. What the code
  and git show, and what was not understood, is suggested instead.
- Suggested are standing orders, preferences, facts about the person, and a value that changed; a
  part of a longer document never, and at most two of a message.
- A message that asks not to remember gives nothing. Neither do questions and recollections.
- What follows a sentence that ends with a colon may be another's text: it is suggested at most, and
  not as the person's words.
- A sentence with a credential is neither saved nor suggested.
The same words always give the same candidates.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from memd.base.covered import CoveredText
from memd.base.values import OUTSIDE, PERSON, SHOWN_ELSEWHERE, MemoryType, Message, Suggestion
from memd.base.yielding import yield_to_requests
from memd.extract import credentials, phrases
from memd.extract.listening import own_words
from memd.extract.sentences import Sentence, sentences
from memd.text.words import WIDE, words

_CHARACTERS = 220  # of a suggested sentence at most; a CJK character counts twice
_DOCUMENT_CHARACTERS, _DOCUMENT_SENTENCES = 1500, 12  # a longer message is mostly pasted
_MOST_SUGGESTIONS = 2  # of one message
_OCCASION = (
    "session sessions conversation conversations chat time times later future next again memory"
    " mind important save fact rule thing everything sitzungen künftig sesiones conversación"
    " prochaines fois sessões prossime будущих"
)
_LEADING_WORDS = 3  # before a request, as in "yes, and remember"
_LEAST_WORDS = 2  # telling words of a statement
_LEAST_WIDE = 4  # or so many Chinese, Japanese or Korean characters
_WIDE = f"[{WIDE}]"  # compiled by ``re`` at the first use: so large a set takes long
_URL = r"https?://\S|\bwww\.\S|\w\.\w+/[\w/-]"
_COLONS = (":", "\uff1a")
# "Correction: …" has no speaker.
_SPEAKER = (
    r"(?!(?i:correction|korrektur|corrección|correção|correzione|исправление|поправка))"
    r"[^:\uff1a]{1,40}[:\uff1a](?!//)"
)
_NOD = (
    r"(?i)[\s,\uff0c]"
    r"(?:ok(?:ay)?|right|yes|please|ja|oder|vale|sí|tá|va bene|хорошо|好吗|いい)\W*\Z"
)
_ENDS = " \t\n,.!:;-*#>\u3002\uff0c\uff01\uff1a\u3001"
# Between the words that ask to remember and what they are about.
_JOINT = (
    r"(?i)[\s:,\uff1a\uff0c\u3001\u2014-]*"
    r"(?:(?:that|dass|de que|que|qu'|che|что)(?![^\W_]))?[\s:,]*"
)
_INTERESTING = phrases.any_of(
    *(phrases.REMEMBER, phrases.REMEMBER_QUESTION, phrases.LASTING, phrases.PERSONAL),
    *(phrases.STOP, phrases.AGREED, phrases.CHANGED),
)
# The reasons why a message has no result.
QUESTION, PASTED, NOT_LASTING, NOT_OWN = "question", "pasted", "not_lasting", "not_own_words"
NOT_WANTED = "not_to_remember"
# The reasons why a sentence is suggested and not saved.
UNCERTAIN, CHANGED = "uncertain", "changed"
NOT_UNDERSTOOD = "not_understood"
REQUESTED = (SHOWN_ELSEWHERE, NOT_UNDERSTOOD)


class Candidate(Struct, frozen=True):
    """A sentence to be saved, said ``at`` (seconds since 1970).

    ``text`` is the person's; ``statement`` is the same without words that only ask to remember it.
    """

    type: MemoryType
    text: str
    statement: str
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


class _Chosen(Struct, frozen=True):
    """A sentence that is saved, or suggested for a ``reason``."""

    sentence: Sentence
    statement: str
    reason: str = ""
    origin: str = PERSON

    @property
    def type(self) -> MemoryType:
        """The likely type of a memory of this sentence."""
        return likely_type(self.statement, self.sentence.text)


def find(messages: Iterable[Message], now: float, session: str = "") -> Candidates:
    """Return the saved and suggested sentences of a conversation.

    ``now`` replaces a missing time of a message; ``session`` is named in suggestions. Blocks at the
    first call, which compiles the phrases.
    """
    candidates: list[Candidate] = []
    suggestions: list[Suggestion] = []
    refused: list[str] = []
    passed_over: list[str] = []
    before = ""  # the person's message before
    for message in messages:
        yield_to_requests()
        if message.origin != "user" or message.role != "user":
            continue
        text, at = message.text, now if message.at is None else message.at
        chosen, reason = _choose(text, before)
        before = text
        passed_over += [] if chosen or not text.strip() else [reason]
        for item in chosen:
            words = item.sentence.text
            found_credentials = credentials.find(words)
            if found_credentials:
                refused.append(found_credentials[0])
            elif item.reason:
                facts = (item.origin, item.type.value, item.reason)
                suggestions.append(Suggestion(session, words, at, *facts))
            else:
                candidates.append(Candidate(item.type, words, item.statement, at))
    return Candidates(tuple(candidates), tuple(suggestions), tuple(refused), tuple(passed_over))


def likely_type(statement: str, sentence: str) -> MemoryType:
    """Return the likely type of a memory of a statement, which is all or a part of a sentence."""
    rules = (phrases.LASTING, phrases.STOP, phrases.OBLIGATION)
    if any(list_of_rules.match(statement) for list_of_rules in rules):
        return MemoryType.FEEDBACK
    if re.search(_URL, sentence):
        return MemoryType.REFERENCE
    if phrases.PERSONAL.match(statement) or phrases.FIRST_PERSON.match(statement):
        return MemoryType.USER
    return MemoryType.PROJECT


def statements(text: str, before: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a message's sentences that hold from now on, and those that correct the assistant.

    ``before`` is the assistant's last message, "" if the message opens the conversation.
    """
    own = sentences(text)
    if _is_pasted(text, own) or any(phrases.DO_NOT_REMEMBER.match(_plain(each)) for each in own):
        return (), ()
    lasting: list[str] = []
    corrections: list[str] = []
    for number, sentence in enumerate(own[: _count_before_colon(own)]):
        item = _judge(own, number, "", behind_colon=False)
        if item is not None and item.reason != CHANGED:
            lasting.append(item.sentence.text)
        elif before and not _asks(sentence) and phrases.CORRECTION.match(_plain(sentence)):
            corrections.append(sentence.text)
    return tuple(dict.fromkeys(lasting)), tuple(corrections)


def words_to_learn(text: str) -> str:
    """Return the person's own words in a message, "" if it asks not to remember it."""
    is_unwanted = any(phrases.DO_NOT_REMEMBER.match(_plain(each)) for each in sentences(text))
    return "" if is_unwanted else own_words(text)


def _choose(text: str, before: str) -> tuple[list[_Chosen], str]:
    """Return the chosen sentences of a message, and the reason if there are none.

    ``before`` is the person's message before.
    """
    if not _INTERESTING.match(text):
        return [], QUESTION if text.rstrip().endswith(("?", "\uff1f")) else NOT_LASTING
    own = sentences(text)
    if not own:
        return [], NOT_OWN
    if any(phrases.DO_NOT_REMEMBER.match(_plain(sentence)) for sentence in own):
        return [], NOT_WANTED
    if _is_pasted(text, own):
        return [], PASTED
    count = _count_before_colon(own)
    judged = [
        _judge(own, number, before, behind_colon=number >= count) for number in range(len(own))
    ]
    items = [item for item in judged if item is not None]
    saved = {item.sentence: item for item in items if not item.reason}
    suggested = [item for item in items if item.reason and item.sentence not in saved]
    all_ask = all(map(_asks, own))
    return [*saved.values(), *suggested[:_MOST_SUGGESTIONS]], QUESTION if all_ask else NOT_LASTING


def _judge(
    own: Sequence[Sentence], number: int, before: str, *, behind_colon: bool
) -> _Chosen | None:
    """Return a message's sentence as it is saved or suggested, ``None`` if it is neither."""
    sentence, plain = own[number], _plain(own[number])
    question = phrases.REMEMBER_QUESTION.span(plain)
    if question is None and (_asks(sentence) or phrases.RECOLLECTION.match(plain)):
        return None
    request = question or phrases.REMEMBER.span(plain)
    if request is not None:
        return _requested(own, number, before, request, behind_colon=behind_colon)
    reason = _reason_to_suggest(plain)
    if not reason:
        return None
    return _Chosen(sentence, sentence.text, reason, OUTSIDE if behind_colon else PERSON)


def _reason_to_suggest(plain: str) -> str:
    """Return why a sentence that asks for nothing is suggested, "" if it is not."""
    is_unfit = phrases.UNCERTAIN.match(plain) or phrases.POINTS_BACK.match(plain)
    is_long = len(plain) + len(re.findall(_WIDE, plain)) > _CHARACTERS
    if is_unfit or is_long or re.match(_SPEAKER, plain) or not _says_something(plain):
        return ""
    lasting = phrases.LASTING.span(plain)
    if lasting is not None:
        rest = f"{plain[: lasting[0]]} {plain[lasting[1] :]}"
        # "From now on always like this" says nothing by itself.
        return UNCERTAIN if _says_something(phrases.POINTERS.without(rest), least=1) else ""
    lists = (phrases.PERSONAL, phrases.STOP, phrases.AGREED)
    if any(phrases_of_kind.match(plain) for phrases_of_kind in lists):
        return UNCERTAIN
    return CHANGED if phrases.CHANGED.match(plain) else ""


def _requested(
    own: Sequence[Sentence],
    number: int,
    before: str,
    request: tuple[int, int],
    *,
    behind_colon: bool,
) -> _Chosen | None:
    """Return the sentence that a request to remember is about; ``request`` is where its words are.

    The result is ``None`` if it says nothing, and neither does the sentence beside it.
    """
    sentence, (start, end) = own[number], request
    front, rest = sentence.text[:start], sentence.text[end:]
    joint = re.match(_JOINT, rest)
    rest = rest[joint.end() :] if joint else rest
    is_spoken_by_another = front.rstrip().endswith(_COLONS)
    if behind_colon or is_spoken_by_another:
        return _Chosen(sentence, sentence.text, NOT_UNDERSTOOD, OUTSIDE)
    if _says_something(rest, least=1):
        statement = rest[:1].upper() + rest[1:].rstrip("? \uff1f吗")
        is_understood = len(front.split()) <= _LEADING_WORDS and not phrases.POINTS_BACK.match(rest)
    elif any(colon in front for colon in _COLONS) and not rest.strip(_ENDS):
        return _Chosen(sentence, sentence.text, NOT_UNDERSTOOD, OUTSIDE)  # it may be a given text
    elif _says_something(front) and not rest.strip(_ENDS):
        mark = sentence.text[-1] if sentence.text[-1] in ".!\u3002\uff01" else ""
        statement, is_understood = front.rstrip(_ENDS) + mark, True
    elif not (front + rest).strip(_ENDS):
        earlier = own[:number] or own[number + 1 : number + 2] or sentences(before)
        if not earlier or _asks(earlier[-1]) or not _says_something(earlier[-1].text):
            return None
        sentence, statement, is_understood = earlier[-1], earlier[-1].text, True
    else:
        return _Chosen(sentence, sentence.text, NOT_UNDERSTOOD)
    item = _Chosen(sentence, statement, "" if is_understood else NOT_UNDERSTOOD)
    is_rule = item.type is MemoryType.FEEDBACK  # no code says what somebody has to do
    if not is_rule and phrases.SHOWN_ELSEWHERE.match(statement):
        return replace(item, reason=SHOWN_ELSEWHERE)
    return item


def _is_pasted(text: str, own: Sequence[Sentence]) -> bool:
    """Return whether a message is longer than what a person types, so mostly pasted."""
    return len(text) > _DOCUMENT_CHARACTERS or len(own) >= _DOCUMENT_SENTENCES


def _count_before_colon(own: Sequence[Sentence]) -> int:
    """Return how many sentences do not follow a colon at a sentence's end.

    The colon of a request such as "remember:" does not count.
    """
    for number, sentence in enumerate(own):
        if sentence.text.endswith(_COLONS) and not phrases.REMEMBER.match(_plain(sentence)):
            return number + 1
    return len(own)


def _plain(sentence: Sentence) -> str:
    """Return a sentence of the same length with code and quotations blanked out."""
    return sentence.masked.replace("\u2019", "'")


def _asks(sentence: Sentence) -> bool:
    """Return whether a sentence is a question; a final "…, ok?" makes none."""
    text = _plain(sentence).rstrip(" \"')")
    if text.endswith(("?", "\uff1f")):
        return re.search(_NOD, text) is None
    return phrases.QUESTION.match(text)


def _says_something(text: str, least: int = _LEAST_WORDS) -> bool:
    """Return whether a text has enough telling words."""
    is_cjk = len(re.findall(_WIDE, text)) >= _LEAST_WIDE
    return is_cjk or len(set(words(text)) - _occasion()) >= least


@cache
def _occasion() -> frozenset[str]:
    """Return the words that say when or how to remember, and not what."""
    return frozenset(words(_OCCASION))
