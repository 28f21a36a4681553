"""Check that new statements are supported by memories, logs and transcripts. Pure.

A ground is an earlier statement that supports a new one; the telling words of a statement are those
that carry its meaning.

Rules of this file
- Each fact of a new statement, such as a number, name or date, is in a memory of its group or in a
  source.
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

from memd.base.yielding import yield_to_requests
from memd.dream.values import quoted
from memd.text.bounds import DENIAL
from memd.text.orders import orders, wishes
from memd.text.similarity import RESEMBLING, contradiction, exchanged, opposed, resemblance, swapped
from memd.text.statements import ADDRESS, CODE, DATE, Clause, Statement
from memd.text.words import words

_KNOWN_SHARE = 0.5  # of the telling words; a statement with fewer known ones has no ground
_FEW_WORDS = 2  # so few telling words say nothing without a fact, a negation or a limit
_NEARLY_ALIKE = 0.75  # a resemblance; such statements have to agree in negation
SAID = "**Said:**"  # begins a statement that is evidence
# Words of several languages that name a date as the end of something.
_END_WORDS = (
    r"(?i)\b(?:until|till|through|by|due|deadline|ends?|expires?|bis|endet|hasta|vence|jusqu\w+|expire"
    r"|at\u00e9|fino|scade|\u0434\u043e)\b|\u622a\u6b62|\u5230\u671f|\u307e\u3067|\uae4c\uc9c0"
)
Fact = tuple[str, str]  # its kind and form


class Grounds(Struct, frozen=True, eq=False, dict=True):
    """The earlier statements that new statements are checked against.

    ``memories``, ``logs`` and ``transcripts`` are the statements of each. ``raw`` is all text of
    the memories, in which pieces of code are searched. ``paths`` are the memories' paths.
    """

    memories: Sequence[Statement]
    logs: Sequence[Statement] = ()
    transcripts: Sequence[Statement] = ()
    raw: str = ""
    paths: frozenset[str] = frozenset()

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
        unsupported = self._unsupported_part(new)
        if unsupported:
            return f"would say '{quoted(unsupported)}', which stands nowhere"
        return self._find_contradiction(new, newer)

    def _find_contradiction(self, new: Statement, newer: Sequence[Statement]) -> str:
        """Return how a statement contradicts its grounds, "" if it does not.

        It is called only if all facts of the statement are known.
        """
        alike = _all_alike(new, self.memories)
        if orders(new.raw) and not any(orders(old.raw) for old in alike):
            return "would order something that it did not order"
        if wishes(new.raw) and not any(wishes(old.raw) for old in alike):
            return "would say what somebody wants, which needs that person's words"
        return self._find_reversal(new, alike, newer) or self._find_moved_fact(new, newer)

    def outside(self, new: Statement) -> bool:
        """Return whether only transcripts have a similar statement; their authors are unknown."""
        return not _has_alike(new, (*self.memories, *self.logs))

    def _unsupported_part(self, new: Statement) -> str:
        """Return the first fact without a ground, or the whole statement if too little is known.

        Return "" if nothing is missing.
        """
        for token in new.tokens:
            if token.kind == ADDRESS and token.form not in self._forms_of_memories:
                return token.raw
            is_fact = (token.kind, token.form) in new.facts
            if not is_fact or token.form in self._all_forms or token.raw in self.paths:
                continue
            if token.kind == CODE:
                continue  # code is searched below as whole pieces
            if token.kind == DATE and f" {' '.join(words(token.raw))} " in self._spelled_text:
                continue
            return token.raw
        for piece in new.code:
            if piece not in self.raw and piece not in self._raw_sources:
                return piece
        known_words = [form for form in new.words if form in self._all_forms or form in self.paths]
        if len(known_words) < _KNOWN_SHARE * len(new.words):
            return new.raw
        # A source with only one word in common does not support a statement of several.
        shared_at_least = min(2, len(new.words))
        related = [
            statement
            for statement in self._sources
            if len(new.words & statement.words) >= shared_at_least
        ]
        return "" if _has_alike(new, (*self.memories, *related)) else new.raw

    def _find_reversal(
        self, new: Statement, alike: Sequence[Statement], newer: Sequence[Statement]
    ) -> str:
        """Return how a statement negates, limits or reverses similar old ones, "" if it does not.

        ``alike`` are the memories' statements that resemble it; ``newer`` are those of memories and
        sources that are newer than its own memory.
        """
        alike_newer = _all_alike(new, newer)
        grounds = (*alike, *alike_newer, *_all_alike(new, self._sources))
        known_limits = frozenset[str]().union(*(statement.limits for statement in grounds))
        if new.limits - known_limits:
            return "would deny or bound what nobody denied or bounded"
        # A statement that newer ones say as it is may reverse older ones.
        newer_clauses = [clause for statement in alike_newer for clause in statement.clauses]
        if all(_is_covered(clause, newer_clauses) for clause in new.clauses):
            return ""
        for old in alike:
            no_longer_denies = DENIAL in old.limits and DENIAL not in new.limits
            if no_longer_denies and resemblance(new, old) >= _NEARLY_ALIKE:
                return f"would no longer deny '{quoted(old.raw)}'"
            contradicts_newer = (contradiction(new, statement) for statement in alike_newer)
            if _is_reversed(new, old) and all(contradicts_newer):
                return f"would turn round '{quoted(old.raw)}'"
        return ""

    def _find_moved_fact(self, new: Statement, newer: Sequence[Statement]) -> str:
        """Return which fact stands beside words of another fact of its kind, "" if none does."""
        for clause in new.clauses:
            if _is_covered(clause, self._all_clauses):
                continue
            for kind, form in clause.facts:
                foreign_words = self._foreign_words(clause, kind, form)
                if foreign_words and not self._newer_moves_fact(new, form, newer):
                    others = quoted(" ".join(sorted(foreign_words)))
                    return f"would say '{quoted(form)}' of '{others}'"
        return ""

    def _foreign_words(self, clause: Clause, kind: str, form: str) -> set[str]:
        """Return the words of a clause that stood beside other facts of a kind, but never this one.

        The fact has the ``kind`` and ``form``. Facts that are in the clause too do not count.
        """
        facts_of_clause = {fact for its_kind, fact in clause.facts if its_kind == kind}
        rivals = self._forms_by_kind[kind] - facts_of_clause
        words_of_rivals = frozenset[str]().union(*(self._words_beside[kind, r] for r in rivals))
        own_words = self._words_beside.get((kind, form), frozenset())
        return set((clause.words - own_words - {form}) & words_of_rivals)

    def _newer_moves_fact(self, new: Statement, form: str, newer: Sequence[Statement]) -> bool:
        """Return whether a newer statement uses a fact for another subject than the memories.

        ``form`` is the form of the fact.
        """
        older = [old for old in self.memories if form in old.words and old not in newer]
        return any(
            form in statement.words
            and len(statement.words & new.words) > 1
            and not _has_alike(statement, older)
            for statement in newer
        )

    @cached_property
    def _sources(self) -> tuple[Statement, ...]:
        """The statements of the logs and transcripts."""
        return (*self.logs, *self.transcripts)

    @cached_property
    def _all_clauses(self) -> tuple[Clause, ...]:
        """The clauses of all memories and sources."""
        return tuple(
            clause for statement in (*self.memories, *self._sources) for clause in statement.clauses
        )

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
    def _all_forms(self) -> frozenset[str]:
        """The forms of all words in memories and sources."""
        sources = (token.form for statement in self._sources for token in statement.tokens)
        return self._forms_of_memories | frozenset(sources)

    @cached_property
    def _forms_of_memories(self) -> frozenset[str]:
        """The forms of all words in memories."""
        return frozenset(token.form for statement in self.memories for token in statement.tokens)

    @cached_property
    def _raw_sources(self) -> str:
        """The text of all sources."""
        return "\n".join(statement.raw for statement in self._sources)

    @cached_property
    def _spelled_text(self) -> str:
        """All words of memories and sources as one text, in which dates are searched."""
        statements = (*self.memories, *self._sources)
        spelled = [" ".join(words(statement.raw)) for statement in statements]
        return f" {' | '.join(spelled)} "


def _is_covered(clause: Clause, known_clauses: Sequence[Clause]) -> bool:
    """Return whether a known clause has all words of a clause and the same limits."""
    return any(
        clause.words <= known.words and clause.limits == known.limits for known in known_clauses
    )


def _all_alike(statement: Statement, others: Sequence[Statement]) -> list[Statement]:
    """Return those of the other statements that resemble a statement."""
    return [other for other in others if resemblance(statement, other) >= RESEMBLING]


def _has_alike(statement: Statement, others: Sequence[Statement]) -> bool:
    """Return whether one of the other statements resembles a statement."""
    return any(resemblance(statement, other) >= RESEMBLING for other in others)


def _is_reversed(new: Statement, old: Statement) -> bool:
    """Return whether a statement has an opposite or other words in the places of the old words.

    Other words do not count in a statement that has all words of the old one and more.
    """
    if opposed(new, old) or swapped(new, old):
        return True
    only_adds_words = old.words <= new.words
    return not only_adds_words and exchanged(new, old)


def is_void(old: Statement, newer: Sequence[Statement], *, written: str, today: str) -> bool:
    """Return whether a statement is out of date.

    It is if a newer statement contradicts it, or if its last date is past and was either not past
    when the memory was ``written`` or is the end of something. ``written`` and ``today`` are ISO
    dates.
    """
    if old.raw.startswith(SAID):
        return False
    # Names of days and months are dates too, but cannot be compared with today.
    dates = [form for kind, form in old.facts if kind == DATE and form[0].isdigit()]
    last = max(dates, default="")
    is_past = last and last < today[: len(last)]  # a date may be only a year, or a month of one
    if is_past and (last >= written or re.search(_END_WORDS, old.raw)):
        return True
    return any(
        resemblance(old, statement) >= RESEMBLING
        and len(old.words & statement.words) > 1
        and contradiction(statement, old)
        for statement in newer
    )


def is_still_stated(
    old: Statement, after: Sequence[Statement], raw: str, *, plain: bool = False
) -> bool:
    """Return whether the statements ``after``, whose text is ``raw``, still say an old statement.

    Each of its facts has to stand beside another of its words. Statements that resemble it must
    have half of its telling words and all its limits. Of a description (``plain``) only the facts,
    the code and a negation are needed.
    """
    yield_to_requests()
    if old.raw.startswith(SAID):
        return old.raw in raw
    if len(old.words) <= _FEW_WORDS and not (old.facts or old.limits or old.raw.startswith("**")):
        return True
    related = [statement for statement in after if statement.words & old.words]
    alike = _all_alike(old, related)
    words_after = frozenset[str]().union(*(statement.words for statement in alike))
    if not plain and len(old.words & words_after) < _KNOWN_SHARE * len(old.words):
        return False
    shared_at_least = min(2, len(old.words))  # the fact, and a word beside it if there is one
    for _, form in old.facts:
        with_fact = (statement for statement in related if form in statement.words)
        if not any(len(statement.words & old.words) >= shared_at_least for statement in with_fact):
            return False
    needed_limits = old.limits & {DENIAL} if plain else old.limits
    limits_after = frozenset[str]().union(*(statement.limits for statement in alike))
    return needed_limits <= limits_after and all(piece in raw for piece in old.code)
