"""Decide which memories a prompt may get, and build the memories that are sent. Pure."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct

from memd.base import limits, text
from memd.base.names import TEAM
from memd.base.settings import Settings
from memd.base.team import Author
from memd.base.values import FOREIGN, Header, MemoryFile, Project, Scope
from memd.recall import explain
from memd.recall.explain import Explanation
from memd.state.ledger import Parents
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

PROMPT_SECONDS = 5.0  # that a prompt waits where its client does not say
SESSION_BYTES = 60_000  # of memories that a session gets at most
MOST_MEMORIES = 20  # that a client may request; the setting recall.limit has the same bound
REST_NOTE = "\n\n[cut here: read the file for the rest]"
_SNIPPET_CHARACTERS = 160
_AUTHOR_CHARACTERS = 40
_NAME_PART = re.compile(r"[\w.@+-]+")
_WORD = re.compile(r"[^\W_]+")
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


class SurfacedMemory(Struct, frozen=True):
    """A memory that is sent with a prompt; ``path`` is absolute, ``content`` may be cut.

    ``origin`` is the origin of its words, "" if unknown.
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
        """The size that counts for the session's budget: the content in UTF-8."""
        return len(self.content.encode())


class Prompt(Struct, frozen=True):
    """A request to ``prefetch``.

    ``recent_tools`` are names of tools that the conversation has just used, ``read_paths`` files
    that the client has read. ``limit`` is the most memories, ``None`` for the setting's;
    ``seconds`` is the time limit. ``explain`` asks for reasons and marks nothing. ``parents``
    returns the sessions that a new one inherits from. ``index`` is the index's text in the
    session's context, ``room`` the most UTF-16 units of the block.
    """

    session: str
    query: str
    recent_tools: Sequence[str] = ()
    read_paths: Sequence[str] = ()
    limit: int | None = None
    strategy: str = AUTO
    seconds: float = PROMPT_SECONDS
    explain: bool = False
    parents: Parents = frozenset
    index: str = ""
    room: int = limits.BLOCK_CHARACTERS


class Prefetched(Struct, frozen=True):
    """The selected memories, and a ``block`` of them to insert.

    ``skipped`` names the closed gate, if any. ``note`` says why another strategy was used than
    requested, or what could not be read. ``session_bytes`` is what the session got so far. With an
    ``explanation`` nothing was marked.
    """

    memories: tuple[SurfacedMemory, ...]
    skipped: str | None
    strategy: str
    session_bytes: int
    block: str
    note: str | None = None
    explanation: Explanation | None = None


def gate(project: Project, settings: Settings, query: str) -> str:
    """Return the name of the closed gate, "" if memories may be selected for a query."""
    if not project.enabled:
        return MEMORY_OFF
    if not settings.recall.enabled:
        return RECALL_OFF
    words_of_query = count(query)
    if words_of_query == 0:
        return NO_TEXT
    return SINGLE_WORD if words_of_query == 1 else ""


def most_memories(limit: int | None, settings: Settings) -> int:
    """Return how many memories to select at most: the client's limit (1 to 20) or the setting."""
    return settings.recall.limit if limit is None else min(max(limit, 1), MOST_MEMORIES)


def printable_session(session: str) -> str:
    """Return a session's name with characters replaced that UTF-8 cannot encode."""
    return session.encode(errors="replace").decode()


def version_of(header: Header) -> str:
    """Return what names a memory's version, as the ledger stores it."""
    return header.hash


def absolute_path(directory: str, path: str) -> str:
    """Return the absolute path of a memory."""
    return f"{directory}/{path}"


