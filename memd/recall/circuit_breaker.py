"""How long a model that fails prompts is left alone, so that it does not cost each its wait. Pure.

Rules of this file
1. The third failure in a row (no answer in time, an error, a reply without sense) closes the way to
   the model; until the pause is over the local ranker answers at once, and the answer says so.
2. After the pause one prompt asks again. If that fails, the pause is twice as long, up to the
   longest; the first choice that a model makes in time forgets all failures.
3. A model or an endpoint that the settings name anew begins without failures.
4. Who asks for the model by name (``strategy: model``) gets it asked.
"""

from dataclasses import dataclass

FAILURES = 3  # one may be bad luck, and each costs a prompt ``recall.model_seconds``
SECONDS = 60.0
SECONDS_MOST = 600.0  # a server that was mended answers prompts again after that, unasked


@dataclass(frozen=True, slots=True)
class CircuitBreaker:
    """Failures in a row of the model known as ``model``; left alone until ``until`` (monotonic)."""

    model: str = ""
    failures: int = 0
    until: float = float("-inf")

    def asks(self, model: str, now: float) -> bool:
        """Whether a prompt may ask this model now."""
        return model != self.model or now >= self.until

    def after(self, model: str, now: float, *, worked: bool) -> "CircuitBreaker":
        """Return what is known once a prompt has asked this model."""
        if worked:
            return CircuitBreaker(model)
        failures = 1 + (self.failures if model == self.model else 0)
        over = failures - FAILURES
        pause = 0.0 if over < 0 else min(SECONDS * 2.0 ** min(over, 8), SECONDS_MOST)
        return CircuitBreaker(model, failures, now + pause if pause else float("-inf"))
