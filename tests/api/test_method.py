"""Parameters of every method."""

import pytest

from memd.api.table import methods
from tests.api.caller import Caller

pytestmark = pytest.mark.anyio


async def test_wrong_parameters_are_named(caller: Caller) -> None:
    """A missing, an unknown and a wrong member are each named in the error."""
    missing = await caller.refused("memory.read")
    assert (missing.code, "path" in str(missing)) == (-32602, True)
    unknown = await caller.refused("memory.read", path="a.md", colour="red")
    assert "colour" in str(unknown)
    wrong = await caller.refused("memory.read", path=3)
    assert "$.path" in str(wrong)


async def test_an_error_never_repeats_a_credential(caller: Caller) -> None:
    """What looks like a credential in a caller's own words does not come back in the error."""
    token = "ghp_" + "16C7e42F292c6912" + "E7710c838347Ae178B4a"
    error = await caller.refused("memory.read", path=f"{token}.md")
    assert error.code == 1001
    assert token not in f"{error} {error.data}"
    assert "[secret:" in str(error)


async def test_optional_members_may_be_null(caller: Caller) -> None:
    """Null stands for a member that was left out, in every method about a project."""
    for row in methods():
        fields = row.params.__struct_fields__
        written = row.params.__struct_encode_fields__
        named = zip(fields, written, strict=True)
        optional = {name: None for field, name in named if field not in _required(row.params)}
        if "cwd" in fields and row.permission == "read" and not _required(row.params) - {"cwd"}:
            await caller.call(row.name, **{k: v for k, v in optional.items() if k != "cwd"})


def _required(params: type) -> set[str]:
    fields: tuple[str, ...] = getattr(params, "__struct_fields__", ())
    defaults = getattr(params, "__struct_defaults__", ())
    return set(fields[: len(fields) - len(defaults)]) if defaults else set(fields)
