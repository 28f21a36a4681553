"""The table of methods as an OpenRPC document."""

import textwrap
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from memd import __version__
from memd.methods.method import TABLE, Method

_LINE_CHARACTERS = 96  # of a description
# The order in which methods are listed.
ORDER = str.split(
    """
    hello subscribe shutdown pause resume status doctor report
    load_prompt prefetch session
    extract job.list job.wait job.cancel
    dream dream.status
    review.list review.decide
    memory.list memory.read memory.write memory.delete memory.search memory.tool
    memory.history memory.take_over memory.diff memory.undo memory.why memory.purge
    notes.read notes.update notes.list notes.delete
    context.plan context.spill context.compact
    rule.list rule.add rule.test rule.off
    instructions
    team.join team.leave team.status team.sync team.log team.share team.remove team.resolve
    agent.register agent.list agent.end
    export import
    message.send message.receive message.ack message.log
    hook hook.printed
    rpc.discover
    """
)


def rows() -> tuple[Method, ...]:
    """Return all methods in their order."""
    return tuple(sorted(TABLE.values(), key=lambda row: ORDER.index(row.name)))


def openrpc(methods: Sequence[Method]) -> dict[str, Any]:
    """Return an OpenRPC 1.3 document of these methods."""
    shapes = [shape for row in methods for shape in (row.params, row.result)]
    schemas, components = msgspec.json.schema_components(
        shapes, ref_template="#/components/schemas/{name}"
    )
    document: dict[str, Any] = {
        "openrpc": "1.3.2",
        "info": {"title": "memd", "version": __version__, "license": {"name": "MIT"}},
        "methods": [],
        "components": {"schemas": components},
    }
    for number, row in enumerate(methods):
        params = components.pop(row.params.__name__)  # listed member by member instead
        required = params.get("required", [])
        document["methods"].append(
            {
                "name": row.name,
                "summary": row.summary,
                "description": _wrapped(row.description),
                "paramStructure": "by-name",
                "params": [
                    {"name": name, "required": name in required, "schema": schema}
                    for name, schema in params.get("properties", {}).items()
                ],
                # The schemas of a method are two: of its parameters and of its result.
                "result": {"name": "result", "schema": schemas[2 * number + 1]},
                "x-permission": row.permission,
            }
        )
    return document


def _wrapped(description: str) -> str:
    """Return the paragraphs of a description in lines of its own, not of its source."""
    fill = partial(textwrap.fill, width=_LINE_CHARACTERS, break_on_hyphens=False)
    paragraphs = (" ".join(each.split()) for each in description.split("\n\n"))
    return "\n\n".join(map(fill, paragraphs))
