"""What the local extractor finds in a person's words: candidates for memories. Pure.

Rules of this file
- Only the person's own sentences are looked at, and a cue table decides; precision before recall:
  a wrong memory costs more than a missed one.
- Asked, supposed, joked, reported and momentary sentences are no candidates.
- What is never saved is not saved when asked to either: structure and paths, recipes of fixes,
  git history, the state of a task.
- A candidate that holds a credential is refused; of it only the rule's name goes on.
The same words always give the same candidates.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from memd.core.values import MemoryType, Message
from memd.core.yielding import yield_to_requests
from memd.documents import secrets
from memd.extract import cues
from memd.extract.conditions import has_address, meets
from memd.extract.cues import Cue, Language
from memd.extract.exclusions import objection
from memd.extract.quoted import outside
from memd.extract.sameness import NOT_MARKED, marked
from memd.extract.sentences import Sentence, sentences
from memd.text.dates import resolve

_ME = re.compile(r"^(?:i|i'm|i've|my|im)\b|^我(?!们)", re.IGNORECASE)
_FORBIDDEN = {
    "explicit": ("momentary",),
    "feedback": ("momentary", "now", "product"),
    "user": ("mood",),
    "project": ("momentary", "now", "task"),
    "reference": ("momentary", "now"),
}
_UNCLEAR = "unclear"
_NOT_CHAINED = (
    "question",
    "hypothetical",
    "reported",
    "judgement",
    "momentary",
    "mood",
    "product",
    "given",
)
_SHORT = 40  # characters of a sentence that is no more than praise
_CLAUSE = re.compile(r"[,;\uff0c\uff1b]")
# A request that sends somebody to the place is what the place is for.
_VISIT = re.compile(r"\b(?:before|when|whenever|if|there|first)\b|之前|先|时", re.IGNORECASE)
_ANAPHORA = re.compile(
    r"^(?:keep|continue) (?:on )?doing "
    r"(?:that|this|it|so|the same|exactly that|things? (?:that|this) way)?[\s.!]*$"
    r"|^(?:继续|保持)(?:这样|这么|下去|保持)(?:做|吧|就好)?[\s。!\uff01]*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something worth keeping, in the person's words with absolute dates.

    ``why`` and ``when`` are "" where the person gave none; ``at`` is seconds since 1970;
    ``change`` is how clearly the sentence says that something is not as it was (``sameness``).
    """

    type: MemoryType
    content: str
    why: str
    when: str
    language: str
    at: float
    change: int = NOT_MARKED


@dataclass(frozen=True, slots=True)
class Candidates:
    """All candidates of some messages, and the rule of each one refused for a credential.

    ``passed_over`` has the reason for each request to remember that gave no candidate.
    """

    candidates: tuple[Candidate, ...]
    refused: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()


def find(messages: Iterable[Message], now: float) -> Candidates:
    """Return the candidates in a conversation; ``now`` stands in for a missing time."""
    result: list[Candidate] = []
    refused: list[str] = []
    passed_over: list[str] = []
    for message in messages:
        yield_to_requests()
        if message.origin == "user" and message.role == "user":
            at = now if message.at is None else message.at
            said = sentences(message.text)
            joke = any(cues.of(s.text).forbid["joke"].search(s.masked) for s in said)
            own = outside(said)
            for sentence, candidate in _in_message(own, at):
                if isinstance(candidate, Candidate) and not joke:
                    rules = secrets.find(_evidence(candidate, own))
                    refused += [rules[0].rule] if rules else []
                    result += [] if rules else [candidate]
                elif _requested(sentence):
                    passed_over.append("joke" if joke else str(candidate))
    return Candidates(tuple(result), tuple(refused), tuple(passed_over))


def _requested(sentence: Sentence) -> bool:
    """Return whether a sentence asks to remember something, also where no candidate was made."""
    language = cues.of(sentence.text)
    return bool(language.requested.match(_without_openings(sentence, language).masked))


def _evidence(candidate: Candidate, own: Sequence[Sentence]) -> str:
    """Return what must hold no credential: the candidate and, after a colon, what follows."""
    parts = [candidate.content, candidate.why]
    for sentence, following in pairwise(own):
        if sentence.text.endswith((":", "\uff1a")) and candidate.content in sentence.text:
            parts.append(following.text)
    return "\n".join(parts)


def _in_message(own: Sequence[Sentence], at: float) -> Iterator[tuple[Sentence, "Candidate | str"]]:
    """Yield each sentence with its candidate, or the reason that there is none."""
    for number, sentence in enumerate(own):
        before = own[number - 1] if number else None
        after = own[number + 1] if number + 1 < len(own) else None
        yield sentence, _candidate(sentence, before, after, at)


def _candidate(
    sentence: Sentence, before: Sentence | None, after: Sentence | None, at: float
) -> Candidate | str:
    language = cues.of(sentence.text)
    change = marked(sentence.masked)
    follows = _reason_of(after, language) if after else ""
    taken = _taken(sentence, before, follows, language)
    if isinstance(taken, str):
        return taken
    kind, statement = taken
    content, why = _split_reason(statement, language)
    if _ANAPHORA.match(content.text):
        # "Exactly, keep doing that": what is meant stands in the sentence before, if anywhere.
        if before is None or language.forbid["question"].search(before.masked):
            return "vague"
        content = before
    why = why or follows
    reason = objection(content, kind, language)
    if reason:
        return reason
    condition = language.condition.search(content.masked)
    return Candidate(
        type=MemoryType(kind),
        content=resolve(content.text.rstrip(" ,;:"), at),
        why=resolve(why, at),
        when=content.text[slice(*condition.span("when"))] if condition else "",
        language=language.name,
        at=at,
        change=change,
    )


