"""How a dream may end without having done anything."""

from memd.agent.service import Ended
from memd.agent.step import Reason
from memd.dream.ending import DreamEndedError, DreamFailedError, DreamTimeoutError, LockLostError
from memd.model.errors import ModelUnavailableError
from memd.model.port import Usage


def ended(reason: Reason, error: ModelUnavailableError | None = None) -> Ended:
    """Return a run that did not finish."""
    return Ended(
        finished=False,
        reason=reason,
        text="",
        usage=Usage(),
        turns=7,
        calls=0,
        denied=0,
        touched=(),
        record=(),
        error=error,
    )


def test_each_end_says_what_happened() -> None:
    """Each says it in a sentence, and those of a model count against the model."""
    assert "20 minutes" in str(DreamTimeoutError(20.0))
    assert "nothing was written" in str(DreamEndedError())
    assert "/m" in str(LockLostError("/m"))
    looped = DreamFailedError(ended(Reason.LOOP))
    assert (looped.of_model, looped.retryable, looped.facts["turns"]) == (True, True, 7)
    assert str(looped) == "the model did not finish: it ran into its bound: loop"
    gone = ended(Reason.MODEL, ModelUnavailableError("no route"))
    assert "no route" in str(DreamFailedError(gone))
