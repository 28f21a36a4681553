"""dream.review, accept and reject over the socket."""

from typing import Any

import pytest

from memd.core.text import sha256
from memd.core.values import Actor, Provenance
from memd.daemon.app import SCHEMAS
from memd.state.database import open_database
from memd.state.proposals import Proposal, ProposalTable
from memd.state.proposed import ProposedEdit
from tests.api.caller import Caller

pytestmark = pytest.mark.anyio


async def propose(caller: Caller, *edits: ProposedEdit) -> str:
    """Keep a proposal as a dream does."""
    directory = (await caller.call("memory.list"))["memory_dir"]
    wanted = Proposal(
        "", directory, 1772539200, job="j7", problems=("too much at once",), edits=edits
    )
    database = open_database(caller.home.places.database, SCHEMAS)
    name = ProposalTable(database).propose(wanted, Provenance(Actor.DREAM))
    database.close()
    return name


async def two(caller: Caller) -> str:
    """Write a memory and keep a proposal that changes it and makes another one."""
    await caller.write(path="a.md", body="one")
    before = ((await caller.folder()) / "a.md").read_bytes()
    change = ProposedEdit(
        "a.md", before.replace(b"one", b"two"), sha256(before), before, "it is two"
    )
    return await propose(caller, change, ProposedEdit("b.md", before))


async def only(caller: Caller, **params: Any) -> Any:
    """Return the one proposal of a review."""
    (results,) = (await caller.call("dream.review", **params))["proposals"]
    return results


async def test_a_proposal_is_shown_with_its_diffs(caller: Caller) -> None:
    """The members are those of the protocol, and each file has its action and diff."""
    assert await caller.call("dream.review") == {"proposals": []}
    name = await two(caller)
    results = await only(caller)
    diff = results["files"][0].pop("diff")
    assert "-one\n+two\n" in diff
    assert results["files"].pop()["action"] == "created"
    assert results == {
        "id": name,
        "at": "2026-03-03T12:00:00.000Z",
        "job": "j7",
        "engine": "local",
        "state": "open",
        "reason": "",
        "problems": ["too much at once"],
        "said": "",
        "files": [
            {
                "path": "a.md",
                "action": "changed",
                "state": "open",
                "reason": "it is two",
                "merged_into": "",
                "stale": False,
            }
        ],
        "kind": "dream",
    }


async def test_what_is_rejected_is_gone_from_the_list(caller: Caller) -> None:
    """A refusal by file and then as a whole; with all it is still seen, with its reason."""
    name = await two(caller)
    part = await caller.call("dream.reject", proposal=name, paths=["b.md"], reason="no need")
    assert part == {"proposal": name, "state": "open", "rejected": ["b.md"]}
    assert (await caller.call("dream.reject", proposal=name))["state"] == "rejected"
    assert (await caller.call("dream.review"))["proposals"] == []
    results = await only(caller, all=True)
    assert (results["state"], results["reason"]) == ("rejected", "no need")
    assert (await only(caller, proposal=name))["id"] == name


async def test_errors_have_codes(caller: Caller) -> None:
    """Each thing that cannot be has its code and kind."""
    name = await two(caller)
    bad = await propose(caller)
    goes = await propose(caller, ProposedEdit("a.md", None, "0", b"", merged_into="x.md"))
    await caller.call("dream.accept", proposal=name, paths=["a.md"])
    for method, params, code, kind in (
        ("dream.review", {"proposal": "p99"}, 1001, "proposal_not_found"),
        ("dream.accept", {"proposal": name, "paths": ["x.md"]}, 1001, "path_not_proposed"),
        ("dream.accept", {"proposal": name, "paths": ["a.md"]}, 1002, "proposal_decided"),
        ("dream.accept", {"proposal": bad}, 1011, "proposal_unreadable"),
        ("dream.reject", {"proposal": goes, "paths": ["b.md"]}, 1001, "path_not_proposed"),
        ("dream.reject", {"proposal": bad, "reason": "x" * 10_001}, -32602, "invalid_params"),
    ):
        error = await caller.refused(method, **params)
        assert (error.code, error.data["kind"]) == (code, kind)


async def test_nothing_is_accepted_while_memory_is_off(caller: Caller) -> None:
    """Memory that is switched off is written by nobody; looking and refusing still work."""
    name = await two(caller)
    await caller.plain("hello", client="test", environment={"MEMD_DISABLE": "1"})
    assert (await caller.refused("dream.accept", proposal=name)).code == 1010
    assert (await caller.call("dream.reject", proposal=name))["state"] == "rejected"
