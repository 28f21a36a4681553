"""Session notes without a daemon, for tests of what keeps them."""

from memd.agent.runs import Runs
from memd.base.clock import Clock
from memd.model.port import ModelSource
from memd.notes.service import Notes
from tests.extract.bench import NoModel


def no_statements(_text: str, _before: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Find nothing that a person wants to be remembered."""
    return (), ()


def notes_of(
    clock: Clock, runs: Runs, models: ModelSource | None = None, config_dir: str = "/none"
) -> Notes:
    """Return notes that the local writer keeps unless a model is given."""
    models = models or NoModel()
    return Notes(clock, models, runs, config_dir=config_dir, find_statements=no_statements)
