"""Split a person's message into sentences, leaving out what is not the person's own. Pure.

Rules of this file
- What a client inserted (notes in tags, marks in brackets) is left out.
- Behind a task on a text (translate, shorten, proofread) the text follows: all behind a blank
  line or a colon is left out.
- Text in fences, between rules or tags, in indented blocks, behind ``>``, from the head of a letter
  on, or that looks like pasted output is left out first.
- Inline code and quotations stay in ``text`` but are blanked out in ``masked``, which is searched
  for markers. Both forms have the same length.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator

from msgspec import Struct

from memd.extract.phrases import TASK_ON_TEXT

SENTENCE_CHARACTERS = 600  # a longer one is pasted; the limit also bounds the cost of patterns
_PASTED_LINES = 40  # of a message with more lines only the first and last eight are used
_EDGE_LINES = 8
_LINE_CHARACTERS = 4000
BLANK = "\ufffc"  # in the place of each character of code or a quotation

_FENCE = re.compile(r"^\s{0,3}(```+|~~~+|\"{3}|\'{3})")
_RULE = re.compile(r"^\s*([-=_*])\1{2,}(?: ?[\w ]{1,40} ?[-=]{3,})?\s*$")
# Lines from which on the rest of a message is a letter.
_LETTER = (
    r"^\s*(?:(?:From|Subject|Sent|Betreff|\u53d1\u4ef6\u4eba|\u4e3b\u9898)\s*[:\uff1a]"
    r"|On .{6,80} wrote:\s*$|Dear .{2,40}[,:]\s*$|\u5c0a\u656c\u7684"
    r"|(?:Hi|Hello) (?:team|all|everyone|folks|support team)[,:]?\s*$)"
)
# Behind the first line such a greeting opens one, too.
_GREETING = (
    r"\s*(?:Hi|Hello|Hey|Hallo|Liebe[rns]?|Hola|Estimad[oa]s?|Bonjour|Olá|Caro|Cara|Ciao|Gentile"
    r"|Уважаем\w+|Здравствуйте|皆さん|各位|大家好|여러분|안녕하세요)\b[^.!?]{0,40}[,!\uff0c\u3001]?\s*$"
)
# Quotations, and the marks that clients, diffs, comments and numbered listings put before a line.
_QUOTED_LINE = r"^\s*(?:>|\||\u23fa|\u25cf|\u23bf|//|/\*|--\s|\d+\s?[|\u2502])"
_INDENTED = r"^(?:\t| {4,})\S"
_BULLET = r"^\s*(?:[-*+•]|\d{1,2}[.)])\s+"
_OUTPUT = (
    r"^\s*(?:at \S+ ?\(|Traceback |File \"|\d{4}-\d\d-\d\d[T ]\d\d:|\[?\d\d:\d\d:\d\d|"
    r"(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL)\b|[+-]{3} |@@ |diff --git|\$ |>>> |[{}\[\]<]|"
    r"\S+\.\w+:\d+|(?:\w+ )?(?:ERR!|WARN)\s|(?:error|warning|fatal|exception)(?:\[\w+\])?:\s|"
    r"(?:User|Assistant|Human|System|AI|Customer|Reviewer|Q|A)\s?:\s|"
    r"\[?@?[\w. ]{1,24}[,\s]\s?[\[(]?\d{1,2}:\d\d(?:\s?[AaPp][Mm])?[\])]?:?\s)"
)
_LEFT_OUT = "\n>\n"  # a quoted line, in the place of an element
# A tag of any name: clients wrap commands, their output and an editor's content in tags.
_TAG = r"(?i)<(/\s?|)([a-z][\w:.-]{0,60})(?:\s[^<>]{0,2000})?(/?)>"
# Texts that clients insert into or send as a person's message.
_CLIENT_MARK = r"\[(?:Request interrupted|Pasted text|Image)[^\]\n]{0,80}\]"
_CLIENT_MESSAGE = (
    r"\s*(?:Caveat: The messages below|This session is being continued from|Base directory for this"
    r"|Unknown (?:skill|slash command)|/[a-z][\w:-]*\s*$)"
)
_GIVEN_TEXT = re.compile(r"[:\uff1a]|\n[ \t]*\n")
# Lengths are bounded, so that many opening marks do not make the search slow.
_MASKED = (
    r"`[^`\n]{1,300}`"
    r'|"[^"\n]{1,300}"'
    r"|(?<!\w)'[^'\n]{2,200}?'(?!\w)"
    "|\u201c[^\u201d\n]{1,300}\u201d|\u2018[^\u2019\n]{1,300}\u2019"
    "|\u00ab[^\u00bb\n]{1,300}\u00bb"
    "|\u300c[^\u300d\n]{1,300}\u300d|\u300e[^\u300f\n]{1,300}\u300f"
)
# A sentence ends before a space, or at a CJK mark, which needs none.
_END = (
    r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)(?<!vs\.)(?<!\b[DMS]r\.)(?<!\bM[rs]\.)(?<!\bMrs\.)"
    r"(?<!\b[A-Z]\.)(?<!\bNr\.)(?<!\d\.)\s+"
    # "on the 3. of May" and "am 3. Mai" go on; a number may end a sentence all the same.
    r"|(?<=\d\.)\s+(?!(?i:jan|feb|mär|apr|mai|jun|jul|aug|sep|okt|nov|dez))(?=[^\Wa-zäöüß_])"
    r"|(?<=[\u3002\uff01\uff1f])\s*"
)


class Sentence(Struct, frozen=True):
    """One sentence as written, and the same with code and quotations blanked out."""

    text: str
    masked: str

    @property
    def plain(self) -> str:
        """The sentence without code and quotations."""
        return self.masked.replace(BLANK, "")

    def part(self, start: int, end: int) -> "Sentence":
        """Return the part from ``start`` to ``end``, without white space at its ends."""
        text = self.text[start:end]
        left = len(text) - len(text.lstrip())
        right = len(text.rstrip())
        masked = self.masked[start:end]
        return Sentence(text[left:right], masked[left:right]) if right > left else Sentence("", "")


def sentences(text: str) -> tuple[Sentence, ...]:
    """Return the person's own sentences in order."""
    result: list[Sentence] = []
    if re.match(_CLIENT_MESSAGE, text):
        return ()
    for paragraph in _paragraphs(
        _without_given_text(re.sub(_CLIENT_MARK, " ", _remove_tagged(text)))
    ):
        all_sentences = Sentence(paragraph, mask(paragraph))
        start = 0
        # The masked form is searched, since a full stop in a quotation ends no sentence.
        gaps = [match.span() for match in re.finditer(_END, all_sentences.masked)]
        for gap_start, gap_end in (*gaps, (len(paragraph), len(paragraph))):
            sentence = all_sentences.part(start, gap_start)
            if sentence.text and len(sentence.text) <= SENTENCE_CHARACTERS:
                result.append(sentence)
            start = gap_end
    return tuple(result)


