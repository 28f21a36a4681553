"""Sub-agents of a project: their definitions and their memories. Blocks.

Rules of this file
- A checkout is not trusted: only the beginning of regular files is read, and no link is followed.
- Every search is bounded.
"""

import os
from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct

from memd.base.agents import AgentScope
from memd.base.errors import MemdError
from memd.base.names import INDEX, check_component
from memd.projects.git import read_beginning, upwards
from memd.projects.project import AGENT_FOLDERS, CLIENT_FOLDER
from memd.store import head, index
from memd.store.directory import Directory

_MOST_DEFINITIONS = 500  # files that are read for one agent
_IGNORE_BYTES = 16 * 1024  # of an ignore file that are read
_LOCAL_FOLDER = f"{CLIENT_FOLDER}/{AGENT_FOLDERS[AgentScope.LOCAL]}"


class AgentMemory(Struct, frozen=True):
    """The memory directory of a sub-agent, in one of the three scopes."""

    directory: str
    agent: str
    scope: AgentScope


def loads_memory(cwd: str, root: str, config: str, agent: str) -> bool:
    """Return whether an agent's definition tells its client to load a memory.

    Definitions lie in folders from ``cwd`` up to the root, then in the user's ``config``. The first
    one counts. At most 500 are read.
    """
    folders = []
    for folder in upwards(cwd):
        folders.append(folder)
        if folder == root:
            break
    else:
        folders.append(root)  # the working directory does not lie below it
    agents = [f"{folder.rstrip('/')}/{CLIENT_FOLDER}/agents" for folder in folders]
    remaining = _MOST_DEFINITIONS
    for folder in (*agents, f"{config}/agents"):
        for path in _definitions(folder):
            remaining -= 1
            if remaining < 0:
                return False
            definition = head.split(read_beginning(path, head.HEAD_BYTES))
            fields = head.read(definition).values if definition else {}
            if fields.get("name") == agent:
                return fields.get("memory") in {*AgentScope}
    return False


def agents_in(root: str) -> tuple[AgentMemory, ...]:
    """Return the memories of sub-agents in a project's root; empty if ``root`` is "".

    A folder that is a link, which a repository may contain, is skipped.
    """
    if not root:
        return ()
    client_folder = f"{os.path.realpath(root)}/{CLIENT_FOLDER}"
    return tuple(
        AgentMemory(path, agent, scope)
        for scope, name in AGENT_FOLDERS.items()
        for path, agent in _agents_in(f"{client_folder}/{name}")
    )


def own_agents(config: str) -> tuple[AgentMemory, ...]:
    """Return the memories of sub-agents in the client's folder, which belong to no project."""
    folder = f"{os.path.realpath(config)}/{AGENT_FOLDERS[AgentScope.PROJECT]}"
    return tuple(AgentMemory(path, name, AgentScope.USER) for path, name in _agents_in(folder))


def missing_ignore_line(root: str) -> str:
    """Return the line for .gitignore that keeps agents' local memories out of commits.

    It is "" if there are no such memories, the root has no git, or an ignore file has the line. No
    other patterns are understood.
    """
    has_git = os.path.lexists(f"{root}/.git")
    if not has_git or not os.path.lexists(f"{root}/{_LOCAL_FOLDER}"):
        return ""
    files = [f"{root}/{name}" for name in (".gitignore", ".git/info/exclude")]
    text = b"\n".join(read_beginning(file, _IGNORE_BYTES) for file in files)
    lines = {line.strip().strip("/") for line in text.decode(errors="replace").splitlines()}
    return "" if lines & {_LOCAL_FOLDER, CLIENT_FOLDER} else f"/{_LOCAL_FOLDER}/"


def _agents_in(folder: str) -> Iterator[tuple[str, str]]:
    """Yield path and agent of each memory in a folder; nothing if its path has a link."""
    if os.path.realpath(folder) != folder:
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir(follow_symlinks=False) and _has_memories(entry.path):
                yield entry.path, entry.name


def _has_memories(directory: str) -> bool:
    """Return whether an agent's directory has a memory or an index with a person's own lines."""
    with suppress(OSError, MemdError):
        check_component(os.path.basename(directory))
        with Directory(directory) as opened:
            beginning = opened.read(INDEX, head.HEAD_BYTES, whole=False)
            if beginning and index.own_lines(beginning[0]):
                return True
            return next(opened.walk(), None) is not None  # it has a file
    return False


def _definitions(folder: str) -> list[str]:
    """Return the paths of a folder's Markdown files, sorted by name."""
    with suppress(OSError):
        return [f"{folder}/{name}" for name in sorted(os.listdir(folder)) if name.endswith(".md")]
    return []
