"""Whose turn it is."""

from hypothesis import given, settings
from hypothesis import strategies as st

from memd.jobs.lanes import Lanes, Ticket


def test_nothing_starts_in_a_pause() -> None:
    """While it is paused jobs are taken and none starts; a running one may go back to its place."""
    lanes = Lanes(2)
    assert lanes.is_idle()
    for job in ("j1", "j2"):
        lanes.put(Ticket(job, "extract", job, "s"))
    lanes.start("j1")
    lanes.paused = True
    assert lanes.next_ticket() is None
    assert lanes.running
    assert not lanes.is_idle()
    lanes.put_back("j1", hold=False)
    assert not lanes.running
    assert lanes.is_idle()
    lanes.paused = False
    assert not lanes.is_idle()
    first = lanes.next_ticket()
    assert first is not None
    assert first.job == "j1"


_ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["submit", "submit", "start", "end", "hold", "release"]),
        st.integers(0, 4),
        st.integers(0, 2),
    ),
    max_size=60,
)


class _Model:
    """The lanes beside a plain account of what they must hold."""

    def __init__(self, at_once: int) -> None:
        self.lanes = Lanes(at_once)
        self.at_once = at_once
        self.newest: dict[str, int] = {}  # job -> the number of the request that it carries
        self.owed: dict[tuple[str, str], int] = {}  # (lane, session) -> its newest request
        self.done: dict[tuple[str, str], int] = {}
        self.tickets: dict[str, Ticket] = {}
        self.held: list[str] = []
        self.running: list[str] = []

    def submit(self, number: int, key: tuple[str, str]) -> None:
        job = self.lanes.waiting_job("extract", *key)
        if job is None:
            job = f"j{number}"
            self.tickets[job] = Ticket(job, "extract", *key)
            self.lanes.put(self.tickets[job])
        assert (self.tickets[job].lane, self.tickets[job].session) == key
        self.newest[job] = number
        self.owed[key] = number

    def start(self) -> None:
        ticket = self.lanes.next_ticket()
        busy = {self.tickets[job].lane for job in self.running}
        away = {*self.running, *self.held}
        free = [job for job in self.tickets if job not in away]
        free = [job for job in free if self.tickets[job].lane not in busy]
        if len(self.running) >= self.at_once or not free:
            assert ticket is None
            return
        assert ticket is not None
        assert ticket.job == free[0]  # the oldest that may
        self.lanes.start(ticket.job)
        self.running.append(ticket.job)

    def end(self) -> None:
        if self.running:
            job = self.running.pop(0)
            self.lanes.remove(job)
            ticket = self.tickets.pop(job)
            self.done[ticket.lane, ticket.session] = self.newest.pop(job)

    def hold(self) -> None:
        if not self.running:
            return
        job = self.running.pop()
        if self.lanes.has_newer_request(job):
            self.lanes.remove(job)
            del self.tickets[job], self.newest[job]
        else:
            self.held.append(job)
            self.lanes.put_back(job, hold=True)

    def release(self) -> None:
        if self.held:
            self.lanes.release(self.held.pop())


@settings(max_examples=150, deadline=None)
@given(_ACTIONS, st.integers(1, 3))
def test_any_interleaving_keeps_the_rules(
    actions: list[tuple[str, int, int]], at_once: int
) -> None:
    """No overlap, no more than the bound, oldest first, and every session's newest is done."""
    model = _Model(at_once)
    plain = {"start": model.start, "end": model.end, "hold": model.hold, "release": model.release}
    for number, (action, session, lane) in enumerate(actions):
        if action == "submit":
            model.submit(number, (f"lane{lane}", f"s{session}"))
        else:
            plain[action]()
    while model.tickets:
        model.release()
        model.start()
        model.end()
    assert model.done == model.owed
    assert len(model.lanes) == 0
