"""Background work lets prompts go first: the word that long loops say now and then. Pure.

One interpreter serves everybody, and a loop that computes keeps it. Loops of background work call
``give_way`` for each thing they look at; it returns at once unless whoever began the work (a job)
has said, with ``polite``, what giving way means. The word travels with the context, into worker
threads too, so code that prompts use as well never waits for itself.

A job that was cancelled ends at this word. Never say it inside a transaction, with a lock held that
a prompt needs, or between two steps that must not come apart.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


def _for_nobody() -> None:
    """Go on."""


_way: ContextVar[Callable[[], None]] = ContextVar("give_way", default=_for_nobody)


def give_way() -> None:
    """Wait a moment where somebody goes first."""
    _way.get()()


@contextmanager
def polite(way: Callable[[], None]) -> Iterator[None]:
    """Have what is done in this block call ``way`` whenever it gives way."""
    token = _way.set(way)
    try:
        yield
    finally:
        _way.reset(token)


@contextmanager
def minding(first: Callable[[], None]) -> Iterator[None]:
    """Have what is done in this block call ``first`` before it gives way as it did.

    What ``first`` raises ends the work.
    """
    way = _way.get()

    def both() -> None:
        first()
        way()

    with polite(both):
        yield
