"""What a cue needs beside its words: a habit, a date, an address. Pure."""

import re
from collections.abc import Callable

from memd.extract.cues import Language
from memd.extract.sentences import Sentence
from memd.text.dates import resolve

_URL = re.compile(
    r"https?://[^\s)\]}>,\uff0c\u3002]+|(?<![\w./@-])(?:[a-z0-9-]+\.)+[a-z]{2,12}/[^\s,)]+",
    re.IGNORECASE,
)
_CHANNEL = re.compile(r"(?<!\w)#[a-z][\w-]{2,}", re.IGNORECASE)
_DATE = re.compile(r"\b\d{4}-\d\d(?:-\d\d)?\b")
_US = re.compile(
    r"\b(?:we|we're|we'll|we've|our|us|team|everyone|everybody|management|legal|product|company)\b"
    r"|[我咱]们|团队|公司|大家|小组|全员|合并",
    re.IGNORECASE,
)
_ONE_THING = re.compile(r"stop \w+ (?:the|this|that|it|those|these|so)\b", re.IGNORECASE)
# To go on with a task is no habit.
_GOING_ON = re.compile(
    r"(?:keep|continue) (?:on )?\w+ (?:the|this|it)\b|continue (?:on )?(?!doing)\w+ing\b"
    r"|keep (?:on )?(?:go|try|runn|work|mov|push|cod|look|fix)ing",
    re.IGNORECASE,
)
_INSTRUCTION = re.compile(r"不要|别|要|都|用|写|先|请|必须|不能|改|提交|回答|运行")
# Whence and whereto, or a name: "to branch x" and "to the next step" are neither.
_TARGET = re.compile(
    r"\bto [A-Z]|\bfrom\b.+\bto\b|\b(?:dropping support|phasing out|deprecating|retiring)\b"
    r"|\b(?:replacing|rewriting)\b.+\b(?:with|in)\b"
)
_PRESENT = re.compile(
    r"\b(?:is|are|was|were) (?:still |currently |being )?"
    r"(?:broken|down|failing|running|red|busy|locked)\b|\bstill\b",
    re.IGNORECASE,
)
_Condition = Callable[[Sentence, Sentence, Language], bool]


def meets(needs: str, sentence: Sentence, content: Sentence, language: Language) -> bool:
    """Return whether a sentence has what its cue needs; ``content`` is the stretch to be kept."""
    return _CONDITIONS[needs](sentence, content, language)


def has_address(text: str) -> bool:
    """Return whether a text names a place that can be gone to: a URL or a channel."""
    return bool(_URL.search(text) or _CHANNEL.search(text))


def without_addresses(text: str) -> str:
    """Return a text without its URLs and channels."""
    return _CHANNEL.sub(" ", _URL.sub(" ", text))


def _habit(sentence: Sentence, content: Sentence, language: Language) -> bool:
    """Return whether there is a marker of habit, or a reason that outlives the moment."""
    if language.status.search(sentence.masked):
        return True
    reason = language.reason.search(sentence.masked)
    if reason is None or _PRESENT.search(reason.group()):
        return False
    return not any(language.momentary.fullmatch(word) for word in content.masked.split()[:2])


def _several(sentence: Sentence, content: Sentence, language: Language) -> bool:
    return _habit(sentence, content, language) or not _ONE_THING.match(content.masked)


def _confirmed(sentence: Sentence, content: Sentence, language: Language) -> bool:
    praised = language.praise.search(sentence.masked)
    return bool(praised) and not _GOING_ON.match(content.masked)


def _place(sentence: Sentence, _content: Sentence, language: Language) -> bool:
    named = language.systems.search(sentence.text) or language.places.search(sentence.text)
    return bool(named or _CHANNEL.search(sentence.text))


def _system(_sentence: Sentence, content: Sentence, language: Language) -> bool:
    return has_address(content.text) or bool(language.systems.search(content.text))


def _date(_sentence: Sentence, content: Sentence, language: Language) -> bool:
    # Whatever date is meant: only whether there is one that can be made absolute. The day of a
    # reason ("we got burned last week") is not the statement's.
    reason = language.reason.search(content.masked)
    text = content.text[: reason.start() if reason else None]
    return bool(_DATE.search(text)) or resolve(text, 0.0) != text


def _date_and_us(sentence: Sentence, content: Sentence, language: Language) -> bool:
    return _date(sentence, content, language) and bool(_US.search(sentence.masked))


_CONDITIONS: dict[str, _Condition] = {
    "": lambda _sentence, _content, _language: True,
    "habit": _habit,
    "no article": _several,
    "confirmed": _confirmed,
    "instruction": lambda _s, content, _l: bool(_INSTRUCTION.search(content.masked)),
    "target": lambda _s, content, _l: bool(_TARGET.search(content.masked)),
    "date": _date,
    "date and us": _date_and_us,
    "place": _place,
    "system": _system,
    "address": lambda sentence, _c, _l: has_address(sentence.text),
}
