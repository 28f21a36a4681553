"""What memd knows of a conversation: facts of its messages without their text, and decisions. Pure.

Rules of this file
- A decision is made once, when a block is first seen, and never changes by itself. It is known by
  the call that the block answers and by the hash of what the block holds; one that is dropped
  (thinking) has no call.
- What a client says that it sent stands above what memd decided.
"""

from collections.abc import Mapping
from dataclasses import dataclass

KEEP, SPILL, CLEAR, DROP = "keep", "spill", "clear", "drop"


@dataclass(frozen=True, slots=True)
class BlockKey:
    """What a decision is about: the id of the call, and the hash of the block's content as hex."""

    tool_use_id: str
    content_hash: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What is sent in the place of a block, for as long as the conversation lives.

    ``action`` is ``keep`` (the block itself), ``spill`` or ``clear`` (``content``; the whole is the
    file ``path`` with ``size`` bytes) or ``drop`` (nothing).
    """

    tool_use_id: str
    content_hash: str
    action: str
    content: str = ""
    path: str = ""
    size: int = 0

    @property
    def key(self) -> BlockKey:
        """What it is about."""
        return BlockKey(self.tool_use_id, self.content_hash)


Decisions = Mapping[BlockKey, Decision]


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A result whose whole is the file ``path`` of ``size`` bytes; ``content`` stands for it."""

    path: str
    size: int
    content: str


@dataclass(frozen=True, slots=True)
class StoredSizes:
    """How many bytes of results are stored for a session, and for all sessions."""

    session: int = 0
    all: int = 0


@dataclass(frozen=True, slots=True)
class ResultFacts:
    """One tool result: its place among the message's blocks, its call, and what it holds.

    ``tool`` is the tool's name where its call is known. ``characters`` count its text; a result
    that is not ``plain`` holds other blocks than text, ``failed`` is the API's ``is_error``.
    Nothing is decided about one without ``content_hash``: it is not plain, or too short.
    """

    block: int
    tool_use_id: str
    tool: str
    content_hash: str
    characters: int
    plain: bool
    failed: bool


@dataclass(frozen=True, slots=True)
class MessageFacts:
    """One message without its text.

    ``calls`` are the id and the tool's name of each call, ``thinking`` the hashes of its thinking
    blocks with their places. ``tokens`` is an estimate, ``context`` what the server counted up to
    and with this reply (0 where nobody said), ``key`` the reply's id. A ``boundary`` stands for all
    before it. With a message that ``begins`` comes a new reply, or a boundary.
    """

    role: str
    kinds: tuple[str, ...]
    calls: tuple[tuple[str, str], ...] = ()
    results: tuple[ResultFacts, ...] = ()
    thinking: tuple[tuple[int, str], ...] = ()
    tokens: int = 0
    context: int = 0
    key: str = ""
    boundary: bool = False
    begins: bool = False
