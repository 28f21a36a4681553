"""Build the model that the settings name, and rebuild it when they change.

``Models`` owns all connections to servers. Callers get the model from it before each use, and the
same object while the settings are the same.
"""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from memd.base.clock import Clock
from memd.base.settings import KINDS, ModelSettings, Settings, SpendSettings
from memd.model import presets
from memd.model.claude import Claude, Connections
from memd.model.command import ProgramModel
from memd.model.command import ProgramRuns as ProgramRuns
from memd.model.endpoint import COMMAND as COMMAND
from memd.model.endpoint import ENVIRONMENT as ENVIRONMENT
from memd.model.endpoint import MESSAGES, OPENAI, PROGRESS, Endpoint, endpoint, model_name
from memd.model.endpoint import NOT_NAMED as NOT_NAMED
from memd.model.endpoint import OFF as OFF
from memd.model.endpoint import Origin as Origin
from memd.model.endpoint import environment as environment
from memd.model.errors import ModelError
from memd.model.key_file import EnvFileUnusableError as EnvFileUnusableError
from memd.model.key_file import read_variables as read_variables
from memd.model.metered import Metered
from memd.model.openai import ChatServer
from memd.model.patient import InTurn, Patient
from memd.model.port import Model
from memd.state.spend import SpendTable

_REACH_SECONDS = 5.0  # a person waits for the result


class _Backend(Model, Protocol):
    """A model with its address and its last problem."""

    problem: str

    @property
    def host(self) -> str:
        """The server's host and port, or the program."""
        ...

    @property
    def source(self) -> str:
        """The setting or variable that names it."""
        ...

    async def warm(self) -> None:
        """Load its libraries; an error is stored in ``problem``."""
        ...

    async def reach(self, seconds: float, /) -> ModelError | None:
        """Return the error if it cannot be used, without sending a request to a model."""
        ...


class _BuiltModel(Struct, frozen=True):
    """A model with the settings it was built from, or the ``problem`` why there is none."""

    settings: tuple[ModelSettings, SpendSettings]
    model: Model | None
    backend: _Backend | None
    problem: str


class ModelState(Struct, frozen=True):
    """The state of the model: its ``host`` and ``names`` by kind of work, or the ``problem``.

    ``source`` names the setting or variable of its key, or of its address if it has no key. A
    configured model has a problem too if its server refused the last request for good.
    """

    configured: bool
    problem: str
    host: str
    source: str
    names: dict[str, str]


class Models:
    """Builds the model that the settings name, and owns its connections.

    With the table ``spent`` its use is counted and capped. ``origin`` says where the variables of
    ``environ`` are from, and why memd's env file is ignored, if it is. ``programs`` runs programs
    that the settings name; without it they are not used.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        clock: Clock,
        spent: SpendTable | None = None,
        origin: Origin = ENVIRONMENT,
        programs: ProgramRuns | None = None,
    ) -> None:
        self.programs = programs
        self.ignored = origin.ignored  # why memd's env file is ignored, or ""
        self._environ = environ
        self._origin = origin
        self._clock = clock
        self._spent = spent
        self._connections = Connections()  # to servers of the Messages API
        self._servers: list[ChatServer] = []  # all that were built; closed with this object
        self._built: _BuiltModel | None = None  # from the settings of the last use

    def for_(self, settings: Settings) -> Model | None:
        """Return the model, ``None`` if none is configured; does not wait."""
        return self._current(settings).model

    def problem(self, settings: Settings) -> str:
        """Return why there is no model or why its last request failed for good, "" if neither."""
        built = self._current(settings)
        if built.problem or built.backend is None:
            return built.problem
        return built.backend.problem

    def name(self, settings: Settings, kind: str) -> str:
        """Return the model's name for a kind of work, "" if the provider cannot do that work.

        Notes (written with a tool) and lines of progress (from a cached prefix) need the Messages
        API. Recall cannot use a program, as the prompt would wait for it.
        """
        model = settings.model
        if kind in ("notes", PROGRESS) and model.provider != MESSAGES:
            return ""
        if model.provider != COMMAND:
            return model_name(model, kind, self._environ, settings.spend.prices)
        program = presets.program(model)  # a string says why there is none
        if kind == "recall" or isinstance(program, str):
            return ""
        return model.by_kind.get(kind) or model.name or program.name

    def host(self, settings: Settings) -> str:
        """Return the server's host and port or the program's path, "" without a model."""
        backend = self._current(settings).backend
        return backend.host if backend else ""

    def endpoint_source(self, settings: Settings) -> str:
        """Return the setting or variable that names the server or its key, "" without a model."""
        backend = self._current(settings).backend
        return backend.source if backend else ""

    def state(self, settings: Settings) -> ModelState:
        """Return the state of the configured model, with its name for each kind of work."""
        configured = self.for_(settings) is not None
        all_names = {kind: self.name(settings, kind) for kind in KINDS if configured}
        names = {kind: name for kind, name in all_names.items() if name}
        return ModelState(
            configured,
            self.problem(settings),
            self.host(settings),
            self.endpoint_source(settings),
            names,
        )

    async def reach(self, settings: Settings) -> ModelError | None:
        """Return the error if the configured server cannot be used, ``None`` if it can."""
        backend = self._current(settings).backend
        return await backend.reach(_REACH_SECONDS) if backend else None

    async def warm(self, settings: Settings) -> None:
        """Load the model's library in a worker thread (about two seconds), before it is needed.

        An error is stored in the model's ``problem``.
        """
        backend = self._current(settings).backend
        if backend is not None:
            await backend.warm()

    async def recover(self) -> tuple[str, ...]:
        """Kill the programs that an earlier daemon left; return a sentence about it, or nothing."""
        return await self.programs.recover() if self.programs else ()

    async def aclose(self) -> None:
        """Close all connections; no model may be used afterwards."""
        await self._connections.aclose()
        for server in self._servers:
            await server.aclose()

    def _current(self, settings: Settings) -> _BuiltModel:
        """Return the model of the settings, built again if they changed."""
        if self._built is None or self._built.settings != (settings.model, settings.spend):
            self._built = self._build(settings.model, settings.spend)
        return self._built

    def _build(self, settings: ModelSettings, spend: SpendSettings) -> _BuiltModel:
        """Return the model that the settings name, in its wrappers, or the problem."""
        backend = self._backend(settings)
        if isinstance(backend, str):
            return _BuiltModel((settings, spend), None, None, backend)
        model: Model = backend
        runs = self.programs if settings.provider == COMMAND else None
        if self._spent is not None:
            by_runs = runs is not None
            model = Metered(model, self._spent, spend, self._clock, by_runs=by_runs)
        # A program is not retried here, as each try is a run that counts; the job retries later.
        wrapped = InTurn(model, runs.turn) if runs else Patient(model)
        return _BuiltModel((settings, spend), wrapped, backend, "")

    def _backend(self, settings: ModelSettings) -> _Backend | str:
        """Return the server or program that the settings name, or the reason why there is none."""
        if settings.provider == COMMAND and settings.enabled:
            program = presets.program(settings)  # a string says why there is none
            if isinstance(program, str):
                return program
            if self.programs is None:
                return NOT_NAMED
            return ProgramModel(program, self.programs)
        result = endpoint(settings, self._environ, self._origin)
        if not isinstance(result, Endpoint):
            return result
        if settings.provider == OPENAI:
            self._servers.append(ChatServer(result))
            return self._servers[-1]
        return Claude(result, self._connections)
