"""Check that new statements are supported by memories, logs and transcripts. Pure.

A ground is an earlier statement that supports a new one; the telling words of a statement are those
that carry its meaning.

Rules of this file
- Each fact of a new statement, such as a number, name or date, is in a memory of its group or in a
  source. A date may be added behind a relative one if the relative one may mean that day.
- A fact belongs to the words of its clause. If a new clause has a word that stood beside another
  fact of the same kind but never beside this one, the fact was moved. Only a newer source allows
  that.
- Negations and limits of a statement were there before. No word is replaced by its opposite.
- A sentence that orders something, says what somebody wants, or has an address needs a sentence
  like it in a memory of the group: logs and transcripts are not enough.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct

from memd.core.yielding import yield_to_requests
from memd.dream.values import quoted
from memd.text.bounds import DENIAL
from memd.text.orders import orders, wishes
from memd.text.similarity import RESEMBLING, contradiction, exchanged, opposed, resemblance, swapped
from memd.text.statements import ADDRESS, CODE, DATE, Clause, Statement, undated
from memd.text.words import words

_KNOWN = 0.5  # share of the telling words; a statement with fewer known ones has no ground
_FEW = 2  # telling words; so few say nothing without a fact, a negation or a limit
_NEARLY = 0.75  # share of the telling words; such statements have to agree in negation
SAID = "**Said:**"
_TERM = re.compile(
    r"\b(?:until|till|through|by|due|deadline|ends?|expires?|bis|endet|hasta|vence|jusqu\w+|expire"
    r"|at\u00e9|fino|scade|\u0434\u043e)\b|\u622a\u6b62|\u5230\u671f|\u307e\u3067|\uae4c\uc9c0",
    re.IGNORECASE,
)
Fact = tuple[str, str]  # its kind and form


class Grounds(Struct, frozen=True, eq=False, dict=True):
    """The earlier statements that new statements are checked against.

    ``raw`` is all text of the memories, in which pieces of code are searched. ``paths`` are the
    memories' paths, ``days`` the dates that relative dates in them may mean.
    """

    memories: Sequence[Statement]
    logs: Sequence[Statement] = ()
    transcripts: Sequence[Statement] = ()
    raw: str = ""
    paths: frozenset[str] = frozenset()
    days: frozenset[str] = frozenset()

    @cached_property
    def keys(self) -> frozenset[str]:
        """The comparison keys of the memories' statements."""
        return frozenset(statement.key for statement in self.memories)

    def problem(self, new: Statement, newer: Sequence[Statement] = ()) -> str:
        """Return what is wrong with a new statement, "" if it is allowed.

        ``newer`` are statements of memories and sources that are newer than its own memory.
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
        missing = self._unsupported_part(new)
        if missing:
            return f"would say '{quoted(missing)}', which stands nowhere"
        return self._find_contradiction(new, newer)

    def _find_contradiction(self, new: Statement, newer: Sequence[Statement]) -> str:
        """Return how a statement contradicts its grounds, "" if it does not.

        It is called only if all facts of the statement are known.
        """
        alike = [old for old in self.memories if resemblance(new, old) >= RESEMBLING]
        if orders(new.raw) and not any(orders(old.raw) for old in alike):
            return "would order something that it did not order"
        if wishes(new.raw) and not any(wishes(old.raw) for old in alike):
            return "would say what somebody wants, which needs that person's words"
        return self._find_reversal(new, alike, newer) or self._find_moved_fact(new, newer)

    def outside(self, new: Statement) -> bool:
        """Return whether only transcripts have a similar statement; their authors are unknown."""
        return not any(resemblance(new, one) >= RESEMBLING for one in (*self.memories, *self.logs))

    def _unsupported_part(self, new: Statement) -> str:
        """Return the first fact without a ground, or the whole statement if too little is known.

        Return "" if nothing is missing.
        """
        for token in new.tokens:
            if token.kind == ADDRESS and token.form not in self._forms_of_memories:
                return token.raw
            if (token.kind, token.form) not in new.facts or token.form in self._forms:
                continue
            if token.kind == CODE or token.raw in self.paths:
                continue  # code is searched below as whole pieces
            if not (token.kind == DATE and self._is_day(token.raw)):
                return token.raw
        for piece in new.code:
            if piece not in self.raw and piece not in self._raw_sources:
                return piece
        known = [form for form in new.words if form in self._forms or form in self.paths]
        if len(known) < _KNOWN * len(new.words) - len(self.days & new.words):
            return new.raw
        least = min(2, len(new.words))
        related = [one for one in self._sources if len(new.words & one.words) >= least]
        near = any(resemblance(new, one) >= RESEMBLING for one in (*self.memories, *related))
        return "" if near else new.raw

    def _is_day(self, raw: str) -> bool:
        """Return whether a date may be meant by a relative one, or is spelled in the grounds."""
        spelled = f" {' '.join(words(raw))} "
        return raw in self.days or spelled in self._spelled

    def _find_reversal(
        self, new: Statement, alike: Sequence[Statement], newer: Sequence[Statement]
    ) -> str:
        """Return how a statement negates, limits or reverses similar old ones, "" if not.

        ``alike`` are the memories' statements that resemble it.
        """
        alike_newer = [one for one in newer if resemblance(new, one) >= RESEMBLING]
        alike_sources = [one for one in self._sources if resemblance(new, one) >= RESEMBLING]
        grounds = (*alike, *alike_newer, *alike_sources)
        if new.limits - frozenset[str]().union(*(one.limits for one in grounds)):
            return "would deny or bound what nobody denied or bounded"
        newer_clauses = [clause for one in alike_newer for clause in one.clauses]
        if all(_is_covered(clause, newer_clauses) for clause in new.clauses):
            return ""
        for old in alike:
            nearly = resemblance(new, old) >= _NEARLY
            if nearly and DENIAL in old.limits and DENIAL not in new.limits:
                return f"would no longer deny '{quoted(old.raw)}'"
            only_longer = old.words <= new.words
            changed = opposed(new, old) or swapped(new, old)
            changed = changed or (not only_longer and exchanged(new, old))
            if changed and all(contradiction(new, one) for one in alike_newer):
                return f"would turn round '{quoted(old.raw)}'"
        return ""

    def _find_moved_fact(self, new: Statement, newer: Sequence[Statement]) -> str:
        """Return which fact stands beside words of another fact of its kind, "" if none does."""
        for clause in new.clauses:
            if _is_covered(clause, self._all_clauses):
                continue
            for kind, form in clause.facts:
                in_clause = {fact for its_kind, fact in clause.facts if its_kind == kind}
                own_words = self._words_beside.get((kind, form), frozenset())
                foreign_words = {
                    word
                    for word in clause.words - own_words - {form}
                    for rival in self._forms_by_kind[kind] - in_clause
                    if rival != form and word in self._words_beside[kind, rival]
                }
                if foreign_words and not self._newer_moves_fact(new, form, newer):
                    others = quoted(" ".join(sorted(foreign_words)))
                    return f"would say '{quoted(form)}' of '{others}'"
        return ""

    def _newer_moves_fact(self, new: Statement, form: str, newer: Sequence[Statement]) -> bool:
        """Return whether a newer statement uses a fact for another subject than the memories."""
        older = [old for old in self.memories if form in old.words and old not in newer]
        return any(
            form in one.words
            and len(one.words & new.words) > 1
            and not any(resemblance(one, old) >= RESEMBLING for old in older)
            for one in newer
        )

    @cached_property
    def _sources(self) -> tuple[Statement, ...]:
        """The statements of the logs and transcripts."""
        return (*self.logs, *self.transcripts)

    @cached_property
    def _all_clauses(self) -> tuple[Clause, ...]:
        """The clauses of all memories and sources."""
        return tuple(clause for one in (*self.memories, *self._sources) for clause in one.clauses)

    @cached_property
    def _words_beside(self) -> dict[Fact, frozenset[str]]:
        """The words that stand in a clause with each fact."""
        result: dict[Fact, set[str]] = defaultdict(set)
        for clause in self._all_clauses:
            for fact in clause.facts:
                result[fact] |= clause.words
        return {fact: frozenset(words) for fact, words in result.items()}

    @cached_property
    def _forms_by_kind(self) -> dict[str, frozenset[str]]:
        """The forms of all facts by their kind."""
        result: dict[str, set[str]] = defaultdict(set)
        for kind, form in self._words_beside:
            result[kind].add(form)
        return defaultdict(frozenset, {kind: frozenset(forms) for kind, forms in result.items()})

    @cached_property
    def _forms(self) -> frozenset[str]:
        """The forms of all words in memories and sources."""
        sources = (token.form for one in self._sources for token in one.tokens)
        return self._forms_of_memories | frozenset(sources)

    @cached_property
    def _forms_of_memories(self) -> frozenset[str]:
        """The forms of all words in memories."""
        return frozenset(token.form for one in self.memories for token in one.tokens)

    @cached_property
    def _raw_sources(self) -> str:
        """The text of all sources."""
        return "\n".join(one.raw for one in self._sources)

    @cached_property
    def _spelled(self) -> str:
        """All words of memories and sources as one text, in which dates are searched."""
        every = (*self.memories, *self._sources)
        return f" {' | '.join(' '.join(words(one.raw)) for one in every)} "


def _is_covered(clause: Clause, known: Sequence[Clause]) -> bool:
    """Return whether a known clause has all words of a clause and the same limits."""
    return any(clause.words <= one.words and clause.limits == one.limits for one in known)


def void(old: Statement, newer: Sequence[Statement], *, written: str, today: str) -> bool:
    """Return whether a statement is out of date.

    It is if a newer statement contradicts it, or if its last date is past and was either not past
    when the memory was ``written`` or is the end of something. ``written`` and ``today`` are ISO
    dates.
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
    """Return whether the statements ``after``, whose text is ``raw``, still say an old statement.

    Each of its facts has to stand beside another of its words. Statements that resemble it must
    have half of its telling words and its limits; for a description (``plain``) only its negation.
    """
    yield_to_requests()
    if old.raw.startswith(SAID):
        return old.raw in raw
    if len(old.words) <= _FEW and not (old.facts or old.limits or old.raw.startswith("**")):
        return True
    related = [one for one in after if one.words & old.words]
    alike = [one for one in related if resemblance(one, old) >= RESEMBLING]
    words_after = frozenset[str]().union(*(one.words for one in alike))
    if not plain and len(old.words & words_after) < _KNOWN * len(old.words):
        return False
    for _, form in old.facts:
        with_fact = (one for one in related if form in one.words)
        if not any(len(one.words & old.words) > 1 or len(old.words) == 1 for one in with_fact):
            return False
    limits = frozenset[str]().union(*(one.limits for one in alike))
    if plain:
        limits |= old.limits - {DENIAL}
    return old.limits <= limits and all(piece in raw for piece in old.code)
