"""Tell whether the clock is right, before data is removed by its age or a new day begins. Pure.

A clock may jump: somebody sets it, its battery is empty, a machine wakes up. One reading cannot
tell a jump from time that passed. So a clock is trusted only after it ran steadily for a day while
memd ran.
"""

from msgspec import Struct

DAY_SECONDS = 24 * 60 * 60.0
_SLACK_SECONDS = 60.0  # what a time server may correct


class ClockCheck(Struct, frozen=True):
    """A reading of the clock: the time it showed (seconds since 1970), and what speaks against it.

    All values are seconds. ``steady`` is how long the clock ran since it last jumped; ``jump`` is
    how far it jumped then, 0 once a day has passed; ``behind`` is how far the newest recorded
    change is later than the clock's time, 0 if it is not.
    """

    at: float
    steady: float = 0.0
    jump: float = 0.0
    behind: float = 0.0

    @property
    def proved(self) -> bool:
        """Whether ages by this clock can be trusted."""
        return self.steady >= DAY_SECONDS and not self.behind

    def steady_at(self, now: float) -> bool:
        """Whether the clock ran steadily for a day and was not set back since."""
        return self.steady >= DAY_SECONDS and now >= self.at - _SLACK_SECONDS

    @property
    def problem(self) -> str:
        """What is wrong with the clock, in words; "" if nothing is known of it."""
        result = []
        if self.jump:
            way = "ahead" if self.jump > 0 else "back"
            result.append(f"the clock went {way} by {_days(self.jump)} while nobody looked")
        if self.behind:
            result.append(f"the clock is {_days(self.behind)} behind the newest recorded change")
        return " and ".join(result)


def inspect(last: ClockCheck | None, newest: float, now: float, passed: float) -> ClockCheck:
    """Return a new reading of the clock, compared with the ``last`` one.

    ``now`` is the clock's time and ``newest`` that of the newest recorded change. ``passed`` are
    the monotonic seconds since the last reading, 0 where memd did not run meanwhile.
    """
    behind = newest - now if newest - now > _SLACK_SECONDS else 0.0
    if last is None:
        return ClockCheck(now, behind=behind)
    jump = now - last.at - passed  # negative where the clock went back
    # A machine that sleeps, or a memd that does not run, for less than a day is no jump.
    if not -_SLACK_SECONDS <= jump <= DAY_SECONDS:
        return ClockCheck(now, jump=jump, behind=behind)
    steady = last.steady + passed
    recent_jump = 0.0 if steady >= DAY_SECONDS else last.jump
    return ClockCheck(now, steady, recent_jump, behind)


def day_to_book(today: str, booked: str, *, steady: bool) -> str:
    """Return the day (ISO 8601) for new spending; ``booked`` is the day of the last one, or "".

    After the clock was set back spending still counts for the later day, until the clock has run
    steadily.
    """
    return today if steady or today >= booked else booked


def _days(seconds: float) -> str:
    """Return a duration in words: in days from two days on, else in hours."""
    days = abs(seconds) / DAY_SECONDS
    return f"{days:,.0f} days" if days >= 2 else f"{days * 24:.1f} hours"  # noqa: PLR2004 - days
