"""A self-check of doctor, and the one that looks at the model."""

from memd.api.method import Result
from memd.core.settings import Settings
from memd.model.configured import Models
from memd.model.endpoint import NOT_NAMED, OFF


class Check(Result):
    """One self-check: ``state`` is ok, warning or failed; ``remedy`` says what helps."""

    name: str
    state: str
    detail: str
    remedy: str


async def model_check(models: Models, settings: Settings) -> Check:
    """Return whether the model that is named can be asked; no request is paid for."""
    error = await models.reach(settings)
    problem = models.problem(settings)
    if models.for_(settings) is None:
        # Nobody has to have a model: only one that was named and is refused is worth a remedy.
        detail, bad = f"none: {problem}", problem not in (NOT_NAMED, OFF)
        remedy = "mend what the sentence names, or set model.enabled = false"
    else:
        # Beside what is wrong now, what the last request for a message had, if anything.
        words = error.sentence if error else problem or "it answers"
        detail, bad = (
            f"{models.host(settings)}, by {models.source(settings)}: {words}",
            bool(problem),
        )
        remedy = error.hint if error else "look at the model's name in [model] of memd.toml"
    if models.ignored:
        detail, remedy = f"{detail}; {models.ignored}", "do that, or remove the file"
    bad = bad or error is not None or bool(models.ignored)
    state = "warning" if bad else "ok"
    return Check(name="model", state=state, detail=detail, remedy=remedy if bad else "")
