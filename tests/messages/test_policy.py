"""Who sent a message decides whether it waits for the person."""

import pytest

from memd.core.agents import Agent, Sender
from memd.core.settings import MessagesSettings
from memd.messages import policy
from memd.messages.errors import MessageSecretError

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


def test_a_credential_is_refused_by_rule_and_line() -> None:
    """What looks like a credential is named by its part, rule and line, and stands in no error."""
    token = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7xY9zA1cD3eF5"
    with pytest.raises(MessageSecretError) as caught:
        policy.check_secrets(summary="Access", body=f"here it is:\n{token}\n")
    assert (caught.value.facts["part"], caught.value.facts["line"]) == ("body", 2)
    assert caught.value.facts["rule"]
    assert token not in f"{caught.value.sentence}{caught.value.facts}"
    with pytest.raises(MessageSecretError):
        policy.check_secrets(body="none here", summary=token)
    policy.check_secrets(body="The token is in the vault.", summary="Where the token is")
