"""What prefetch decides: gates, candidates, what a surfaced memory looks like. Pure."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from memd.core import limits, text
from memd.core.names import TEAM
from memd.core.settings import Settings
from memd.core.team import Author
from memd.core.values import FOREIGN, Header, MemoryFile, Project, Scope
from memd.recall import explain
from memd.recall.explain import Explanation
from memd.state.tables import Parents
from memd.text.words import count, words

AUTO = "auto"
MEMORY_OFF = "memory_off"
RECALL_OFF = "recall_off"
NO_TEXT = "no_text"
SINGLE_WORD = "single_word"
SESSION_BUDGET = "session_budget"
NO_CANDIDATES = "no_candidates"
LEDGER_UNAVAILABLE = "ledger_unavailable"
UNREADABLE = "directory_unreadable"
DEADLINE = "deadline"

MOST = 20  # the bound of the setting recall.limit holds for a client's wish too
REST_NOTE = "\n\n[cut here: read the file for the rest]"
_SNIPPET_CHARACTERS = 160
_MEMBER_CHARACTERS = 40
_MEMBER = re.compile(r"[\w.@+-]+")
_PART = re.compile(r"[^\W_]+")
_USAGE = re.compile(
    r"\b(usage|how to (use|run|call|invoke)|cheat ?sheet|syntax|options|flags|commands|"
    r"parameters|arguments|reference|examples?)\b|用法|命令|参数|示例",
    re.IGNORECASE,
)
_WARNING = re.compile(
    r"\b(warn\w*|gotchas?|careful|beware|never|don'?t|do not|avoid|bugs?|known|issues?|breaks?|"
    r"broken|fail\w*|danger\w*|wrong\w*|pitfalls?|caveats?|workarounds?|must|only)\b|"
    "注意|警告|坑|不要|切勿|问题|失败",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SurfacedMemory:
    """One memory that goes out with a prompt; ``path`` is absolute, ``content`` may be cut.

    ``origin`` says whose words it holds, "" where nobody can tell.
    """

    path: str
    name: str
    description: str
    type: str | None
    scope: str
    age: str
    header: str
    content: str
    truncated: bool
    stale_notice: str | None
    origin: str = ""

    @property
    def bytes(self) -> int:
        """What the session's budget is charged: the content in UTF-8."""
        return len(self.content.encode())


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a client asks ``prefetch``.

    ``recent_tools`` are names of tools that the conversation has just used, ``read_paths`` what
    the client has read already. ``limit`` is how many memories it wants at most, ``seconds`` how
    long it waits; ``None`` for the settings'. ``explain`` asks for the reasons and marks nothing.
    ``index`` is the text of the index that the session has in its context, ``room`` how many UTF-16
    units the block may have.
    """

    session: str
    query: str
    recent_tools: Sequence[str] = ()
    read_paths: Sequence[str] = ()
    limit: int | None = None
    strategy: str = AUTO
    seconds: float | None = None
    explain: bool = False
    parents: Parents = frozenset
    index: str = ""
    room: int = limits.BLOCK_CHARACTERS


@dataclass(frozen=True, slots=True)
class Prefetched:
    """The few memories that matter, and a ready-made ``block`` of them.

    ``skipped`` names the gate that closed, if one did. ``note`` says why another strategy answered
    than the one asked for, or what could not be read. ``session_bytes`` is what the session has
    been given so far. With an ``explanation``, if it was asked for, nothing was marked.
    """

    memories: tuple[SurfacedMemory, ...]
    skipped: str | None
    strategy: str
    session_bytes: int
    block: str
    note: str | None = None
    explanation: Explanation | None = None


def gate(project: Project, settings: Settings, query: str) -> str:
    """Return the reason to bring nothing, the cheapest check first; "" to go on."""
    if not (project.enabled and settings.enabled):
        return MEMORY_OFF
    if not settings.recall.enabled:
        return RECALL_OFF
    return {0: NO_TEXT, 1: SINGLE_WORD}.get(count(query), "")


def wanted(limit: int | None, settings: Settings) -> int:
    """Return how many memories to bring at most: the client's wish within bounds."""
    return settings.recall.limit if limit is None else min(max(limit, 1), MOST)


def sayable(session: str) -> str:
    """Return a session's name as UTF-8 can hold it."""
    return session.encode(errors="replace").decode()


def mark_of(header: Header) -> str:
    """Return a file's fingerprint as the ledger keeps it."""
    return ":".join(map(str, header.fingerprint))


def absolute(directory: str, path: str) -> str:
    """Return the absolute path of a memory."""
    return f"{directory}/{path}"


