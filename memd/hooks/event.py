"""A hook's event of a conversation, with the project that it is in."""

from msgspec import Struct

from memd.base.client_events import EventKind
from memd.base.settings import Settings
from memd.base.values import Project
from memd.hooks.dialects import Dialect, Payload
from memd.rpc.call import Call


class HookEvent(Struct, frozen=True):
    """An event that a hook sent by a call, with its project.

    ``name`` is the client's name of the event. The answer is due at ``until``, in monotonic
    seconds. With ``messages`` the hook prints messages of other agents too.
    """

    call: Call
    dialect: Dialect
    kind: EventKind
    name: str
    payload: Payload
    project: Project
    settings: Settings
    until: float
    messages: bool = False

    @property
    def client(self) -> str:
        """The name of the client."""
        return self.call.caller.client

    @property
    def session(self) -> str:
        """The client's own name for the conversation."""
        return self.payload.session_id
