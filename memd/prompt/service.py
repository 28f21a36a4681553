"""Load the memory section of a system prompt (``load_prompt``).

A prompt is computed once for each client session. It depends only on the project, the settings, the
parameters and the indexes, so that equal inputs give equal bytes.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Literal, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from memd.base.errors import Invalid
from memd.base.instruction_files import InstructionText
from memd.base.names import INDEX, INDEXES, TEAM
from memd.base.settings import Settings
from memd.base.text import one_line, sha256
from memd.base.threads import in_thread
from memd.base.values import IndexFacts, MemoryFile, Project
from memd.methods.callers import Callers
from memd.methods.method import SessionId, method
from memd.projects.project import agent_directory, slug
from memd.prompt import compose
from memd.prompt.compose import IndexText, Parts, Variant
from memd.rpc.call import Call
from memd.store.directory import ensure
from memd.store.index import load
from memd.text import quoting

AUTO = "auto"
_INSTRUCTIONS = ("claude", "union")  # both mean the files that Claude Code loads
_NAME_CHARACTERS = 100  # of a name in an error
_ETAG_CHARACTERS = 16
_TEAM_FOLDER = TEAM.rstrip("/")
_DEFAULT_SCOPE = "user"  # a sub-agent's default: its memories are used across projects
_GUIDELINE_VARIABLES = ("MEMD_EXTRA_GUIDELINES", "CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES")


def _unknown_mode(mode: str) -> Invalid:
    known = ", ".join((AUTO, *Variant))
    return Invalid(f"there is no prompt mode {mode!r}; the modes are {known}", mode=mode)


def _unknown_instructions(name: str) -> Invalid:
    """Return the error that a client asked for the instruction files of another assistant."""
    shown = one_line(name, _NAME_CHARACTERS)
    return Invalid(
        f"instructions are none or claude, not {shown!r}",
        hint="claude stands for CLAUDE.md, rules and AGENTS.md",
        instructions=shown,
    )


class IndexReader(Protocol):
    """The method of the store that prompts use."""

    def read_many(self, directory: str, paths: Sequence[str]) -> tuple[MemoryFile, ...]:
        """Return files of a memory directory; unreadable ones are left out."""
        ...


class LoadedRules(Protocol):
    """The person's own rules as a section of a prompt, and the paths of their memories."""

    @property
    def text(self) -> str:
        """The section, "" for none."""
        ...

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the memories that the section has whole."""
        ...


class RuleSource(Protocol):
    """The methods of recall that prompts use."""

    def own_rules(self, directory: str) -> LoadedRules:
        """Return the person's own rules of a directory. Blocks."""
        ...

    def given(self, session: str, directory: str, paths: Collection[str]) -> None:
        """Note that a session has these memories in its context. Blocks."""
        ...


class PromptLoaded(Struct, frozen=True):
    """The memory section, and the text of the instruction files if the client asked for it."""

    prompt: str | None  # None, with a reason, if memory is off
    enabled: bool
    reason: str | None
    memory_dir: str
    index: IndexFacts
    etag: str
    problems: tuple[str, ...] = ()  # sentences about settings and about folders
    instructions: InstructionText | msgspec.UnsetType = msgspec.UNSET


