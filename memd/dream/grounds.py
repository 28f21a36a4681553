"""What a new statement may rest on: the memories of its group, daily logs, transcripts. Pure.

Rules of this file
- Each fact of a new statement stands in a memory of its group or in a source. A date may come
  behind a relative one if it is a day that was meant.
- A fact stays bound to its words: where a word of a clause belongs to another fact of the same kind
  and never stood beside this one, the fact has changed its place. Only a newer source may say so.
- What denies or bounds a statement stood there before. No opposite takes a word's place.
- A sentence that orders something, says what somebody wants, or has an address, had a sentence
  like that in its group: logs and transcripts cannot give one.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from memd.core.yielding import yield_to_requests
from memd.dream.values import quoted
from memd.text.bounds import DENIAL
from memd.text.orders import orders, wishes
from memd.text.similarity import RESEMBLING, contradiction, exchanged, opposed, resemblance, turned
from memd.text.statements import ADDRESS, CODE, DATE, Clause, Statement, undated
from memd.text.words import words

_KNOWN = 0.5  # of the telling words: below, nobody said it
_FEW = 2  # telling words: with no fact and no denial among them they say nothing
_NEARLY = 0.75  # of the telling words: what one denies of the two, the other denies too
SAID = "**Said:**"
_TERM = re.compile(
    r"\b(?:until|till|through|by|due|deadline|ends?|expires?|bis|endet|hasta|vence|jusqu\w+|expire"
    r"|at\u00e9|fino|scade|\u0434\u043e)\b|\u622a\u6b62|\u5230\u671f|\u307e\u3067|\uae4c\uc9c0",
    re.IGNORECASE,
)
Bound = tuple[str, str]  # kind and form of a fact


@dataclass(frozen=True, eq=False)
class Grounds:
    """The statements that others are held against.

    ``raw`` is all text of the memories, for pieces of code; ``paths`` are the memories' names;
    ``days`` are dates that relative ones may have meant.
    """

    memories: Sequence[Statement]
    logs: Sequence[Statement] = ()
    transcripts: Sequence[Statement] = ()
    raw: str = ""
    paths: frozenset[str] = frozenset()
    days: frozenset[str] = frozenset()

    @cached_property
    def keys(self) -> frozenset[str]:
        """What the statements of the memories are compared by."""
        return frozenset(statement.key for statement in self.memories)

    def problem(self, new: Statement, newer: Sequence[Statement] = ()) -> str:
        """Return what is wrong with a new statement, "" where it may be said.

        ``newer`` are statements of memories and sources that are newer than the memory itself.
        """
        yield_to_requests()
        if new.key in self.keys or not new.words:
            return ""
        if new.raw.startswith(SAID):
            return "would have evidence that no memory of its group had"
        plain = Statement(undated(new.raw), new.context)
        if plain.key in self.keys and plain.raw != new.raw:
            dates = {form for kind, form in new.facts - plain.facts if kind == DATE}
            return "" if dates <= self.days else "would have a date that was not meant"
        missing = self._missing(new)
        if missing:
            return f"would say '{quoted(missing)}', which stands nowhere"
        return self._contrary(new, newer)

    def _contrary(self, new: Statement, newer: Sequence[Statement]) -> str:
        """Return what a statement says otherwise than its grounds, all of whose facts stand."""
        alike = [old for old in self.memories if resemblance(new, old) >= RESEMBLING]
        if orders(new.raw) and not any(orders(old.raw) for old in alike):
            return "would order something that it did not order"
        if wishes(new.raw) and not any(wishes(old.raw) for old in alike):
            return "would say what somebody wants, which needs that person's words"
        return self._opposed(new, alike, newer) or self._misplaced(new, newer)

    def outside(self, new: Statement) -> bool:
        """Whether only transcripts say it: nobody knows whose words those are."""
        return not any(resemblance(new, one) >= RESEMBLING for one in (*self.memories, *self.logs))

    def _missing(self, new: Statement) -> str:
        """Return a fact of a statement that stands nowhere, or all of it."""
        for token in new.tokens:
            if token.kind == ADDRESS and token.form not in self._forms_of_memories:
                return token.raw
            if (token.kind, token.form) not in new.facts or token.form in self._forms:
                continue
            if token.kind == CODE or token.raw in self.paths:
                continue  # code is looked for in whole pieces
            if not (token.kind == DATE and self._is_day(token.raw)):
                return token.raw
        for piece in new.code:
            if piece not in self.raw and piece not in self._raw_sources:
                return piece
        said = [form for form in new.words if form in self._forms or form in self.paths]
        if len(said) < _KNOWN * len(new.words) - len(self.days & new.words):
            return new.raw
        least = min(2, len(new.words))
        spoken = [one for one in self._sources if len(new.words & one.words) >= least]
        near = any(resemblance(new, one) >= RESEMBLING for one in (*self.memories, *spoken))
        return "" if near else new.raw

    def _is_day(self, raw: str) -> bool:
        spelled = f" {' '.join(words(raw))} "
        return raw in self.days or spelled in self._spelled

    def _opposed(
        self, new: Statement, alike: Sequence[Statement], newer: Sequence[Statement]
    ) -> str:
        """Return where a statement denies, bounds or turns round what was said."""
        news = [one for one in newer if resemblance(new, one) >= RESEMBLING]
        spoken = [one for one in self._sources if resemblance(new, one) >= RESEMBLING]
        known = frozenset[str]().union(*(old.limits for old in (*alike, *news, *spoken)))
        if new.limits - known:
            return "would deny or bound what nobody denied or bounded"
        reported = [clause for one in news for clause in one.clauses]
        if all(_stands(clause, reported) for clause in new.clauses):
            return ""
        for old in alike:
            nearly = resemblance(new, old) >= _NEARLY
            if nearly and DENIAL in old.limits and DENIAL not in new.limits:
                return f"would no longer deny '{quoted(old.raw)}'"
            within = old.words <= new.words
            changed = opposed(new, old) or turned(new, old)
            changed = changed or (not within and exchanged(new, old))
            if changed and all(contradiction(new, one) for one in news):
                return f"would turn round '{quoted(old.raw)}'"
        return ""

    def _misplaced(self, new: Statement, newer: Sequence[Statement]) -> str:
        """Return where a fact stands beside words that belong to another one of its kind."""
        for clause in new.clauses:
            if _stands(clause, self._all):
                continue
            for kind, form in clause.facts:
                rivals = self._rivals[kind] - {fact for its, fact in clause.facts if its == kind}
                own = self._beside.get((kind, form), frozenset())
                taken = {
                    word
                    for word in clause.words - own - {form}
                    for rival in rivals
                    if rival != form and word in self._beside[kind, rival]
                }
                if taken and not self._news(new, form, newer):
                    return f"would say '{quoted(form)}' of '{quoted(' '.join(sorted(taken)))}'"
        return ""

    def _news(self, new: Statement, form: str, newer: Sequence[Statement]) -> bool:
        """Whether a newer source says a fact of something else than the memories did."""
        known = [old for old in self.memories if form in old.words and old not in newer]
        return any(
            form in one.words
            and len(one.words & new.words) > 1
            and not any(resemblance(one, old) >= RESEMBLING for old in known)
            for one in newer
        )

    @cached_property
    def _sources(self) -> tuple[Statement, ...]:
        return (*self.logs, *self.transcripts)

    @cached_property
    def _all(self) -> tuple[Clause, ...]:
        return tuple(clause for one in (*self.memories, *self._sources) for clause in one.clauses)

    @cached_property
    def _beside(self) -> dict[Bound, frozenset[str]]:
        """The words that stand in a clause with each fact."""
        result: dict[Bound, set[str]] = defaultdict(set)
        for clause in self._all:
            for fact in clause.facts:
                result[fact] |= clause.words
        return {fact: frozenset(beside) for fact, beside in result.items()}

    @cached_property
    def _rivals(self) -> dict[str, frozenset[str]]:
        result: dict[str, set[str]] = defaultdict(set)
        for kind, form in self._beside:
            result[kind].add(form)
        return defaultdict(frozenset, {kind: frozenset(forms) for kind, forms in result.items()})

    @cached_property
    def _forms(self) -> frozenset[str]:
        sources = (token.form for one in self._sources for token in one.tokens)
        return self._forms_of_memories | frozenset(sources)

    @cached_property
    def _forms_of_memories(self) -> frozenset[str]:
        return frozenset(token.form for one in self.memories for token in one.tokens)

    @cached_property
    def _raw_sources(self) -> str:
        return "\n".join(one.raw for one in self._sources)

    @cached_property
    def _spelled(self) -> str:
        every = (*self.memories, *self._sources)
        return f" {' | '.join(' '.join(words(one.raw)) for one in every)} "


def _stands(clause: Clause, known: Sequence[Clause]) -> bool:
    """Whether a clause, perhaps shortened, was said like this."""
    return any(clause.words <= one.words and clause.limits == one.limits for one in known)


def void(old: Statement, newer: Sequence[Statement], *, written: str, today: str) -> bool:
    """Whether a statement no longer matters: its day is over, or a newer one says otherwise.

    A day is over that lay ahead when the memory was ``written``, or that ends something; what
    happened on a day stays. Both are ISO dates.
    """
    if old.raw.startswith(SAID):
        return False
    dates = [form for kind, form in old.facts if kind == DATE and form[0].isdigit()]
    last = max(dates, default="")
    if last and last < today[: len(last)] and (last >= written or _TERM.search(old.raw)):
        return True
    return any(
        resemblance(old, one) >= RESEMBLING
        and len(old.words & one.words) > 1
        and contradiction(one, old)
        for one in newer
    )


def restated(old: Statement, after: Sequence[Statement], raw: str, *, plain: bool = False) -> bool:
    """Whether the texts ``after``, all of them in ``raw``, say what a statement said.

    Its facts stand beside one of its words there, and half of its telling words in statements
    that resemble it. Of a description (``plain``) only facts and denials count.
    """
    yield_to_requests()
    if old.raw.startswith(SAID):
        return old.raw in raw
    if len(old.words) <= _FEW and not (old.facts or old.limits or old.raw.startswith("**")):
        return True
    near = [one for one in after if one.words & old.words]
    alike = [one for one in near if resemblance(one, old) >= RESEMBLING]
    there = frozenset[str]().union(*(one.words for one in alike))
    if not plain and len(old.words & there) < _KNOWN * len(old.words):
        return False
    for _, form in old.facts:
        beside = (one for one in near if form in one.words)
        if not any(len(one.words & old.words) > 1 or len(old.words) == 1 for one in beside):
            return False
    limits = frozenset[str]().union(*(one.limits for one in alike))
    if plain:
        limits |= old.limits - {DENIAL}
    return old.limits <= limits and all(piece in raw for piece in old.code)
