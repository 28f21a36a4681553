"""Who sent a message decides whether it waits for the person."""

import pytest

from memd.core.agents import Agent, Sender
from memd.core.settings import MessagesSettings
from memd.messages import policy

RECEIVER = Agent(1, "/p", "/m", "b")


@pytest.mark.parametrize(
    ("sender", "expected"),
    [
        (Sender(2, "a", root="/p"), "accept"),
        (Sender(2, "a@q", root="/q"), "hold"),
        (Sender(0, "unregistered", root="/p"), "hold"),
    ],
)
def test_only_the_project_s_own_agents_need_no_person(sender: Sender, expected: str) -> None:
    """By default a message of another project, or of nobody known, is held."""
    assert policy.inbound(MessagesSettings(), sender, RECEIVER) == expected
