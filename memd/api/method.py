"""What a method is: its name, its shapes, who may call it, and the function that answers.

A handler is JSON in, domain call out: it takes the services, the call and typed parameters and
returns a typed result. Parameters are checked here once, so no handler meets a wrong type.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar, cast

import msgspec

from memd.api.services import Services
from memd.core import places
from memd.core.errors import MemdError
from memd.core.instants import NotATimeError, written
from memd.core.text import sha256
from memd.documents import secrets
from memd.rpc.connection import Call
from memd.store.history import At

P = TypeVar("P", bound="Params")
R = TypeVar("R")
T = TypeVar("T")


# How many results a caller may ask for; more is an error that names the bound.
Limit = Annotated[int, msgspec.Meta(ge=1, le=1000)]
# A client's own name for a session.
SessionId = Annotated[str, msgspec.Meta(max_length=1000)]
Time = str | float  # ISO 8601 or seconds since 1970
_CHANGE = re.compile(r"c[0-9]+")

# Members by which a caller names itself, its sessions and its requests. They are stored with what
# the caller does, and only ever compared.
IDENTIFIERS = frozenset({"client", "prompt_id", "request_id", "session", "session_id", "version"})


class Named(msgspec.Struct):
    """A caller's words. An identifier among them that looks like a credential is hidden at once.

    It becomes a name made of its hash: a session stays the same session and a repeated request
    the same request, a caller that is careless is served, and nothing stores what it sent.
    """

    def __post_init__(self) -> None:
        """Hide what must not be stored."""
        for name in IDENTIFIERS.intersection(self.__struct_fields__):
            value = getattr(self, name)
            if value and secrets.find(value):
                setattr(self, name, f"hidden-{sha256(value.encode())[:16]}")


def forwarded(environment: Mapping[str, str] | None) -> dict[str, str]:
    """Return the variables that count of those that a client sent; no credential is among them."""
    return {
        name: value
        for name, value in (environment or {}).items()
        if name in places.FORWARDED and not secrets.find(value)
    }


class Params(Named, forbid_unknown_fields=True, kw_only=True):
    """Parameters by name; an unknown one is an error that names it."""


class Result(msgspec.Struct, kw_only=True):
    """A result; later versions may add members."""


def seconds(name: str, value: Time | None) -> float | None:
    """Return the seconds since 1970 of a parameter. Raises NotATimeError."""
    if value is None:
        return None
    instant = written(value if isinstance(value, str) else f"{value:.3f}")
    if instant is None:
        raise NotATimeError(name, str(value))
    return instant


def moment(name: str, value: Time | None) -> At | None:
    """Return a parameter that is a change's id or a time. Raises NotATimeError."""
    if isinstance(value, str) and _CHANGE.fullmatch(value):
        return value
    return seconds(name, value)


def shaped(value: object, shape: type[T]) -> T:
    """Return what a room found, with the members of a shape of the wire and no others."""
    return msgspec.convert(value, type=shape, from_attributes=True)


def request_key(method: str, params: Params, request_id: str | None) -> str:
    """Return what makes a request the same one again: its id, its method and its parameters.

    An id that comes back with other parameters is another request; it must never be answered
    with the outcome of the first. Without an id there is no key.
    """
    if not request_id:
        return ""
    return f"{request_id} {sha256(msgspec.json.encode((method, params)))[:16]}"


class InvalidParamsError(MemdError):
    """The parameters do not have the shape that the method takes."""

    code = -32602
    kind = "invalid_params"
    hint = "rpc.discover shows each method's parameters"
    exit_status = 2

    def __init__(self, method: str, cause: str) -> None:
        super().__init__(f"{method}: {cause}", method=method, cause=cause)


@dataclass(frozen=True, slots=True)
class Method(Generic[P, R]):
    """One row of the table; called like its handler, with parameters that were checked.

    ``permission`` is what the call may do: ``read``, ``write`` (memories or history) or
    ``operate`` (the daemon itself). ``errors`` are the failures a caller should expect.
    """

    name: str
    permission: str
    errors: tuple[type[MemdError], ...]
    handler: Callable[[Services, Call, P], Awaitable[R]]

    @property
    def summary(self) -> str:
        """What the method does: the first line of the handler's docstring."""
        return (self.handler.__doc__ or "").partition("\n")[0]

    @property
    def params(self) -> type[P]:
        """The shape of the parameters, as the handler takes them."""
        return cast("type[P]", list(self.handler.__annotations__.values())[2])

    @property
    def result(self) -> Any:
        """The shape of the result, as the handler returns it."""
        return self.handler.__annotations__["return"]

    def __call__(self, services: Services, call: Call, params: P) -> Awaitable[R]:
        """Answer with parameters that are checked already."""
        return self.handler(services, call, params)

    async def answer(self, services: Services, call: Call, raw: dict[str, Any]) -> R:
        """Check the parameters and answer.

        Raises InvalidParamsError or what the handler raises, without any credential that the
        caller's own words may have brought into it.
        """
        try:
            return await self(services, call, self._checked(raw))
        except MemdError as error:
            secrets.scrub_error(error)
            raise

    def _checked(self, raw: dict[str, Any]) -> P:
        try:
            return msgspec.convert(raw, type=self.params, strict=True)
        except msgspec.ValidationError as error:
            raise InvalidParamsError(self.name, str(error)) from error


def method(
    name: str, permission: str, *errors: type[MemdError]
) -> Callable[[Callable[[Services, Call, P], Awaitable[R]]], Method[P, R]]:
    """Return a decorator that makes a handler a row of the table.

    Its annotations are the shapes of parameters and result, its docstring's first line the summary.
    """

    def row(handler: Callable[[Services, Call, P], Awaitable[R]]) -> Method[P, R]:
        return Method(name, permission, errors, handler)

    return row