class Prompts:
    """Builds the memory sections of prompts.

    ``joined`` returns whether a memory directory belongs to a team. ``instructions`` returns the
    text of a project's instruction files, ``recall`` the person's own rules.
    """

    def __init__(
        self,
        reader: IndexReader,
        joined: Callable[[str], bool],
        callers: Callers,
        instructions: Callable[[Project, Mapping[str, str]], Awaitable[InstructionText]],
        recall: RuleSource,
    ) -> None:
        self._reader = reader
        self._joined = joined
        self._callers = callers
        self._instructions = instructions
        self._recall = recall

    @method("load_prompt", "read")
    async def load_prompt(
        self,
        call: Call,
        *,
        cwd: str,
        session_id: SessionId = "",
        mode: Literal["auto", "agent", "daily_log"] = "auto",
        agent: str = "",
        scope: Literal["user", "project", "local"] | None = None,
        skip_index: bool = False,
        extra_guidelines: str = "",
        instructions: str = "none",
    ) -> PromptLoaded:
        """The memory section of a system prompt, the same bytes for the same inputs.

        A client that loads no CLAUDE.md or AGENTS.md by itself gives ``instructions: claude``: the
        files that Claude Code would load come as a second text. ``union`` means the same.
        """
        if instructions not in ("none", *_INSTRUCTIONS):
            raise _unknown_instructions(instructions)
        environment = call.caller.environment

        def load() -> tuple[Project, PromptLoaded]:
            """Return the project and its prompt. Blocks."""
            project, settings, problems = self._callers.where(call, cwd)
            has_rules = project.enabled and _variant(mode, settings) is not Variant.AGENT
            rules = self._recall.own_rules(project.memory_dir) if has_rules else None
            loaded = self.load(
                project,
                settings,
                mode=mode,
                agent=agent,
                scope=scope or "",
                skip_index=skip_index,
                extra_guidelines=extra_guidelines,
                environment=environment,
                rules=rules.text if rules else "",
            )
            problems = (*project.problems, *problems, *loaded.problems)
            if session_id and rules and rules.paths:
                self._recall.given(session_id, project.memory_dir, rules.paths)
            return project, replace(loaded, problems=problems)

        project, loaded = await in_thread(load)
        self._callers.visited(call, project, session_id)
        if instructions in _INSTRUCTIONS:
            return replace(loaded, instructions=await self._instructions(project, environment))
        return loaded

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
        rules: str = "",
    ) -> PromptLoaded:
        """Create the directories and return the prompt; a failure to create one is a problem.

        ``environment`` has the variables that the client forwarded, ``rules`` is the section of the
        person's own rules. A prompt of more than ``room``
        UTF-16 units is built without examples.

        Blocks. Raises Invalid and the errors of ``agent_directory``.
        """
        variant = _variant(mode, settings)
        if not project.enabled:
            off = (False, project.reason, project.memory_dir)
            return PromptLoaded(None, *off, IndexFacts(), "")
        directory, scope = project.memory_dir, scope or _DEFAULT_SCOPE
        if variant is Variant.AGENT:
            if not agent:
                raise Invalid("the agent mode needs the name of the agent")
            directory = agent_directory(project, agent, scope, environment)
        elif variant is Variant.TEAM:
            uses_team = settings.team.used(joined=self._joined(directory))
            variant = Variant.TEAM if uses_team else Variant.STANDARD
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
            rules=rules,
        )
        prompt = compose.compose(parts)
        if room is not None and quoting.units(prompt) > room:
            prompt = compose.compose(replace(parts, brief=True))
        return PromptLoaded(
            prompt=prompt,
            enabled=True,
            reason=None,
            memory_dir=directory,
            index=facts,
            # By which a client recognises an unchanged prompt.
            etag=sha256(prompt.encode(errors="replace"))[:_ETAG_CHARACTERS],
            problems=problems,
        )

    def shared(self, project: Project, settings: Settings) -> str:
        """Return what a client lacks that loads the private directory's index itself.

        It is how to keep the daily log, or else the part about the team directory; "" if neither is
        used. Blocks.
        """
        directory = project.memory_dir
        if not project.enabled:
            return ""
        if settings.prompt.daily_log:  # a prompt with it has no section about the team
            return compose.daily_section(directory)
        if not settings.team.used(joined=self._joined(directory)):
            return ""
        indexes, _, _ = self._load_indexes(directory, INDEXES)
        if len(indexes) < len(INDEXES):  # the team's index is missing
            return ""
        return compose.team_section(f"{directory}/{_TEAM_FOLDER}", indexes[1])

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
