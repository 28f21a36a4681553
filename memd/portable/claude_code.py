"""Read memory folders of Claude Code, one alone or all of its configuration folder. Pure."""

import re

from memd.base import limits
from memd.base.agents import AgentScope
from memd.base.names import INDEX, TEAM_INDEX, concerns
from memd.portable.errors import source_refused
from memd.portable.memories import ReadingBuilder
from memd.portable.values import ReadFile

_PROJECT = re.compile(r"(?:.*/)?projects/([^/]+)/memory/(.+)")
_AGENT = r"(?:.*/)?agent-memory(-local)?/([^/]+)/(.+)"
_NO_MEMORY_FOLDER = "it holds no memory folder"


def read(builder: ReadingBuilder) -> None:
    """Propose the memories of each project and sub-agent. Raises Refused for none."""
    names = builder.source.names()
    # Only a configuration folder has projects; agents beside them are the user's, of all projects.
    is_configuration = any(map(_PROJECT.fullmatch, names))
    base = _memory_folder(names)
    for name in names:
        if match := re.fullmatch(_AGENT, name):
            scope = AgentScope.LOCAL if match[1] else AgentScope.PROJECT
            is_user_agent = is_configuration and not match[1]
            agent = match[2] if is_user_agent else f"{scope}/{match[2]}"
            _add_file(builder, name, match[3], builder.agents[agent])
        elif match := _PROJECT.fullmatch(name):
            _add_file(builder, name, match[2], builder.memories[match[1]])
        elif not is_configuration and name.startswith(base):
            _add_file(builder, name, name.removeprefix(base), builder.memories[""])
        else:
            builder.leave_out(name, "it lies outside the memory folders")
    if not any((*builder.memories.values(), *builder.agents.values())):
        raise source_refused(builder.kind, _NO_MEMORY_FOLDER)


def _memory_folder(names: tuple[str, ...]) -> str:
    """Return the topmost folder that has an index, with its slash; "" if there is none."""
    indexes = [name for name in names if f"/{name}".endswith(f"/{INDEX}")]
    folders = [
        name.removesuffix(INDEX)
        for name in indexes
        if not re.fullmatch(_AGENT, name) and not f"/{name}".endswith(f"/{TEAM_INDEX}")
    ]
    return min(folders, key=lambda folder: (folder.count("/"), folder), default="")


def _add_file(builder: ReadingBuilder, name: str, path: str, into: list[ReadFile]) -> None:
    """Add a file to the list ``into`` of a folder's memories, or leave it out with a reason."""
    if not concerns(path):
        builder.leave_out(name, "it is no memory")
    elif (size := builder.source.size(name)) > limits.READ_BYTES:
        builder.leave_out(name, f"it has {size} bytes, the limit is {limits.READ_BYTES}")
    else:
        content, at = builder.source.read(name), builder.source.mtime_ns(name)
        builder.add_file(ReadFile(path, content, at, exact=True), name, into)
