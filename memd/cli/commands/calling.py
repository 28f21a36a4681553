"""call: any method of the daemon, its parameters as NAME=VALUE."""

import json
import os
from collections.abc import Mapping
from typing import Any

from memd.base.errors import Invalid, MemdError
from memd.cli.invocation import JOB_SECONDS, Invocation

_UNKNOWN_METHOD = -32601
_DISCOVER = "rpc.discover"
_TEXT = "string"
_NO_PARAMETER = "{} is no parameter"
_CANNOT_BE = "{} cannot be {}"
_NO_OBJECT = "standard input has to be one JSON object, the method's parameters"
_NO_METHOD = "there is no method {}"


def call(invocation: Invocation) -> None:
    """Call a method and print its result as JSON.

    The project's directory and an id of the request are added where the method takes them.
    """
    name = invocation.options.name
    document = invocation.call(_DISCOVER)
    if name == _DISCOVER:  # the document does not list its own method
        invocation.screen.data(document)
        return
    listed = {method["name"]: method for method in document["methods"]}
    given = dict(_parts(word) for word in invocation.options.parameters)
    if name not in listed:
        raise _unknown(invocation, name, list(listed))
    shapes = {param["name"]: param["schema"] for param in listed[name]["params"]}
    params = {key: _value(key, text, shapes.get(key, {})) for key, text in given.items()}
    if "cwd" in shapes:
        params.setdefault("cwd", invocation.cwd)
    if "request_id" in shapes:
        params.setdefault("request_id", os.urandom(16).hex())
    invocation.screen.data(invocation.call(name, seconds=JOB_SECONDS, **params))


def context(invocation: Invocation) -> None:
    """Call a method of contexts with the JSON object on standard input, and print its result."""
    try:
        params = json.loads(invocation.read("-"))
    except (ValueError, RecursionError) as error:
        raise Invalid(_NO_OBJECT, hint=f"it is no JSON: {error}") from error
    if not isinstance(params, dict):
        raise Invalid(_NO_OBJECT)
    answer = invocation.request(seconds=JOB_SECONDS, **{"cwd": invocation.cwd, **params})
    invocation.screen.data(answer)


def _parts(word: str) -> tuple[str, str]:
    """Return the name and the text of NAME=VALUE. Raises Invalid."""
    name, sign, text = word.partition("=")
    if not sign or not name:
        hint = "parameters are NAME=VALUE, such as limit=5"
        raise Invalid(_NO_PARAMETER.format(word), hint=hint)
    return name, text


def _value(name: str, text: str, schema: Mapping[str, Any]) -> object:
    """Return a parameter's value: the text itself where the method takes only text, else its JSON.

    Raises Invalid.
    """
    shapes = schema.get("anyOf", [schema])
    kinds = {_TEXT if "enum" in shape else shape.get("type", "object") for shape in shapes}
    if kinds <= {_TEXT, "null"}:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if _TEXT in kinds:
            return text
        kind = " or ".join(sorted(kinds - {"null"}))
        raise Invalid(_CANNOT_BE.format(name, text), hint=f"it is {kind}") from error


def _unknown(invocation: Invocation, name: str, names: list[str]) -> Exception:
    """Return the error for a method that does not exist, with the nearest unless it is gone."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a wrong name needs it

    try:
        invocation.call(name)  # the daemon knows what is gone
    except MemdError as error:
        nearest = get_close_matches(name, names, 1)
        if error.code == _UNKNOWN_METHOD and nearest and " is gone" not in error.hint:
            error.hint = f"the nearest is {nearest[0]}"
        return error
    return Invalid(f"there is no method {name}", hint="memctl call rpc.discover lists all")