def _without_openings(sentence: Sentence, language: Language) -> Sentence:
    while (opening := language.openings.match(sentence.masked)) is not None:
        # "No, never …" opens; "No tests" does not: an opening ends before the rest begins.
        rest = sentence.part(opening.end(), len(sentence.text))
        if not rest.text:
            break
        sentence = rest
    return sentence


def _taken(
    sentence: Sentence, before: Sentence | None, follows: str, language: Language
) -> tuple[str, Sentence] | str:
    """Return what ``_first_cue`` finds in a sentence, or in a later clause of a Chinese one.

    ``follows`` is the reason that the next sentence gives. What stands before the point is heard:
    praise confirms and "in general" makes a habit, though neither is kept.
    """
    because = language.wording["because"] + follows if follows else ""
    short = before is not None and len(before.text) <= _SHORT
    praise = f"{before.masked} " if before is not None and short else ""
    heard = Sentence(praise + sentence.text + because, praise + sentence.masked + because)
    point = _without_openings(sentence, language)
    taken = _first_cue(point, heard, language.cues, language)
    if taken != _UNCLEAR or not language.chained:
        return taken
    if any(language.forbid[name].search(point.masked) for name in _NOT_CHAINED):
        return taken
    for comma in _CLAUSE.finditer(point.masked):
        clause = _without_openings(point.part(comma.end(), len(point.text)), language)
        result = _first_cue(clause, heard, language.chained, language)
        if isinstance(result, tuple):
            return result
    return taken


def _first_cue(
    sentence: Sentence,
    heard: Sentence,
    table: Sequence[Cue],
    language: Language,
) -> tuple[str, Sentence] | str:
    """Return the kind and the kept stretch of the first cue that holds for a sentence.

    Where none holds: what forbids the first that would, or "unclear".
    """
    forbidden = ""
    for cue in table:
        match = cue.pattern.match(sentence.masked)
        if match is None:
            continue
        reason = _forbidden(sentence, match, cue, language)
        if reason:
            forbidden = forbidden or reason
            continue
        content = _without_task(sentence.part(*match.span("content")), cue, language)
        if (
            cue.kind == "reference"
            and cue.needs != "place"
            and language.forbid["task"].search(content.masked)
        ):
            forbidden = forbidden or "task"
            continue
        if cue.kind == "explicit":
            return _classified(content, language)
        if meets(cue.needs, heard, content, language):
            return cue.kind, content
    return forbidden or _UNCLEAR


def _without_task(content: Sentence, cue: Cue, language: Language) -> Sentence:
    """Return what somebody is or where something stands, without a request in the same breath.

    "I'm new to React, explain hooks"; "bugs are tracked in Linear, fix the first". A cue for places
    has requests of its own form.
    """
    if cue.kind not in ("user", "reference") or cue.needs == "place":
        return content
    task = language.forbid["task"].search(content.masked)
    if task is None or (
        cue.kind == "reference" and not _VISIT.search(content.masked, task.start())
    ):
        return content
    return content.part(0, task.start())


def _forbidden(sentence: Sentence, match: re.Match[str], cue: Cue, language: Language) -> str:
    """Return the name of the first pattern that forbids a sentence as this cue's, or ""."""
    forbidden = ["hypothetical", "judgement", *_FORBIDDEN[cue.kind]]
    if not cue.question:
        forbidden.append("question")
    # "Remember that …, accounting insists": who asked has heard it and vouches for it.
    first = _CLAUSE.search(sentence.masked, match.start("content"))
    reported = sentence.masked[: first.start() if first and cue.kind == "explicit" else None]
    if language.forbid["reported"].search(reported):
        return "reported"
    result = (name for name in forbidden if language.forbid[name].search(sentence.masked))
    return next(result, "")


def _classified(content: Sentence, language: Language) -> tuple[str, Sentence]:
    """Return the type of what was asked to be remembered; a plain fact is the project's."""
    content = _without_openings(content, language)
    for cue in language.cues:
        match = cue.pattern.match(content.masked)
        if match is None or cue.kind == "explicit":
            continue
        # A request is habit enough; what a fact is about must still be there.
        if cue.kind == "feedback" or meets(cue.needs, content, content, language):
            return cue.kind, content.part(*match.span("content"))
    if has_address(content.text):
        return "reference", content
    return ("user" if _ME.match(content.text) else "project"), content


def _split_reason(content: Sentence, language: Language) -> tuple[Sentence, str]:
    reason = language.reason.search(content.masked)
    if reason is None or reason.start() == 0:
        return content, ""
    group = "why" if reason.group("why") else "dash"
    why = content.part(*reason.span(group)).text
    return content.part(0, reason.start()), why.rstrip(" .。")


def _reason_of(sentence: Sentence, language: Language) -> str:
    match = language.follows.match(sentence.masked)
    if match is None:
        return ""
    span = next(span for name in match.groupdict() if (span := match.span(name)) != (-1, -1))
    return sentence.part(*span).text.rstrip(" .。")
