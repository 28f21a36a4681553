"""A hook event of a conversation, with the project that it is in."""

from msgspec import Struct

from memd.api.dialects import Dialect, Payload
from memd.base.settings import Settings
from memd.base.values import Project


class Received(Struct, frozen=True):
    """An event of a conversation, with its project; ``messages``: the hook wants messages too."""

    dialect: Dialect
    name: str
    payload: Payload
    project: Project
    settings: Settings
    messages: bool = False

    @property
    def session(self) -> str:
        """The client's own name for the conversation."""
        return self.payload.session_id
