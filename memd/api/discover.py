"""The table of methods as an OpenRPC document."""

from collections.abc import Sequence
from typing import Any

import msgspec

from memd import __version__
from memd.api.method import Method


def openrpc(rows: Sequence[Method[Any, Any]]) -> dict[str, Any]:
    """Return an OpenRPC 1.3 document of these methods."""
    shapes = [shape for row in rows for shape in (row.params, row.result)]
    schemas, components = msgspec.json.schema_components(
        shapes, ref_template="#/components/schemas/{name}"
    )
    document: dict[str, Any] = {
        "openrpc": "1.3.2",
        "info": {"title": "memd", "version": __version__, "license": {"name": "MIT"}},
        "methods": [],
        "components": {"schemas": components},
    }
    for number, row in enumerate(rows):
        params = components.pop(row.params.__name__)  # listed member by member instead
        required = params.get("required", [])
        document["methods"].append(
            {
                "name": row.name,
                "summary": row.summary,
                "description": row.description,
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
