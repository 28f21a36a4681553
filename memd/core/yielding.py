"""Background work lets requests go first: a call that long loops make now and then. Pure.

Loops of background work call ``yield_to_requests`` for each item. It returns at once unless the
work runs within ``yielding``, which says what to do then. That travels with the context, into
worker threads too. A cancelled job ends at this call: never make it inside a transaction, with a
lock held that a request needs, or between two steps that belong together.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


def _go_on() -> None:
    """Do nothing."""


_way: ContextVar[Callable[[], None]] = ContextVar("yield_to_requests", default=_go_on)


def yield_to_requests() -> None:
    """Wait a moment where a request goes first."""
    _way.get()()


@contextmanager
def yielding(way: Callable[[], None]) -> Iterator[None]:
    """Have ``yield_to_requests`` call ``way`` in this block."""
    token = _way.set(way)
    try:
        yield
    finally:
        _way.reset(token)


@contextmanager
def checking(first: Callable[[], None]) -> Iterator[None]:
    """Have ``yield_to_requests`` call ``first`` in this block before what it does already.

    What ``first`` raises ends the work.
    """
    way = _way.get()

    def both() -> None:
        first()
        way()

    with yielding(both):
        yield
