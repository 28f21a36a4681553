"""Decide which frame is handled next, so that processes and their connections share fairly.

Rules of this file
- The work of a frame begins in a turn. A limited number of turns run at once, and fewer of one
  process. A connection that waits for its turn is not read from meanwhile.
- The next turn goes to the process that had the fewest recently; of its connections to the one with
  the least to do, so that a flood delays only itself; among equals, to the one whose last turn is
  longest ago. Every fourth turn goes to the one that has waited longest, so that nobody waits
  forever.
- While a process with fewer turns has work running, for ``_RESTRAINED_SECONDS`` at most, others
  may begin only ``_EXTRA_TURNS`` turns in each ``_INTERVAL_SECONDS``: else the event loop, busy
  with the frames of a flood, would hold the interpreter lock that worker threads need. A list of
  1,000 memories took 500 ms beside a connection that sent notifications without end, and takes 2 ms
  now.
- A turn ends with its work, or after ``limits.TURN_SECONDS``: work that only waits (for a job, a
  model, a lock) does not stop others. Only one turn at a time expires like that: where work is slow
  because there is much of it, more at once would make all of it slower.
"""

from math import exp2, inf
from weakref import WeakValueDictionary

import anyio

from memd.base import limits
from memd.base.clock import Clock

_LONGEST_WAIT_EVERY = 4  # each fourth turn goes to the connection that has waited longest
_INTERVAL_SECONDS = limits.TURN_SECONDS / 5  # how often ``watch`` starts turns
_EXTRA_TURNS = 1  # turns in each interval for processes that had more turns than those at work
_RESTRAINED_SECONDS = 1.0  # how long the work of one process restrains those with more turns


class Process:
    """A process with connections: how many turns it has now and had recently."""

    def __init__(self) -> None:
        self.running_turns = 0
        self._recent_turns = 0.0  # as it was at ``_counted_at``
        self._counted_at = -inf  # the time of the last turn, in seconds of the server's clock

    def recent_turns(self, now: float) -> float:
        """Return how many turns it had; each counts half as much for every second that passed."""
        # A test's clock may be set back, which is no time that passed.
        return self._recent_turns * exp2(min(0.0, self._counted_at - now))

    def count_turn(self, now: float) -> None:
        """Count one more turn of the process."""
        self._recent_turns, self._counted_at = self.recent_turns(now) + 1, now


