"""The methods and errors of the protocol as Markdown."""

from collections.abc import Iterable, Sequence
from typing import Any

from memd.base.errors import MemdError
from memd.methods.discover import openrpc
from memd.methods.method import Method

_STANDARD = (
    (-32700, "parse error", "the frame is no strict JSON"),
    (-32600, "invalid request", "the frame is JSON, but no request"),
    (-32601, "method not found", "no method has this name"),
    (-32602, "invalid params", "the parameters do not have the method's shape"),
    (-32603, "internal error", "a fault of memd; the log has it under the id that is named"),
    (-32800, "request cancelled", "the client cancelled this request"),
)


def markdown(rows: Sequence[Method], errors: Iterable[type[MemdError]]) -> str:
    """Return docs/protocol.md's tables: each method with its shapes, and all error codes."""
    document = openrpc(rows)
    parts = ["## Methods\n"]
    for row, described in zip(rows, document["methods"], strict=True):
        parts.append(f"### `{row.name}`\n\n{row.summary} Permission: {row.permission}.\n")
        parts += [row.description.replace("``", "`") + "\n"] if row.description else []
        parts.append(_members("Parameters", described["params"]))
        parts.append(_result(described["result"]["schema"], document["components"]["schemas"]))
    parts.append(_errors(errors))
    return "\n".join(parts)


def _members(title: str, members: list[dict[str, Any]]) -> str:
    if not members:
        return f"{title}: none.\n"
    lines = [f"{title}:\n"]
    for member in members:
        optional = "" if member["required"] else ", optional"
        lines.append(f"- `{member['name']}`: {_words(member['schema'])}{optional}")
    return "\n".join(lines) + "\n"


def _result(schema: dict[str, Any], components: dict[str, Any]) -> str:
    name = schema.get("$ref", "").rsplit("/", 1)[-1]
    if name not in components:
        return f"Result: {_words(schema)}.\n"
    properties = components[name].get("properties", {})
    members = [
        {"name": key, "required": True, "schema": value} for key, value in properties.items()
    ]
    return _members("Result", members)


def _words(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "anyOf" in schema:
        return " or ".join(_words(part) for part in schema["anyOf"])
    kind = schema.get("type", "any JSON")
    if kind == "array":
        return f"list of {_words(schema.get('items', {}))}"
    return str(kind)


def _errors(errors: Iterable[type[MemdError]]) -> str:
    kinds: dict[tuple[int, str], tuple[bool, str, str]] = {}
    for error in errors:
        words = (error.__doc__ or "").split("\n")[0]
        kinds.setdefault((error.code, error.kind), (error.retryable, words, error.hint))
    lines = [
        "## Errors\n",
        "An error has `code`, a sentence, and `data` with `kind`, `retryable`, `hint` and facts.\n",
        "| code | kind | retryable | when |",
        "|---|---|---|---|",
    ]
    lines += [f"| {code} | {kind} | | {words} |" for code, kind, words in _STANDARD]
    lines += [
        f"| {code} | `{kind}` | {'yes' if retryable else 'no'} | {words} {hint} |".replace(
            "  ", " "
        )
        for (code, kind), (retryable, words, hint) in sorted(kinds.items())
        if code > 0
    ]
    return "\n".join(lines) + "\n"
