"""Decide when session notes are written. A gate is a condition that prevents an update. Pure.

Rules of this file
- The first notes are written at 10,000 tokens of context, later ones after 5,000 more since the
  last successful update or a later compaction.
- Besides growth, three tool calls since then or the end of a turn are needed.
- ``force`` skips the gates of size and of turns, and no others.
"""

from msgspec import Struct

OFF = "off"
NO_AUTOCOMPACT = "no_autocompact"
SUBAGENT = "subagent"
FOREIGN = "foreign"
YOUNG = "young"
GROWTH = "growth"
MID_TURN = "mid_turn"
PAUSED = "paused"  # all background work is paused
# With these two no model is used, only the local writer.
BREAKER = "breaker"
CAP = "cap"

FIRST_TOKENS = 10_000
GROWTH_TOKENS = 5_000
CALLS = 3  # in the middle of a turn


class GateFacts(Struct, frozen=True):
    """The facts that the gates depend on.

    ``tokens`` is the size of the context now, ``since`` the size that growth is counted from,
    ``None`` without notes. ``calls`` counts the tool calls since the notes were written.
    """

    enabled: bool = True  # whether memory and notes are on
    compacts: bool = True  # whether the client compacts conversations by itself
    sub_agent: bool = False  # whether the conversation is a sub-agent's
    foreign: bool = False  # whether memd may not write the notes
    tokens: int = 0
    since: int | None = None
    calls: int = 0
    mid_turn: bool = False  # whether the assistant has not ended its turn


def closed_gate(facts: GateFacts, *, force: bool = False) -> str:
    """Return the name of the first closed gate, "" if an update may begin."""
    if not facts.enabled:
        return OFF
    if not facts.compacts:
        return NO_AUTOCOMPACT
    if facts.sub_agent:
        return SUBAGENT
    if facts.foreign:
        return FOREIGN
    return "" if force else _early_gate(facts)


def _early_gate(facts: GateFacts) -> str:
    """Return the gate that an update would be too early for, "" if it would not."""
    if facts.since is None and facts.tokens < FIRST_TOKENS:
        return YOUNG
    if facts.since is not None and facts.tokens - facts.since < GROWTH_TOKENS:
        return GROWTH
    if facts.mid_turn and facts.calls < CALLS:
        return MID_TURN
    return ""
