"""Read what a dream may take facts from: daily logs, and the person's words in transcripts. Blocks.

Rules of this file
- A line of a log is a note of an assistant. Only ``user said: "…"`` is the person's word, and only
  if a transcript of that day or later has it; then their whole sentence counts, as they typed it.
- Only the ends of the transcripts that changed first after that day are searched.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from msgspec import Struct

from memd.base.errors import Refused
from memd.base.values import PERSON, MemoryType, Suggestion
from memd.base.yielding import yield_to_requests
from memd.store import secret
from memd.text.statements import Statement, statements
from memd.transcripts import reading
from memd.transcripts.sessions import sessions_of

_TIME = r"^\[?\d{1,2}:\d\d(?::\d\d)?\]?\s*[-\u2013\u2014:|]?\s*"  # of a log's line
_SAID = r"(?i)user said:\s*[\"\u201c](.+?)[\"\u201d]\s*$"
_DAY = r"(\d{4}-\d\d-\d\d)\.md$"
_LABELS = r"(?i)\*\*(?:why|how to apply):\*\*"
_TRANSCRIPTS = 10  # that are searched for one line
_BYTES = 4 * 1024 * 1024  # at the end of each of them
_MOST_SUGGESTIONS = 20  # of one dream
_UNCERTAIN = "uncertain"  # the reason of a suggestion
_SECONDS_OF_DAY = 86_400.0

OwnWords = Callable[[str], str]  # returns the person's own words in a message, without pasted text


class PersonsSentence(Struct, frozen=True):
    """A sentence as the person typed it; ``at`` is in seconds since 1970, 0 if unknown."""

    text: str
    at: float
    session: str


def log_statements(text: str) -> list[Statement]:
    """Return the statements of a daily log, without bullets and times of day."""
    return [
        Statement(re.sub(_TIME, "", each.raw), each.context)
        for each in statements(text)
        if re.sub(_TIME, "", each.raw)
    ]


def said_in(line: str) -> str:
    """Return the person's words that a line of a log notes, "" if it notes none."""
    match = re.search(_SAID, line)
    return match.group(1) if match else ""


def suggestions(logs: Mapping[str, str], transcripts: "Transcripts") -> tuple[Suggestion, ...]:
    """Return suggestions of the person's words that logs note, for a dream without a model."""
    result: list[Suggestion] = []
    for path, text in logs.items():
        for line in (said_in(each.raw) for each in log_statements(text)):
            sentence = transcripts.sentence_with(line, path) if line else None
            if sentence is not None and not secret.find(sentence.text):
                facts = (sentence.session, sentence.text, sentence.at, PERSON)
                result.append(Suggestion(*facts, type=MemoryType.FEEDBACK, reason=_UNCERTAIN))
    return tuple(result[:_MOST_SUGGESTIONS])


def is_advice(statement: Statement) -> bool:
    """Return whether a statement is a reason or advice, which each memory may have."""
    return re.match(_LABELS, statement.raw) is not None


class Transcripts:
    """The person's words in the transcripts of a project; each is read once."""

    def __init__(self, folders: Sequence[str], own_words: OwnWords) -> None:
        self._folders = folders
        self._own_words = own_words
        self._read: dict[str, tuple[PersonsSentence, ...]] = {}  # by path

    def sentence_with(self, words: str, log: str) -> PersonsSentence | None:
        """Return the person's sentence that has the words, ``None`` if there is none.

        ``log`` is the path of the log that notes them; its name has the day.
        """
        match = re.search(_DAY, log)
        since = 0.0
        with suppress(ValueError):
            since = datetime.fromisoformat(match[1]).replace(tzinfo=UTC).timestamp() if match else 0
        # A day of the person's clock may begin before that of UTC.
        first, last = since - _SECONDS_OF_DAY, since + 2 * _SECONDS_OF_DAY
        wanted = f" {Statement(words).key} "
        for sentence in self._since(first):
            is_near = not sentence.at or first <= sentence.at <= last
            if is_near and wanted in f" {Statement(sentence.text).key} ":
                return sentence
        return None

    def sentences(self, paths: Iterable[str]) -> list[PersonsSentence]:
        """Return the person's sentences in these transcripts."""
        return [sentence for path in paths for sentence in self._sentences(path)]

    def _since(self, first: float) -> Iterator[PersonsSentence]:
        """Yield the person's sentences in transcripts that changed after a time, oldest first."""
        changed = [
            (at, f"{folder}/{session}.jsonl")
            for folder in self._folders
            for session, at in sessions_of(folder).items()
            if at >= first
        ]
        for _, path in sorted(changed)[:_TRANSCRIPTS]:
            yield from self._sentences(path)

    def _sentences(self, path: str) -> tuple[PersonsSentence, ...]:
        """Return the person's sentences in a transcript; none of one that cannot be read."""
        if path not in self._read:
            yield_to_requests()
            sentences: list[PersonsSentence] = []
            session = path.rpartition("/")[2].removesuffix(".jsonl")
            with suppress(Refused):
                for message in reading.read(path, tail=_BYTES).messages:
                    if message.origin == "user" and message.text:
                        lines = self._own_words(message.text).split("\n")
                        at = message.at or 0.0
                        sentences += [PersonsSentence(each, at, session) for each in lines if each]
            self._read[path] = tuple(sentences)
        return self._read[path]