class Rules:
    """Which memories may be brought at all, asked of those that a ranker proposes.

    Left out is what this session was given in this very version (``surfaced``: absolute path to
    fingerprint), what the client has read (``read``, relative to the directory), a plain usage
    reference for a tool that the conversation has just used, a file whose name is no text and so
    cannot be told to anybody, and the team's memories where ``team`` is false. ``lookup`` tells
    what the catalogue knows of a path.
    """

    def __init__(
        self,
        directory: str,
        lookup: Callable[[str], Header | None],
        *,
        surfaced: Mapping[str, str],
        read: Collection[str] = (),
        tools: Sequence[str] = (),
        team: bool = True,
    ) -> None:
        self._directory = directory
        self._lookup = lookup
        self._surfaced = surfaced
        self._read = read
        self._tools = [_tool_words(tool) for tool in tools]
        self._team = team
        self._refused: dict[str, tuple[str, str]] = {}

    def skips(self, path: str) -> bool:
        """Say whether a path must not be brought; one that is gone must not."""
        header = self._lookup(path)
        if header is None:
            return True
        reason = self.reason(header)
        if reason:
            self._refused[path] = (header.name, reason)
        return reason != ""

    def reason(self, header: Header) -> str:
        """Return why a memory must not be brought, or ""."""
        if not _is_text(header.path):
            return explain.NOT_TEXT
        if header.path in self._read:
            return explain.ALREADY_READ
        if not self._team and header.path.startswith(TEAM):
            return explain.TEAM_OFF
        if self._surfaced.get(absolute(self._directory, header.path)) == mark_of(header):
            return explain.ALREADY_SURFACED
        return explain.RECENT_TOOL if _explains_a_tool(header, self._tools) else ""

    def refused(self) -> tuple[tuple[str, str, str], ...]:
        """Return path, name and reason of each memory that was asked about and refused."""
        return tuple((path, *facts) for path, facts in sorted(self._refused.items()))


def relative(paths: Sequence[str], roots: Sequence[str]) -> frozenset[str]:
    """Return paths relative to whichever root they lie in; relative ones are kept."""
    result = set()
    for path in paths:
        if not path.startswith("/"):
            result.add(path.removeprefix("./"))
        for root in roots:
            if path.startswith(f"{root}/"):
                result.add(path[len(root) + 1 :])
    return frozenset(result)


def surface(
    directory: str,
    file: MemoryFile,
    now: float,
    *,
    own: bool = True,
    author: Author | None = None,
) -> SurfacedMemory:
    """Return a memory as it goes out at a time (seconds since 1970).

    What another program wrote (not ``own``) is nobody's words, unless it says that it is foreign.
    ``author`` is the member whose text a team memory holds, and is as old as that member's text.
    """
    header = file.header
    saved_ns = header.mtime_ns if author is None else int(author.at * 1e9)
    age = text.age(saved_ns, now)
    path = absolute(directory, header.path)
    content, truncated = cut(file.body.strip("\r\n"))
    is_team = header.path.startswith(TEAM)
    whose = f"Team memory{_by(author)}" if is_team else "Memory"
    return SurfacedMemory(
        path=path,
        name=header.name,
        description=header.description,
        type=None if header.type is None else header.type.value,
        scope=(Scope.TEAM if is_team else Scope.PRIVATE).value,
        age=age,
        header=f"{whose} (saved {age}): {text.one_line(path, limits.SURFACED_BYTES)}:",
        content=content,
        truncated=truncated,
        stale_notice=text.stale_notice(saved_ns, now),
        origin=header.origin if own or header.origin in FOREIGN else "",
    )


def _by(author: Author | None) -> str:
    """Return who wrote a team memory, as its header says it.

    A member's name comes from a server: what of it could end the header is left out.
    """
    name = "" if author is None else " ".join(_MEMBER.findall(author.member))[:_MEMBER_CHARACTERS]
    return name and f" by {name}"


def cut(content: str) -> tuple[str, bool]:
    """Return a content within 200 lines and 4,096 bytes, note included, and whether it was cut."""
    content = content.encode(errors="replace").decode()
    lines = content.split("\n")
    if len(lines) <= limits.SURFACED_LINES and len(content.encode()) <= limits.SURFACED_BYTES:
        return content, False
    room = limits.SURFACED_LINES - REST_NOTE.count("\n")
    retained = text.cut_bytes("\n".join(lines[:room]), limits.SURFACED_BYTES - len(REST_NOTE))
    return retained.rstrip() + REST_NOTE, True


def snippet(body: str, terms: Collection[str]) -> str:
    """Return the line of a body that holds most of the words ``terms``, shortened to one line."""
    lines = [line for line in body.splitlines() if line.strip()][: limits.SURFACED_LINES]
    wanted_terms = set(terms)
    best = max(lines, key=lambda line: len(wanted_terms.intersection(words(line))), default="")
    return text.one_line(best, _SNIPPET_CHARACTERS)


def _tool_words(tool: str) -> frozenset[str]:
    parts = tool.split("__")
    if len(parts) > 1:  # mcp__server__tool: memories speak of the server
        tool = parts[1]
    return frozenset(word.lower() for word in _PART.findall(tool))


def _explains_a_tool(header: Header, tools: Sequence[frozenset[str]]) -> bool:
    said = f"{header.name} {header.description}"
    if not tools or not _USAGE.search(said) or _WARNING.search(said):
        return False
    spoken_of = {word.lower() for word in _PART.findall(said)}
    return any(tool and tool <= spoken_of for tool in tools)


def _is_text(path: str) -> bool:
    return path.isascii() or path.encode(errors="replace").decode() == path
