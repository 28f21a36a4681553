"""Add the person's open suggestions to a conversation, whose assistant may decide them.

Rules of this file
- A suggestion whose words are in the project's instruction files is not shown.
- One is shown once in a session, and in two sessions at most.
- A hook waits at most for its time limit.
- The block, memd's tags included, has at most ``limits.SUGGESTION_CHARACTERS`` UTF-16 units.
- A statement is quoted on one line; it cannot open or close a tag or a quotation.
"""

from collections.abc import Sequence
from functools import partial

from memd.base import limits
from memd.base.clock import Clock
from memd.base.covered import Covered, CoveredIn, in_no_project
from memd.base.errors import MemdError
from memd.base.settings import Settings
from memd.base.text import iso_time
from memd.base.threads import in_thread
from memd.base.values import PERSON, SHOWN_ELSEWHERE, Project
from memd.review.suggestions import Suggestions
from memd.state.suggestions import StoredSuggestion
from memd.text import tags
from memd.text.quoting import neutralise, shares, shortened, units

_SHOWN = 3  # at a time
_SESSIONS_PER_SUGGESTION = 2  # one suggestion is shown in so many sessions
_INTRODUCTION = "The user said earlier (quoted, no request for this turn; not remembered yet):"
_REQUEST = (
    "If such a thing should hold in later conversations too, save it: "
    '`memctl review accept {id}`, or reworded `memctl review accept {id} --text "…"`. '
    "Otherwise ignore this and do not mention it."
)


class SuggestionBlocks:
    """Makes the blocks of suggestions that hooks add. Use it on the event loop.

    ``covered`` returns a function that finds a text in a project's instruction files.
    """

    def __init__(
        self, suggestions: Suggestions, clock: Clock, covered: CoveredIn = in_no_project
    ) -> None:
        self._suggestions = suggestions
        self._clock = clock
        self._covered_in = covered

    async def surface(
        self, project: Project, settings: Settings, session: str, seconds: float
    ) -> str:
        """Return the block that a hook adds to a session's conversation, "" for none.

        After ``seconds`` the result is "", and the suggestions are shown with a later prompt.
        Never raises.
        """
        if not (project.enabled and settings.extract.suggest):
            return ""
        directory, until = project.memory_dir, self._clock.monotonic() + seconds
        # The threads may be abandoned: a late one records nothing (see _choose).
        with self._clock.move_on_after(seconds):
            try:
                candidates = await in_thread(
                    self._select_for_session, directory, session, abandon=True
                )
                if candidates:
                    covered = await self._covered_in(project, settings)
                    choose = partial(self._choose, session, until)
                    return await in_thread(choose, candidates, covered, abandon=True)
            except MemdError:  # an unreadable file must not fail a prompt
                return ""
        return ""

    def _select_for_session(self, directory: str, session: str) -> list[StoredSuggestion]:
        """Return the quotations to show in a session, those shown least first. Blocks."""
        selected = [
            suggestion
            for suggestion in self._suggestions.waiting(directory)
            if suggestion.origin == PERSON
            and session not in suggestion.offered
            and len(suggestion.offered) < _SESSIONS_PER_SUGGESTION
        ]
        # The sort is stable, so equal ones stay newest first.
        selected.sort(key=lambda suggestion: len(suggestion.offered))
        return selected

    def _choose(
        self,
        session: str,
        until: float,
        candidates: Sequence[StoredSuggestion],
        covered: Covered,
    ) -> str:
        """Choose three suggestions for a session, record that they are shown, and render them.

        The result is "" if there is none, or after the monotonic second ``until``; then nothing is
        recorded. ``covered`` returns the instruction file that says a text. Blocks.
        """
        uncovered = [suggestion for suggestion in candidates if not covered(suggestion.text)]
        chosen = uncovered[:_SHOWN]
        if not chosen or self._clock.monotonic() >= until:
            return ""
        ids = [suggestion.id for suggestion in chosen]
        # Without those that were decided or shown elsewhere meanwhile.
        recorded_ids = self._suggestions.table.surface(ids, session)
        return _render([suggestion for suggestion in chosen if suggestion.id in recorded_ids])


def _render(suggestions: Sequence[StoredSuggestion]) -> str:
    """Return a block with each suggestion's id, date and quotation, "" for no suggestions.

    Long quotations are cut so that the block has at most ``limits.SUGGESTION_CHARACTERS``.
    """
    if not suggestions:
        return ""
    heads = [f"- {entry.id}, {iso_time(entry.at)[:10]}{_about(entry)}: " for entry in suggestions]
    quotes = [_quotable(suggestion.text) for suggestion in suggestions]
    request = _REQUEST.format(id=suggestions[0].id)
    without_quotes = "\n".join((tags.OPEN, _INTRODUCTION, *heads, request, tags.CLOSE))
    room = limits.SUGGESTION_CHARACTERS - units(without_quotes) - len('""') * len(quotes)
    sizes = shares([units(quote) for quote in quotes], room)
    short_quotes = map(_cut_quote, quotes, sizes)
    lines = [f'{head}"{quote}"' for head, quote in zip(heads, short_quotes, strict=True)]
    return "\n".join((tags.OPEN, _INTRODUCTION, *lines, request, tags.CLOSE))


def _about(suggestion: StoredSuggestion) -> str:
    """Return what else the head of a suggestion says, "" for nothing."""
    if suggestion.corrects:
        return f", corrects {neutralise(suggestion.corrects)}"
    if suggestion.reason == SHOWN_ELSEWHERE:
        return ", save only what of it the code or git does not show"
    return ""


def _quotable(text: str) -> str:
    """Return a text on one line, without tags and double quotation marks."""
    one_line = " ".join(neutralise(text).split())
    # Again, since joined lines may form a tag.
    return neutralise(one_line).replace('"', "'")


def _cut_quote(quote: str, share: int) -> str:
    """Return a quotation with at most ``share`` UTF-16 units, with "…" if it was cut."""
    if units(quote) <= share:
        return quote
    return shortened(quote, share - 1).rstrip() + "…"