def _without_given_text(text: str) -> str:
    """Return a message without the text that it orders a task on."""
    task = TASK_ON_TEXT.span(text)
    given = _GIVEN_TEXT.search(text, task[1] - 1) if task else None
    return text[: given.start()] if given else text


def mask(text: str) -> str:
    """Return a text of the same length with inline code and quotations blanked out."""
    return re.sub(_MASKED, lambda match: BLANK * len(match.group()), text)


def _remove_tagged(text: str) -> str:
    """Return a text without elements in tags, in time proportional to the number of tags."""
    tags = list(re.finditer(_TAG, text))
    # By tag name, the ends of all closing tags; ``</`` is group 1, ``/>`` group 3 of a tag.
    closing_ends: dict[str, list[int]] = {}
    for tag in tags:
        if tag.group(1):
            closing_ends.setdefault(tag.group(2).lower(), []).append(tag.end())
    parts: list[str] = []
    position = 0
    for tag in tags:
        if tag.start() < position or tag.group(1):
            continue  # within an element that is left out, or a closing tag
        ends = closing_ends.get(tag.group(2).lower(), [])
        # The first closing tag of this name after the opening one.
        index = bisect_right(ends, tag.end())
        has_closing_tag = index < len(ends)
        is_empty_element = tag.group(3)
        if is_empty_element or has_closing_tag:
            parts += [text[position : tag.start()], _LEFT_OUT]
            position = tag.end() if is_empty_element else ends[index]
    return "".join((*parts, text[position:]))


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the person's paragraphs: wrapped lines are joined, each bullet is one of its own."""
    current: list[str] = []
    for line in _typed_lines(text):
        if line is None:
            if current:
                yield " ".join(current)
            current = []
            continue
        words = re.sub(_BULLET, "", line).strip()
        # A line that begins with a small letter goes on with the paragraph before it.
        goes_on = words and words[0].islower() and not re.match(_BULLET, line)
        if current and not goes_on:
            yield " ".join(current)
            current = []
        if words:
            current.append(words)
    if current:
        yield " ".join(current)


def _typed_lines(text: str) -> Iterator[str | None]:
    """Yield the lines that the person typed, and ``None`` for each pasted or quoted one."""
    lines = text.splitlines()
    block: _ForeignBlock | None = None  # that the line is in
    typed: str | None = None  # the line, or None if the person did not type it
    pasted_lines = range(0)  # the middle of a long message
    if len(lines) > _PASTED_LINES:
        pasted_lines = range(_EDGE_LINES, len(lines) - _EDGE_LINES)
    for number, line in enumerate(lines):
        if block is not None:
            block = None if block.ends(line) else block
            typed = None
            yield None
        else:
            block = _opened_block(line)
            if number > 0 and re.match(_GREETING, line):
                block = _ForeignBlock()
            is_foreign = (
                block or number in pasted_lines or _looks_pasted(line, previous=typed or "")
            )
            typed = None if is_foreign else line
            yield typed


class _ForeignBlock(Struct, frozen=True):
    """A block of lines that the person did not write: a fence, rule or letter.

    Its last line matches ``last_line``, with a first group that begins with ``closing``. Without
    ``last_line`` the block has no end.
    """

    closing: str = ""
    last_line: re.Pattern[str] | None = None

    def ends(self, line: str) -> bool:
        """Return whether a line is the block's last one."""
        if self.last_line is None:
            return False
        # A fence ends only with one of the same characters that is at least as long.
        match = self.last_line.match(line)
        return match is not None and match.group(1).startswith(self.closing)


def _opened_block(line: str) -> _ForeignBlock | None:
    """Return the block that a line opens, if any."""
    if (fence := _FENCE.match(line)) is not None:
        return _ForeignBlock(fence.group(1), _FENCE)
    if (rule := _RULE.match(line)) is not None:
        return _ForeignBlock(rule.group(1), _RULE)
    return _ForeignBlock() if re.match(_LETTER, line) else None


def _looks_pasted(line: str, previous: str) -> bool:
    """Return whether a line is quoted, a program's output, too long or starts an indented block."""
    if len(line) > _LINE_CHARACTERS or re.match(_QUOTED_LINE, line) or re.match(_OUTPUT, line):
        return True
    indented = re.match(_INDENTED, line) and not re.match(_BULLET, line)
    return bool(indented and not previous.strip())
