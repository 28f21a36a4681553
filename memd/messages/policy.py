"""Whether a message is accepted, held for the person, or refused. Pure."""

from memd.core.agents import Agent, Sender
from memd.core.settings import MessagesSettings


def inbound(settings: MessagesSettings, sender: Sender, receiver: Agent) -> str:
    """Return what a receiver's settings say of a sender's messages: accept, hold or refuse."""
    if not sender.agent:
        return settings.inbound_unregistered
    return settings.inbound if sender.root == receiver.root else settings.inbound_across
