"""Text as the words that search counts.

What each step is worth was measured on conversations (stop words with question words 4 points of
recall@5, stemming 7.5, words of dates 1.5, damping of common words 1.7, irregular forms 0.7).

Rules of this file
- The same text gives the same words, in the text's order, whatever was asked before.
- A code identifier gives its parts in place and, after the running text, itself as a whole, so
  that neither ``user_service`` nor ``service`` is out of reach and word pairs stay neighbours.
- Chinese, Japanese and Korean text has no spaces to trust: each pair of neighbouring characters
  is a word; characters that only carry grammar separate.
- All functions may read a word list on first use: call them from a worker thread.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

from memd.state import dates
from memd.state.engine import stems as stems_of

ANALYSIS = 3  # raised whenever ``indexed`` gives other words: what was indexed by them is old

_CACHE_WORDS = 16_000  # some 2 MB; the words of most directories
# Han, half of the marks between, Katakana, Hangul; Hiragana is grammar and separates.
_CJK = (
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u30a1-\u30fa\u30fc\uac00-\ud7af\U00020000-\U0003ffff"
)
_CJK_RUN = re.compile(f"[{_CJK}]+")
_SCRIPTS = re.compile(f"[{_CJK}]+|[^{_CJK}]+")
_HIRAGANA = re.compile("[\u3041-\u309f]+")
_CJK_GRAMMAR = re.compile(
    "[的了是在我你您他她它们吗呢吧啊呀嘛和就都而及与也很把被这那哪什么怎谁之其着过会个请]+"
)
_PART = r"[^\W_]+"
_TOKEN = re.compile(
    rf"(?P<path>[\w.~-]*(?:/[\w.-]+)+/?|\w+(?:\.\w+)+)|(?P<snake>\w*_\w*)|(?P<word>{_PART})"
)
_PARTS = re.compile(_PART)
_LETTER = re.compile("[a-z]")  # what an abbreviation or a contraction leaves
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MIXED = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_CJK_STARTERS = re.compile(
    "[吗呢?\uff1f]|什么|怎|哪|谁|为何|如何|是否|记得|多少|几|写|添加|新增|创建|实现|设计|重构|计划|部署|发布"
)

# A piece of code in a prompt: work is to begin on it.
_CODE = re.compile(r"[{}]|[\w\]]\(|\w=\w|[=!:]=|=>|->|;\s*$", re.MULTILINE)
_OPENING = 6  # what a prompt is about to do stands in its first words

_ROOT_LETTERS = 4  # a root has at least so many, and a word without more is its own
_ROOT_MOST = 6
ROOT = "^"  # marks a root among the words of an index

_stems: dict[str, str] = {}
_roots: dict[str, str] = {}


def words(text: str) -> list[str]:
    """Return the words of a text that are worth counting: stemmed, without stop words.

    First the running text in its order, then whole identifiers and paths in lower case.
    """
    running: list[str] = []
    whole: list[str] = []
    for token in _tokens(_prepare(text)):
        if "\0" in token:
            whole.append(token[1:])
        else:
            running.append(token)
    stop = _stop()
    kept = [word for word in running if word not in stop and not _LETTER.fullmatch(word)]
    return [*_stemmed(kept), *whole]


def indexed(text: str) -> list[str]:
    """Return the words of a text as an index keeps them: after ``words`` the roots of some."""
    found = words(text)
    return [*found, *dict.fromkeys(ROOT + root(word) for word in found if root(word) != word)]


def root(word: str) -> str:
    """Return what a word, as ``words`` gives it, shares with others of its family.

    The "counsellor" and the "counselling" have one; a word without a known ending is its own.
    """
    short = _roots.get(word)
    if short is None:
        short = _root(word) if len(word) > _ROOT_LETTERS and word.isascii() else word
        if len(_roots) >= _CACHE_WORDS:
            _roots.clear()
        _roots[word] = short
    return short


def is_common(word: str) -> bool:
    """Say whether a word, as ``words`` gives it, is among the commonest of the language.

    Such a word says little about what a text is about.
    """
    return word in common()


def opens(text: str) -> bool:
    """Say whether a prompt asks something or begins a piece of work.

    Other prompts ("run the tests again", "thanks") carry on with what is already at hand; only a
    strong match is worth a memory for them.
    """
    lowered = text.lower()
    if _CJK_RUN.search(lowered):
        return _CJK_STARTERS.search(lowered) is not None
    starters = _starters()
    return (
        "?" in text
        or _CODE.search(text) is not None
        or any(word in starters for word in _PARTS.findall(lowered)[:_OPENING])
    )


def count(text: str) -> int:
    """Return how many words a reader would count, at least two for four CJK characters or more."""
    runs = [*_CJK_RUN.findall(text), *_HIRAGANA.findall(text)]
    characters = sum(len(run) for run in runs)
    spaced = len(text.split())
    return max(spaced, 2) if characters >= 4 else spaced  # noqa: PLR2004 - as long as several words


def _prepare(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).replace("\0", " ").replace("\u2019", "'")
    return dates.spell(text)


def _tokens(text: str) -> Iterator[str]:
    """Yield lower-case words in order; a whole identifier comes marked with a leading NUL."""
    for match in _TOKEN.finditer(text):
        token = match.group()
        if match.lastgroup != "word" and len(_PARTS.findall(token)) > 1:
            yield "\0" + token.strip("./~_-").lower()
        for part in _PARTS.findall(token):
            yield from _word(part)


def _word(part: str) -> Iterator[str]:
    if part.isascii():
        if _MIXED.search(part) and part != dates.MAY:
            humps = _HUMP.split(part)
            if len(humps[0]) == 1:  # iPad, gRPC: a name, not a letter and a word
                yield part.lower()
                return
            yield "\0" + part.lower()
            yield from (hump.lower() for hump in humps)
        else:
            yield part.lower() if part != dates.MAY else part
        return
    for piece in _SCRIPTS.findall(part):
        if _CJK_RUN.match(piece):
            yield from _pairs(piece)
        elif not _HIRAGANA.fullmatch(piece):
            yield piece.lower()


def _pairs(run: str) -> Iterator[str]:
    for piece in _CJK_GRAMMAR.split(run):
        if len(piece) == 1:
            yield piece
        yield from (piece[at : at + 2] for at in range(len(piece) - 1))


def _root(word: str) -> str:
    if not word.isalpha():
        return word
    short = word
    for _ in range(2):
        ending = next((end for end in _endings() if short.endswith(end)), "")
        if len(short) - len(ending) >= _ROOT_LETTERS:
            short = short.removesuffix(ending)
    return short[:_ROOT_MOST]


def _stemmed(tokens: Sequence[str]) -> list[str]:
    stems = {token: _stems.get(token, "") for token in tokens}
    unknown = sorted(token for token, stem in stems.items() if not stem)
    if unknown:
        fresh = _stem(unknown)
        if len(_stems) + len(fresh) > _CACHE_WORDS:
            _stems.clear()
        _stems.update(fresh)
        stems.update(fresh)
    return [stems[token] for token in tokens]


def _stem(tokens: Sequence[str]) -> dict[str, str]:
    """Return each token's stem; what is no English word is its own."""
    irregular = _irregular()
    stems = {token: token for token in tokens}
    english = [token for token in tokens if token.isascii() and token.isalpha()]
    if english:
        plain = [irregular.get(token, token) for token in english]
        stems.update(zip(english, stems_of(plain), strict=True))
    return stems


@cache
def _stop() -> frozenset[str]:
    return frozenset(_list("stop.txt"))


@cache
def _starters() -> frozenset[str]:
    return frozenset(_list("starters.txt"))


@cache
def _endings() -> tuple[str, ...]:
    return tuple(sorted(_list("endings.txt"), key=len, reverse=True))


@cache
def common() -> frozenset[str]:
    """Return the commonest words of the language, as ``words`` gives them."""
    return frozenset(_stemmed(_list("common.txt")))


@cache
def _irregular() -> dict[str, str]:
    pairs = _list("irregular.txt")
    return dict(zip(pairs[::2], pairs[1::2], strict=True)) | {dates.MAY: "may"}


def _list(name: str) -> list[str]:
    return files("memd.state").joinpath("english", name).read_text("utf-8").split()
