"""Load the memory section of a system prompt (``load_prompt``).

A prompt is computed once for each client session. It depends only on the project, the settings, the
parameters and the indexes, so that equal inputs give equal bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from memd.base.errors import Invalid
from memd.base.names import INDEX, INDEXES, TEAM
from memd.base.settings import Settings
from memd.base.values import MemoryFile, Project
from memd.projects.project import agent_directory, slug
from memd.prompt import compose
from memd.prompt.compose import IndexText, Parts, Variant
from memd.store.directory import ensure
from memd.store.index import load
from memd.text import quoting

AUTO = "auto"
_TEAM_FOLDER = TEAM.rstrip("/")
_DEFAULT_SCOPE = "user"  # a sub-agent's default: its memories are used across projects
_GUIDELINE_VARIABLES = ("MEMD_EXTRA_GUIDELINES", "CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES")


def _unknown_mode(mode: str) -> Invalid:
    known = ", ".join((AUTO, *Variant))
    return Invalid(f"there is no prompt mode {mode!r}; the modes are {known}", mode=mode)


class IndexReader(Protocol):
    """The method of the store that prompts use."""

    def read_many(self, directory: str, paths: Sequence[str]) -> tuple[MemoryFile, ...]:
        """Return files of a memory directory; unreadable ones are left out."""
        ...


class IndexFacts(Struct, frozen=True):
    """The size of the index, and the limit that cut it: ``""``, ``lines`` or ``bytes``."""

    lines: int = 0
    bytes: int = 0
    cut: str = ""


class LoadedPrompt(Struct, frozen=True):
    """The memory section of a system prompt; ``prompt`` is ``None`` with a ``reason`` if off.

    ``problems`` are sentences for the user about directories that could not be created.
    """

    prompt: str | None
    enabled: bool
    reason: str | None
    memory_dir: str
    index: IndexFacts
    etag: str
    problems: tuple[str, ...] = ()


class Prompts:
    """Builds the memory sections of prompts. Methods block.

    ``joined`` returns whether a memory directory belongs to a team.
    """

    def __init__(
        self, reader: IndexReader, joined: Callable[[str], bool] = lambda _: False
    ) -> None:
        self._reader = reader
        self._joined = joined

    def load(
        self,
        project: Project,
        settings: Settings,
        *,
        mode: str = AUTO,
        agent: str = "",
        scope: str = "",
        skip_index: bool = False,
        extra_guidelines: str = "",
        room: int | None = None,
        environment: Mapping[str, str],
    ) -> LoadedPrompt:
        """Create the directories and return the prompt; a failure to create one is a problem.

        ``environment`` has the variables that the client forwarded. A prompt of more than ``room``
        UTF-16 units is built without examples.

        Raises Invalid and the errors of ``agent_directory``.
        """
        variant = _variant(mode, settings)
        if not project.enabled:
            off = (False, project.reason, project.memory_dir)
            return LoadedPrompt(None, *off, IndexFacts(), "")
        directory, scope = project.memory_dir, scope or _DEFAULT_SCOPE
        if variant is Variant.AGENT:
            if not agent:
                raise Invalid("the agent mode needs the name of the agent")
            directory = agent_directory(project, agent, scope, environment)
        elif variant is Variant.TEAM and not self._uses_team(directory, settings):
            variant = Variant.STANDARD
        paths = INDEXES if variant is Variant.TEAM else (INDEX,)
        indexes, facts, problems = self._load_indexes(directory, paths)
        if variant is Variant.AGENT and _is_in_repository(directory, project):
            indexes = tuple(replace(index, repository=True) for index in indexes)
        if len(indexes) < len(paths):  # the team's index is missing
            variant = Variant.STANDARD
        parts = Parts(
            variant=variant,
            display_name=settings.prompt.display_name,
            directory=directory,
            indexes=indexes,
            team_directory=f"{directory}/{_TEAM_FOLDER}",
            agent=agent,
            agent_scope=scope,
            skip_index=skip_index,
            search=settings.prompt.search_past_context,
            transcripts=f"{project.transcripts}/{slug(project.cwd)}",
            extra_guidelines=_guidelines(extra_guidelines, environment, settings),
        )
        prompt = compose.compose(parts)
        if room is not None and quoting.units(prompt) > room:
            prompt = compose.compose(replace(parts, brief=True))
        return LoadedPrompt(
            prompt=prompt,
            enabled=True,
            reason=None,
            memory_dir=directory,
            index=facts,
            etag=compose.etag(prompt),
            problems=problems,
        )

    def shared(self, project: Project, settings: Settings) -> str:
        """Return only the part about the team directory, "" if none is used.

        It is for a client that loads the private directory's index itself.
        """
        directory = project.memory_dir
        is_enabled = project.enabled
        # A prompt with a daily log has no section about the team.
        if not is_enabled or settings.prompt.daily_log:
            return ""
        if not self._uses_team(directory, settings):
            return ""
        indexes, _, _ = self._load_indexes(directory, INDEXES)
        if len(indexes) < len(INDEXES):  # the team's index is missing
            return ""
        return compose.team_section(f"{directory}/{_TEAM_FOLDER}", indexes[1])

    def _uses_team(self, directory: str, settings: Settings) -> bool:
        """Return whether a directory's team memories are used."""
        return settings.team.used(joined=self._joined(directory))

    def _load_indexes(
        self, directory: str, paths: Sequence[str]
    ) -> tuple[tuple[IndexText, ...], IndexFacts, tuple[str, ...]]:
        """Create the folders of some indexes; return the indexes, the first one's facts, problems.

        An index whose folder could not be created is left out, except the first one, which is that
        of the directory itself.
        """
        indexes: list[IndexText] = []
        facts: list[IndexFacts] = []
        problems: dict[str, None] = {}
        for path in paths:
            problem = ensure(directory, path)
            if problem:
                problems[problem] = None
                if indexes:  # the team's folder may be a link, in which nothing shall be written
                    continue
            files = self._reader.read_many(directory, (path,))
            loaded = load(files[0].content if files else None)
            indexes.append(IndexText(path=f"{directory}/{path}", text=loaded.text))
            facts.append(IndexFacts(loaded.lines, loaded.bytes, loaded.cut))
        return tuple(indexes), facts[0], tuple(problems)


def _is_in_repository(directory: str, project: Project) -> bool:
    """Return whether a sub-agent's memory directory lies in the project's working tree."""
    return directory.startswith(f"{project.root.rstrip('/')}/.claude/")


def _variant(mode: str, settings: Settings) -> Variant:
    """Return the variant of a mode. Raises Invalid."""
    if mode not in (AUTO, *Variant):
        raise _unknown_mode(mode)
    if mode == AUTO:
        mode = Variant.DAILY_LOG if settings.prompt.daily_log else Variant.TEAM
    return Variant(mode)


def _guidelines(parameter: str, environment: Mapping[str, str], settings: Settings) -> str:
    """Return the first guidelines that are set: parameter, environment, settings."""
    from_environment = [environment.get(name, "") for name in _GUIDELINE_VARIABLES]
    sources = (parameter, *from_environment, settings.prompt.extra_guidelines)
    return next((text for text in sources if text.strip()), "")
