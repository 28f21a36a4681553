"""Index lines: a hook in its place, and what is too long made shorter without a loss. Pure.

Rules of this file
- A line that is no pointer is a person's and stays byte for byte; of a pointer only the hook
  changes, never its bullet, link or separator.
- A hook is cut, at a word and with "…", only when its memory says in the same words what is cut
  off: nothing that stands nowhere else goes.
- Lines beyond about 150 characters are cut. While the index is larger than what a prompt loads
  the longest are cut further, to 120 and then to 90 characters. That is all that can be done
  without a loss: each memory keeps its line, so of more than 200 memories the index has more
  than 200 lines; prompts load the first ones and recall finds the others.
"""

import re
from collections.abc import Callable, Iterator, Mapping

from memd.core import limits
from memd.core.text import decode
from memd.core.yielding import yield_to_requests
from memd.documents import index
from memd.dream.similarity import SHINGLE_WORDS, Prose, run
from memd.dream.wording import CJK, words

_LIMITS = (limits.INDEX_LINE_CHARACTERS, 120, 90)
_LEAST = 24  # characters of a hook, below which it says nothing
_TRIES = 8  # places to cut that are looked at, from the last one on
_MORE = "…"
_PLACE = re.compile(rf"(?=\s)|(?<=[{CJK}])(?=[{CJK}])")
_PAIRS = (("(", ")"), ("[", "]"))

Stable = Callable[[str, str], bool]  # (path, hook) -> nothing else would change it


class WordRuns:
    """What a memory says, as the runs of words that a hook is held against."""

    def __init__(self, *texts: Prose) -> None:
        self._texts = texts

    def says(self, result: tuple[str, ...]) -> bool:
        """Whether all runs of three of these words stand there."""
        last = len(result) - SHINGLE_WORDS + 1
        runs = {run(result[start : start + SHINGLE_WORDS]) for start in range(last)}
        return bool(runs) and runs <= frozenset().union(*(text.shingles for text in self._texts))


def pointers(content: bytes) -> list[index.IndexEntry]:
    """Return the pointers of an index, in its order; prompts go first between two of them."""
    result = []
    for entry in index.each(content):
        yield_to_requests()
        result.append(entry)
    return result


def with_hooks(content: bytes, hooks: Mapping[int, str]) -> bytes:
    """Return the index with other hooks in some lines, counted from 0; the rest stays as it is.

    A line that does not end with its hook as it is read keeps it.
    """
    entries = {entry.line: entry.hook for entry in pointers(content) if entry.line in hooks}
    lines = content.splitlines(keepends=True)
    for number, old in entries.items():
        text = lines[number].rstrip()
        if old and text.endswith(old.encode()):
            start = text[: len(text) - len(old.encode())]
            lines[number] = start + hooks[number].encode() + lines[number][len(text) :]
    return b"".join(lines)


def shortened(content: bytes, said: Mapping[str, WordRuns], stable: Stable) -> bytes:
    """Return the index with shorter lines where the memories say what is cut off.

    ``said`` has the memories whose lines may change. A hook is cut only where it is ``stable``.
    """
    for limit in _LIMITS:
        size = _loaded(content)
        if limit < limits.INDEX_LINE_CHARACTERS and size <= limits.INDEX_BYTES:
            break
        hooks: dict[int, str] = {}
        for number, length, entry in _longest(content, limit):
            yield_to_requests()
            fits = limit < limits.INDEX_LINE_CHARACTERS
            enough = not fits or size > limits.INDEX_BYTES
            if not enough or entry.path not in said or (fits and number >= limits.INDEX_LINES):
                continue
            room = limit - (length - len(entry.hook))
            cut = _cut(entry, room, said[entry.path], stable)
            if cut:
                hooks[number] = cut
                size -= len(entry.hook.encode()) - len(cut.encode())
        content = with_hooks(content, hooks)
    return content


def _loaded(content: bytes) -> int:
    """Return the bytes of the lines that a prompt loads."""
    lines = decode(content).strip().split("\n")[: limits.INDEX_LINES]
    return len("\n".join(lines).encode())


def _longest(content: bytes, limit: int) -> list[tuple[int, int, index.IndexEntry]]:
    """Return the pointers whose lines are too long, with their lengths, the longest first."""
    lines = content.splitlines()
    result = [
        (entry.line, len(lines[entry.line].decode(errors="replace").rstrip()), entry)
        for entry in pointers(content)
    ]
    return sorted(
        (line for line in result if line[1] > limit), key=lambda line: (-line[1], line[0])
    )


def _cut(entry: index.IndexEntry, room: int, said: WordRuns, stable: Stable) -> str:
    """Return a shorter hook, "" where there is none that loses nothing."""
    every = words(entry.hook)
    for place in _places(entry.hook, room):
        retained = entry.hook[:place].rstrip(" ,;:\u2013\u2014-")
        first = max(0, len(words(retained)) - SHINGLE_WORDS + 1)
        if not said.says(every[first:]):
            return ""  # and a shorter one would lose more
        if _whole(retained) and stable(entry.path, retained + _MORE):
            return retained + _MORE
    return ""


def _places(hook: str, room: int) -> Iterator[int]:
    result = [match.start() for match in _PLACE.finditer(hook) if _LEAST <= match.start() < room]
    return reversed(result[-_TRIES:])


def _whole(text: str) -> bool:
    """Whether no code and no link is cut in two."""
    return text.count("`") % 2 == 0 and all(text.count(a) == text.count(b) for a, b in _PAIRS)
