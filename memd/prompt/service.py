"""load_prompt: the memory section of a system prompt; the part of the room that waits.

A prompt is computed once per client session and must be the same bytes for the same inputs, so
nothing but the project, the settings, the parameters and the indexes goes into it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import anyio

from memd.core.errors import MemdError
from memd.core.names import INDEX
from memd.core.settings import Settings
from memd.core.values import MemoryFile, Project
from memd.documents.index import load
from memd.projects.project import agent_directory, slug
from memd.prompt import compose
from memd.prompt.compose import IndexText, Parts, Variant

AUTO = "auto"
_TEAM = "team"
_AGENT_SCOPE = "user"  # what a sub-agent learns holds across projects unless its author says else
_GUIDELINES = ("MEMD_EXTRA_GUIDELINES", "CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES")
_OFF = "memory is switched off in the settings"


class UnknownModeError(MemdError):
    """A prompt was asked for in a mode that does not exist."""

    code = -32602
    kind = "unknown_mode"
    exit_status = 64

    def __init__(self, mode: str) -> None:
        known = ", ".join((AUTO, *Variant))
        super().__init__(f"there is no prompt mode {mode!r}; the modes are {known}", mode=mode)


class AgentNameMissingError(MemdError):
    """A sub-agent's prompt was asked for without saying which sub-agent."""

    code = -32602
    kind = "agent_name_missing"
    exit_status = 64

    def __init__(self) -> None:
        super().__init__("the agent mode needs the name of the agent")


class IndexReader(Protocol):
    """The part of the store that prompts use."""

    async def ensure(self, directory: str) -> str:
        """Make a memory directory; return "" or the problem in words."""
        ...

    async def read_many(self, directory: str, paths: Sequence[str]) -> tuple[MemoryFile, ...]:
        """Return files of a memory directory; what cannot be read is left out."""
        ...


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """How big the index is, and which limit cut it: ``""``, ``lines`` or ``bytes``."""

    lines: int = 0
    bytes: int = 0
    cut: str = ""


@dataclass(frozen=True, slots=True)
class LoadedPrompt:
    """The memory section of a system prompt; ``prompt`` is ``None`` with the ``reason`` when off.

    ``problems`` are sentences for the user: a directory that could not be made.
    """

    prompt: str | None
    enabled: bool
    reason: str | None
    memory_dir: str
    index: IndexFacts
    etag: str
    problems: tuple[str, ...] = ()


class Prompts:
    """The memory section for whoever asks."""

    def __init__(self, store: IndexReader) -> None:
        self._store = store

    async def load(
        self,
        project: Project,
        settings: Settings,
        *,
        mode: str = AUTO,
        agent: str = "",
        scope: str = "",
        skip_index: bool = False,
        extra_guidelines: str = "",
        environment: Mapping[str, str],
    ) -> LoadedPrompt:
        """Return the prompt, its directories made first; a failure to make one is a problem.

        ``environment`` is what the client forwarded. Raises UnknownModeError,
        AgentNameMissingError and what ``agent_directory`` raises.
        """
        variant = _variant(mode, settings)
        if not (project.enabled and settings.enabled):
            reason = project.reason or _OFF
            return LoadedPrompt(None, False, reason, project.memory_dir, IndexFacts(), "")  # noqa: FBT003 - a field
        directory, scope = project.memory_dir, scope or _AGENT_SCOPE
        if variant is Variant.AGENT:
            if not agent:
                raise AgentNameMissingError
            directory = await anyio.to_thread.run_sync(
                agent_directory, project, agent, scope, environment
            )
        team = f"{directory}/{_TEAM}" if variant is Variant.TEAM else ""
        indexes, facts, problems = await self._indexes((directory, team) if team else (directory,))
        prompt = compose.compose(
            Parts(
                variant=variant,
                display_name=settings.prompt.display_name,
                directory=directory,
                indexes=indexes,
                team_directory=team,
                agent=agent,
                agent_scope=scope,
                skip_index=skip_index,
                search=settings.prompt.search_past_context,
                transcripts=f"{project.transcripts}/{slug(project.cwd)}",
                extra_guidelines=_guidelines(extra_guidelines, environment, settings),
            )
        )
        return LoadedPrompt(
            prompt=prompt,
            enabled=True,
            reason=None,
            memory_dir=directory,
            index=facts,
            etag=compose.etag(prompt),
            problems=problems,
        )

    async def _indexes(
        self, directories: Sequence[str]
    ) -> tuple[tuple[IndexText, ...], IndexFacts, tuple[str, ...]]:
        """Return the indexes of directories that are there now, and the facts of the first one."""
        indexes: list[IndexText] = []
        facts: list[IndexFacts] = []
        problems: list[str] = []
        for directory in directories:
            problem = await self._store.ensure(directory)
            problems += [problem] if problem else []
            files = await self._store.read_many(directory, (INDEX,))
            loaded = load(files[0].content if files else None)
            indexes.append(IndexText(path=f"{directory}/{INDEX}", text=loaded.text))
            facts.append(IndexFacts(loaded.lines, loaded.bytes, loaded.cut))
        return tuple(indexes), facts[0], tuple(problems)


def _variant(mode: str, settings: Settings) -> Variant:
    """Return the variant of a mode; the team's only where the team's memory is switched on."""
    if mode not in (AUTO, *Variant):
        raise UnknownModeError(mode)
    if mode == AUTO:
        mode = Variant.DAILY_LOG if settings.prompt.daily_log else Variant.TEAM
    if mode == Variant.TEAM and not settings.team.used(joined=False):
        mode = Variant.STANDARD
    return Variant(mode)


def _guidelines(wanted: str, environment: Mapping[str, str], settings: Settings) -> str:
    """Return the first guidelines that are set: parameter, environment, settings."""
    from_environment = [environment.get(name, "") for name in _GUIDELINES]
    sources = (wanted, *from_environment, settings.prompt.extra_guidelines)
    return next((text for text in sources if text.strip()), "")
