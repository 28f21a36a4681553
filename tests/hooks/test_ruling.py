"""rule.add, list, test and off, and what a hook is told before a tool runs."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from anyio import run_process, to_thread

from memd.client.aio import AsyncClient
from tests.hooks.ruling import ASKED, FILE, FORCE, add, before, remember, states
from tests.support.caller import Caller
from tests.support.clock import FakeClock
from tests.support.daemon import Home, daemon_here

pytestmark = pytest.mark.anyio


async def test_undo_and_restore_bring_back_only_what_was_consented_to(caller: Caller) -> None:
    """Undoing the line's change switches the rule off; bringing the same words back, on again."""
    added = await add(caller)
    undone = await caller.call("memory.undo", change=added["change"])
    assert (await before(caller), await states(caller)) == (None, ["changed"])
    await caller.call("memory.undo", change=undone["change"])
    assert (await before(caller))["hookSpecificOutput"] == ASKED
    gone = await caller.call("memory.delete", path=FILE)
    assert await states(caller) == ["gone"]
    await caller.call("memory.undo", change=gone["change"])
    assert await states(caller) == ["on"]
    tool = {"command": "rename", "old_path": "/memories/no-force.md", "new_path": "/memories/b.md"}
    await caller.call("memory.tool", command=tool, session_id="s")
    assert (await before(caller), await states(caller)) == (None, ["gone"])


async def test_one_that_refuses_comes_before_one_that_asks(caller: Caller) -> None:
    """Of several rules that a call breaks the first that refuses answers."""
    await add(caller)
    refusing = await add(caller, "no-push.md", "git push", answer="deny")
    tested = await caller.call("rule.test", tool="Bash", input=FORCE)
    assert (tested["answer"], tested["rule"]) == ("deny", refusing["rule"]["id"])


async def test_an_assistants_program_switches_nothing(caller: Caller) -> None:
    """What a registered assistant runs can neither switch a rule on nor off."""
    rule = (await add(caller))["rule"]["id"]
    await remember(caller, "own.md")
    about = {"name": "ann", "kind": "session", "session_id": "s", "pid": os.getppid()}
    await caller.call("agent.register", **about)
    for method, params in (
        ("rule.off", {"rule": rule}),
        ("rule.add", {"path": FILE, "answer": "deny"}),
        ("rule.add", {"path": "own.md", "check": "git status"}),
    ):
        error = await caller.refused(method, **params)
        assert (error.kind, "terminal of your own" in error.hint) == ("refused", True)
    assert (await before(caller))["hookSpecificOutput"] == ASKED
    assert b"check" not in (await caller.folder() / "own.md").read_bytes()


@pytest.mark.parametrize(("name", "refused"), [("claude", True), ("gemini", True), ("ide", False)])
async def test_a_program_below_an_assistant_is_no_person(
    caller: Caller, name: str, *, refused: bool
) -> None:
    """An assistant is known by the program above the caller, whatever that registers itself as."""
    rule = (await add(caller))["rule"]["id"]
    child = f"""
import os
from memd.client.blocking import Client
with Client({caller.home.places.socket!r}) as client:
    about = {{"cwd": {caller.cwd!r}, "name": "bob", "kind": "shell", "pid": os.getppid()}}
    client.call("agent.register", about)
    print(client.call("rule.off", {{"cwd": {caller.cwd!r}, "rule": {rule!r}}})["state"])
"""
    script = Path(caller.home.path, name)
    script.write_text(
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])\n"
    )
    done = await run_process([sys.executable, str(script)], check=False)
    assert (b"off" in done.stdout, b"for the person to say" in done.stderr) == (
        not refused,
        refused,
    )
    assert await states(caller) == ["on" if refused else "off"]


@pytest.mark.parametrize("origin", ["outside", "agent", "import", "team"])
async def test_others_words_carry_no_rule(caller: Caller, origin: str) -> None:
    """A memory that is not the person's own is refused, until they take it as their own."""
    folder = await caller.folder()
    folder.mkdir(parents=True, exist_ok=True)
    head = "---\nname: a\ndescription: d\nmetadata:\n  type: feedback\n"
    (folder / "a.md").write_text(f"{head}  origin: {origin}\n---\n\nNever push.\n")
    refused = await caller.refused("rule.add", path="a.md", check="git push")
    assert (refused.kind, origin in str(refused)) == ("invalid_params", True)
    if origin == "import":
        read = await caller.call("memory.read", path="a.md")
        await caller.call("memory.write", path="a.md", content=read["content"])
        added = await caller.call("rule.add", path="a.md", check="git push")
        assert added["rule"]["state"] == "on"


