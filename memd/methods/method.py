"""A method of the API: ``@method`` on the function that does the work, and the table of all.

The function belongs to a room. Its keyword arguments are the method's parameters, its result is the
answer. Parameters are checked here once, so no function gets a wrong type. A function that awaits
nothing may block: it is called in a worker thread, all of it in one.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Annotated, Any, TypeVar, cast

import msgspec
from msgspec import Struct

from memd.base import places
from memd.base.errors import Invalid, MemdError
from memd.base.instants import no_time, written
from memd.base.text import sha256
from memd.base.threads import in_thread
from memd.rpc.call import Call, Handler
from memd.store import secret
from memd.store.past import At

F = TypeVar("F", bound=Callable[..., Any])
InFlight = Callable[[], AbstractContextManager[object]]

# Methods whose answer a person waits for: background work yields to them.
PROMPTS = ("prefetch", "load_prompt", "hook", "session", "memory.search")
# How many results a caller may request; a larger number is an error that names the bound.
Limit = Annotated[int, msgspec.Meta(ge=1, le=1000)]
# A client's own name for a session.
SessionId = Annotated[str, msgspec.Meta(max_length=1000)]
Time = str | float  # ISO 8601 or seconds since 1970
_CHANGE_ID = re.compile(r"c[0-9]+")

# Members by which a caller names itself, its sessions and its requests. They are stored with what
# the caller does, and only ever compared.
IDENTIFIERS = frozenset({"client", "prompt_id", "request_id", "session", "session_id", "version"})


class Params(Struct, forbid_unknown_fields=True, kw_only=True, rename=lambda name: name.strip("_")):
    """Parameters by name; an unknown one is an error that names it."""


class Result(Struct, kw_only=True):
    """A result; later versions may add members."""


class Done(Struct, frozen=True):
    """The method was carried out and has no other result."""

    ok: bool = True


class Method(Struct, frozen=True):
    """One method of the API.

    ``permission`` is what the call may do: ``read``, ``write`` (memories or history) or
    ``operate`` (the daemon itself). ``params`` and ``result`` are the types that ``function`` takes
    and returns; its first two arguments are its room's service and the call. ``identifiers`` are
    those of its parameters that are in ``IDENTIFIERS``. ``blocks`` says that the function is called
    in a thread; a caller that is cancelled gets its cancellation once that has ended.
    """

    name: str
    summary: str
    description: str
    permission: str
    params: type[Params]
    result: Any
    function: Callable[..., Any]
    blocks: bool
    identifiers: tuple[str, ...]

    async def answer(
        self, service: object, in_flight: InFlight, call: Call, raw: dict[str, Any]
    ) -> Any:
        """Check the parameters and call the function; null is as if a parameter were left out.

        A method of ``PROMPTS`` is called in the context that ``in_flight`` returns. Raises Invalid
        or what the function raises. Credentials from the caller's text are removed from the error.
        """
        present = {name: value for name, value in raw.items() if value is not None}
        try:
            try:
                params = msgspec.convert(present, type=self.params, strict=True)
            except msgspec.ValidationError as error:
                raise invalid_params(self.name, _in_words(str(error))) from error
            for name in self.identifiers:
                if value := getattr(params, name):
                    setattr(params, name, hidden(value))
            checked = msgspec.structs.asdict(params)
            if checked.get("request_id"):
                checked["request_id"] = _request_key(self.name, params, checked["request_id"])
            with in_flight() if self.name in PROMPTS else nullcontext():
                if self.blocks:
                    work = partial(self.function, service, call, **checked)
                    return await in_thread(work)
                return await self.function(service, call, **checked)
        except MemdError as error:
            secret.scrub_error(error)
            raise


TABLE: dict[str, Method] = {}  # all methods by name; ``@method`` adds each


def method(name: str, permission: str) -> Callable[[F], F]:
    """Return a decorator that adds a function to the table of methods.

    The function's keyword arguments are the method's parameters, without a ``_`` at the end (names
    that Python reserves) or at the beginning (unused ones). It gets ``request_id`` as the key of
    the whole request. Its docstring's first paragraph is the summary, the rest the description.
    """

    def add(function: F) -> F:
        # The first two parameters are the service and the call.
        keywords = list(inspect.signature(function).parameters.values())[2:]
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
        summary, _, description = (inspect.getdoc(function) or "").partition("\n\n")
        summary = " ".join(summary.split())
        result = function.__annotations__["return"]
        named = tuple(IDENTIFIERS.intersection(params.__struct_fields__))
        blocks = not inspect.iscoroutinefunction(function)
        facts = (name, summary, description, permission, params, result, function, blocks, named)
        TABLE[name] = Method(*facts)
        return function

    return add


def bound(services: Iterable[object], in_flight: InFlight) -> Mapping[str, Handler]:
    """Return what answers each method; ``services`` are the objects whose functions they are.

    ``in_flight`` returns a context in which a person waits for the answer. A function that belongs
    to no class gets the last of the services.
    """
    every = tuple(services)
    owners = {function: each for each in every for function in _functions(each)}
    return {
        name: partial(row.answer, owners.get(row.function, every[-1]), in_flight)
        for name, row in TABLE.items()
    }


def hidden(identifier: str) -> str:
    """Return an identifier, or a name made of its hash if it looks like a credential.

    The same identifier always gives the same name: the caller is served, and the credential is
    stored nowhere.
    """
    if not secret.find(identifier):
        return identifier
    return f"hidden-{sha256(identifier.encode())[:16]}"


def forwarded(environment: Mapping[str, str] | None) -> dict[str, str]:
    """Return the environment variables that memd uses, without those that hold a credential."""
    return {
        name: value
        for name, value in (environment or {}).items()
        if name in places.FORWARDED and not secret.find(value)
    }


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


def invalid_params(method: str, cause: str) -> Invalid:
    """Return the error that the parameters do not have the shape that the method takes."""
    return Invalid(
        f"{method}: {cause}",
        hint="rpc.discover shows each method's parameters",
        method=method,
        cause=cause,
    )


def _functions(service: object) -> Iterable[object]:
    """Return the functions of a service's class."""
    return [each for each in vars(type(service)).values() if inspect.isfunction(each)]


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
