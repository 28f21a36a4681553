"""Decide when the next request may be sent: back-off after transient failures, else a pause. Pure.

A back-off is a short delay that grows with each failure. A pause lasts a day, or until the person
pushes or changes the token or the settings.
"""

from collections.abc import Callable

from msgspec.structs import replace

from memd.base.team import SyncState

RETRY_SECONDS = 2.0  # the longest delay after the first failure
RETRY_SECONDS_AT_MOST = 15 * 60.0  # the longest delay after any number of failures
RETRY_AFTER_SECONDS = 60 * 60.0  # the longest delay that a server's Retry-After sets
PAUSE_SECONDS = 24 * 60 * 60.0
INTERVAL_SECONDS = 5 * 60.0  # between two pulls in a session
_INTERVAL_JITTER = 0.2
_DOUBLINGS = 9  # 2 s doubled nine times is more than 15 min
_PUSH_PREFIX = "push "  # the prefix of a pause that stops only pushes
# Not 403: a push gets that from a member who may only read, and pulls go on.
_NO_ACCESS = (401, 404)
# A sync reacts to these at once: too old a mark, entries that have changed, too large a batch.
_HANDLED_BY_SYNC = (410, 412, 413)
_TRANSIENT = (409, 429)
_OK, _NOT_MODIFIED, _REDIRECT, _CLIENT_ERROR, _SERVER_ERROR = 200, 304, 300, 400, 500


def state_after(
    state: SyncState,
    status: int | None,
    retry_after: float | None,
    *,
    now: float,
    random: Callable[[], float],
    credentials: str,
    pushing: bool,
) -> SyncState:
    """Return the state of a sync after an answer; ``status`` is ``None`` if there was none.

    ``retry_after`` is the server's header in seconds, ``now`` seconds since 1970. ``random``
    returns a number from 0 to below 1. ``credentials`` is the digest of the request's token and
    settings. The success of a push (``pushing``) ends each pause; its refusal stops pulls too only
    if the server gives no access at all. A 422 that names entries is no failure: do not call this.
    """
    if status in _HANDLED_BY_SYNC:
        return state
    if status == _NOT_MODIFIED or (status is not None and _OK <= status < _REDIRECT):
        ends_pause = pushing or not state.paused.startswith(_PUSH_PREFIX)
        return resumed(state) if ends_pause else replace(state, tries=0, until=0.0)
    if status is None or status >= _SERVER_ERROR or status in _TRANSIENT:
        # A random delay, so that devices do not all return at the same moment.
        doublings = min(state.tries, _DOUBLINGS)
        longest = min(RETRY_SECONDS * 2**doublings, RETRY_SECONDS_AT_MOST)
        delay = longest * random()
        if retry_after is not None and retry_after > delay:  # false for NaN
            delay = min(retry_after, RETRY_AFTER_SECONDS)
        return replace(state, tries=state.tries + 1, until=now + delay)
    scope = _PUSH_PREFIX if pushing and status not in _NO_ACCESS else ""
    return replace(
        state,
        tries=0,
        until=0.0,
        paused=f"{scope}{status}",
        paused_until=now + PAUSE_SECONDS,
        credentials=credentials,
    )


def resumed(state: SyncState) -> SyncState:
    """Return the state without pause and back-off.

    It is called if a person pushes or deletes a file below ``team/``.
    """
    return replace(state, tries=0, until=0.0, paused="", paused_until=0.0, credentials="")


def may_pull(state: SyncState, now: float, credentials: str) -> bool:
    """Return whether an automatic pull is allowed now; ``credentials`` is "" without a token."""
    if state.paused.startswith(_PUSH_PREFIX):  # it does not concern pulls
        state = replace(state, paused="")
    return may_push(state, now, credentials)


def may_push(state: SyncState, now: float, credentials: str) -> bool:
    """Return whether an automatic push is allowed now; ``credentials`` is "" without a token."""
    if not credentials or state.waits or _is_ahead(state.until, now, RETRY_AFTER_SECONDS):
        return False
    # A pause ends if the token or the settings change.
    is_same = state.credentials == credentials
    is_paused = state.paused and is_same and _is_ahead(state.paused_until, now, PAUSE_SECONDS)
    return not is_paused


def jittered_interval(random: Callable[[], float]) -> float:
    """Return the seconds until the next pull during a session: 5 min, 20 % more or less."""
    return INTERVAL_SECONDS * (1 - _INTERVAL_JITTER + 2 * _INTERVAL_JITTER * random())


def _is_ahead(at: float, now: float, most: float) -> bool:
    """Return whether a time is in the future, but at most ``most`` seconds ahead."""
    return now < at <= now + most
