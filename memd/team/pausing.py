"""When the next request may go: back-off after what passes, a pause after what does not. Pure."""

from collections.abc import Callable

from msgspec.structs import replace

from memd.core.team import SyncState

RETRY_SECONDS = 2.0
RETRY_SECONDS_AT_MOST = 15 * 60.0
RETRY_AFTER_SECONDS = 60 * 60.0  # what a server may ask for at most
PAUSE_SECONDS = 24 * 60 * 60.0
INTERVAL_SECONDS = 5 * 60.0
_SPREAD = 0.2
_DOUBLINGS = 9  # 2 s doubled nine times is more than 15 min
_PUSH = "push "  # a pause of pushes alone
# Whoever may only read is told so by a 403 of a push, and goes on reading.
_NO_ACCESS = (401, 404)
# A sync answers these itself, and no waiting helps: too old a mark, other bases, too large.
_ANSWERED = (410, 412, 413)
_TRANSIENT = (409, 429)
_OK, _NOT_MODIFIED, _MULTIPLE, _CLIENT, _SERVER = 200, 304, 300, 400, 500


def after(
    state: SyncState,
    status: int | None,
    retry_after: float | None,
    *,
    now: float,
    random: Callable[[], float],
    credentials: str,
    pushing: bool,
) -> SyncState:
    """Return the state after an answer; ``status`` is ``None`` where none could be read.

    ``retry_after`` is the server's, in seconds. ``random`` returns a number from 0 to below 1.
    ``credentials`` is the digest of token and settings that the request went with, ``pushing``
    whether it was a push: its success ends each pause, and its refusal stops pulls only where the
    server gives no access at all. A 422 that names entries is no failure and not to be handed in.
    """
    if status in _ANSWERED:
        return state
    if status == _NOT_MODIFIED or (status is not None and _OK <= status < _MULTIPLE):
        ended = pushing or not state.paused.startswith(_PUSH)
        state = replace(state, tries=0, until=0.0)
        return resumed(state) if ended else state
    if status is None or status >= _SERVER or status in _TRANSIENT:
        most = min(RETRY_SECONDS * 2 ** min(state.tries, _DOUBLINGS), RETRY_SECONDS_AT_MOST)
        delay = most * random()
        if retry_after is not None and retry_after > delay:  # not so for NaN
            delay = min(retry_after, RETRY_AFTER_SECONDS)
        return replace(state, tries=state.tries + 1, until=now + delay)
    scope = _PUSH if pushing and status not in _NO_ACCESS else ""
    return replace(
        state,
        tries=0,
        until=0.0,
        paused=f"{scope}{status}",
        paused_until=now + PAUSE_SECONDS,
        credentials=credentials,
    )


def resumed(state: SyncState) -> SyncState:
    """Return the state without a pause: a person asked, or deleted a file below ``team/``."""
    return replace(state, tries=0, until=0.0, paused="", paused_until=0.0, credentials="")


def may_pull(state: SyncState, now: float, credentials: str) -> bool:
    """Return whether a pull may go by itself; ``credentials`` is "" without a token."""
    if state.paused.startswith(_PUSH):
        state = replace(state, paused="")
    return may_push(state, now, credentials)


def may_push(state: SyncState, now: float, credentials: str) -> bool:
    """Return whether a push may go by itself; ``credentials`` is "" without a token."""
    if not credentials or state.waits or _is_ahead(state.until, now, RETRY_AFTER_SECONDS):
        return False
    paused = state.paused and state.credentials == credentials
    return not (paused and _is_ahead(state.paused_until, now, PAUSE_SECONDS))


def jittered_interval(random: Callable[[], float]) -> float:
    """Return the seconds to the next pull while a session lives."""
    return INTERVAL_SECONDS * (1 - _SPREAD + 2 * _SPREAD * random())


def _is_ahead(at: float, now: float, most: float) -> bool:
    """Return whether a time is to come. One that no rule sets so far ahead is a clock's error."""
    return now < at <= now + most
