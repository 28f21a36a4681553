"""Compose the rooms of the daemon on its core, each with the neighbours that it uses."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import anyio
from msgspec.structs import asdict

from memd.base.inbox import ItemKind, Source
from memd.context.compactions import Compactions
from memd.context.service import Contexts, Summaries
from memd.daemon.agents import messages, progress_lines
from memd.daemon.core import Core, Daemon
from memd.daemon.dreaming import DreamStarter
from memd.daemon.log import Log
from memd.daemon.portable import exports, imports
from memd.daemon.runners import runners
from memd.dream.service import Dreams
from memd.extract.candidates import likely_type, statements, words_to_learn
from memd.extract.service import Extractions
from memd.extract.starting import ExtractionStarter
from memd.hooks.deliveries import MessageDeliveries
from memd.hooks.ends import TurnEnds
from memd.hooks.notices import Notices
from memd.hooks.sections import Sections
from memd.hooks.service import HookAnswers
from memd.hooks.tools import ToolUses
from memd.instructions.service import Instructions
from memd.jobs.methods import JobMethods
from memd.memories.journal import Journal
from memd.memories.service import Memories
from memd.messages.agents import AgentMethods
from memd.messages.service import Messages
from memd.notes.service import Notes
from memd.progress.service import ProgressLines
from memd.prompt.service import Prompts
from memd.recall.service import Authorship, Recall
from memd.review.block import SuggestionBlocks
from memd.review.inbox import Inbox
from memd.review.proposals import Proposals
from memd.review.suggestions import Suggestions
from memd.rules.service import ToolRules
from memd.state.database import StateUnusableError
from memd.state.ledger import Ledger
from memd.state.logs import distilled_logs
from memd.state.proposals import ProposalTable
from memd.state.search import WordSearch
from memd.state.suggestions import SuggestionTable
from memd.state.teams import TeamTable

_NOTES_SHOWN = 100  # by ``status``; the log has all


async def compose(core: Core, ending: anyio.Event) -> Daemon:
    """Return the daemon, once what a crash left half done is undone; nothing of it runs yet."""
    clock, store, callers, docs = core.clock, core.store, core.callers, core.docs
    models, jobs, projects = core.models, core.jobs, core.projects
    suggested, proposals = SuggestionTable(core.database), ProposalTable(core.database)
    instructions = Instructions(docs, projects.client_folders, callers)
    suggestions = Suggestions(store, suggested, clock)
    extractions = _extractions(core, suggestions, suggested, instructions)
    dreams = _dreams(core, proposals)
    notes = await _recover(core, store.recover, dreams.recover, models.recover)
    starter = _dream_starter(core, dreams)
    mailboxes = messages(core)
    progress = progress_lines(core, mailboxes.register)
    extraction_starter = ExtractionStarter(callers, jobs, progress.remember)
    session_notes = _session_notes(core, progress)
    contexts, summaries = Contexts(clock, docs, callers), Summaries(clock, models, core.runs)
    recall, rules = _recall(core), ToolRules(store, docs, clock, callers)
    prompts = Prompts(store.reading, core.joined, callers, instructions.text, recall)
    hooks = HookAnswers(
        callers,
        clock,
        core.priority,
        recall=recall,
        suggestions=SuggestionBlocks(suggestions, clock, instructions.covered),
        sections=Sections(prompts, recall, projects),
        tools=ToolUses(rules, store, recall, contexts, projects, clock=clock),
        ends=TurnEnds(extraction_starter, session_notes, starter.consider, clock),
        deliveries=MessageDeliveries(mailboxes, clock),
        notices=Notices(jobs, store.reading, clock),
        is_model=core.programs.runs_below,
    )
    services = (
        *(callers, core.team, rules, instructions, recall, prompts, starter),
        *(mailboxes, session_notes, contexts, extraction_starter, hooks),
        Journal(store, callers, recall.ledger.last_surfaced),
        _memories(core, extractions),
        Compactions(contexts, summaries, session_notes, models, jobs),
        AgentMethods(mailboxes, callers, progress.line),
        JobMethods(jobs, callers, core.runs.of),
        *(exports(core), imports(core)),
        _inbox(core, suggestions, proposals, mailboxes),
    )
    run = partial(runners, projects, extractions, starter, core.hub, core.priority)
    return Daemon(
        **asdict(core),
        recall=recall,
        rules=rules,
        instructions=instructions,
        session_notes=session_notes,
        contexts=contexts,
        messages=mailboxes,
        progress=progress,
        extractions=extraction_starter,
        dreams=starter,
        methods=services,
        runners=run(notes=session_notes, summaries=summaries),
        started=clock.monotonic(),
        notes=notes,
        ending=ending,
    )


def _memories(core: Core, extractions: Extractions) -> Memories:
    """Return the service that reads and writes memories."""
    return Memories(
        core.store,
        core.clock,
        core.callers,
        core.team,
        proven=extractions.proven,
        likely_type=likely_type,
    )


def _extractions(
    core: Core, suggestions: Suggestions, suggested: SuggestionTable, instructions: Instructions
) -> Extractions:
    """Return the service that extracts memories from conversations."""
    return Extractions(
        *(core.store, core.docs, core.clock, core.models, core.runs),
        waiting=suggestions.new_quotations,
        note=core.log.note,
        joined=core.joined,
        covered=instructions.covered,
        new_suggestions=suggested.count_new,
    )


def _inbox(
    core: Core, suggestions: Suggestions, proposals: ProposalTable, mailboxes: Messages
) -> Inbox:
    """Return the inbox of all that waits for the person."""
    sources: dict[ItemKind, Source] = {
        ItemKind.SUGGESTION: suggestions,
        ItemKind.PROPOSAL: Proposals(core.store, proposals, core.clock),
        ItemKind.MESSAGE: mailboxes,
        ItemKind.TEAM: core.team,
    }
    return Inbox(core.callers, sources, core.projects.roots)


def _dreams(core: Core, proposals: ProposalTable) -> Dreams:
    """Return the service that dreams."""
    place = (core.store, core.database, proposals, core.clock)
    return Dreams(
        *place,
        models=core.models,
        runs=core.runs,
        own_words=words_to_learn,
        note=core.log.note,
    )


def _dream_starter(core: Core, dreams: Dreams) -> DreamStarter:
    """Return the service that begins dreams."""
    return DreamStarter(
        core.callers,
        core.projects,
        dreams,
        core.jobs,
        core.docs,
        clock=core.clock,
        priority=core.priority,
        on_battery=core.ports.on_battery,
        log=core.log,
    )


def _recall(core: Core) -> Recall:
    """Return the service that finds memories."""
    authors = TeamTable(core.database).author
    return Recall(
        core.store.reading,
        WordSearch(core.database),
        Ledger(core.database),
        core.clock,
        core.models,
        table=core.docs,
        priority=core.priority,
        authorship=Authorship(core.store.past.is_own, authors, core.joined),
        distilled=partial(distilled_logs, core.docs),
        callers=core.callers,
    )


def _session_notes(core: Core, progress: ProgressLines) -> Notes:
    """Return the service of session notes."""
    folder = core.ports.environ.get("CLAUDE_CONFIG_DIR") or f"{core.places.home}/.claude"
    return Notes(
        core.clock,
        core.models,
        core.runs,
        config_dir=folder,
        find_statements=statements,
        callers=core.callers,
        projects=core.projects,
        jobs=core.jobs,
        remember=progress.remember,
    )


async def _recover(core: Core, *steps: Callable[[], Awaitable[tuple[str, ...]]]) -> list[str]:
    """Finish what a crash left; return sentences about it, which are logged as well.

    A step for which the state file is unusable is skipped; it is done at the file's next use.
    """
    notes: list[str] = []
    for recover in steps:
        with suppress(StateUnusableError):
            notes += await recover()
    notes += core.database.file.notes
    for note in notes:
        core.log.warning("recovered", detail=note)
    core.database.file.tell = partial(_add_note, notes, core.log)
    return notes


def _add_note(notes: list[str], log: Log, note: str) -> None:
    """Log a note and add it to the latest ones for ``status``; called from any thread."""
    notes.append(note)
    del notes[:-_NOTES_SHOWN]
    log.warning("repaired", detail=note)