async def test_what_cannot_be_a_rule_is_refused(caller: Caller) -> None:
    """A memory of another type, one without a line, and one that is not there."""
    await remember(caller, type="project")
    refused = await caller.refused("rule.add", path=FILE, check="git push")
    assert (refused.kind, refused.code) == ("invalid_params", -32602)
    await remember(caller, "b.md")
    assert (await caller.refused("rule.add", path="b.md")).kind == "invalid_params"
    assert (await caller.refused("rule.add", path="none.md", check="git push")).code == 1001
    secret = "Bash /ghp_" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb3d" + "/"
    assert (await caller.refused("rule.add", path="b.md", check=secret)).kind == "secret"
    assert await states(caller) == []


def _worktree(cwd: str, tree: str) -> None:
    git = ("git", "-C", cwd, "-c", "user.name=t", "-c", "user.email=t@localhost")
    for words in (
        ("init", "-q"),
        ("commit", "-q", "--allow-empty", "-m", "x"),
        ("worktree", "add", "-q", tree),
    ):
        subprocess.run([*git, *words], check=True, capture_output=True)


async def test_rules_hold_in_worktrees_folders_and_sub_agents(caller: Caller) -> None:
    """A rule of the project holds for its sub-agents, in its worktrees, and after cd elsewhere."""
    tree = f"{caller.home.path}/tree"
    await to_thread.run_sync(_worktree, caller.cwd, tree)
    await add(caller)
    below, elsewhere = f"{caller.cwd}/below", f"{caller.home.path}/elsewhere"
    for folder in (below, elsewhere):
        os.mkdir(folder)
    for cwd in (below, tree):
        assert (await before(caller, cwd=cwd))["hookSpecificOutput"] == ASKED
    agent: dict[str, Any] = {"agent_id": "a1", "agent_type": "general-purpose", "prompt_id": "p"}
    for _ in range(2):  # a second call is no repeated event
        assert (await before(caller, **agent))["hookSpecificOutput"] == ASKED
    assert await before(caller, cwd=elsewhere) is None
    began = {"CLAUDE_PROJECT_DIR": caller.cwd}
    moved = await before(caller, cwd=elsewhere, environment=began)
    assert moved["hookSpecificOutput"] == ASKED
    odd = {"CLAUDE_PROJECT_DIR": "/gone/for/good"}
    assert (await before(caller, environment=odd))["hookSpecificOutput"] == ASKED


async def test_a_lost_state_file_switches_rules_off(home: Home, clock: FakeClock) -> None:
    """Without the rows nothing was consented to: the line is a candidate, and doctor says so."""
    async with daemon_here(home, clock), AsyncClient(home.places.socket) as client:
        caller = Caller(client, home, clock, home.project())
        await add(caller)
    for name in ("", "-wal", "-shm"):
        Path(home.places.database + name).unlink(missing_ok=True)
    async with daemon_here(home, clock), AsyncClient(home.places.socket) as client:
        caller = Caller(client, home, clock, home.project())
        assert await before(caller) is None
        found = await caller.call("rule.list")
        assert found["rules"] == []
        (candidate,) = found["candidates"]
        assert candidate["check"] == "git push --force"
        checks = {check["name"]: check for check in (await caller.call("doctor"))["checks"]}
        assert "1 memories have a line check: that is not switched on" in checks["rules"]["detail"]
        await caller.call("rule.add", path=FILE)
        assert (await before(caller))["hookSpecificOutput"] == ASKED


async def test_a_state_file_lost_meanwhile_switches_rules_off(caller: Caller) -> None:
    """The first call after the loss finds no row, so no rule holds from then on."""
    await add(caller)
    for name in ("", "-wal", "-shm"):
        Path(caller.home.places.database + name).unlink(missing_ok=True)
    assert (await before(caller), await states(caller)) == (None, [])
    for left in (await caller.folder()).rglob(".memd-*.tmp"):
        left.unlink()  # a replaced file that no state file tells of: docs/reliability.md
