"""Say that a request waits for something outside memd: a model, a message, a job, a server.

Only so many requests of a process are handled at once (``rpc/hub.py``); one that waits outside
makes room for the next.
"""

from collections.abc import Callable
from contextvars import ContextVar

# Ends the turn of the request; work that no client asked for has none.
end_turn: ContextVar[Callable[[], object]] = ContextVar("end_turn", default=lambda: None)


def waits_outside() -> None:
    """Let the next request of the same process begin; call it on the loop before the wait."""
    end_turn.get()()
