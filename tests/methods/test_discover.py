"""The table as documents."""

from memd.daemon.table import methods
from memd.methods.discover import openrpc


def test_every_method_is_described() -> None:
    """The document has each method with its parameters, result and permission."""
    rows = methods()
    document = openrpc(rows)
    assert [method["name"] for method in document["methods"]] == [row.name for row in rows]
    write = next(m for m in document["methods"] if m["name"] == "memory.write")
    required = {param["name"] for param in write["params"] if param["required"]}
    assert required == {"cwd"}
    assert write["x-permission"] == "write"
    name = write["result"]["schema"]["$ref"].rsplit("/", 1)[-1]
    assert "hash" in document["components"]["schemas"][name]["properties"]
