"""A state machine over the real queue of messages against its model, for Hypothesis.

A real daemon in this process, its socket, its state file, and a clock that the machine moves. Three
agents of a project, one of another, and a shell that is not registered send; leases lapse by time,
connections and restarts. After each step the newest messages are what the model says; at the end
everything is read, and each sender has heard of each end.
"""

from contextlib import ExitStack
from math import inf
from typing import Any

from anyio.from_thread import start_blocking_portal
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from memd.base.errors import MemdError
from tests.messages.model import ENDS, Copy, Model
from tests.messages.office import Office
from tests.support.daemon import throw_away_home

HERE = ("anna", "bert", "cleo")
AGENTS = (*HERE, "dora")
RECEIVERS = st.sampled_from(["bert", "bert", "anna", "cleo", "dora"])
SENDERS = st.sampled_from(["anna", "anna", "bert", "cleo", "dora", "shell"])
SIZES = st.sampled_from([10, 10, 10, 9_000, 32 * 1024])
TTLS = st.sampled_from([None, None, 60.5, 3600.5])
NUMBERS = st.integers(0, 30)
SECONDS = st.sampled_from([10.25, 31.25, 61.25, 3700.25, 90_000.25])
_ROUNDS = 400
_CHECKED = 4
_COMPLETE_BYTES = 30_000


