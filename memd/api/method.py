"""A method of the API: its name, its types, its permission, and the function that answers it.

A handler takes the services, the call and typed parameters, calls a room, and returns a typed
result. Parameters are checked here once, so no handler gets a wrong type.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from typing import Annotated, Any, Concatenate, Generic, ParamSpec, TypeVar, cast

import msgspec
from msgspec import Struct

from memd.api.services import Services
from memd.base import places
from memd.base.errors import Invalid, MemdError
from memd.base.instants import no_time, written
from memd.base.text import sha256
from memd.rpc.connection import Call
from memd.store import secret
from memd.store.past import At

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


# Methods whose answer a person waits for: background work yields to them.
PROMPTS = ("prefetch", "load_prompt", "hook", "session.start", "memory.search", "suggestion.offer")
# How many results a caller may request; a larger number is an error that names the bound.
Limit = Annotated[int, msgspec.Meta(ge=1, le=1000)]
# A client's own name for a session.
SessionId = Annotated[str, msgspec.Meta(max_length=1000)]
Time = str | float  # ISO 8601 or seconds since 1970
_CHANGE_ID = re.compile(r"c[0-9]+")

# Members by which a caller names itself, its sessions and its requests. They are stored with what
# the caller does, and only ever compared.
IDENTIFIERS = frozenset({"client", "prompt_id", "request_id", "session", "session_id", "version"})


class Named(msgspec.Struct):
    """Values from a caller. An identifier that looks like a credential is replaced at once.

    It is replaced by a name made of its hash: the same identifier always gives the same name, the
    caller is served, and the credential is stored nowhere.
    """

    def __post_init__(self) -> None:
        """Replace identifiers that look like credentials."""
        for name in IDENTIFIERS.intersection(self.__struct_fields__):
            value = getattr(self, name)
            if value and secret.find(value):
                setattr(self, name, f"hidden-{sha256(value.encode())[:16]}")


def forwarded(environment: Mapping[str, str] | None) -> dict[str, str]:
    """Return the environment variables that memd uses, without those that hold a credential."""
    return {
        name: value
        for name, value in (environment or {}).items()
        if name in places.FORWARDED and not secret.find(value)
    }


class Params(Named, forbid_unknown_fields=True, kw_only=True, rename=lambda name: name.strip("_")):
    """Parameters by name; an unknown one is an error that names it."""


class Result(msgspec.Struct, kw_only=True):
    """A result; later versions may add members."""


def seconds(name: str, value: Time | None) -> float | None:
    """Return the time in the parameter ``name`` in seconds since 1970, ``None`` for ``None``.

    Raises Invalid.
    """
    if value is None:
        return None
    text = value if isinstance(value, str) else f"{value:.3f}"
    instant = written(text)
    if instant is None:
        raise no_time(name, str(value))
    return instant


def moment(name: str, value: Time | None) -> At | None:
    """Return a change's id unchanged, and any other value as a time in seconds since 1970.

    Raises Invalid.
    """
    if isinstance(value, str) and _CHANGE_ID.fullmatch(value):
        return value
    return seconds(name, value)


def shaped(value: object, shape: type[T]) -> T:
    """Return a room's value as the type ``shape``, which goes over the wire.

    It takes the attributes that ``shape`` names; others are left out.
    """
    return msgspec.convert(value, type=shape, from_attributes=True)


def _request_key(method_name: str, params: Params, request_id: str) -> str:
    """Return the key by which a repeated request is recognised: its id and a hash of the rest.

    A known id with another method or other parameters is another request; it must never be answered
    with the result of the first.
    """
    return f"{request_id} {sha256(msgspec.json.encode((method_name, params)))[:16]}"


def _in_words(problem: str) -> str:
    """Return msgspec's sentence about a value, with the parameter first and without quotes.

    "Expected `int` <= 365 - at `$.days`" becomes "days: expected int <= 365".
    """
    sentence, _, path = problem.replace("`", "").partition(" - at $")
    words = sentence[:1].lower() + sentence[1:]
    return f"{path.lstrip('.')}: {words}" if path else words


def invalid_params(method: str, cause: str) -> Invalid:
    """Return the error that the parameters do not have the shape that the method takes."""
    return Invalid(
        f"{method}: {cause}",
        hint="rpc.discover shows each method's parameters",
        method=method,
        cause=cause,
    )


class Method(Struct, Generic[P, R], frozen=True):
    """One method of the API; an object of it is called like its handler.

    ``permission`` is what the call may do: ``read``, ``write`` (memories or history) or
    ``operate`` (the daemon itself). ``params`` and ``result`` are the types that the handler takes
    and returns.
    """

    name: str
    summary: str
    description: str
    permission: str
    params: type[Params]
    result: Any
    handler: Callable[Concatenate[Services, Call, P], Awaitable[R]]

    def __call__(
        self, services: Services, call: Call, *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[R]:
        """Call the handler with parameters that are checked already."""
        return self.handler(services, call, *args, **kwargs)

    async def answer(self, services: Services, call: Call, raw: dict[str, Any]) -> R:
        """Check the parameters and call the handler; null counts as a parameter that is left out.

        Raises Invalid or what the handler raises. Credentials from the caller's text are
        removed from the error.
        """
        present = {name: value for name, value in raw.items() if value is not None}
        handler: Callable[..., Awaitable[R]] = self.handler
        try:
            try:
                params = msgspec.convert(present, type=self.params, strict=True)
            except msgspec.ValidationError as error:
                raise invalid_params(self.name, _in_words(str(error))) from error
            checked = msgspec.structs.asdict(params)
            if checked.get("request_id"):
                checked["request_id"] = _request_key(self.name, params, checked["request_id"])
            is_prompt = self.name in PROMPTS
            with services.priority.prompt() if is_prompt else nullcontext():
                return await handler(services, call, **checked)
        except MemdError as error:
            secret.scrub_error(error)
            raise


def method(
    name: str, permission: str
) -> Callable[[Callable[Concatenate[Services, Call, P], Awaitable[R]]], Method[P, R]]:
    """Return a decorator that makes a Method of a handler.

    The handler's keyword arguments are the method's parameters, without a ``_`` at the end (names
    that Python reserves) or at the beginning (unused ones). It gets ``request_id`` as the key of
    the whole request. Its docstring's first line is the summary, the rest the description.
    """

    def make_method(
        handler: Callable[Concatenate[Services, Call, P], Awaitable[R]],
    ) -> Method[P, R]:
        # The first two parameters are the services and the call.
        keywords = list(inspect.signature(handler).parameters.values())[2:]
        fields = [
            (keyword.name, keyword.annotation)
            if keyword.default is keyword.empty
            else (keyword.name, keyword.annotation, keyword.default)
            for keyword in keywords
        ]
        words = name.replace("_", ".").split(".")
        title = "".join(word.capitalize() for word in words)
        shape = msgspec.defstruct(f"{title}Params", fields, bases=(Params,), kw_only=True)
        params = cast("type[Params]", shape)
        summary, _, description = (inspect.getdoc(handler) or "").partition("\n\n")
        result = handler.__annotations__["return"]
        return Method(name, summary, description, permission, params, result, handler)

    return make_method
