"""The intent of a prompt: what was said before, new work, or more of what is at hand. Pure.

Rules of this file
- Grammar decides, not topics: who acts, what form a question has, whether what is spoken of is
  already at hand.
- The first that fits counts: asking for what was said comes before everything else.
- Only the first 1,000 characters of a prompt count: the intent shows in its beginning.
"""

import re
from enum import Enum, auto
from functools import cache

from memd.text.words import has_cjk, word_list

_READ = 1_000  # characters

_BASE = "say|agree|decide|settle|discuss|mention|choose|plan|promise|learn|want|ask"
_PAST = (
    "said|agreed|decided|settled|discussed|mentioned|chosen?|chose|planned|promised|learn(?:ed|t)"
)
_RECALLS = re.compile(
    r"\b(?:recall|remember|remind)\b"
    rf"|\bdid (?:we|i|you|they|he|she) (?:\w+ )?(?:{_BASE})\b"
    rf"|\b(?:we|i|you) (?:had |have |already )*(?:{_PAST})\b"
    rf"|\b(?:was|were|been|have|had) (?:\w+ )?(?:{_PAST})\b"
    r"|\bwas (?:it|that) (?:about|with)\b|\blast time\b"
    "|记得|之前|上次|说过|怎么说|怎么定|约定|当时|讨论过|提到过"
)
# What everybody could be asked: how something works, what a word means, how two things differ.
_GENERAL = re.compile(
    r"^\W*(?:(?:can|could) you )?(?:please )?(?:explain|define)\b"
    r"|\bwhat(?:'s| is| are) (?:an?|the (?:\w+ )?(?:difference|capital|meaning|complexity))\b"
    r"|\bwhat do(?:es)? .{1,40}\b(?:do|mean)\b|\bhow do(?:es)? .{1,40}\bwork\b"
    r"|\bhow (?:many|much) \w+ (?:is|are) (?:too|enough)\b|\bwhy (?:is|are|does|do) the\b"
    "|什么意思|有什么区别|的原理|的区别"
)
_OURS = re.compile(r"\b(?:i|we|us|our|ours|my|here)\b|我们|咱们|我的")
_LINKS = "ok|okay|yes|no|and|now|then|so|please|great|good|nice|fine"
# What an editor or a shell does with what it shows.
_EDITS = (
    "show|print|list|count|sort|filter|group|run|rerun|repeat|retry|try|open|close|scroll|zoom|go"
    "|stop|wait|copy|paste|cut|undo|redo|revert|move|swap|reverse|rename|split|join|indent|format"
    "|gofmt|lint|align|center|resize|shorten|increase|decrease|raise|lower|shrink|enlarge|save|quit"
    "|translate|search|grep|find|replace|highlight|capitalize"
    "|fix the (?:typo|indentation|spacing|import)|(?:make|change|remove) (?:it|them|that|this)"
)
_HAND = re.compile(
    r"\b(?:again|rerun|retry|continue|go on|carry on|thanks?|undo|looks good)\b"
    r"|\b(?:these|those|this) \w+\b"
    r"|^\W*(?:\w+\W+){1,6}?(?:it|this|that)\b\W*(?:$|[,.;]|(?:works|instead)\b)"
    rf"|^\W*(?:(?:{_LINKS})\W+)*(?:{_EDITS}|now|can you)\b"
    rf"|,\s*(?:and )?(?:{_EDITS})\b"
    r"|^\W*[a-z]+(?: [a-z]+)?\W*$"
    "|^再|继续|^把.{1,8}(?:改|删|移|排|换)|^把?这|刚才|谢谢|辛苦"
)
_DONE = re.compile(r"\b(?:again|thanks?|continue|looks good)\b|谢谢|继续")


# A piece of code in a prompt: work is to begin on it.
_CODE = re.compile(r"[{}]|[\w\]]\(|\w=\w|[=!:]=|=>|->|;\s*$", re.MULTILINE)
_WORD = re.compile(r"[^\W_]+")
_OPENING = 6  # what a prompt is about to do stands in its first words
_CJK_STARTERS = re.compile(
    "[吗呢?\uff1f]|什么|怎|哪|谁|为何|如何|是否|记得|多少|几|写|添加|新增|创建|实现|设计|重构|计划|部署|发布"
)


class QueryIntent(Enum):
    """What a prompt is after."""

    RECALL = auto()  # what was said or decided before
    NEW_WORK = auto()  # an answer about this work, or a new piece of it
    STATEMENT = auto()  # neither shows: a report, or work in words of its own
    FOLLOW_UP = auto()  # what is at hand, or what everybody knows


def intent(text: str) -> QueryIntent:
    """Return what a prompt is after. May read a word list at its first use."""
    lowered = text[:_READ].lower().replace("\u2019", "'")
    if _RECALLS.search(lowered):
        return QueryIntent.RECALL
    if _GENERAL.search(lowered) and not _OURS.search(lowered):
        return QueryIntent.FOLLOW_UP
    at_hand = _HAND.search(lowered) is not None
    if begins_work(text) and not (at_hand and _DONE.search(lowered)):
        return QueryIntent.NEW_WORK
    return QueryIntent.FOLLOW_UP if at_hand else QueryIntent.STATEMENT


def begins_work(text: str) -> bool:
    """Say whether a prompt asks something or begins a piece of work."""
    text = text[:_READ]
    lowered = text.lower()
    if has_cjk(lowered):
        return _CJK_STARTERS.search(lowered) is not None
    starters = _starters()
    return (
        "?" in text
        or _CODE.search(text) is not None
        or any(word in starters for word in _WORD.findall(lowered)[:_OPENING])
    )


@cache
def _starters() -> frozenset[str]:
    return frozenset(word_list("starters.txt"))
