"""Errors of models, with one class for each situation that callers handle differently.

No error contains a credential: ``wire.tame`` removes them from a server's words first.
"""

from memd.base.errors import Limit, Model, TooLarge
from memd.base.extras import install_command


class ModelError(Model):
    """A request to a model ended without a usable reply."""


class ModelNotConfiguredError(ModelError):
    """The present settings name no usable model."""

    kind = "model_not_configured"
    hint = "set [model] in memd.toml, or ANTHROPIC_API_KEY in the file env beside it"

    def __init__(self, cause: str) -> None:
        super().__init__(f"no model is configured: {cause}", cause=cause)


class SdkMissingError(ModelNotConfiguredError):
    """The library for models, an optional extra, is not installed."""

    hint = ""

    def __init__(self) -> None:
        super().__init__(f"the SDK is missing; install it with: {install_command('anthropic')}")


class ProgramMissingError(ModelNotConfiguredError):
    """The program that the settings name as a model is not found or cannot be run."""

    hint = "install it, or name another one in [model] of memd.toml"

    def __init__(self, name: str, cause: str) -> None:
        super().__init__(f"the program {name} cannot be run: {cause}")


class ProgramFailedError(ModelError):
    """The program that is used as a model failed."""

    retryable = True
    hint = "run it by hand and see whether you are signed in"
    may_cost = True

    def __init__(self, status: int, words: str) -> None:
        super().__init__(
            f"the program ended with status {status}: {words or 'it printed nothing'}",
            status=status,
            cause=words,
        )


class ModelUnavailableError(ModelError):
    """The server cannot be reached, timed out, broke off, or reported an internal error.

    ``retry_after`` is how many seconds the server asks to wait, ``None`` if it does not.
    """

    retryable = True
    hint = "memd tries again by itself; look at the server if this stays"

    def __init__(
        self, cause: str, *, may_cost: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(f"the model cannot be used just now: {cause}", cause=cause)
        self.may_cost = may_cost
        self.retry_after = retry_after


class ModelBusyError(ModelError):
    """The server is busy (429); ``retry_after`` is how many seconds it asks to wait."""

    retryable = True
    hint = "memd slows down by itself; a higher rate limit of the account helps for good"

    def __init__(self, cause: str, *, retry_after: float | None = None) -> None:
        super().__init__(
            f"the model's server asks for patience: {cause}", cause=cause, retry_after=retry_after
        )
        self.retry_after = retry_after


class ModelUnauthorisedError(ModelError):
    """The server does not accept the credentials (401, 403)."""

    hint = "mend the key where memctl status says that it is from"

    def __init__(self, cause: str) -> None:
        super().__init__(f"the model's server refuses the credentials: {cause}", cause=cause)


class ModelRefusedError(ModelError):
    """The server refuses the request itself, so that a retry would not help."""

    hint = "look at the model's name and the address in [model] of memd.toml"

    def __init__(self, status: int, cause: str) -> None:
        super().__init__(
            f"the model's server refuses the request ({status}): {cause}",
            status=status,
            cause=cause,
        )


class PromptTooLongError(ModelError):
    """The request is longer than the model accepts."""

    code = TooLarge.code
    kind = "prompt_too_long"
    hint = "ask with less"

    def __init__(self, cause: str) -> None:
        super().__init__(f"the request is too long for the model: {cause}", cause=cause)


class ModelReplyError(ModelError):
    """The response is no valid reply of the Messages API."""

    retryable = True
    hint = "look at what serves the address in [model] of memd.toml"
    may_cost = True

    def __init__(self, cause: str) -> None:
        super().__init__(f"the model's reply cannot be understood: {cause}", cause=cause)


class CapReachedError(ModelError):
    """A cap on spending is reached; nothing was sent. ``resumes`` is seconds since 1970."""

    code = Limit.code
    kind = Limit.kind
    exit_status = Limit.exit_status
    hint = "wait for the next day, or raise the cap in [spend] of memd.toml"

    def __init__(self, purpose: str, cap: str, resumes: float, when: str) -> None:
        super().__init__(
            f"the cap {cap} for {purpose} is reached; it goes on at {when}",
            purpose=purpose,
            cap=cap,
            resumes=resumes,
        )
        self.resumes = resumes


# After these errors a retry does not help today, so that callers work without a model if they can.
NO_USE_TODAY = (
    CapReachedError,
    ModelNotConfiguredError,
    ModelUnauthorisedError,
    ModelRefusedError,
)
# Why a job runs without a model while its directory's breaker is open.
LEFT_ALONE = "models failed for these memories and are left alone for a while"
