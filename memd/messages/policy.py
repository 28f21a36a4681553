"""Whether a message is accepted, held for the person, or refused. Pure."""

from memd.core.agents import Agent, Sender
from memd.core.settings import MessagesSettings
from memd.documents import secrets
from memd.messages.errors import MessageSecretError


def inbound(settings: MessagesSettings, sender: Sender, receiver: Agent) -> str:
    """Return what a receiver's settings say of a sender's messages: accept, hold or refuse."""
    if not sender.agent:
        return settings.inbound_unregistered
    return settings.inbound if sender.root == receiver.root else settings.inbound_across


def check_secrets(**parts: str) -> None:
    """Refuse a message one of whose parts looks as if it held a credential, by rule and line.

    Raises MessageSecretError for the first; the credential itself stands in no error.
    """
    for part, text in parts.items():
        for finding in secrets.find(text):
            raise MessageSecretError(finding.rule, part, finding.line)
