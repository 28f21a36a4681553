"""The text added at a sub-agent's start: its own memory, if its client does not load that."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from anyio import to_thread

from memd.api.services import Services
from memd.base import limits
from memd.base.errors import MemdError
from memd.base.names import INDEX
from memd.base.settings import Settings
from memd.base.values import Project
from memd.text import tags

TAGS = len(tags.OPEN) + len(tags.CLOSE) + 3  # around a section, with line ends
_MODE = "agent"
_INDEX_OPEN, _INDEX_CLOSE = "<memory_index>", "</memory_index>"


async def section(
    services: Services,
    project: Project,
    settings: Settings,
    agent: str,
    environment: Mapping[str, str],
) -> str:
    """Return the memory section that is added when a sub-agent starts, or "" for none.

    There is none where the settings name no scope for the sub-agent, the client loads its memory
    itself, or the memory cannot be read.
    """
    scope = settings.agents.memory.get(agent, "")
    if not scope:
        return ""
    projects = services.projects
    with suppress(MemdError):  # a symbolic link in the path, for example: it starts without memory
        if await to_thread.run_sync(projects.loads_memory, project, agent, environment):
            return ""
        room = limits.BLOCK_CHARACTERS - TAGS
        load = partial(
            services.prompts.load,
            project,
            settings,
            mode=_MODE,
            agent=agent,
            scope=scope,
            room=room,
            environment=environment,
        )
        loaded = await to_thread.run_sync(load)
        if loaded.prompt:
            shown = fit(loaded.prompt, room, f"{loaded.memory_dir}/{INDEX}")
            return f"{tags.OPEN}\n{shown}\n{tags.CLOSE}"
    return ""


def fit(prompt: str, room: int, index: str) -> str:
    """Return a prompt cut to ``room`` UTF-16 units, which is how clients count.

    A prompt that is too long is cut after a whole line, its open quote of the index is closed, and
    a note names the file ``index``.
    """
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
