"""When the next request may go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memd.core.team import SyncState
from memd.team import pausing

NOW, HOUR, DAY = 1_000_000.0, 3_600.0, 86_400.0
TOKEN = "digest of token and settings"  # noqa: S105 - no token


def answered(
    state: SyncState,
    status: int | None,
    *,
    retry_after: float | None = None,
    now: float = NOW,
    random: float = 0.999,
    pushing: bool = True,
) -> SyncState:
    """Return the state after an answer to a request of this token."""
    return pausing.state_after(
        state,
        status,
        retry_after,
        now=now,
        random=lambda: random,
        credentials=TOKEN,
        pushing=pushing,
    )


@pytest.mark.parametrize("status", [None, 409, 429, 500, 503, 599])
def test_what_passes_is_tried_again_later_each_time(status: int | None) -> None:
    """The wait doubles from two seconds to a quarter of an hour, with full jitter."""
    state, waits = SyncState(), []
    for _ in range(12):
        state = answered(state, status)
        waits.append(state.until - NOW)
        assert not pausing.may_push(state, state.until - 0.1, TOKEN)
        assert pausing.may_pull(state, state.until, TOKEN)
    assert waits[:3] == pytest.approx([2, 4, 8], rel=0.01)
    assert waits[-1] == pytest.approx(900, rel=0.01)
    assert answered(state, status, random=0.0).until == NOW
    assert answered(state, 200) == replace(SyncState(), limits=state.limits)


@pytest.mark.parametrize(
    ("retry_after", "wait"),
    [(30.0, 30.0), (1e9, HOUR), (float("inf"), HOUR), (-5.0, 2), (float("nan"), 2), (0.5, 2)],
)
def test_a_server_may_ask_for_an_hour_at_most(retry_after: float, wait: float) -> None:
    """Retry-After lengthens the wait up to an hour, and never shortens it."""
    state = answered(SyncState(), 429, retry_after=retry_after)
    assert state.until - NOW == pytest.approx(wait, rel=0.01)


@pytest.mark.parametrize(
    ("status", "ways"),
    [(401, (True, False)), (404, (True, False)), (403, (False,))],
)
def test_without_access_nothing_goes_for_a_day(status: int, ways: tuple[bool, ...]) -> None:
    """No pull and no push goes for a day; other credentials, or a person, end that."""
    for pushing in ways:
        state = answered(SyncState(), status, pushing=pushing)
        for may in (pausing.may_pull, pausing.may_push):
            assert not may(state, NOW + DAY - 1, TOKEN)
            assert may(state, NOW + DAY, TOKEN)
            assert may(state, NOW, "other credentials")
            assert may(pausing.resumed(state), NOW, TOKEN)
            assert not may(pausing.resumed(state), NOW, "")


@pytest.mark.parametrize("status", [301, 302, 400, 403, 405, 415, 422, 428])
def test_a_refused_push_leaves_pulls(status: int) -> None:
    """A push that can never pass stops pushes for a day; a pull that succeeds ends nothing."""
    state = answered(SyncState(), status)
    assert pausing.may_pull(state, NOW, TOKEN)
    for _ in range(3):  # what passes is another thing
        state = answered(answered(state, None, pushing=False), 304, pushing=False)
    assert not pausing.may_push(state, NOW + DAY - 1, TOKEN)
    assert pausing.may_push(state, NOW + DAY, TOKEN)
    assert not pausing.may_pull(answered(SyncState(), status, pushing=False), NOW, TOKEN)


@pytest.mark.parametrize("status", [410, 412, 413])
def test_what_a_sync_answers_itself_is_no_failure(status: int) -> None:
    """Too old a mark, other bases and a batch that is too large pause nothing."""
    state = SyncState(tries=2, until=5.0)
    assert answered(state, status) is state


def test_a_clock_that_was_years_ahead_stops_nothing() -> None:
    """A time that lies further ahead than any rule sets it is not waited for."""
    state = answered(answered(SyncState(), 401, now=NOW + 9e8), None, now=NOW + 9e8)
    assert pausing.may_push(state, NOW, TOKEN)


def test_who_waits_for_a_person_sends_nothing() -> None:
    """A server that may be wrong is left alone until somebody accepts."""
    assert not pausing.may_pull(SyncState(waits="another epoch"), NOW, TOKEN)


@given(st.floats(0, 1, exclude_max=True))
def test_pulls_are_five_minutes_apart(random: float) -> None:
    """The interval is five minutes and up to a fifth more or less."""
    assert 240 <= pausing.jittered_interval(lambda: random) <= 360


@given(
    st.lists(st.tuples(st.floats(1, 6 * HOUR), st.booleans()), max_size=60),
    st.sampled_from([401, 403, 404]),
)
def test_without_credentials_eight_requests_at_most(
    events: list[tuple[float, bool]], status: int
) -> None:
    """Two and a half days of edits and pulls make eight requests at most."""
    state, now, requests = SyncState(), NOW, 0
    for gap, pull in events:
        now += gap
        may = pausing.may_pull if pull else pausing.may_push
        if now < NOW + 2.5 * DAY and may(state, now, TOKEN):
            requests += 1
            state = answered(state, status, now=now, pushing=not pull)
    assert requests <= 8
