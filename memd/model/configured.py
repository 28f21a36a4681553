"""The model that the settings name, built anew when they change.

``Models`` is the one owner of connections to servers. It is asked for a model before each use;
as long as the settings are the same the answer is the same object.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from memd.core.clock import Clock
from memd.core.settings import ModelSettings, Settings, SpendSettings
from memd.model.claude import Claude, Connections
from memd.model.endpoint import (
    ENVIRONMENT,
    NOT_NAMED,
    OFF,
    Endpoint,
    Origin,
    endpoint,
    environment,
    model_name,
)
from memd.model.errors import ModelError
from memd.model.key_file import EnvFileUnusableError, read_variables
from memd.model.metered import Metered
from memd.model.patient import Patient
from memd.model.port import Model
from memd.state.tables import KINDS, SpendTable

__all__ = [
    "ENVIRONMENT",
    "NOT_NAMED",
    "OFF",
    "EnvFileUnusableError",
    "ModelState",
    "Models",
    "Origin",
    "environment",
    "read_variables",
]

_REACH_SECONDS = 5.0  # a person waits for the answer


@dataclass(frozen=True, slots=True)
class _Built:
    of: tuple[ModelSettings, SpendSettings]
    model: Model | None
    claude: Claude | None
    problem: str


@dataclass(frozen=True, slots=True)
class ModelState:
    """The model: ``host`` and ``names`` (by kind of work) when it is configured, else ``problem``.

    ``source`` says where its key is from, or its address where it has none. A configured model has
    a problem too when its server refused the last request for good.
    """

    configured: bool
    problem: str
    host: str
    source: str
    names: dict[str, str]


class Models:
    """Gives the model that the settings name; counts and caps what it uses where given a table.

    ``origin`` is about the variables of ``environ`` that name a model; ``ignored`` is why memd's
    env file does not count, empty where it does.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        clock: Clock,
        spent: SpendTable | None = None,
        origin: Origin = ENVIRONMENT,
    ) -> None:
        self.ignored = origin.ignored
        self._environ = environ
        self._origin = origin
        self._clock = clock
        self._spent = spent
        self._connections = Connections()
        self._built: _Built | None = None

    def for_(self, settings: Settings) -> Model | None:
        """Return the model, or ``None`` where none is configured; waits for nothing."""
        return self._current(settings).model

    def problem(self, settings: Settings) -> str:
        """Return why there is no model, or none that works just now; empty when all is well."""
        built = self._current(settings)
        return built.problem or (built.claude.problem if built.claude else "")

    def name(self, settings: Settings, kind: str) -> str:
        """Return the model's name for a kind: ``recall``, ``extract`` or ``dream``."""
        return model_name(settings.model, kind, self._environ)

    def host(self, settings: Settings) -> str:
        """Return the server's host and port, empty where no model is configured."""
        claude = self._current(settings).claude
        return claude.endpoint.host if claude else ""

    def endpoint_source(self, settings: Settings) -> str:
        """Return which setting or variable named the server and its key; empty without a model."""
        claude = self._current(settings).claude
        return claude.endpoint.source if claude else ""

    def state(self, settings: Settings) -> ModelState:
        """Return whether there is a model, and which."""
        configured = self.for_(settings) is not None
        names = {kind: self.name(settings, kind) for kind in KINDS} if configured else {}
        return ModelState(
            configured,
            self.problem(settings),
            self.host(settings),
            self.endpoint_source(settings),
            names,
        )

    async def reach(self, settings: Settings) -> ModelError | None:
        """Return why the configured server cannot be used, ``None`` when it answers."""
        claude = self._current(settings).claude
        return await claude.reach(_REACH_SECONDS) if claude else None

    async def warm(self, settings: Settings) -> None:
        """Load the library and make the connections' owner, so that no prompt waits for it.

        Takes about two seconds of a worker thread. What goes wrong is in ``problem``.
        """
        claude = self._current(settings).claude
        if claude is not None:
            await claude.warm()

    async def aclose(self) -> None:
        """Close all connections; no model may be asked afterwards."""
        await self._connections.aclose()

    def _current(self, settings: Settings) -> _Built:
        of = (settings.model, settings.spend)
        if self._built is None or self._built.of != of:
            self._built = self._build(of)
        return self._built

    def _build(self, of: tuple[ModelSettings, SpendSettings]) -> _Built:
        result = endpoint(of[0], self._environ, self._origin)
        if not isinstance(result, Endpoint):
            return _Built(of, None, None, result)
        claude = Claude(result, self._connections)
        request: Model = claude
        if self._spent is not None:
            request = Metered(request, self._spent, of[1], self._clock)
        return _Built(of, Patient(request), claude, "")
