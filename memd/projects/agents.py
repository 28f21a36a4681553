"""Sub-agents of a project: their definitions and their memories. Blocks.

Rules of this file
- A checkout is not trusted: only the beginning of regular files is read, and no link is followed.
- Every search is bounded.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct

from memd.base.agents import AgentScope
from memd.base.errors import MemdError
from memd.base.names import INDEX, check_component
from memd.store import index
from memd.store.directory import Directory

FOLDERS = {AgentScope.PROJECT: "agent-memory", AgentScope.LOCAL: "agent-memory-local"}
_CLIENT_FOLDER = ".claude"
_HEAD_BYTES = 16 * 1024  # of a file that are read
_MOST_DEFINITIONS = 500  # files that are read for one agent
_LOCAL_FOLDER = f"{_CLIENT_FOLDER}/{FOLDERS[AgentScope.LOCAL]}"
_FRONTMATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)\n---", re.DOTALL)
_NAME = re.compile(r"^name:[ \t]*[\"']?([^\"'\r\n#]+)", re.MULTILINE)
_MEMORY = re.compile(r"^memory:[ \t]*[\"']?(user|project|local)\b", re.MULTILINE)


class AgentMemory(Struct, frozen=True):
    """The memory directory of a sub-agent, in one of the three scopes."""

    directory: str
    agent: str
    scope: AgentScope


def loads_memory(folders: tuple[str, ...], agent: str) -> bool:
    """Return whether an agent's definition tells its client to load a memory.

    ``folders`` are searched in order, and the first definition counts. At most 500 are read.
    """
    remaining = _MOST_DEFINITIONS
    for folder in folders:
        for path in _definitions(folder):
            remaining -= 1
            if remaining < 0:
                return False
            frontmatter = _FRONTMATTER.match(_head(path))
            name = _NAME.search(frontmatter[1]) if frontmatter else None
            if frontmatter and name and name[1].strip() == agent:
                return bool(_MEMORY.search(frontmatter[1]))
    return False


def definition_folders(cwd: str, root: str, config: str) -> tuple[str, ...]:
    """Return the folders of agents' definitions: from ``cwd`` up to the root, then the user's."""
    directories, here = [cwd], cwd
    while here not in (root, "/"):
        here = os.path.dirname(here)
        directories.append(here)
    directories.append(root)  # also if the working directory does not lie below it
    folders = [f"{path.rstrip('/')}/{_CLIENT_FOLDER}/agents" for path in directories]
    return (*dict.fromkeys(folders), f"{config}/agents")


def agents_in(root: str) -> tuple[AgentMemory, ...]:
    """Return the memories of sub-agents in a project's root; empty if ``root`` is "".

    A folder that is a link, which a repository may contain, is skipped.
    """
    if not root:
        return ()
    client_folder = f"{os.path.realpath(root)}/{_CLIENT_FOLDER}"
    return tuple(
        AgentMemory(path, agent, scope)
        for scope, name in FOLDERS.items()
        for path, agent in _agents_in(f"{client_folder}/{name}")
    )


def own_agents(config: str) -> tuple[AgentMemory, ...]:
    """Return the memories of sub-agents in the client's folder, which belong to no project."""
    folder = f"{os.path.realpath(config)}/{FOLDERS[AgentScope.PROJECT]}"
    return tuple(AgentMemory(path, name, AgentScope.USER) for path, name in _agents_in(folder))


def missing_ignore_line(root: str) -> str:
    """Return the line for .gitignore that keeps agents' local memories out of commits.

    It is "" if there are no such memories, the root has no git, or an ignore file has the line. No
    other patterns are understood.
    """
    has_git = os.path.lexists(f"{root}/.git")
    if not has_git or not os.path.lexists(f"{root}/{_LOCAL_FOLDER}"):
        return ""
    text = "\n".join(_head(f"{root}/{name}") for name in (".gitignore", ".git/info/exclude"))
    lines = {line.strip().strip("/") for line in text.splitlines()}
    return "" if lines & {_LOCAL_FOLDER, _CLIENT_FOLDER} else f"/{_LOCAL_FOLDER}/"


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
            head = opened.read_head(INDEX, _HEAD_BYTES)
            if head and index.own_lines(head[0]):
                return True
            return next(opened.walk(), None) is not None  # it has a file
    return False


def _definitions(folder: str) -> Iterator[str]:
    """Yield the paths of a folder's Markdown files, sorted by name."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name.endswith(".md"):
                yield entry.path


def _head(path: str) -> str:
    """Return the beginning of a regular file as text, "" if there is no such file."""
    with suppress(OSError, ValueError):  # ValueError: a NUL in a path that another file named
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return os.read(descriptor, _HEAD_BYTES).decode(errors="replace")
        finally:
            os.close(descriptor)
    return ""
