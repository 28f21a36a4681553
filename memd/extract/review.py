"""Whether a memory that a model writes may stand, and whose words it carries. Pure.

Rules of this file
- A memory of who the person is, or of how to work for them, stands on their own words, quoted in
  the last lines of its body: ``**Said:** "…" (2026-11-22)``. So does a memory of another type that
  says what the person wants. The quotation is looked up; how the memory words it is free.
- Such a memory repeats no eight words in a row, and no whole line, that others said and the person
  did not. A fact that does is marked ``outside``, and so is one whose numbers, names, dates or
  addresses only others gave. What nobody gave is refused.
- What messages of other agents alone bear out is refused too; a fact that rests on more and repeats
  some of their words is marked ``agent``.
- Beside the type, what the person wants is known by one pattern: the person as subject of a verb of
  wanting or saying, in ten languages. A memory that says it otherwise counts as a fact.
- A memory that a team shares says what the person said, whatever its type: the assistant's words
  are others' there.
- Nothing in a private memory repeats what a team's memory says and the person did not.
- What an instruction file says already becomes no memory, and is added to none.
- A removal needs a quotation as its reason, and a run may make a few.
"""

# ruff: noqa: RUF001 - a pattern in ten languages

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from memd.agent.proposal import Proposed, RunProposal
from memd.core.covered import Covered, CoveredText, in_no_file
from memd.core.names import INDEX, TEAM
from memd.core.text import decode, one_line, said_line
from memd.core.values import (
    AGENT,
    ASSISTANT,
    OUTSIDE,
    PERSON,
    PERSONAL,
    Pointer,
    Suggestion,
    least_trusted,
)
from memd.documents import document, index, secrets
from memd.documents.document import Document
from memd.extract.already_said import in_memory, shown
from memd.extract.evidence import Talk
from memd.extract.requests import ALREADY_SAID
from memd.text import dates

NO_EVIDENCE, OTHERS_WORDS, UNKNOWN = "no_evidence", "outside_words", "not_in_conversation"
_REMOVALS = 3  # of one run
_SUGGESTED = 500  # characters
_SAID = re.compile(
    r"\s*(?:[-*>]\s+)?(?:\*\*)?said(?:\*\*)?\s*[:\uff1a](?:\*\*)?\s*(\S.*)", re.IGNORECASE
)
_DAY = re.compile(r"\s*\(?\d{4}-\d\d-\d\d\)?[\s.]*$")
_SIGNS = " \t\"'\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u00ab\u00bb\u300c\u300d\u300e\u300f"
_QUOTATION = re.compile('["\u201c\u201e\u00ab\u300c]([^"\u201d\u00bb\u300d]+)')
_WANTS = re.compile(
    r"\b(?:user|person)\b(?:\s+\w+){0,3}?\s+(?:want|wish|prefer|ask|sa(?:y|id)|t(?:ell|old)|like"
    r"|request|requir|insist|demand|hate|decid|agree|approv|permit|allow|confirm)"
    r"|\b(?:be)?nutzer(?:in)?\b(?:\s+\w+){0,2}?\s+(?:will|möchte|wünsch|bevorzug|bat|bitte|sag)"
    r"|\butilisat(?:eur|rice)\b(?:\s+\w+){0,2}?\s+(?:veut|préfère|souhaite|demand|dit|exige)"
    r"|\busu[aá]ri[oa]\b(?:\s+\w+){0,2}?\s+(?:quie|quer|pref|dese|pid|ped|dij|dic|diss)"
    r"|\butente\b(?:\s+\w+){0,2}?\s+(?:vuole|prefer|desider|chie|dice|ha detto)"
    r"|\bпользовател\w+(?:\s+\w+){0,2}?\s+(?:хоч|хот|предпоч|прос|попрос|сказ|треб|жела)"
    r"|(?:用户|使用者)[^。\n]{0,6}?(?:希望|想|要|喜欢|偏好|说|表示)"
    r"|ユーザー[はが][^。\n]{0,40}?(?:希望|望|好|求め|頼|言)"
    r"|사용자[는가][^.\n]{0,40}?(?:원|선호|요청|부탁|말)",
    re.IGNORECASE,
)
_NONE = (
    'it needs the person\'s own words: end the body with a line **Said:** "…" that quotes, word '
    "for word, where the person says so in this conversation; if they did not, leave it out"
)
_WRONG = (
    'the person did not say "{}" in this conversation: quote one stretch of one of their messages, '
    "word for word and long enough to mean something, or leave it out"
)
_REPEATED = (
    "it repeats what a tool, a page or a pasted text says and the person did not; what the person "
    "wants is said in their words or your own, never in others'"
)
_MESSAGE = (
    "it stands in a message of another agent alone, and nothing is learnt from messages: leave it "
    "out, or say what this conversation itself bears out"
)
_TEAM_HAS_IT = "it repeats a memory of the team, which has it already: leave it out"
_IN_A_FILE = (
    "{} says that already, and every assistant here is given it: leave it out, or save only what "
    "the file does not say"
)
_MISSING = '"{}" does not stand in the conversation: leave it out, or give it as it was given there'
_NO_REASON = (
    'a memory is removed only where the person says so: removed: "…", with their words quoted'
)
_TOO_MANY = f"a run removes at most {_REMOVALS} memories"


