"""Values of the context services: facts of messages without their text, and decisions. Pure.

A decision is made once, when a block is first seen, and never changes by itself. The client keeps
it. Its key is the id of the block's call and the hash of its content; thinking blocks have no call.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

Action = Literal["keep", "spill", "clear", "drop"]
KEEP: Final = "keep"
SPILL: Final = "spill"
CLEAR: Final = "clear"
DROP: Final = "drop"


class BlockKey(Struct, frozen=True):
    """The key of a decision: the id of the block's call, and the hash of its content as hex."""

    tool_use_id: str
    content_hash: str


class Decision(Struct, frozen=True):
    """What is sent in the place of a block in all later requests of the conversation.

    ``action`` is ``keep`` (the block itself), ``spill`` or ``clear`` (``content``, while the
    result is in the file ``path`` of ``size`` bytes) or ``drop`` (nothing).
    """

    tool_use_id: str
    content_hash: str
    action: Action
    content: str = ""
    path: str = ""
    size: Annotated[int, Meta(ge=0)] = 0

    @property
    def key(self) -> BlockKey:
        """The key of the block it is about."""
        return BlockKey(self.tool_use_id, self.content_hash)


Decisions = Mapping[BlockKey, Decision]


class StoredResult(Struct, frozen=True):
    """A result in the file ``path`` of ``size`` bytes; ``content`` is sent in its place.

    ``is_new`` says that memd wrote the file now; else it had the same bytes already.
    """

    path: str
    size: int
    content: str
    is_new: bool


class ResultFacts(Struct, frozen=True):
    """One tool result: its index among the message's blocks, its call, and what it holds.

    ``tool`` is the tool's name, "" until its call is known. ``characters`` is the length of its
    text. A result that is not ``plain`` has other blocks than text. ``failed`` is the API's
    ``is_error``. ``content_hash`` is "" for a result that is not plain or is too short to store;
    there are no decisions about those.
    """

    block: int
    tool_use_id: str
    tool: str
    content_hash: str
    characters: int
    plain: bool
    failed: bool


class MessageFacts(Struct, frozen=True):
    """One message without its text.

    ``calls`` has the id and the tool's name of each call, ``thinking`` the index and hash of each
    thinking block. ``tokens`` is an estimate; ``context`` is what the server counted up to and
    including this reply (0 if unknown). ``key`` is the reply's id. A ``boundary`` replaces all
    messages before it. ``begins`` says that a new reply or a boundary begins here.
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


def decision_on(result: ResultFacts, decisions: Decisions) -> Decision | None:
    """Return the decision about a result; a client's decision without a hash holds for any text."""
    call = result.tool_use_id
    exact = decisions.get(BlockKey(call, result.content_hash)) if result.content_hash else None
    return exact or decisions.get(BlockKey(call, ""))
