"""Whose frame goes next: the processes share, and so do the connections of one.

Rules of this file
- What a frame asks for begins in a turn. A limited number of turns runs at once, fewer of one
  process; a connection that waits for its turn is not read from meanwhile.
- The next turn goes to the process that had the fewest of late; of its connections to the one with
  the least to do, so that a flood waits for itself and not others for it; of those with as little,
  to the one whose last turn is longest ago. Every fourth goes to the one that has waited longest,
  so that nobody waits for ever.
- While work of a process goes on that had fewer turns, for ``_RESTRAINED_SECONDS`` at most, others
  may begin only ``_MORE_PER_LOOK`` turns in each ``_LOOK_SECONDS``: the event loop, spinning
  through the frames of a flood, would keep the interpreter from threads that work. A list of 1,000
  memories took 500 ms beside one connection that sent notifications without end, 2 ms since.
- A turn ends with its work, or after ``limits.TURN_SECONDS``: work that only waits (for a job, a
  model, a lock) keeps nobody from working. One turn at a time is lost like that: where work is
  slow because there is much of it, more at once would make all of it slower.
"""

from math import exp2, inf
from weakref import WeakValueDictionary

import anyio

from memd.core import limits
from memd.core.clock import Clock

_LONGEST_WAIT_EVERY = 4
_LOOK_SECONDS = limits.TURN_SECONDS / 5
_MORE_PER_LOOK = 1
_RESTRAINED_SECONDS = 1.0


class Process:
    """Whoever holds connections: how many turns it holds and has had of late."""

    def __init__(self) -> None:
        self.held = 0
        self._turns = 0.0
        self._since = -inf

    def recent(self, now: float) -> float:
        """Return the turns it had; each counts half as much a second later."""
        return self._turns * exp2(self._since - now)

    def count_turn(self, now: float) -> None:
        """Count one more turn of the process; who had many of late waits for others."""
        self._turns, self._since = self.recent(now) + 1, now


class Party:
    """Whoever takes turns: one connection, which had the one of this number last."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.last = 0


class Turn:
    """One party's right to work, from ``begun`` until ``expires`` on the server's clock.

    ``claim`` is how much the party had to do when it came, and the number of its last turn;
    ``waited`` whether it was not given at once.
    """

    def __init__(self, party: Party, load: int) -> None:
        self.party = party
        self.claim = load, party.last
        self.begun = anyio.Event()
        self.expires = inf
        self.waited = False


class Turns:
    """The turns of one server. Used on the event loop only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Both are sets that keep their order: running turns expire in it, waiting ones came in it.
        self._running: dict[Turn, None] = {}
        self._waiting: dict[Turn, None] = {}
        self._processes: WeakValueDictionary[int, Process] = WeakValueDictionary()
        self._under_way: dict[Turn, None] = {}  # given, and their work goes on; in order too
        self._given = 0
        self._more = _MORE_PER_LOOK  # turns that those with more to do may still begin
        self._patient_until = 0.0  # no turn is lost before
        self._crowded = anyio.Event()

    def party(self, pid: int) -> Party:
        """Return a new party for a connection of a process."""
        process = self._processes.get(pid)
        if process is None:
            process = self._processes[pid] = Process()
        return Party(process)

    async def watch(self) -> None:
        """Let turns expire, for ever; nothing else tells those who wait."""
        while True:
            if not self._waiting:
                self._crowded = anyio.Event()
                await self._crowded.wait()
            await self._clock.sleep(_LOOK_SECONDS)
            self._more = _MORE_PER_LOOK
            self._give()

    async def begin(self, party: Party, load: int) -> Turn:
        """Return a turn once it is this party's; ``load`` is how much it has to do."""
        turn = Turn(party, load)
        self._waiting[turn] = None
        self._give()
        if turn in self._waiting:
            self._crowded.set()
            turn.waited = True
            try:
                await turn.begun.wait()
            except BaseException:
                self.end(turn)
                raise
        return turn

    def end(self, turn: Turn) -> None:
        """Give a turn back, or stop waiting for it; one that has expired is gone already."""
        self._waiting.pop(turn, None)
        self._under_way.pop(turn, None)
        if turn in self._running:
            self._stop(turn)
        self._give()

    def _stop(self, turn: Turn) -> None:
        del self._running[turn]
        turn.party.process.held -= 1

    def _give(self) -> None:
        """Hand out what is free."""
        if not self._waiting:
            return
        now = self._clock.monotonic()
        first = next(iter(self._running), None)
        if first is not None and max(first.expires, self._patient_until) <= now:
            self._stop(first)
            self._patient_until = now + limits.TURN_SECONDS / 2
        while len(self._running) < limits.TURNS and (turn := self._next(now)) is not None:
            turn.expires = now + limits.TURN_SECONDS
            del self._waiting[turn]
            self._running[turn] = None
            self._under_way[turn] = None
            turn.party.process.count_turn(now)
            self._given += 1
            turn.party.process.held += 1
            turn.party.last = self._given
            turn.begun.set()

    def _next(self, now: float) -> Turn | None:
        fewest = self._fewest_under_way(now)
        ready = [
            turn
            for turn in self._waiting
            if turn.party.process.held < limits.TURNS_PER_PROCESS
            and (self._more or turn.party.process.recent(now) <= fewest)
        ]
        if not ready:
            return None
        if self._given % _LONGEST_WAIT_EVERY == 0:
            turn = ready[0]
        else:
            turn = min(ready, key=lambda turn: (turn.party.process.recent(now), turn.claim))
        self._more -= turn.party.process.recent(now) > fewest
        return turn

    def _fewest_under_way(self, now: float) -> float:
        """Return how many turns the most modest process had whose work goes on.

        Work that began longer ago only waits for something, and counts no more.
        """
        for turn in list(self._under_way):
            if now < turn.expires - limits.TURN_SECONDS + _RESTRAINED_SECONDS:
                break
            del self._under_way[turn]
        return min((turn.party.process.recent(now) for turn in self._under_way), default=inf)
