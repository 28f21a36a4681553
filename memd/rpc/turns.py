"""Decide which frame is handled next, so that processes and their connections share fairly.

Rules of this file
- The work of a frame begins in a turn. A limited number of turns run at once, and fewer of one
  process. A connection that waits for its turn is not read from meanwhile.
- The next turn goes to the process that had the fewest recently; of its connections to the one with
  the least to do, so that a flood delays only itself; among equals, to the one whose last turn is
  longest ago. Every fourth turn goes to the one that has waited longest, so that nobody waits
  forever.
- While a process with fewer turns has work running, for ``_RESTRAINED_SECONDS`` at most, others
  may begin only ``_MORE_PER_LOOK`` turns in each ``_LOOK_SECONDS``: else the event loop, busy with
  the frames of a flood, would hold the interpreter lock that worker threads need. A list of 1,000
  memories took 500 ms beside a connection that sent notifications without end, and takes 2 ms now.
- A turn ends with its work, or after ``limits.TURN_SECONDS``: work that only waits (for a job, a
  model, a lock) does not stop others. Only one turn at a time expires like that: where work is slow
  because there is much of it, more at once would make all of it slower.
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
    """A process with connections: how many turns it has now and had recently."""

    def __init__(self) -> None:
        self.held = 0
        self._turns = 0.0
        self._since = -inf

    def recent(self, now: float) -> float:
        """Return how many turns it had; each counts half as much for every second that passed."""
        return self._turns * exp2(self._since - now)

    def count_turn(self, now: float) -> None:
        """Count one more turn of the process."""
        self._turns, self._since = self.recent(now) + 1, now


class Party:
    """A connection that takes turns; ``last`` is the number of its last turn."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.last = 0


class Turn:
    """A connection's turn, from ``begun`` until ``expires`` on the server's clock.

    ``claim`` is how much the connection had to do when it asked, and the number of its last turn;
    the smallest is served first. ``waited``: the turn was not given at once.
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
        # Dicts used as ordered sets: running turns in the order of expiry, waiting ones of arrival.
        self._running: dict[Turn, None] = {}
        self._waiting: dict[Turn, None] = {}
        self._processes: WeakValueDictionary[int, Process] = WeakValueDictionary()
        self._under_way: dict[Turn, None] = {}  # turns whose work runs, expired ones too; in order
        self._given = 0  # the number of turns so far
        self._more = _MORE_PER_LOOK  # turns that processes with more turns may still begin
        self._no_expiry_before = 0.0
        self._someone_waits = anyio.Event()

    def party(self, pid: int) -> Party:
        """Return a new party, for a connection of the process ``pid``."""
        process = self._processes.get(pid)
        if process is None:
            process = self._processes[pid] = Process()
        return Party(process)

    async def watch(self) -> None:
        """Let turns expire and start the next ones, forever."""
        while True:
            if not self._waiting:
                self._someone_waits = anyio.Event()
                await self._someone_waits.wait()
            await self._clock.sleep(_LOOK_SECONDS)
            self._more = _MORE_PER_LOOK
            self._start_next()

    async def begin(self, party: Party, load: int) -> Turn:
        """Wait for this party's turn and return it; ``load`` is how much the party has to do."""
        turn = Turn(party, load)
        self._waiting[turn] = None
        self._start_next()
        if turn in self._waiting:
            self._someone_waits.set()
            turn.waited = True
            try:
                await turn.begun.wait()
            except BaseException:
                self.end(turn)
                raise
        return turn

    def end(self, turn: Turn) -> None:
        """End a turn, or stop waiting for it; nothing more is done for one that has expired."""
        self._waiting.pop(turn, None)
        self._under_way.pop(turn, None)
        if turn in self._running:
            self._remove_turn(turn)
        self._start_next()

    def _remove_turn(self, turn: Turn) -> None:
        """Note that a turn has ended."""
        del self._running[turn]
        turn.party.process.held -= 1

    def _start_next(self) -> None:
        """Let the oldest turn expire if it is time, and begin waiting turns while there is room."""
        if not self._waiting:
            return
        now = self._clock.monotonic()
        first = next(iter(self._running), None)
        if first is not None and max(first.expires, self._no_expiry_before) <= now:
            self._remove_turn(first)
            self._no_expiry_before = now + limits.TURN_SECONDS / 2
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
        """Return the waiting turn that begins next, ``None`` where none may begin now."""
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
        """Return the fewest recent turns of any process that has work running.

        Work that began more than ``_RESTRAINED_SECONDS`` ago is taken to wait and does not count.
        """
        for turn in list(self._under_way):
            if now < turn.expires - limits.TURN_SECONDS + _RESTRAINED_SECONDS:
                break
            del self._under_way[turn]
        return min((turn.party.process.recent(now) for turn in self._under_way), default=inf)
