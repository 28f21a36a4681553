"""Find what a person wrote around pasted text: the part of a prompt that is searched for. Pure.

Rules of this file
- A prompt of up to 1,000 characters counts whole. Of a longer one those passages count whose words
  come least often in it, up to 1,000 characters: a question is said once, while the lines of a log,
  of code or of a page repeat the words of their neighbours. That holds for every language and kind
  of text, and wherever the question stands (docs/recall.md has the figures).
- The first and the last passage always count: most questions stand before or behind a paste.
- The time is linear: 0.1 s for a million characters. Of more than two million both ends are read.
"""

import re
import string
from collections import Counter
from collections.abc import Iterator
from itertools import chain

LENGTH = 1_000  # characters of a prompt that count, but for the end of the last passage

_MOST_READ = 2_000_000  # characters of a text
_PASSAGE_LENGTH = 160  # characters of a passage at most; longer lines are several
_PASSAGE = rf".{{1,{_PASSAGE_LENGTH}}}(?!\S)|.{{1,{_PASSAGE_LENGTH}}}"
# Punctuation separates words. Lower case keeps the length of a text only for these letters.
_PLAIN = str.maketrans(
    string.ascii_uppercase + string.punctuation,
    string.ascii_lowercase + " " * len(string.punctuation),
)


def excerpt(text: str) -> str:
    """Return a text, or of a long one the passages with its rarest words in their order."""
    if len(text) <= LENGTH:
        return text
    if len(text) > _MOST_READ:
        text = f"{text[: _MOST_READ // 2]}\n{text[-_MOST_READ // 2 :]}"
    plain = text.translate(_PLAIN)
    spans = list(_passages(text))
    words = [plain[start:end].split() for start, end in spans]
    # Numbers and identifiers are unique in every line of a log and tell nothing.
    rarity = {
        word: 1 / count if word.isalpha() else 0.0
        for word, count in Counter(chain.from_iterable(words)).items()
    }
    # Each passage: the mean rarity of its words, its start and its end.
    passages = [
        (sum(map(rarity.__getitem__, own)) / len(own), *span)
        for span, own in zip(spans, words, strict=True)
        if own
    ]
    chosen: list[tuple[int, int]] = []
    length = 0
    ends = (passages[0], *passages[:0:-1][:1]) if passages else ()
    # Of equally rare ones the nearest to either end comes first.
    rarest = sorted(passages, key=lambda item: (-item[0], min(item[1], len(text) - item[2])))
    for _, start, end in dict.fromkeys((*ends, *rarest)):
        if length >= LENGTH:
            break
        chosen.append((start, end))
        length += end - start + 1
    return "\n".join(text[start:end] for start, end in sorted(chosen))


def _passages(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each line of a text, of long ones those of their parts."""
    start = 0
    for line in text.splitlines(keepends=True):
        if len(line) <= _PASSAGE_LENGTH:
            end = start + len(line.rstrip())
            if end > start:
                yield start, end
        else:
            for match in re.finditer(_PASSAGE, line):
                yield start + match.start(), start + match.end()
        start += len(line)
