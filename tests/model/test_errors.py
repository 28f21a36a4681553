"""What can go wrong with a model."""

from memd.core.errors import MemdError
from memd.model import errors


def test_each_failure_says_what_happened_and_whether_trying_again_helps() -> None:
    """Every class builds its sentence from its facts and knows what a caller must know."""
    made: dict[type[MemdError], errors.ModelError] = {
        type(error): error
        for error in (
            errors.ModelNotConfiguredError("no key"),
            errors.ModelUnavailableError("no answer", may_cost=True, retry_after=2.0),
            errors.ModelBusyError("slow down", retry_after=3.0),
            errors.ModelUnauthorisedError("bad key"),
            errors.ModelRefusedError(422, "what is this"),
            errors.PromptTooLongError("too much"),
            errors.ModelReplyError("no JSON"),
            errors.CapReachedError("recall", "spend.dollars_per_day", 5.0, "1970-01-02 00:00"),
        )
    }
    retryable = {error.kind for error in made.values() if error.retryable}
    assert retryable == {"model_unavailable", "model_busy", "model_reply_unusable"}
    assert {error.kind for error in made.values() if error.may_cost} == {
        "model_unavailable",
        "model_reply_unusable",
    }
    assert "spend.dollars_per_day for recall" in str(made[errors.CapReachedError])
    assert "(422)" in str(made[errors.ModelRefusedError])
