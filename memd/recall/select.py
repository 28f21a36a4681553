"""Decide which memories a prompt may get, and build the memories that are sent. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct

from memd.base import limits, text
from memd.base.names import TEAM
from memd.base.team import Author
from memd.base.values import FOREIGN, Header, MemoryFile, Scope
from memd.recall import explain
from memd.recall.explain import Explanation
from memd.state.ledger import Parents
from memd.state.search import SearchRow
from memd.text.stems import spaced

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
_NAME_PART = r"[\w.@+-]+"
_WORD = r"[^\W_]+"
_USAGE = (
    r"(?i)\b(usage|how to (use|run|call|invoke)|cheat ?sheet|syntax|options|flags|commands|"
    r"parameters|arguments|reference|examples?)\b|用法|命令|参数|示例"
)
_WARNING = (
    r"(?i)\b(warn\w*|gotchas?|careful|beware|never|don'?t|do not|avoid|bugs?|known|issues?|breaks?|"
    r"broken|fail\w*|danger\w*|wrong\w*|pitfalls?|caveats?|workarounds?|must|only)\b|"
    "注意|警告|坑|不要|切勿|问题|失败"
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


def reasons(
    memories: Iterable[Header | SearchRow],
    place: tuple[str, str],
    prompt: Prompt,
    surfaced: Mapping[str, str],
    *,
    team: bool,
) -> dict[str, tuple[str, str]]:
    """Return which of the memories are excluded from selection: name and reason by path.

    These are memories that the session got in this version (``surfaced``: absolute path to hash),
    that the client has read, or that explain the usage of a tool just used; and team memories if
    ``team`` is false. ``place`` is the directory by the client's path and by its real path.
    """
    paths, roots = prompt.read_paths, (f"{place[0]}/", f"{place[1]}/")
    # Relative to the directory.
    read_paths = {path.removeprefix("./") for path in paths if not path.startswith("/")}
    read_paths |= {path[len(root) :] for path in paths for root in roots if path.startswith(root)}
    # The words of each tool's name; of mcp__server__tool memories name the server.
    names = [tool.split("__")[1] if "__" in tool else tool for tool in prompt.recent_tools]
    tools = [{word.lower() for word in re.findall(_WORD, name)} for name in names]
    result = {}
    for memory in memories:
        if memory.path in read_paths:
            result[memory.path] = memory.name, explain.ALREADY_READ
        elif not team and memory.path.startswith(TEAM):
            result[memory.path] = memory.name, explain.TEAM_OFF
        elif surfaced.get(roots[0] + memory.path) == memory.hash:
            result[memory.path] = memory.name, explain.ALREADY_SURFACED
        elif tools and _explains_tool(f"{memory.name} {memory.description}", tools):
            result[memory.path] = memory.name, explain.RECENT_TOOL
    return result


def _explains_tool(heading: str, tools: Iterable[AbstractSet[str]]) -> bool:
    """Return whether a heading only explains the usage of one of some tools, by their words."""
    if not re.search(_USAGE, heading) or re.search(_WARNING, heading):
        return False
    heading_words = {word.lower() for word in re.findall(_WORD, heading)}
    return any(tool and tool <= heading_words for tool in tools)


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
    path = f"{directory}/{header.path}"
    # A lone surrogate cannot be encoded.
    content = file.body.strip("\r\n").encode(errors="replace").decode()
    lines = content.split("\n")
    is_cut = len(lines) > limits.SURFACED_LINES or len(content.encode()) > limits.SURFACED_BYTES
    if is_cut:
        most_lines = limits.SURFACED_LINES - REST_NOTE.count("\n")
        most_bytes = limits.SURFACED_BYTES - len(REST_NOTE)
        start = text.cut_bytes("\n".join(lines[:most_lines]), most_bytes)
        content = start.rstrip() + REST_NOTE
    is_team = header.path.startswith(TEAM)
    kind = "Team memory" if is_team else "Memory"
    # A member's name comes from a server: characters that could end the header are removed.
    member = " ".join(re.findall(_NAME_PART, author.member if author else ""))[:_AUTHOR_CHARACTERS]
    if is_team and member:
        kind = f"{kind} by {member}"
    return SurfacedMemory(
        path=path,
        name=header.name,
        description=header.description,
        type=None if header.type is None else header.type.value,
        scope=(Scope.TEAM if is_team else Scope.PRIVATE).value,
        age=age,
        header=f"{kind} (saved {age}): {text.one_line(path, limits.SURFACED_BYTES)}:",
        content=content,
        truncated=is_cut,
        stale_notice=text.stale_notice(saved_ns, now),
        origin=header.origin if own or header.origin in FOREIGN else "",
    )


def snippet(body: str, terms: Collection[str]) -> str:
    """Return the line of a body that seems to have the most words of ``terms``, shortened.

    A stem is looked for where a word begins, which takes a tenth of the time of stemming the body;
    so an irregular form of a word is not seen.
    """
    lines = [line for line in body.splitlines() if line.strip()][: limits.SURFACED_LINES]
    best, most = "".join(lines[:1]), 0
    searched = [_beginning(term) for term in terms]
    for line in lines if len(lines) > 1 else ():
        text_of_line = f" {spaced(line)} {line.lower()} "
        count = sum([term in text_of_line for term in searched])
        if count > most:
            best, most = line, count
    return snippet_of_line(best)


def _beginning(stem: str) -> str:
    """Return how a word with this stem begins, as text that may stand in a line."""
    if stem.isdecimal():
        return f" {stem} "
    if stem.isascii() and stem.isalnum():
        return f" {stem.removesuffix('i')}"  # the stem of a word in -y ends in -i
    return stem  # a path or a pair of characters


def snippet_of_line(line: str) -> str:
    """Return a line shortened to the length of a snippet."""
    return text.one_line(line, _SNIPPET_CHARACTERS)
