"""Find the memory directory of a client's working directory.

Only files are read, never a ``git`` process. The directory comes from the client's
variables, trusted settings, or the place that Claude Code uses. Nothing inside a repository
chooses a path: a checkout's claim to be a worktree counts only if the main repository confirms it.
"""

import os
import re
import struct
import unicodedata
from collections.abc import Iterable

from memd.base import limits
from memd.base.agents import AgentScope
from memd.base.errors import Invalid
from memd.base.names import check_component, printable
from memd.base.settings import Settings
from memd.base.values import Project
from memd.projects.claude_code import ClientMemory
from memd.projects.git import ProjectPlace, find_place
from memd.projects.switches import CLIENT_SWITCH, FALSY, REMOTE_BASE, Environ
from memd.store.directory import refused

# Sources of the memory directory's path, which several projects may share on purpose: variables of
# the environment, the strongest first, and an option of Claude Code.
_CLIENT_OVERRIDE = "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE"
_OVERRIDES = ("MEMD_MEMORY_PATH", _CLIENT_OVERRIDE)
_OWN_OPTION, _CLIENT_OPTION = "auto_memory_directory", "autoMemoryDirectory"
WHOLE_PATH = frozenset((*_OVERRIDES, _OWN_OPTION, _CLIENT_OPTION))

AGENT_FOLDERS = {
    AgentScope.PROJECT: "agent-memory",
    AgentScope.LOCAL: "agent-memory-local",
}
CLIENT_FOLDER = ".claude"
_MEMORY_FOLDER = "memory"  # it lies where sessions have their folders
_SHORTEST_PATH = 3  # "/" and "/a" are no places for memories
_WINDOWS = r"[A-Za-z]:|\\\\"
_IMPOSSIBLE = "[\0\ud800-\udc7f\udd00-\udfff]"  # no file name can be made of these
_NOT_ALPHANUMERIC = r"[^A-Za-z0-9]"
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_SESSION = r"[A-Za-z0-9_-]{1,128}"


def locate(cwd: str) -> ProjectPlace:
    """Return the place of a working directory.

    Raises Invalid for a path that is relative, missing or no directory.
    """
    why = "" if cwd.startswith("/") else "the path must be absolute"
    try:
        real = "" if why else os.path.realpath(cwd, strict=True)
        if real and not os.path.isdir(real):
            why = "it is no directory"
    except (OSError, ValueError) as error:  # ValueError: a NUL, or no possible file name
        why = getattr(error, "strerror", None) or "the path has an impossible character"
    if why:
        raise _no_project(cwd, why)
    return find_place(real)


def slug(path: str) -> str:
    """Return the name of a project's folder, exactly as Claude Code derives it from the path.

    In the path's form NFC, each UTF-16 unit that is no ASCII letter or digit becomes a dash. A
    32-bit hash of the whole path takes the place of what is behind 200 units.
    """
    encoded = unicodedata.normalize("NFC", path).encode("utf-16-le", errors="surrogatepass")
    units = struct.unpack(f"<{len(encoded) // 2}H", encoded)
    text = re.sub(_NOT_ALPHANUMERIC, "-", "".join(map(chr, units)))
    if len(text) <= limits.SLUG_CHARACTERS:
        return text
    digest = 0
    for unit in units:
        digest = (digest * 31 + unit) & 0xFFFFFFFF
    number = (1 << 32) - digest if digest >> 31 else digest  # the absolute value of 32 signed bits
    digits = ""
    while number or not digits:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return f"{text[: limits.SLUG_CHARACTERS]}-{digits}"


def is_session(name: str) -> bool:
    """Return whether a name may be a session's id."""
    return bool(re.fullmatch(_SESSION, name))


def check_session(project: Project, session: str) -> None:
    """Check that a session's id can be a folder's name. Raises Invalid."""
    reserved = (_MEMORY_FOLDER, os.path.basename(project.memory_dir))
    if session in reserved or not is_session(session):
        shown = printable(session)
        raise Invalid(
            f"{shown or 'the empty text'} is no id of a session",
            hint="a session id has 1 to 128 letters, digits, '_' and '-'",
            session=shown,
        )


def transcript_folders(project: Project) -> tuple[str, ...]:
    """Return the folders with a project's transcripts: one for each working directory."""
    names = dict.fromkeys(slug(path) for path in (project.cwd, project.root))
    return tuple(f"{project.transcripts}/{name}" for name in names)


def projects_folder(
    settings: Settings, environ: Environ, home: str, problems: list[str]
) -> tuple[str, str]:
    """Return the folder that has one folder for each project, and the setting that chose it.

    For each refused path a sentence is added to ``problems``.
    """
    bases = (
        *((name, environ.get(name, "")) for name in (REMOTE_BASE, "MEMD_BASE_DIR")),
        ("base_dir", settings.base_dir),
        ("CLAUDE_CONFIG_DIR", environ.get("CLAUDE_CONFIG_DIR", "")),
    )
    base, source = _first_usable(bases, home, problems)
    return f"{base or f'{home}/{CLIENT_FOLDER}'}/projects", source or "default"


