"""When session notes are written: the gates, each by its name. Pure.

Rules of this file
- The first notes come at 10,000 tokens of context, the next ones after 5,000 more: since the last
  update that went well, or since a compaction that came after it.
- Growth alone does not do: three tool calls since then, or a natural break, go with it.
- ``force`` opens the gates that go by the context's size and by breaks, and no other.
"""

from dataclasses import dataclass

OFF = "off"
NO_AUTOCOMPACT = "no_autocompact"
SUBAGENT = "subagent"
FOREIGN = "foreign"
YOUNG = "young"
GROWTH = "growth"
MID_TURN = "mid_turn"
PAUSED = "paused"  # background work rests: the jobs know
BREAKER = "breaker"  # this one and the next keep a model out; the local writer goes on
CAP = "cap"

FIRST_TOKENS = 10_000
GROWTH_TOKENS = 5_000
CALLS = 3


@dataclass(frozen=True, slots=True)
class GateFacts:
    """What the gates go by.

    ``tokens`` is the size of the context now, ``since`` the size that growth counts from, ``None``
    where there are no notes yet; ``calls`` counts the tool calls behind what the notes cover.
    """

    enabled: bool = True
    compacts: bool = True
    sub_agent: bool = False
    foreign: bool = False
    tokens: int = 0
    since: int | None = None
    calls: int = 0
    mid_turn: bool = False


def closed(facts: GateFacts, *, force: bool = False) -> str:
    """Return the first gate that is closed, "" where an update may begin."""
    if not facts.enabled:
        return OFF
    if not facts.compacts:
        return NO_AUTOCOMPACT
    if facts.sub_agent:
        return SUBAGENT
    if facts.foreign:
        return FOREIGN
    return "" if force else _early(facts)


def _early(facts: GateFacts) -> str:
    if facts.since is None and facts.tokens < FIRST_TOKENS:
        return YOUNG
    if facts.since is not None and facts.tokens - facts.since < GROWTH_TOKENS:
        return GROWTH
    return MID_TURN if facts.mid_turn and facts.calls < CALLS else ""