class Party:
    """A connection that takes turns; ``last_number`` is the number of its last turn."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.last_number = 0


class Turn:
    """A connection's turn, from ``begun`` until ``expires_at`` on the server's clock.

    ``rank`` orders the waiting turns of one process, and the smallest begins first: it is how much
    the connection has to do, then the number of its last turn. ``waited`` says that the turn was
    not given at once.
    """

    def __init__(self, party: Party, load: int) -> None:
        self.party = party
        self.rank = load, party.last_number
        self.begun = anyio.Event()
        self.expires_at = inf
        self.waited = False


class Turns:
    """The turns of one server. Used on the event loop only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Dicts used as ordered sets: running turns in the order of expiry, waiting ones of arrival.
        self._running: dict[Turn, None] = {}
        self._waiting: dict[Turn, None] = {}
        # Turns whose work runs, in the order of their beginning; expired turns too.
        self._with_work: dict[Turn, None] = {}
        # By process id; a process is forgotten when no connection of it is left.
        self._processes: WeakValueDictionary[int, Process] = WeakValueDictionary()
        self._last_number = 0  # of the turn that began last; turns are numbered from 1
        self._extra_turns = _EXTRA_TURNS  # those that may still begin in this interval
        self._no_expiry_before = 0.0  # on the clock; so expired turns follow each other slowly
        self._has_waiting = anyio.Event()  # wakes ``watch``; replaced for each wait

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
                self._has_waiting = anyio.Event()
                await self._has_waiting.wait()
            await self._clock.sleep(_INTERVAL_SECONDS)
            self._extra_turns = _EXTRA_TURNS
            self._start_turns()

    async def begin(self, party: Party, load: int) -> Turn:
        """Wait for this party's turn and return it; ``load`` is how much the party has to do."""
        turn = Turn(party, load)
        self._waiting[turn] = None
        self._start_turns()
        if turn in self._waiting:
            self._has_waiting.set()
            turn.waited = True
            try:
                await turn.begun.wait()
            except BaseException:  # the wait was cancelled: nobody would end the turn
                self.end(turn)
                raise
        return turn

    def end(self, turn: Turn) -> None:
        """End a turn, or stop waiting for it; an expired turn has no place to make free."""
        self._waiting.pop(turn, None)
        self._with_work.pop(turn, None)
        if turn in self._running:
            self._stop_running(turn)
        self._start_turns()

    def _stop_running(self, turn: Turn) -> None:
        """Make the place of a running turn free for another turn."""
        del self._running[turn]
        turn.party.process.running_turns -= 1

    def _start_turns(self) -> None:
        """Let the oldest turn expire if it is time, and begin waiting turns while there is room."""
        if not self._waiting:
            return
        now = self._clock.monotonic()
        self._expire_oldest(now)
        while len(self._running) < limits.TURNS:
            turn = self._choose_turn(now)
            if turn is None:
                break
            self._start_turn(turn, now)

    def _expire_oldest(self, now: float) -> None:
        """Let the running turn that began first expire, if its time is over.

        The next turn may expire half a turn's time later, since where work is slow because there is
        much of it, more at once would make all of it slower.
        """
        oldest = next(iter(self._running), None)
        if oldest is None or now < oldest.expires_at or now < self._no_expiry_before:
            return
        self._stop_running(oldest)
        self._no_expiry_before = now + limits.TURN_SECONDS / 2

    def _start_turn(self, turn: Turn, now: float) -> None:
        """Begin a waiting turn."""
        del self._waiting[turn]
        self._running[turn] = None
        self._with_work[turn] = None
        self._last_number += 1
        process = turn.party.process
        process.count_turn(now)
        process.running_turns += 1
        turn.party.last_number = self._last_number
        turn.expires_at = now + limits.TURN_SECONDS
        turn.begun.set()

    def _choose_turn(self, now: float) -> Turn | None:
        """Return the waiting turn that begins next, ``None`` where none may begin now."""
        fewest = self._fewest_turns_at_work(now)
        ready = [turn for turn in self._waiting if self._may_begin(turn, now, fewest)]
        if not ready:
            return None
        if self._last_number % _LONGEST_WAIT_EVERY == 0:
            turn = ready[0]  # it has waited longest
        else:
            turn = min(ready, key=lambda turn: (turn.party.process.recent_turns(now), turn.rank))
        if turn.party.process.recent_turns(now) > fewest:
            self._extra_turns -= 1
        return turn

    def _may_begin(self, turn: Turn, now: float, fewest: float) -> bool:
        """Return whether a waiting turn may begin now.

        ``fewest`` are the recent turns of the process at work that had the fewest. Processes that
        had more turns than that one may begin only the extra turns of the interval.
        """
        process = turn.party.process
        if process.running_turns >= limits.TURNS_PER_PROCESS:
            return False
        return self._extra_turns > 0 or process.recent_turns(now) <= fewest

    def _fewest_turns_at_work(self, now: float) -> float:
        """Return the fewest recent turns of any process that has work running, else infinity.

        Work that began more than ``_RESTRAINED_SECONDS`` ago is taken to wait and does not count.
        """
        for turn in list(self._with_work):
            begun_at = turn.expires_at - limits.TURN_SECONDS
            if now < begun_at + _RESTRAINED_SECONDS:
                break  # the turns behind it began later
            del self._with_work[turn]
        return min((turn.party.process.recent_turns(now) for turn in self._with_work), default=inf)