@dataclass(frozen=True, slots=True)
class Review:
    """What is wrong with a change, as a kind and as a sentence; or whose words it carries.

    ``file`` is the path of the instruction file that says it already.
    """

    fault: str = ""
    sentence: str = ""
    origin: str = ""
    file: str = ""


class Reviewer:
    """The reviews of one run over a conversation; ``answers`` of its tools are others' words.

    ``shared`` are the texts of a team's memories as far as the run was shown them; what of these
    its tools answer is in ``theirs``. ``covered`` tells what instruction files say.
    """

    def __init__(
        self,
        talk: Talk,
        answers: Sequence[str] = (),
        shared: Sequence[str] = (),
        covered: Covered = in_no_file,
    ) -> None:
        self._talk = talk
        self._covered = covered
        self._known = 0
        self._removed: set[str] = set()
        self._shared = shared
        self.answers = answers
        self.theirs: Sequence[str] = ()

    def problem(self, file: Proposed) -> str:
        """Return why a change may not stand, in words for the model; "" where it may."""
        if file.path == INDEX:
            return ""  # of it only titles and hooks are taken
        result = self._review(file)
        if file.content is None and not result.fault:
            removed = self._removed | {file.path}
            if len(removed) > _REMOVALS:
                return _TOO_MANY
            self._removed = removed
        return result.sentence

    def reviewed(
        self, proposal: RunProposal, refused: Sequence[Proposed], session: str
    ) -> "ReviewedRun":
        """Return what of a run's work may stand, and what becomes of the rest."""
        talk = self._heard()
        files = [file for file in proposal.files if file.path != INDEX]
        reviews = [(file, self._review(file)) for file in (*refused, *files)]
        accepted = tuple(
            replace(_finished(file, talk), origin=result.origin)
            for file, result in reviews[len(refused) :]
            if not result.fault
        )
        missed = [(file, result.fault) for file, result in reviews if result.fault]
        suggested = (_suggestion(file, fault, talk, session) for file, fault in missed)
        return ReviewedRun(
            RunProposal(accepted),
            least_trusted(*(file.origin for file in accepted)) or PERSON,
            tuple(fault for _, fault in missed),
            tuple(shown(_title(file), result.file) for file, result in reviews if result.file),
            tuple(filter(None, suggested)),
            dict(_pointers(proposal, accepted, talk)),
        )

    def _review(self, file: Proposed) -> Review:
        """Return the review of a change; none repeats an instruction file or a team's memory."""
        team = Talk(self._talk.person, outside="\n".join((*self._shared, *self.theirs)))
        old, new = (document.parse(text or b"", file.path) for text in (file.base, file.content))
        private = file.content is not None and not file.path.startswith(TEAM)
        if private and team.repeats(_added(old, new), f"{old.description}\n{old.body}"):
            return Review(OTHERS_WORDS, _TEAM_HAS_IT)
        said = file.content is not None and in_memory(old, new, self._covered)
        if said:
            return Review(ALREADY_SAID, _IN_A_FILE.format(said), file=said)
        return review(file, self._heard())

    def _heard(self) -> Talk:
        """Return the conversation with what the tools have answered by now."""
        new = self.answers[self._known :]
        if new:
            self._known += len(new)
            self._talk = replace(self._talk, outside="\n".join((self._talk.outside, *new)))
        return self._talk


@dataclass(frozen=True, slots=True)
class ReviewedRun:
    """What a run's work comes to; ``origin`` is the least trusted of all its memories.

    ``faults`` says why something was left out, ``already_said`` which of it an instruction file
    says, ``pointers`` are the titles and hooks that the run
    gave in the index.
    """

    proposal: RunProposal
    origin: str
    faults: tuple[str, ...]
    already_said: tuple[CoveredText, ...]
    suggestions: tuple[Suggestion, ...]
    pointers: Mapping[str, Pointer]


def review(file: Proposed, talk: Talk) -> Review:
    """Return what is wrong with a change of a memory, or whose words it carries."""
    if file.content is None:
        texts = _QUOTATION.findall(file.reason) or [_unquoted(file.reason)]
        taken_back = any(talk.quoted(text) for text in texts)
        return Review(origin=PERSON) if taken_back else Review(NO_EVIDENCE, _NO_REASON)
    old = document.parse(file.base or b"", file.path)
    new = document.parse(file.content, file.path)
    before, added = f"{old.description}\n{old.body}", _added(old, new)
    quoted = quotations(new.body)
    wrong = [text for line, text in quoted.items() if line not in before]
    wrong = [text for text in wrong if not talk.quoted(text)]
    own, personal = old.type in PERSONAL, new.type in PERSONAL
    if file.path.startswith(TEAM):
        talk = replace(talk, assistant="", outside=f"{talk.outside}\n{talk.assistant}")
        result = _fact(talk, added, before)
        if result.origin != ASSISTANT:
            return result if result.fault else Review(OTHERS_WORDS, _REPEATED)
        own = own or old.type is new.type
    elif not (own or personal or _WANTS.search("\n".join(added))):
        exempt = f"{before}\n{new.name}\n{file.path.removesuffix('.md')}"
        return _fact(talk, added, exempt) if not wrong else _unproven(wrong)
    # What was no rule before is looked at whole: a planted fact becomes none by its type.
    if talk.repeats(added if own else _statements(new), before if own else ""):
        return Review(OTHERS_WORDS, _REPEATED)
    if wrong or not any(talk.quoted(text) for text in quoted.values()):
        return _unproven(wrong)
    return Review(origin=PERSON)


