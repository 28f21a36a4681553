"""Two clients, two keys and a server: every order of their steps, breadth first.

A state is a row of numbers: each of its parts is stored once, and what a step does to parts is
worked out once. The clients are interchangeable, so the lesser one stands first.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from memd.core.team import PushBatch
from memd.team.values import RemoteEntry
from tests.team.model import (
    COMMON,
    KEYS,
    BrokenError,
    Client,
    Fault,
    Server,
    is_in,
    never,
)
from tests.team.rules import Rules


class Budget(NamedTuple):
    """How often each may happen that nobody has to wait for."""

    edits: int = 2
    deletes: int = 1
    removes: int = 1
    losses: int = 1  # requests and answers lost, doubled or late, and crashes
    restores: int = 0
    expiries: int = 0
    copies: int = 0  # of one text that anybody may write


class State(NamedTuple):
    """The parts of a state by number. ``late`` are batches on their way that nobody waits for.

    ``lost`` are texts of members that a restored server has no more.
    """

    server: int
    first: int
    second: int
    late: int
    lost: int
    budget: int


_DISCARDS = (
    "deletes",
    "drops",
    "takes theirs",
)  # a person's own: what a backup lost may be lost by them
# What goes on without a person (but for the accept) and without an accident, the next first.
_BY_ITSELF = (
    "carries out the answer",
    "is answered",
    "a late batch arrives",
    "sends the batch again",
    "asks for a page",
    "accepts the server",
    "sends a batch",
)
_SAMPLED, _STEPS_TO_REST = 97, 80
_EXPIRY = "tombstones and ids expire"
Label = tuple[str, int]  # what was done, by which client (-1: none)
Step = tuple[Label, State]
Came = tuple[State, Label, bool] | None  # from where, how, and whether the clients changed places


class World:
    """The steps from any state, and what must hold in it."""

    def __init__(self, budget: Budget, fault: Fault | None = None) -> None:
        self.rules = Rules(fault)
        self.parts: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self._results: dict[tuple[Any, ...], Any] = {}
        self._bits = sum(budget[:3])
        server, clients = _beginning()
        self.start = self._state(server, clients, (), frozenset(), budget)

    def _number(self, part: Any) -> int:
        number = self._numbers.setdefault((type(part), part), len(self.parts))
        if number == len(self.parts):
            self.parts.append(part)
        return number

    def _state(
        self,
        server: Server,
        clients: tuple[Client, Client],
        late: tuple[PushBatch, ...],
        lost: frozenset[tuple[int, str]],
        budget: Budget,
    ) -> State:
        return State(*map(self._number, (server, *clients, late, lost, budget)))

    def _once(self, step: Callable[..., Any], *parts: Any) -> Any:
        """Return the numbers of what a step makes of parts, worked out once."""
        key = (step.__name__, *parts)
        if key not in self._results:
            self._results[key] = step(*parts)
        return self._results[key]

    # Steps.

    def steps(self, state: State) -> Iterator[Step]:
        """Yield each step that is possible, and the state after it. Raises BrokenError."""
        for who in (0, 1):
            client = state[1 + who]
            other = state[2 - who]
            for name, cost, fields in self._once(self._alone, client, state.budget):
                if self.parts[state.lost] and name.startswith(_DISCARDS):
                    continue
                yield self._after(state, (name, who), client=(who, fields, other), cost=cost)
            for name, cost, server, fields, late in self._once(
                self._together, state.server, client, state.late, state.budget
            ):
                moved = state._replace(server=server, late=late)
                yield self._after(moved, (name, who), client=(who, fields, other), cost=cost)
        for name, cost, server, late in self._once(
            self._served, state.server, state.late, state.budget
        ):
            if name == _EXPIRY and any(self.parts[part].busy for part in state[1:3]):
                continue  # no pull takes 400 days
            yield (name, -1), state._replace(server=server, late=late, budget=cost)
        yield from self._restored(state)

    def _after(
        self, state: State, label: Label, *, client: tuple[int, int, int], cost: int
    ) -> Step:
        who, mine, other = client
        first, second = (other, mine) if who else (mine, other)
        return label, state._replace(first=first, second=second, budget=cost)

    def _spent(self, budget: Budget, name: str) -> int | None:
        left = getattr(budget, name)
        return self._number(budget._replace(**{name: left - 1})) if left else None

    def _bit(self, budget: Budget) -> int:
        return 2 << (self._bits - sum(budget[:3]))

    def _alone(self, client_part: int, budget_part: int) -> list[tuple[str, int, int]]:
        """Return what a client does without the server: name, budget and client after it."""
        client, budget = self.parts[client_part], self.parts[budget_part]
        rules, bit = self.rules, self._bit(budget)
        made: list[tuple[str, int | None, Client | None]] = []
        for at, key in enumerate(KEYS):
            made.append((f"edits {key}", self._spent(budget, "edits"), rules.edit(client, at, bit)))
            copied = rules.edit(client, at, COMMON)
            made.append((f"copies the text into {key}", self._spent(budget, "copies"), copied))
            if client.files[at]:
                cost = self._spent(budget, "deletes")
                made.append((f"deletes {key}", cost, rules.delete(client, at)))
            if client.held[at] and client.files[at]:
                made.append((f"keeps {key}", budget_part, rules.keep(client, at)))
                made.append((f"drops {key}", budget_part, rules.drop(client, at)))
            if client.conflicts[at]:
                theirs = rules.resolve(client, at, ours=False)
                ours = rules.resolve(client, at, ours=True)
                made.append((f"takes theirs of {key}", budget_part, theirs))
                made.append((f"takes ours of {key}", budget_part, ours))
        if client.inbox:
            made.append(("carries out the answer", budget_part, rules.deliver(client)))
        elif client.batch and not client.request:
            made.append(("sends the batch again", budget_part, rules.resend(client)))
        elif not client.batch and client.cursor is None and not client.waits:
            made.append(("sends a batch", budget_part, rules.begin(client)))
        if client.request or client.inbox or client.cursor:
            loss = self._spent(budget, "losses")
            made.append(("loses the exchange", loss, rules.crash(client)))
        return [
            (name, cost, self._number(after))
            for name, cost, after in made
            if cost is not None and after is not None and after != client
        ]

    def _together(
        self, server_part: int, client_part: int, late_part: int, budget_part: int
    ) -> list[tuple[str, int, int, int, int]]:
        """Return what client and server do: name, budget, server, client and late batches after."""
        server, client = self.parts[server_part], self.parts[client_part]
        late, budget = self.parts[late_part], self.parts[budget_part]
        loss, bit = self._spent(budget, "losses"), self._bit(budget)
        made: list[tuple[str, int | None, Server | None, Client, tuple[PushBatch, ...]]] = []
        if client.request and not client.inbox:
            after, answer = self.rules.put(server, client.batch)
            answered = client._replace(request=False, inbox=answer)
            more = tuple(sorted({*late, client.batch}, key=lambda batch: batch.id))
            made.append(("is answered", budget_part, after, answered, late))
            made.append(("is answered, a copy stays", loss, after, answered, more))
            crashed = self.rules.crash(client)
            made.append(("is not heard yet, and gives up", loss, server, crashed, more))
            if self.rules.fault is Fault.SEQUENCE and not server.open:
                numbered = self.rules.take_number(server, client.batch)
                made.append(("gets a number", budget_part, numbered, client, late))
        waits = client.waits or (client.batch and self.rules.fault is not Fault.EARLY_PULL)
        if not (waits or client.inbox or client.request) and self._has_news(client, server):
            fetched = self.rules.fetch(client, server)
            made.append(("asks for a page", budget_part, server, fetched, late))
        if client.waits:
            accepted = client._replace(waits=False, accepted=server.epoch)
            made.append(("accepts the server", budget_part, server, accepted, late))
        for at, key in enumerate(KEYS):
            cost = self._spent(budget, "removes")
            removed = self.rules.remove(server, client, at, bit)
            made.append((f"removes {key} for all", cost, removed, client, late))
            if self.rules.fault is Fault.ABSENCE:
                missed = self.rules.miss(server, client, at, bit)
                made.append((f"misses {key}", cost, missed, client, late))
        return [
            (name, cost, self._number(moved), self._number(after), self._number(rest))
            for name, cost, moved, after, rest in made
            if cost is not None and moved is not None
        ]

    @staticmethod
    def _has_news(client: Client, server: Server) -> bool:
        """Return whether a pull could do anything."""
        here = client.everything or client.cursor is not None
        missing = any(
            base and base.hash and not file
            for base, file in zip(client.bases, client.files, strict=True)
        )
        return here or missing or client.mark != (server.epoch, server.revision)

    def _served(
        self, server_part: int, late_part: int, budget_part: int
    ) -> list[tuple[str, int, int, int]]:
        """Return what the server does by itself: name, budget, server and late batches after."""
        server, late, budget = (self.parts[part] for part in (server_part, late_part, budget_part))
        made: list[tuple[str, int | None, Server, tuple[PushBatch, ...]]] = []
        for batch in late:
            rest = tuple(other for other in late if other != batch)
            made.append(
                ("a late batch arrives", budget_part, self.rules.put(server, batch)[0], rest)
            )
        if budget.restores and server.backup is None:
            made.append(("a backup is made", budget_part, server._replace(backup=server), late))
        expired = self._spent(budget, "expiries")
        made.append((_EXPIRY, expired, self.rules.expire(server), late))
        if server.open:
            made.append(
                ("a number is committed", budget_part, self.rules.commit_open(server), late)
            )
        return [
            (name, cost, self._number(moved), self._number(rest))
            for name, cost, moved, rest in made
            if cost is not None and (moved != server or rest != late)
        ]

    def _restored(self, state: State) -> Iterator[Step]:
        """Yield the restore of the backup. What a member has and the server lost is noted."""
        server, budget = self.parts[state.server], self.parts[state.budget]
        cost = self._spent(budget, "restores")
        if cost is None or server.backup is None or server.backup[:5] == server[:5]:
            return
        after = self.rules.restore(server)
        clients = [self.parts[state.first], self.parts[state.second]]
        lost = frozenset(
            (at, text)
            for at in range(len(KEYS))
            for text in _unremoved(server, at) - {entry.hash for entry in after.versions[at]}
            if any(_lists(client, at, text) for client in clients)
        )
        moved = state._replace(server=self._number(after), lost=self._number(lost), budget=cost)
        yield ("the backup is restored", -1), moved

    # What must hold.

    def canonical(self, state: State) -> State:
        """Return the state with the lesser client first."""
        if state.first <= state.second:
            return state
        return state._replace(first=state.second, second=state.first)

    def check(self, state: State) -> bool:
        """Return whether all are at rest. Raises BrokenError where something does not hold."""
        rest = [
            self._once(self._pair, client, state.server) for client in (state.first, state.second)
        ]
        if self.parts[state.lost]:
            self._once(self._lost, state.server, state.first, state.second, state.lost)
        return all(rest) and not self.parts[state.late]

    def _pair(self, client: int, server: int) -> bool:
        return self.rules.check_pair(self.parts[client], self.parts[server])

    def _lost(self, server: int, first: int, second: int, lost: int) -> None:
        versions = self.parts[server].versions
        clients = (self.parts[first], self.parts[second])
        for at, text in self.parts[lost]:
            # What a person removed since, whichever text it had, is removed.
            there = any(not entry.hash or is_in(text, entry.hash) for entry in versions[at])
            here = any(_has(client, at, text) for client in clients)
            never(not (there or here), "a restored server lost a text for all", KEYS[at], text)


def _beginning() -> tuple[Server, tuple[Client, Client]]:
    """Return a server and two clients that all have one text of the first key."""
    entry = RemoteEntry(KEYS[0], "1", 1)
    server = Server(revision=1, heads=(entry, None), versions=((entry,), ()))
    client = Client(files=("1", ""), bases=(entry.base, None), mark=(0, 1))
    return server, (client, client)


def _unremoved(server: Server, at: int) -> set[str]:
    """Return the texts of a key that were written since it was last removed."""
    versions = server.versions[at]
    removed = max((entry.revision for entry in versions if not entry.hash), default=0)
    return {entry.hash for entry in versions if entry.revision > removed}


def _lists(client: Client, at: int, text: str) -> bool:
    """Return whether a member sees a text, or one on top of it, as a file or in a conflict."""
    return is_in(text, client.files[at]) or is_in(text, client.conflicts[at])


def _has(client: Client, at: int, text: str) -> bool:
    """Return whether a client has a text, or one on top of it, in any place."""
    out = [entry.hash for entry in (client.batch.entries if client.batch else ())]
    base = client.bases[at]
    texts = (base.hash if base else "", *out)
    return _lists(client, at, text) or any(is_in(text, other) for other in texts)


class Seen(NamedTuple):
    """What an exploration saw: states, those at rest, and the shortest way to what broke."""

    states: int
    at_rest: int
    trace: tuple[str, ...] = ()


def explore(world: World, at_most: int) -> Seen:
    """Take every step from every state, breadth first, until so many states are seen.

    From some of them all that is under way is brought to its end, too.
    """
    start = world.canonical(world.start)
    came: dict[State, Came] = {start: None}
    at_rest = 0
    queue = deque([start])
    while queue and len(came) < at_most:
        state = seen = queue.popleft()
        try:
            for label, after in world.steps(state):
                seen = world.canonical(after)
                if seen not in came:
                    came[seen] = (state, label, seen != after)
                    at_rest += world.check(seen)
                    queue.append(seen)
                    if len(came) % _SAMPLED == 0:
                        finish(world, seen)
                seen = state
        except BrokenError as error:
            return Seen(len(came), at_rest, (*_trace(came, seen), str(error)))
    return Seen(len(came), at_rest)


def finish(world: World, state: State) -> None:
    """Do what clients and server do by themselves until there is no more. Raises BrokenError."""
    for _ in range(_STEPS_TO_REST):
        if world.check(state):
            return
        steps = {label[0]: after for label, after in world.steps(state) if label[0] in _BY_ITSELF}
        never(not steps, "all stand still", [world.parts[part] for part in state])
        state = steps[min(steps, key=_BY_ITSELF.index)]
    never(wrong=True, what="there is no rest")


def _trace(came: dict[State, Came], state: State) -> Iterator[str]:
    """Yield what was done from the beginning to a state, the clients under their first names."""
    path = []
    while step := came[state]:
        state, label, swapped = step
        path.append((label, swapped))
    names = ["anna", "ben"]
    for (what, who), swapped in reversed(path):
        yield f"{names[who]} {what}" if who >= 0 else what
        if swapped:
            names.reverse()
