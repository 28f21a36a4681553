"""Whose frame goes next: the connections take turns.

Rules of this file
- What a frame asks for begins in a turn. A limited number of turns runs at once, fewer of one
  connection; a connection that waits for its turn is not read from meanwhile.
- The next turn goes to the connection with the least to do, so that a flood waits for itself and
  not others for it; of those with as little, to the one whose last turn is longest ago. Every
  fourth goes to the one that has waited longest, so that nobody waits for ever.
- While somebody works who has nothing else to do, those who have more may begin only a few turns
  in each ``_LOOK_SECONDS``: the event loop, spinning through the frames of a flood, would keep the
  interpreter from threads that work. A list of 1,000 memories took 500 ms beside one connection
  that sent notifications without end, and 5 ms without it.
- A turn ends with its work, or after ``limits.TURN_SECONDS``: work that only waits (for a job, a
  model, a lock) keeps nobody from working. One turn at a time is lost like that: where work is
  slow because there is much of it, more at once would make all of it slower.
"""

from math import inf
from operator import attrgetter

import anyio

from memd.core import limits
from memd.core.clock import Clock

_LONGEST_WAIT_EVERY = 4
_LOOK_SECONDS = limits.TURN_SECONDS / 5
_MORE_PER_LOOK = 2
_claim = attrgetter("claim")


class Party:
    """Whoever takes turns: one connection. Holds so many, and had the one of this number last."""

    def __init__(self) -> None:
        self.held = 0
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

    @property
    def is_light(self) -> bool:
        """Whether the party had nothing else to do."""
        return not self.claim[0]


class Turns:
    """The turns of one server. Used on the event loop only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Both are sets that keep their order: running turns expire in it, waiting ones came in it.
        self._running: dict[Turn, None] = {}
        self._waiting: dict[Turn, None] = {}
        self._given = 0
        self._more = _MORE_PER_LOOK  # turns that those with more to do may still begin
        self._patient_until = 0.0  # no turn is lost before
        self._crowded = anyio.Event()

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
        if turn in self._running:
            self._stop(turn)
        self._give()

    def _stop(self, turn: Turn) -> None:
        del self._running[turn]
        turn.party.held -= 1

    def _give(self) -> None:
        """Hand out what is free."""
        if not self._waiting:
            return
        now = self._clock.monotonic()
        first = next(iter(self._running), None)
        if first is not None and max(first.expires, self._patient_until) <= now:
            self._stop(first)
            self._patient_until = now + limits.TURN_SECONDS / 2
        while len(self._running) < limits.TURNS and (turn := self._next()) is not None:
            turn.expires = now + limits.TURN_SECONDS
            del self._waiting[turn]
            self._running[turn] = None
            self._given += 1
            turn.party.held += 1
            turn.party.last = self._given
            turn.begun.set()

    def _next(self) -> Turn | None:
        most = limits.TURNS_PER_CONNECTION
        ready = [turn for turn in self._waiting if turn.party.held < most]
        restrained = any(turn.is_light for turn in self._running)
        if restrained and not self._more:
            ready = [turn for turn in ready if turn.is_light]
        if not ready:
            return None
        longest = self._given % _LONGEST_WAIT_EVERY == 0
        turn = ready[0] if longest else min(ready, key=_claim)
        self._more -= restrained and not turn.is_light
        return turn
