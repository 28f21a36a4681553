"""Nothing is lost, removed or brought back in any order of steps (tests/team/model.py)."""

import pytest

from tests.team.exploring import Budget, World, explore
from tests.team.model import Fault

# What happens beside the syncs themselves; each row leaves out what would hide the others.
SCOPES = {
    "accidents": Budget(edits=3, deletes=1, removes=0, losses=2),
    "copies": Budget(edits=2, deletes=0, removes=1, losses=1, copies=2),
    "removals": Budget(edits=2, deletes=1, removes=1, losses=1),
    "edits": Budget(edits=3, deletes=0, removes=1, losses=1),
    "backups": Budget(edits=2, deletes=1, removes=1, losses=1, restores=1),
    "years": Budget(edits=2, deletes=0, removes=1, losses=1, expiries=1),
    "all": Budget(edits=2, deletes=1, removes=1, losses=2, restores=1, expiries=1),
}
PLANTED = {
    Fault.ABSENCE: Budget(edits=0, deletes=1, removes=1, losses=0),
    Fault.EARLY_BASE: Budget(edits=2, deletes=0, removes=0, losses=0),
    Fault.EARLY_PULL: Budget(edits=2, deletes=0, removes=0, losses=1),
    Fault.NEW_ID: Budget(edits=2, deletes=0, removes=0, losses=1),
    Fault.SEQUENCE: Budget(edits=2, deletes=0, removes=0, losses=0),
    Fault.EARLY_MARK: Budget(edits=1, deletes=0, removes=0, losses=0, copies=2),
    Fault.NO_TOMBSTONE: Budget(edits=1, deletes=0, removes=1, losses=0),
}


@pytest.mark.parametrize("scope", SCOPES)
def test_every_order_of_steps_keeps_every_text(scope: str) -> None:
    """In 140,000 states no text is lost, nothing removed comes back, and all ends equal."""
    seen = explore(World(SCOPES[scope]), 20_000)
    assert seen.trace == (), "\n".join(seen.trace)
    assert seen.states >= 20_000
    assert seen.at_rest > 0


@pytest.mark.soak
@pytest.mark.parametrize("scope", SCOPES)
def test_every_order_of_many_more_steps_does_so_too(scope: str) -> None:
    """In 3,500,000 states no text is lost, nothing removed comes back, and all ends equal."""
    seen = explore(World(SCOPES[scope]), 500_000)
    assert seen.trace == (), "\n".join(seen.trace)
    assert seen.states >= 500_000


@pytest.mark.parametrize("fault", Fault)
def test_a_planted_mistake_is_caught(fault: Fault) -> None:
    """Each mistake that others made breaks something within few steps, and the way is printed."""
    seen = explore(World(PLANTED[fault], fault), 100_000)
    assert seen.trace, fault
    print(f"{fault.value}, after {seen.states} states:", *seen.trace, sep="\n  ")  # noqa: T201