class MessageMachine(RuleBasedStateMachine):
    """The queue and its model; ``steps`` counts over all runs."""

    steps = 0

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        home = self._stack.enter_context(throw_away_home())
        portal = self._stack.enter_context(start_blocking_portal())
        self.office = Office(home, portal)
        self._stack.callback(self.office.stop)
        self.office.start()
        for name in AGENTS:
            self.office.register(name, "elsewhere" if name == "dora" else "project")
        self.model = Model()
        self.requests: list[tuple[str, str, dict[str, Any], Any]] = []
        self.notices: dict[str, tuple[str, int]] = {}  # read or not: receiver and deliveries
        self.told: dict[tuple[str, str], set[str]] = {}
        self.restarted = False
        self.counter = 0
        self.played = 0
        self.got = 0  # messages that were received

    def teardown(self) -> None:
        """Read all that is there; then each sender has heard of each end, once for each copy."""
        try:
            self._read_all()
            expected = list(self.model.to_tell())
            for each in expected:
                assert each in self.told, f"{each} was not told"
            for each, ids in self.told.items():
                assert len(ids) <= expected.count(each), f"{each} was told {len(ids)} times"
        finally:
            self._stack.close()

    @rule(sender=SENDERS, to=RECEIVERS, size=SIZES, ttl=TTLS, named=st.booleans())
    def send(self, sender: str, to: str, size: int, ttl: float | None, named: bool) -> None:  # noqa: FBT001 - Hypothesis calls it by name
        """Send a message to one agent."""
        if sender in self.model.ended or sender == to:
            return
        if not self.model.may_send(sender):
            self.wait(61.25)
        body = self._body(size)
        more: dict[str, Any] = {} if ttl is None else {"ttl": ttl}
        more |= {"request_id": f"r{self.counter}"} if named else {}
        address = to if to in HERE and sender != "dora" else self._address(sender, to)
        held = sender == "shell" or (sender == "dora") != (to == "dora")
        may_hold = held or self.model.back_and_forth(sender, to) + 1 >= 8
        full = self.model.full(to, len(body), held=held)
        if may_hold and not held:
            full = None if full is False else full
        answer, refusal = self._answered(sender, address, body, **more)
        self.model.sends.append((sender, self.model.now))
        if refusal:
            if to in self.model.ended:
                assert refusal in {"agent_ended", "not_found"}
            else:
                assert (refusal, full) in {("mailbox_full", True), ("mailbox_full", None)}
            return
        assert to not in self.model.ended
        assert full is not True or may_hold
        assert answer["state"] == ("held" if held else "queued") or may_hold, answer
        self._sent(sender, [to], body, answer, ttl)
        if named:
            self.requests.append((sender, address, {"body": body, **more}, answer))

    @rule(sender=st.sampled_from(["anna", "bert"]))
    def broadcast(self, sender: str) -> None:
        """Send a message to all of the project."""
        body = self._body(10)
        receivers = [n for n in HERE if n != sender and n not in self.model.ended]
        may_send = self.model.may_send(sender)
        answer, refusal = self._answered(sender, "*", body)
        if refusal == "too_many_messages":
            assert not may_send
            return
        self.model.sends.append((sender, self.model.now))
        if refusal:
            assert refusal == "mailbox_full"
            assert any(self.model.full(r, 10, held=False) is not False for r in receivers)
            return
        assert may_send or self.restarted
        assert {row["address"] for row in answer["recipients"]} == set(receivers)
        self._sent(sender, receivers, body, answer, None)

    @rule(number=NUMBERS)
    @precondition(lambda self: self.requests)
    def repeat(self, number: int) -> None:
        """Send with a request id that was used before: the same answer and no second message."""
        sender, address, params, answer = self.requests[number % len(self.requests)]
        if sender in self.model.ended:
            return
        again = self.office.send(sender, address, **params)
        assert again["id"] == answer["id"]

    @rule(name=st.sampled_from(AGENTS), limit=st.sampled_from([1, 3, 20]))
    def receive(self, name: str, limit: int) -> None:
        """Lease what an agent has next, and hold it to the model."""
        if name in self.model.ended:
            return
        self._adopt(self.model.of(name))
        ready = self.model.deliverable(name)
        rows = self.office.receive(name, limit=limit)
        assert len(rows) <= limit
        self.got += len(rows)
        size = sum(len(row["body"].encode()) for row in rows)
        assert size <= 64 * 1024 or len(rows) == 1
        taken: dict[str, list[Copy]] = {}
        for row in rows:
            if row["kind"] == "notice":
                self._notice(name, row)
                continue
            each = self._copy(name, row["id"])
            assert each in ready.get(each.sender, []), f"{each} is not due"
            assert (row["body"], row["delivery"]) == (each.body, each.deliveries + 1)
            taken.setdefault(each.sender, []).append(each)
        for sender, mine in taken.items():
            pair = ready[sender]
            ordered = not any(each.loose for each in pair)
            assert not ordered or mine == pair[: len(mine)], "out of order"
        if len(rows) < limit and size < _COMPLETE_BYTES:
            got = sum(map(len, taken.values()))
            assert got == sum(map(len, ready.values())), f"{got} of {ready}"
        for mine in taken.values():
            for each in mine:
                self.model.lease(each)

    @rule(name=st.sampled_from(AGENTS), count=st.integers(1, 20))
    def acknowledge(self, name: str, count: int) -> None:
        """Acknowledge what an agent once got, leased or not, ended or not."""
        if name in self.model.ended:
            return
        every = [each for each in self.model.copies if each.receiver == name and each.deliveries]
        chosen = every[-count:]
        self._adopt(chosen)
        good = [each for each in chosen if each.waits]
        assert self.office.ack(name, *[each.message for each in chosen]) == len(good)
        for each in good:
            each.state, each.unsure = "read", ()

    @rule(seconds=SECONDS)
    def wait(self, seconds: float) -> None:
        """Let time go by."""
        self.office.advance(seconds)
        self.model.advance(seconds)

    @rule(days=st.sampled_from([-1, 0.01]))
    def slip(self, days: float) -> None:
        """Set the wall clock and set it right: no lease and no message ends by it."""
        if days < 0:
            self.office.jump(days * 86_400.0)
            self.office.jump(-days * 86_400.0)

    @rule(name=st.sampled_from(AGENTS))
    def hang_up(self, name: str) -> None:
        """Close an agent's connection: what it had leased is queued again."""
        self.office.hang_up(name)
        for each in self.model.of(name):
            if each.state == "leased":
                self._adopt([each])
                self.model.unlease(each)
                self._expect(each)

    @rule(crash=st.booleans())
    def restart(self, crash: bool) -> None:  # noqa: FBT001 - Hypothesis calls it by name
        """End the daemon, in order or not, and start it again."""
        self.office.restart(crash=crash)
        self.restarted = True
        for each in self.model.copies:
            if each.unsure and each.state == "leased":
                each.state, each.unsure = "expired", ()
            self.model.unlease(each)

    @rule(number=NUMBERS, accept=st.booleans())
    def decide(self, number: int, accept: bool) -> None:  # noqa: FBT001 - Hypothesis calls it by name
        """Accept or refuse a held message as the person does."""
        held = [each for each in self.model.copies if each.state == "held"]
        if held:
            each = held[number % len(held)]
            choice = "accept" if accept else "refuse"
            state = self.office.call("status", "review.decide", id=each.message, choice=choice)
            if accept:
                self.model.accepted(each)
            else:
                each.state = "refused"
            assert state["state"] == each.state

    @rule(sender=st.sampled_from(["anna", "cleo"]), to=RECEIVERS, size=st.sampled_from([5, 32_768]))
    @precondition(lambda self: self.played % 7 == 6)
    def fill(self, sender: str, to: str, size: int) -> None:
        """Send until the mailbox is full."""
        full: bool | None = False
        while full is False and not {sender, to} & self.model.ended and sender != to:
            before = len(self.model.copies)
            self.send(sender, to, size, None, named=False)
            if len(self.model.copies) == before:
                return
            full = self.model.full(to, size, held=to == "dora")

    @rule()
    @precondition(lambda self: self.counter > 15)
    def end(self) -> None:
        """End Cleo: what she has not read ends, and she neither sends nor receives again."""
        if "cleo" in self.model.ended:
            return
        mine = self.model.of("cleo")
        self._adopt(mine)
        mine = [each for each in mine if each.waits]
        answer = self.office.call("cleo", "agent.end", key=self.office.keys["cleo"])
        assert answer["returned"] >= sum(each.state != "held" for each in mine)
        self.model.ended.add("cleo")
        for each in mine:
            each.state, each.unsure = "refused", ENDS

    @invariant()
    def as_the_model(self) -> None:
        """See that the newest messages and an older one are in the state that they must be in."""
        type(self).steps += 1
        self.played += 1
        copies = self.model.copies
        for each in [*copies[-_CHECKED:], *copies[self.played % max(1, len(copies)) :][:1]]:
            self._expect(each)

    def _answered(self, sender: str, to: str, body: str, **more: Any) -> tuple[Any, str]:
        try:
            return self.office.send(sender, to, body, **more), ""
        except MemdError as error:
            return None, error.kind

    def _expect(self, each: Copy) -> None:
        wanted = each.unsure or (each.state,)
        seen = ""
        for _ in range(_ROUNDS):  # a timer of the daemon may be on its way
            seen = self._state(each)
            if seen in wanted:
                break
        assert seen in wanted, f"{each} is {seen}"
        if seen != "leased":
            each.state, each.unsure = seen, ()

    def _adopt(self, copies: list[Copy]) -> None:
        for each in copies:
            if each.unsure:
                each.state, each.unsure = self._state(each), ()

    def _state(self, each: Copy) -> str:
        states = self.office.states(each.message)
        return next(iter(states.values())) if len(states) == 1 else states[each.receiver]

    def _sent(
        self, sender: str, receivers: list[str], body: str, answer: Any, ttl: float | None
    ) -> None:
        now = self.model.now
        states = {row["address"]: row["state"] for row in answer["recipients"]}
        for name in receivers:
            state = states.get(name, answer["state"])
            until = now + (inf if ttl is None else ttl)
            copy = Copy(answer["id"], self.counter, sender, name, body, now, until, state)
            copy.loose = state == "held"
            copy.answered = not copy.waits
            self.model.copies.append(copy)

    def _copy(self, receiver: str, message: str) -> Copy:
        mine = [each for each in self.model.by_message(message) if each.receiver == receiver]
        assert len(mine) == 1, f"{receiver} has {message}, which was not sent to it"
        return mine[0]

    def _notice(self, name: str, row: Any) -> None:
        message = row["reply_to"]
        assert any(each.sender == name for each in self.model.by_message(message))
        _, before = self.notices.get(row["id"], (name, 0))
        assert row["delivery"] == before + 1
        self.notices[row["id"]] = (name, before + 1)
        self.told.setdefault((name, message), set()).add(row["id"])
        assert self.office.ack(name, row["id"]) == 1

    def _read_all(self) -> None:
        alive = [name for name in AGENTS if name not in self.model.ended]
        self.got = 1
        while self.got or any(map(self._ready, alive)):
            self.wait(31.25)
            self.got = 0
            for each in self.model.copies:
                self._expect(each)
            for name in alive:
                self.receive(name, 20)
                self.acknowledge(name, 20)

    def _ready(self, name: str) -> bool:
        return any(self.model.deliverable(name).values())

    def _address(self, sender: str, to: str) -> str:
        project = "elsewhere" if sender == "dora" else "project"
        cwd = self.office.home.project(project)
        rows = self.office.call("status", "agent.list", cwd=cwd, all=True)["agents"]
        return next((str(row["address"]) for row in rows if row["agent"] == to), to)

    def _body(self, size: int) -> str:
        self.counter += 1
        return f"{self.counter:05} ".ljust(size, ".")
