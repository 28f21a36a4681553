"""The gates of session notes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.notes.gates import CALLS, FIRST_TOKENS, GROWTH_TOKENS, GateFacts, closed_gate

_OPEN = {"tokens": 10_000}
_FACTS = st.builds(
    GateFacts,
    tokens=st.integers(0, 40_000),
    since=st.none() | st.integers(0, 40_000),
    calls=st.integers(0, 6),
    mid_turn=st.booleans(),
)


@pytest.mark.parametrize(
    ("facts", "gate", "forced"),
    [
        ({}, "young", ""),
        ({"tokens": 9_999}, "young", ""),
        ({"tokens": 10_000}, "", ""),
        ({"tokens": 10_000, "mid_turn": True, "calls": 2}, "mid_turn", ""),
        ({"tokens": 10_000, "mid_turn": True, "calls": 3}, "", ""),
        ({"tokens": 14_999, "since": 10_000, "calls": 9}, "growth", ""),
        ({"tokens": 15_000, "since": 10_000}, "", ""),
        ({"tokens": 15_000, "since": 10_000, "mid_turn": True, "calls": 2}, "mid_turn", ""),
        ({"tokens": 15_000, "since": 10_000, "mid_turn": True, "calls": 3}, "", ""),
        ({"tokens": 8_000, "since": 3_000}, "", ""),
        (_OPEN | {"enabled": False, "compacts": False}, "off", "off"),
        (_OPEN | {"compacts": False, "sub_agent": True}, "no_autocompact", "no_autocompact"),
        (_OPEN | {"sub_agent": True, "foreign": True}, "subagent", "subagent"),
        ({"foreign": True}, "foreign", "foreign"),
    ],
)
def test_each_gate_has_its_name(facts: dict[str, Any], gate: str, forced: str) -> None:
    """The first closed gate is named; force opens young, growth and mid_turn and no other."""
    assert closed_gate(GateFacts(**facts)) == gate
    assert closed_gate(GateFacts(**facts), force=True) == forced


@given(_FACTS)
def test_an_update_needs_growth_and_a_good_moment(facts: GateFacts) -> None:
    """Never below the token gate; at it, with three calls or at a break, always."""
    grown = facts.tokens - (facts.since or 0)
    enough = grown >= (FIRST_TOKENS if facts.since is None else GROWTH_TOKENS)
    good = facts.calls >= CALLS or not facts.mid_turn
    assert (closed_gate(facts) == "") == (enough and good)