def _fact(talk: Talk, added: Sequence[str], exempt: str) -> Review:
    missing, foreign = talk.unknown(added, exempt)
    if missing:
        return Review(UNKNOWN, _MISSING.format(missing[:80]))
    foreign = foreign or talk.repeats(added, exempt)
    if not (foreign and talk.agents):
        return Review(origin=OUTSIDE if foreign else ASSISTANT)
    return _of_agents(talk, added, exempt)


def _of_agents(talk: Talk, added: Sequence[str], exempt: str) -> Review:
    """Return the review of a fact with others' words, where messages of agents were read."""
    without, alone = replace(talk, agents=""), replace(talk, outside="")
    missing, foreign = without.unknown(added, exempt)
    if missing or all(alone.repeats([line], exempt) for line in added):
        return Review(OTHERS_WORDS, _MESSAGE)
    foreign = foreign or without.repeats(added, exempt)
    return Review(origin=OUTSIDE if foreign else AGENT)


def _unproven(wrong: Sequence[str]) -> Review:
    return Review(NO_EVIDENCE, _WRONG.format(wrong[0][:80]) if wrong else _NONE)


def _added(old: Document, new: Document) -> list[str]:
    known = set(_statements(old))
    return [line for line in _statements(new) if line not in known]


def _statements(memory: Document) -> list[str]:
    """Return what a memory states: its description and the lines that quote nobody."""
    lines = memory.body.split("\n")
    quoted = quotations(memory.body)
    return [line for line in (memory.description, *lines) if line.strip() and line not in quoted]


def _title(file: Proposed) -> str:
    """Return what a memory is about, in a line."""
    memory = document.parse(file.content or b"", file.path)
    return memory.description or memory.name


def quotations(body: str) -> dict[str, str]:
    """Return the lines that quote the person, each with what it quotes."""
    matches = ((line, _SAID.fullmatch(line)) for line in body.split("\n"))
    return {line: _unquoted(match[1]) for line, match in matches if match}


def _unquoted(text: str) -> str:
    """Return a quotation without its marks and the day behind it."""
    result = _SAID.fullmatch(text)
    return _DAY.sub("", result[1] if result else text).strip(_SIGNS)


def _finished(file: Proposed, talk: Talk) -> Proposed:
    """Return a memory with relative dates made absolute, and the day behind each quotation."""
    if file.content is None:
        return file
    old, new = document.parse(file.base or b"", ""), document.parse(file.content, "")
    at = max((said.at for said in talk.person), default=0.0)
    lines = {line: dates.resolve(line, at) if at else line for line in new.body.split("\n")}
    for line, quotation in quotations(new.body).items():
        said = talk.quoted(quotation)
        lines[line] = said_line(quotation, said.at if said else 0.0)
    lines |= {line: line for line in old.body.split("\n")}
    body = "\n".join(lines[line] for line in new.body.split("\n"))
    content = file.content if body == new.body else document.with_body(file.content, body)
    description = dates.resolve(new.description, at) if at else new.description
    if description not in (new.description, old.description):
        content = document.with_fields(content, {"description": description})
    return replace(file, content=content)


def _suggestion(file: Proposed, fault: str, talk: Talk, session: str) -> Suggestion | None:
    """Return what a person may decide of a memory that was not proven."""
    if file.content is None or fault in (OTHERS_WORDS, ALREADY_SAID):
        return None  # what others planted is nobody's to suggest
    memory = document.parse(file.content, file.path)
    said = next(filter(None, map(talk.nearest, quotations(memory.body).values())), None)
    text = one_line(said.text if said else memory.description, _SUGGESTED)
    if not text or secrets.find(text) or (said is None and talk.repeats([text], "")):
        return None
    at = said.at if said else max((each.at for each in talk.person), default=0.0)
    kind = memory.type.value if memory.type else ""
    return Suggestion(session, text, at, PERSON if said else ASSISTANT, kind, fault)


def _pointers(
    proposal: RunProposal, accepted: Sequence[Proposed], talk: Talk
) -> Iterator[tuple[str, Pointer]]:
    """Yield the titles and hooks that a run gave the memories that it wrote."""
    written = {file.path: file.content for file in accepted if file.content is not None}
    for edited in (file for file in proposal.files if file.path == INDEX):
        before = index.pointers(edited.base).items()
        for path, pointer in index.pointers(edited.content).items() - before:
            words = [pointer.title, pointer.hook]
            wanted = _WANTS.search(pointer.hook) or secrets.find("\n".join(words))
            if path in written and not (wanted or talk.repeats(words, decode(written[path]))):
                yield path, pointer
