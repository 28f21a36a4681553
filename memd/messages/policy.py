"""Decide whether a message is accepted, held for the person, or refused. Pure."""

from memd.core.agents import Agent, Sender
from memd.core.settings import MessagesSettings
from memd.documents import secrets
from memd.messages.errors import MessageSecretError


def inbound(settings: MessagesSettings, sender: Sender, receiver: Agent) -> str:
    """Return what a receiver's settings do with a sender's messages: accept, hold or refuse."""
    if not sender.agent:
        return settings.inbound_unregistered
    return settings.inbound if sender.root == receiver.root else settings.inbound_across


def check_secrets(**parts: str) -> None:
    """Raise MessageSecretError for the first credential in the parts of a message, if any.

    The error names the rule, the part and the line, but not the credential.
    """
    for part, text in parts.items():
        for finding in secrets.find(text):
            raise MessageSecretError(finding.rule, part, finding.line)
