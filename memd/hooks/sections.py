"""The memory sections that hooks add, at the start of a session and of a sub-agent."""

from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from memd.base import limits
from memd.base.errors import MemdError
from memd.base.names import INDEX, TEAM_INDEX
from memd.hooks.event import HookEvent
from memd.projects.projects import Projects
from memd.prompt.service import Prompts
from memd.recall.own_rules import UNITS, OwnRules
from memd.recall.service import Recall
from memd.text import quoting, tags

_TAGS = len(tags.OPEN) + len(tags.CLOSE) + 3  # around a section, with line ends
_ROOM = limits.BLOCK_CHARACTERS - _TAGS
_MODE = "agent"
_CONTINUED = ("resume", "fork")  # sources of a session that goes on with a context
_INDEX_OPEN, _INDEX_CLOSE = "<memory_index>", "</memory_index>"


class SessionSection(Struct, frozen=True):
    """What is to be shown of a session's memory section; ``index`` is the file that has the rest.

    ``whole`` is the section that the client loads by itself, ``None`` if it loads none. ``rules``
    are the person's own.
    """

    text: str
    index: str
    whole: str | None = None
    rules: OwnRules = OwnRules()


class Sections:
    """Makes the memory sections of sessions and sub-agents."""

    def __init__(self, prompts: Prompts, recall: Recall, projects: Projects) -> None:
        self._prompts = prompts
        self._recall = recall
        self._projects = projects

    def of_session(self, event: HookEvent, rules_room: int) -> SessionSection:
        """Return the section of a session that starts; its client may load a part by itself.

        A session that goes on is shown none. The person's rules get ``rules_room`` UTF-16 units
        at most, and what the section leaves; they count as given to the session. Blocks.
        """
        project, settings = event.project, event.settings
        environment = event.call.caller.environment
        loaded = self._prompts.load(project, settings, room=_ROOM, environment=environment)
        whole = loaded.prompt or ""
        if event.dialect.loads_memory and project.client_dir == project.memory_dir:
            shown = self._prompts.shared(project, settings)
            section = SessionSection(shown, f"{loaded.memory_dir}/{TEAM_INDEX}", whole)
        else:
            section = SessionSection(whole, f"{loaded.memory_dir}/{INDEX}")
        if event.payload.source in _CONTINUED:  # it has what it began with in its context
            return SessionSection("", section.index, whole)
        room = min(UNITS, rules_room, _ROOM - quoting.units(section.text))
        rules = self._recall.own_rules(project.memory_dir, room)
        if rules.paths:
            self._recall.given(event.session, project.memory_dir, rules.paths)
        return replace(section, rules=rules)

    def of_sub_agent(self, event: HookEvent) -> str:
        """Return the memory section that is added when a sub-agent starts, or "" for none. Blocks.

        There is none where the settings name no scope for the sub-agent, the client loads its
        memory itself, or the memory cannot be read.
        """
        agent, environment = event.payload.agent_type, event.call.caller.environment
        scope = event.settings.agents.memory.get(agent, "")
        if not scope:
            return ""
        with suppress(MemdError):  # a symbolic link in the path, for example: no memory
            if self._projects.loads_memory(event.project, agent, environment):
                return ""
            loaded = self._prompts.load(
                event.project,
                event.settings,
                mode=_MODE,
                agent=agent,
                scope=scope,
                room=_ROOM,
                environment=environment,
            )
            if loaded.prompt:
                return tagged(fit(loaded.prompt, f"{loaded.memory_dir}/{INDEX}"))
        return ""


def tagged(section: str) -> str:
    """Return a memory section in memd's tag."""
    return f"{tags.OPEN}\n{section}\n{tags.CLOSE}"


def fit(prompt: str, index: str, room: int = limits.BLOCK_CHARACTERS) -> str:
    """Return a prompt cut so that with memd's tag it has ``room`` UTF-16 units, as clients count.

    A prompt that is too long is cut after a whole line, its open quote of the index is closed, and
    a note names the file ``index``.
    """
    room -= _TAGS
    units = prompt.encode("utf-16-le")  # two bytes each
    if len(units) <= 2 * room:
        return prompt
    note = f"\n(There is more: read {index} for the whole index.)"
    prompt_units = room - len(note) - len(_INDEX_CLOSE) - 1
    # ``ignore``, because the end may be one half of a character of two units.
    cut = units[: 2 * prompt_units].decode("utf-16-le", errors="ignore").rpartition("\n")[0]
    is_quote_open = cut.rfind(_INDEX_OPEN) > cut.rfind(_INDEX_CLOSE)
    closing = f"\n{_INDEX_CLOSE}" if is_quote_open else ""
    return f"{cut}{closing}{note}"
