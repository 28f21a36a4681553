"""What a memory says twice: its description and its "Why" often repeat its first sentence. Pure.

Only a sentence that stands elsewhere word for word is a repetition. White space, bold, what opens
a line (a bullet, a heading, a quotation mark), the case of the first letter and the full stop do
not count: they differ where memd itself makes a description out of a sentence.
"""

import re
from collections.abc import Collection, Iterable, Iterator

_LABEL = re.compile(r"[ \t]*(?:[-*+][ \t]+)?\*\*(?:Why|How to apply):\*\*")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])\s*")
_OPENING = re.compile(r"^(?:[#*+-]+\s+|[\s>\"\u201c])+")
_CLOSING = re.compile(r"[\s.\u3002*\"\u201d]+$")
_ENOUGH = 6  # characters of a word: where words have no spaces between, a sentence is one
_AROUND = "*_#>-.,;:!?()'\"\u201c\u201d\u2026"
_BLANKS = re.compile(r"\n{3,}")
_CUT = "\u2026"


def sentences(text: str) -> frozenset[str]:
    """Return what the sentences of a text are compared by, also of those on several lines."""
    return frozenset(_keys(text.split("\n"))) | frozenset(
        _keys(" ".join(part.split("\n")) for part in text.split("\n\n"))
    )


def repeats(statement: str, reported: Collection[str]) -> bool:
    """Say whether each sentence of a statement, which may end cut, was told elsewhere."""
    *whole, last = list(_keys([statement])) or [""]
    if not last.endswith(_CUT):
        return {*whole, last} - {""} <= set(reported)
    begun = last.removesuffix(_CUT).rstrip()
    return set(whole) <= set(reported) and any(key.startswith(begun) for key in reported)


def stands_in(statement: str, text: str) -> bool:
    """Say whether each sentence of a statement stands in a text.

    Most do not, and their longest word alone tells that: taking a text apart is a third of what a
    prompt costs.
    """
    words = statement.split()
    longest = max(words[:-1] or words, key=len, default="").strip(_AROUND)
    return longest[1:_ENOUGH] in text and repeats(statement, sentences(text))


def once(content: str) -> str:
    """Return a memory's text without a "Why" or "How to apply" that only says again what it says.

    One that more text belongs to stays, whatever it says itself.
    """
    if "**Why:**" not in content and "**How to apply:**" not in content:
        return content
    lines = content.split("\n")
    reported = sentences("\n".join(line for line in lines if not _LABEL.match(line)))
    retained: list[str] = []
    ends = True  # whether nothing but other labels follows
    for line in reversed(lines):
        label = _LABEL.match(line)
        again = label is not None and line[label.end() :].strip() and repeats(line, reported)
        if not (again and ends):
            retained.append(line)
        ends = label is not None or (ends and not line.strip())
    text = "\n".join(reversed(retained))
    return content if len(retained) == len(lines) else _BLANKS.sub("\n\n", text).strip("\n")


def _keys(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        for sentence in _SENTENCE.split(_LABEL.sub("", line)):
            plain = " ".join(sentence.replace("**", "").split())
            key = _CLOSING.sub("", _OPENING.sub("", plain))
            if key:
                yield key[:1].casefold() + key[1:]
