"""Cooperative yield: long loops of background work call it so that requests go first. Pure.

Loops of background work call ``yield_to_requests`` for each item. It returns at once unless the
work runs within ``yielding``, whose function it then calls. This function is part of the context,
which worker threads inherit. A cancelled job ends at this call: never make it inside a transaction,
with a lock held that a request needs, or between two steps that belong together.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# The function that the enclosing ``yielding`` names.
_callback: ContextVar[Callable[[], None]] = ContextVar("yield_to_requests", default=lambda: None)


def yield_to_requests() -> None:
    """Call the function of the enclosing ``yielding``, which waits while requests are open."""
    _callback.get()()


@contextmanager
def yielding(callback: Callable[[], None]) -> Iterator[None]:
    """Have ``yield_to_requests`` call ``callback`` in this block."""
    token = _callback.set(callback)
    try:
        yield
    finally:
        _callback.reset(token)


@contextmanager
def checking(first: Callable[[], None]) -> Iterator[None]:
    """Have ``yield_to_requests`` call ``first`` in this block, then the function it called before.

    An exception that ``first`` raises ends the work.
    """
    outer = _callback.get()

    def both() -> None:
        """Call the new check and those of the blocks around it."""
        first()
        outer()

    with yielding(both):
        yield
