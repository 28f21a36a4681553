"""Pause a model after failures, so that prompts do not wait for it. Pure.

Rules of this file
1. The third failure in a row (a timeout, an error or an unreadable reply) starts a pause. Until it
   is over the local ranker answers at once, and the reply says so.
2. After the pause one prompt uses the model again. If that fails, the next pause is twice as long,
   up to a limit. A success in time resets the failures.
3. A changed model or endpoint in the settings starts without failures.
4. A request with ``strategy: model`` ignores the pause.
"""

from msgspec import Struct

FAILURES = 3  # one may be bad luck, and each costs a prompt up to four seconds
SECONDS = 60.0  # the first pause
LONGEST_PAUSE_SECONDS = 600.0  # after which a repaired server is used again
_MOST_DOUBLINGS = 8  # enough for the longest pause


class CircuitBreaker(Struct, frozen=True):
    """The number of a model's failures in a row, and when its pause ends."""

    model: str = ""  # the settings of the model as a text
    failures: int = 0
    until: float = float("-inf")  # in monotonic seconds

    def allows(self, model: str, now: float) -> bool:
        """Return whether a prompt may use this model now."""
        return model != self.model or now >= self.until

    def after_prompt(self, model: str, now: float, *, worked: bool) -> "CircuitBreaker":
        """Return the breaker after a prompt used this model; ``worked`` says whether it replied."""
        if worked:
            return CircuitBreaker(model)
        failures = 1 + (self.failures if model == self.model else 0)
        if failures < FAILURES:
            return CircuitBreaker(model, failures)
        doublings = min(failures - FAILURES, _MOST_DOUBLINGS)
        pause = min(SECONDS * 2.0**doublings, LONGEST_PAUSE_SECONDS)
        return CircuitBreaker(model, failures, now + pause)