class Rules:
    """The rules that exclude memories from selection.

    Excluded are memories that the session got in this version (``surfaced``: absolute path to
    fingerprint), that the client has read (``read``, relative to the directory) or that explain
    the usage of a tool just used (``tools``); files whose name is not UTF-8; and team memories if
    ``team`` is false. ``lookup`` returns the header of a path, ``None`` if it is gone.
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
        self._read_paths = read  # relative to the directory
        self._tools = [_tool_words(tool) for tool in tools]  # the words of each tool's name
        self._team = team
        self._excluded: dict[str, tuple[str, str]] = {}  # by path, a memory's name and the reason

    def skips(self, path: str) -> bool:
        """Return whether a path is excluded or missing, and record the reason."""
        header = self._lookup(path)
        if header is None:
            return True
        reason = self.reason(header)
        if reason:
            self._excluded[path] = (header.name, reason)
        return reason != ""

    def reason(self, header: Header) -> str:
        """Return why a memory is excluded, "" if it is not."""
        if not _is_text(header.path):
            return explain.NOT_TEXT
        if header.path in self._read_paths:
            return explain.ALREADY_READ
        if not self._team and header.path.startswith(TEAM):
            return explain.TEAM_OFF
        if self._surfaced.get(absolute_path(self._directory, header.path)) == version_of(header):
            return explain.ALREADY_SURFACED
        return explain.RECENT_TOOL if _explains_a_tool(header, self._tools) else ""

    def excluded(self) -> tuple[tuple[str, str, str], ...]:
        """Return path, name and reason of each memory that ``skips`` excluded."""
        return tuple((path, *facts) for path, facts in sorted(self._excluded.items()))


def relative_paths(paths: Sequence[str], roots: Sequence[str]) -> frozenset[str]:
    """Return paths relative to the root they lie in; relative paths stay, others are left out."""
    result = set()
    for path in paths:
        if not path.startswith("/"):
            result.add(path.removeprefix("./"))
        for root in roots:
            if path.startswith(f"{root}/"):
                result.add(path[len(root) + 1 :])
    return frozenset(result)


def surfaced_memory(
    directory: str,
    file: MemoryFile,
    now: float,
    *,
    own: bool = True,
    author: Author | None = None,
) -> SurfacedMemory:
    """Return a memory as it is sent at the time ``now`` (seconds since 1970).

    A memory that another program wrote (not ``own``) keeps only a foreign origin. The age of a team
    memory is that of its ``author``'s text.
    """
    header = file.header
    saved_ns = header.mtime_ns if author is None else int(author.at * 1e9)
    age = text.age(saved_ns, now)
    path = absolute_path(directory, header.path)
    content, truncated = cut_content(file.body.strip("\r\n"))
    is_team = header.path.startswith(TEAM)
    kind = f"Team memory{_by_author(author)}" if is_team else "Memory"
    return SurfacedMemory(
        path=path,
        name=header.name,
        description=header.description,
        type=None if header.type is None else header.type.value,
        scope=(Scope.TEAM if is_team else Scope.PRIVATE).value,
        age=age,
        header=f"{kind} (saved {age}): {text.one_line(path, limits.SURFACED_BYTES)}:",
        content=content,
        truncated=truncated,
        stale_notice=text.stale_notice(saved_ns, now),
        origin=header.origin if own or header.origin in FOREIGN else "",
    )


def _by_author(author: Author | None) -> str:
    """Return " by NAME" for the header of a team memory, "" without an author.

    A member's name comes from a server, so characters that could end the header are removed.
    """
    if author is None:
        return ""
    name = " ".join(_NAME_PART.findall(author.member))[:_AUTHOR_CHARACTERS]
    return f" by {name}" if name else ""


def cut_content(content: str) -> tuple[str, bool]:
    """Return a content cut to 200 lines and 4,096 bytes with a note, and whether it was cut."""
    content = content.encode(errors="replace").decode()
    lines = content.split("\n")
    if len(lines) <= limits.SURFACED_LINES and len(content.encode()) <= limits.SURFACED_BYTES:
        return content, False
    most_lines = limits.SURFACED_LINES - REST_NOTE.count("\n")
    most_bytes = limits.SURFACED_BYTES - len(REST_NOTE)
    start = text.cut_bytes("\n".join(lines[:most_lines]), most_bytes)
    return start.rstrip() + REST_NOTE, True


def snippet(body: str, terms: Collection[str]) -> str:
    """Return the line of a body with the most words of ``terms``, shortened."""
    lines = [line for line in body.splitlines() if line.strip()][: limits.SURFACED_LINES]
    searched = set(terms)
    best = max(lines, key=lambda line: len(searched.intersection(words(line))), default="")
    return snippet_of_line(best)


def snippet_of_line(line: str) -> str:
    """Return a line shortened to the length of a snippet."""
    return text.one_line(line, _SNIPPET_CHARACTERS)


def _tool_words(tool: str) -> frozenset[str]:
    """Return the words of a tool's name; for an MCP tool those of its server's name."""
    parts = tool.split("__")
    if len(parts) > 1:  # mcp__server__tool: memories speak of the server
        tool = parts[1]
    return frozenset(word.lower() for word in _WORD.findall(tool))


def _explains_a_tool(header: Header, tools: Sequence[frozenset[str]]) -> bool:
    """Return whether a memory only explains the usage of one of the tools in use."""
    heading = f"{header.name} {header.description}"
    if not tools or not _USAGE.search(heading) or _WARNING.search(heading):
        return False
    heading_words = {word.lower() for word in _WORD.findall(heading)}
    return any(tool and tool <= heading_words for tool in tools)


def _is_text(path: str) -> bool:
    """Return whether a path has only characters that UTF-8 can encode."""
    return path.isascii() or path.encode(errors="replace").decode() == path
