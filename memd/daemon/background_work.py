"""The services that only jobs need: each is imported when the first of its jobs begins.

They are a fifth of what a start would import. The properties block while they import, so ask for
them in a worker thread.
"""

# ruff: noqa: PLC0415 - a property imports what it makes
from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

from anyio import to_thread
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memd.base.values import Project
    from memd.daemon.core import Core
    from memd.dream.service import Dreams
    from memd.extract.service import Extractions
    from memd.instructions.service import Instructions
    from memd.state.proposals import ProposalTable
    from memd.state.suggestions import SuggestionTable
    from memd.suggestions.service import Suggestions


class BackgroundWork(Struct, frozen=True, dict=True):
    """Makes the services of jobs."""

    core: Core
    proposals: ProposalTable
    suggested: SuggestionTable
    suggestions: Suggestions
    instructions: Instructions

    @cached_property
    def extractions(self) -> Extractions:
        """The extractions from conversations."""
        from memd.extract.service import Extractions

        core = self.core
        make = partial(Extractions, core.store, core.docs, core.clock, core.models, core.runs)
        return make(
            waiting=self.suggestions.new_quotations,
            note=core.log.note,
            joined=core.joined,
            covered=self.instructions.covered,
            new_suggestions=self.suggested.count_new,
        )

    @cached_property
    def dreams(self) -> Dreams:
        """The dreams that the starter begins."""
        from memd.dream.service import Dreams

        core = self.core
        make = partial(Dreams, core.store, core.database, self.proposals, core.clock)
        return make(models=core.models, runs=core.runs, note=core.log.note)

    def make_extractions(self) -> Extractions:
        """Return the extractions. Blocks."""
        return self.extractions

    def make_dreams(self) -> Dreams:
        """Return the dreams. Blocks."""
        return self.dreams

    async def proven(self, project: Project, body: str, said: str) -> tuple[str, str]:
        """Return what ``Extractions.proven`` returns."""
        extractions = await to_thread.run_sync(self.make_extractions)
        return await extractions.proven(project, body, said)


def statements(text: str, before: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return what extraction would save of a message, and what corrects the assistant. Blocks."""
    from memd.extract.candidates import statements

    return statements(text, before)
