"""Say that a request waits for something outside memd: a model, a message, a job, a server.

Only so many requests of a process are handled at once (``rpc/hub.py``); one that waits outside
makes room for the next.
"""

from collections.abc import Callable
from contextvars import ContextVar

# What makes room; work that no client asked for has no room to make.
give_way: ContextVar[Callable[[], object]] = ContextVar("give_way", default=lambda: None)


def waits_outside() -> None:
    """Let the next request of the same process begin; call it on the loop before the wait."""
    give_way.get()()