def find_project(
    place: ProjectPlace,
    settings: Settings,
    environ: Environ,
    home: str,
    client: ClientMemory,
    *,
    off: str = "",
) -> Project:
    """Return where a working directory keeps its memories, and whether memory is on.

    ``environ`` are the caller's variables. ``client`` are Claude Code's settings. ``off`` is the
    result of ``reason_for_off``. Each refused path becomes a sentence in ``problems``. Raises
    Invalid.
    """
    at_home = any(_at_or_above(path, home) for path in (place.cwd, place.root))
    if at_home and not settings.allow_home:
        why = "it is the home directory or above it, and the setting allow_home = false keeps"
        raise _no_project(place.cwd, f"{why} memory out")
    problems: list[str] = []
    base, base_source = projects_folder(settings, environ, home, problems)
    directories = (
        *((name, environ.get(name, "")) for name in _OVERRIDES),
        (_OWN_OPTION, settings.auto_memory_directory),
        (_CLIENT_OPTION, client.allowed_directory),
    )
    directory, source = _first_usable(directories, home, problems)
    return Project(
        cwd=place.cwd,
        root=place.root,
        memory_dir=directory or f"{base}/{slug(place.root)}/{_MEMORY_FOLDER}",
        source=source or base_source,
        transcripts=base,
        enabled=not off,
        reason=off,
        problems=tuple(problems),
        client_dir=_client_directory(place.root, environ, home, client),
        readable="" if at_home else place.root,
        compacts=client.compacts,
    )


def agent_directory(project: Project, agent: str, scope: str, environ: Environ) -> str:
    """Return the memory directory of a sub-agent.

    ``scope`` is user, project or local; ``environ`` is what the client forwarded. Raises
    Invalid, Refused for the agent's name, and Refused if a link,
    which a repository may contain, leads the directory elsewhere.
    """
    name = check_component(agent.replace(":", "-"))
    remote = environ.get(REMOTE_BASE, "")
    if scope not in {*AgentScope}:
        shown = printable(scope)
        raise Invalid(f"the scope {shown} is not one of user, project, local", scope=shown)
    if scope == AgentScope.USER:
        base, below = os.path.dirname(project.transcripts), f"agent-memory/{name}"
    elif scope == AgentScope.LOCAL and remote:
        if why := _refusal(remote, ""):
            raise refused(remote, why)
        base = os.path.normpath(remote)
        below = f"projects/{slug(project.root)}/{AGENT_FOLDERS[AgentScope(scope)]}/{name}"
    else:
        base, below = (
            project.root.rstrip("/"),
            f"{CLIENT_FOLDER}/{AGENT_FOLDERS[AgentScope(scope)]}/{name}",
        )
    # The path to the base may have links of the person's; below it no link is allowed.
    path, real = f"{base}/{below}", os.path.realpath(base or "/").rstrip("/")
    if os.path.realpath(path) != f"{real}/{below}":
        raise refused(path, "a part of it is a link")
    return path


def is_of_agent(directory: str) -> bool:
    """Return whether a memory directory is a sub-agent's, from its parent folder's name."""
    return os.path.basename(os.path.dirname(directory)) in AGENT_FOLDERS.values()


def _no_project(cwd: str, why: str) -> Invalid:
    """Return the error that a path is not the working directory of a project."""
    shown = printable(cwd)
    return Invalid(
        f"{shown or 'the empty path'} is no project: {why}",
        kind="no_project",
        hint="call it in the directory of a project",
        cwd=shown,
        why=why,
    )


def _client_directory(root: str, environ: Environ, home: str, client: ClientMemory) -> str:
    """Return the directory that Claude Code loads by itself, "" if its memory is off."""
    switch = environ.get(CLIENT_SWITCH, "").strip().lower()
    if not (switch in FALSY if switch else client.enabled):
        return ""
    if directory := environ.get(_CLIENT_OVERRIDE) or client.directory:
        return os.path.normpath(_expanded(directory, home))
    bases = ((name, environ.get(name, "")) for name in (REMOTE_BASE, "CLAUDE_CONFIG_DIR"))
    base, _ = _first_usable(bases, home, [])
    return f"{base or f'{home}/{CLIENT_FOLDER}'}/projects/{slug(root)}/{_MEMORY_FOLDER}"


def _first_usable(
    sources: Iterable[tuple[str, str]], home: str, problems: list[str]
) -> tuple[str, str]:
    """Return the first usable path and its source, or twice "" if there is none.

    ``sources`` are names with paths, "" for one that is not set. For each refused path a sentence
    is added to ``problems``.
    """
    for source, value in sources:
        why = _refusal(value, home) if value else ""
        if value and not why:
            return os.path.normpath(_expanded(value, home)), source
        if why:
            problems.append(f"{source}: the path {printable(value)} is refused: {why}")
    return "", ""


def _refusal(value: str, home: str) -> str:
    """Return why a configured path must not be used, "" if it may.

    Without a home, ``~/`` is a relative path like any other.
    """
    path = _expanded(value, home)
    why = ""
    if re.search(_IMPOSSIBLE, value):
        why = "it has a character that no path can have"
    elif re.match(_WINDOWS, value):
        why = "it is a path of another system"
    elif not path.startswith("/"):
        why = "it is relative"
    elif value.startswith("//"):
        why = "it begins with two slashes"
    elif len(os.path.normpath(path)) < _SHORTEST_PATH:
        why = "it is the root directory or a single letter below it"
    elif home and _at_or_above(path, home):
        why = "it is the home directory or above it"
    return why


def _expanded(value: str, home: str) -> str:
    """Return a path with a leading ``~`` replaced by the home, if there is one."""
    begins_at_home = value == "~" or value.startswith("~/")
    return home + value[1:] if home and begins_at_home else value


def _at_or_above(path: str, home: str) -> bool:
    """Return whether a path is the home or above it, as written or as links resolve it."""
    homes = (os.path.normpath(home), os.path.realpath(home))
    for spelling in (os.path.normpath(path), os.path.realpath(path)):
        folder = f"{spelling.rstrip('/')}/"
        if any(f"{home_path}/".startswith(folder) for home_path in homes):
            return True
    return False
