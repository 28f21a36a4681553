"""team.* through the socket, with a server of the team in this process."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from memd.client.aio import AsyncClient
from memd.server.values import Role
from memd.testing.clock import FakeClock
from memd.testing.daemon import daemon_here, throw_away_home
from tests.api.caller import Caller
from tests.server.servers import TeamServer, team_server

pytestmark = pytest.mark.anyio
FACTS = {"name": "freeze", "description": "when merges stop", "type": "project"}
LINES = "Merges stop on Fridays.\n\nKim decides.\n\nAsk Kim."


@pytest.fixture
def server(tmp_path: Path, clock: FakeClock) -> Iterator[TeamServer]:
    """Serve a repository."""
    with team_server(tmp_path / "server.db", clock=clock.now) as made:
        yield made


@pytest.fixture
async def anna(caller: Caller) -> Caller:
    """Return a member's device whose project has an origin."""
    return with_origin(caller)


@pytest.fixture
async def ben(anna: Caller, clock: FakeClock) -> AsyncIterator[Caller]:
    """Return another member's device: a HOME, a daemon and a clone of its own.

    What the first daemon opens it has opened by then: each looks for leaks at its end.
    """
    (await anna.folder()).mkdir(parents=True)
    await anna.folder()
    async with AsyncExitStack() as stack:
        home = stack.enter_context(throw_away_home())
        await stack.enter_async_context(daemon_here(home, clock))
        client = await stack.enter_async_context(AsyncClient(home.places.socket, name="ben"))
        yield with_origin(Caller(client, home, clock, home.project()))


def with_origin(caller: Caller, origin: str = "git@github.com:Acme/App.git") -> Caller:
    """Give a caller's project an origin."""
    Path(caller.cwd, ".git/config").write_text(f'[remote "origin"]\n\turl = {origin}\n')
    return caller


async def join(caller: Caller, server: TeamServer, name: str, role: Role = Role.MEMBER) -> Any:
    """Join with a new invitation."""
    return await caller.call("team.join", url=server.url, code=server.invite(name, role))


async def share(caller: Caller, text: str, path: str = "freeze.md") -> Any:
    """Write a team memory and send it."""
    await caller.call("memory.write", scope="team", path=path, body=text, **FACTS)
    return await caller.call("team.push")


async def text(caller: Caller, path: str = "team/freeze.md") -> str:
    """Return what a memory says."""
    return str((await caller.call("memory.read", path=path))["content"])


async def test_joining_says_first_what_it_would_send(anna: Caller, server: TeamServer) -> None:
    """The preview asks no server and writes nothing; joining takes a code once and sends that."""
    folder = await anna.folder() / "team"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text("---\nname: a\ndescription: d\ntype: project\n---\n\nx\n")
    (folder / "b.md").write_text("no type")
    preview = (await anna.call("team.join", url="https://nowhere.invalid", preview=True))["preview"]
    assert preview["sends"] == ["team/a.md"]
    assert [(one["key"], one["reason"]) for one in preview["left"]] == [("b.md", "type")]
    assert (preview["remote"], preview["code_needed"]) == ("github.com/acme/app", True)
    config = Path(os.path.dirname(anna.home.places.config))
    assert not (config / "team.toml").exists()
    code = server.invite("anna")
    joined = (await anna.call("team.join", url=server.url, code=code))["joined"]
    assert (joined["member"], joined["role"], joined["types"]) == ("anna", "member", {"project": 1})
    assert joined["sync"]["sent"] == ["team/a.md"]
    assert {file.stat().st_mode & 0o777 for file in config.glob("team*")} == {0o600}
    again = await anna.refused("team.join", url=server.url, code=code)
    assert (again.kind, again.message.count(code)) == ("team_refused", 0)


async def test_a_repository_joins_nothing(anna: Caller, server: TeamServer) -> None:
    """Whatever a checkout brings along, no method answers for it before a person joined."""
    for name in ("team.toml", ".memd.toml", ".git/team.toml", "memd.toml"):
        row = f'[[membership]]\nserver = "{server.url}"\n[team]\nenabled = true\n'
        Path(anna.cwd, name).write_text(row)
    for method in ("team.status", "team.pull", "team.push", "team.leave", "team.members"):
        assert (await anna.refused(method)).code == 1024
    for method, more in {"team.accept": {}, "team.diff": {}, "team.log": {"path": "a.md"}}.items():
        assert (await anna.refused(method, **more)).kind == "team_not_joined"


async def test_what_one_writes_the_other_has(anna: Caller, ben: Caller, server: TeamServer) -> None:
    """A memory goes over, a merge comes back, and each says whose words they are."""
    await join(anna, server, "anna")
    await join(ben, server, "ben")
    assert (await share(anna, LINES))["sent"] == ["team/freeze.md"]
    assert (await ben.call("team.pull"))["taken"] == ["team/freeze.md"]
    assert await text(ben) == await text(anna)
    why = await ben.call("memory.why", path="team/freeze.md")
    assert (why["shared"]["member"], why["shared"]["revision"]) == ("anna", 1)
    (member,) = (await ben.call("team.members"))["members"]
    assert (member["member"], member["entries"]) == ("anna", 1)
    await share(ben, LINES.replace("Fridays", "Mondays"))
    await anna.call(
        "memory.write", scope="team", path="freeze.md", body=LINES.replace("Ask Kim", "Ask Lee")
    )
    assert (await anna.call("team.status"))["state"] == "changed"
    (diff,) = (await anna.call("team.diff"))["files"]
    assert "+Ask Lee." in diff["diff"]
    merged = await anna.call("team.push")
    assert (merged["merged"], merged["sent"]) == (["team/freeze.md"], ["team/freeze.md"])
    await ben.call("team.pull")
    assert "Mondays" in await text(ben)
    assert "Ask Lee" in await text(ben)
    versions = (await ben.call("team.log", path="freeze.md"))["versions"]
    assert [one["member"] for one in versions] == ["anna", "ben", "anna"]
    assert (await ben.call("team.status"))["state"] == "equal"


async def test_a_pull_says_how_far_it_is(anna: Caller, ben: Caller, server: TeamServer) -> None:
    """Who gives a token hears how many files came."""
    await join(anna, server, "anna")
    await share(anna, LINES)
    await join(ben, server, "ben")
    await share(anna, LINES, "other.md")
    values: list[Any] = []

    async def progress(value: dict[str, Any]) -> None:
        values.append(value)

    await ben.client.call("team.pull", {"cwd": ben.cwd}, progress=progress)
    assert values == [{"files": 1}]


async def test_a_conflict_is_a_person_s(anna: Caller, ben: Caller, server: TeamServer) -> None:
    """The server's text stands, ours is told with it, and what is decided goes to everybody."""
    await join(anna, server, "anna")
    await join(ben, server, "ben")
    await share(anna, LINES)
    await ben.call("team.pull")
    await share(anna, LINES.replace("Fridays", "Mondays"))
    result = await share(ben, LINES.replace("Fridays", "Tuesdays"))
    assert [(one["key"], one["member"]) for one in result["conflicts"]] == [("freeze.md", "anna")]
    assert "Mondays" in await text(ben)
    (diff,) = (await ben.call("team.diff"))["files"]
    assert ("Tuesdays" in diff["ours"], "Mondays" in diff["theirs"]) == (True, True)
    both = diff["ours"].replace("Tuesdays", "Mondays and Tuesdays")
    await ben.call("team.resolve", path="freeze.md", how="edit", text=both)
    assert (await ben.call("team.status"))["conflicts"] == []
    await anna.call("team.pull")
    assert "Mondays and Tuesdays" in await text(anna)


async def test_removing_is_an_act_of_its_own(anna: Caller, ben: Caller, server: TeamServer) -> None:
    """A deleted file comes back; a removed one goes, is held where it was changed, and restored."""
    await join(anna, server, "anna")
    await join(ben, server, "ben")
    await share(anna, LINES)
    await ben.call("team.pull")
    refused = await ben.refused("memory.delete", path="team/freeze.md")
    assert "memctl team remove" in refused.hint + refused.message
    (await ben.folder() / "team/freeze.md").unlink()
    await ben.call("team.pull")
    assert "Fridays" in await text(ben)
    assert (await ben.refused("team.remove", path="freeze.md", reason="x")).kind == "team_refused"
    await ben.call("memory.write", scope="team", path="freeze.md", body="Mine.")
    done = await anna.call("team.remove", path="freeze.md", reason="over")
    assert done["removed"] == ["team/freeze.md"]
    result = await ben.call("team.pull")
    assert [(one["key"], one["reason"]) for one in result["held"]] == [("freeze.md", "removed")]
    assert "Mine." in await text(ben)
    await ben.call("team.drop", path="freeze.md")
    assert (await ben.refused("memory.read", path="team/freeze.md")).kind == "not_found"
    assert (await ben.refused("team.keep", path="freeze.md")).kind == "team_refused"
    await anna.call("team.restore", path="freeze.md")
    assert (await ben.call("team.pull"))["taken"] == ["team/freeze.md"]
    assert "Fridays" in await text(ben)
    versions = (await ben.call("team.log", path="freeze.md"))["versions"]
    # Also of versions before the removal, whose text only maintainers may see.
    assert [one["size"] > 0 for one in versions] == [True, False, True]


async def test_what_a_member_may_not_remove_stops_nothing(
    anna: Caller, ben: Caller, server: TeamServer
) -> None:
    """A refused removal is that member's alone: their sync goes on; a maintainer may."""
    await join(anna, server, "anna")
    await join(ben, server, "ben")
    await share(anna, LINES)
    await ben.call("team.pull")
    refused = await ben.refused("team.remove", path="freeze.md", reason="x")
    assert (refused.kind, "maintainer" in refused.message) == ("team_refused", True)
    assert (await ben.call("team.status"))["state"] == "equal"
    assert (await share(ben, "More.", "other.md"))["sent"] == ["team/other.md"]
    code = server.invite("ben", Role.MAINTAINER)
    await ben.call("team.join", url=server.url, code=code)
    done = await ben.call("team.remove", path="freeze.md", reason="x")
    assert done["removed"] == ["team/freeze.md"]


async def test_a_private_memory_moves_over(anna: Caller, server: TeamServer) -> None:
    """It is shared as one change, which undo takes back; what is about the person stays."""
    await join(anna, server, "anna")
    await anna.write("freeze.md", **FACTS, body=LINES)
    shared = await anna.call("team.share", path="freeze.md")
    assert shared["path"] == "team/freeze.md"
    assert (await anna.refused("memory.read", path="freeze.md")).kind == "not_found"
    assert (await anna.call("team.push"))["sent"] == ["team/freeze.md"]
    await anna.write("role.md", name="role", type="user", body="I test.")
    assert (await anna.refused("team.share", path="role.md")).kind == "not_shared"
    assert (await anna.refused("team.share", path="none.md")).kind == "not_found"


async def test_leaving_gives_the_token_back(anna: Caller, server: TeamServer) -> None:
    """The files stay unless a person says so, and then undo brings them back."""
    await join(anna, server, "anna")
    await share(anna, LINES)
    left = await anna.call("team.leave", remove=True)
    assert (left["revoked"], left["remote"]) == (True, "github.com/acme/app")
    assert (await anna.refused("team.status")).kind == "team_not_joined"
    assert (await anna.refused("memory.read", path="team/freeze.md")).kind == "not_found"
    await anna.call("memory.undo", change=left["change"])
    assert "Fridays" in await text(anna)
    again = await anna.refused("team.join", url=server.url)
    assert again.kind == "team_refused"  # no token is left here, so a code is needed


async def test_what_stays_after_leaving_is_one_s_own(anna: Caller, server: TeamServer) -> None:
    """Without a team its memories that stayed are changed and deleted, and none is added."""
    await join(anna, server, "anna")
    await share(anna, LINES)
    error = await anna.refused("memory.delete", path="team/freeze.md")
    assert (error.code, "memctl team remove" in error.data["hint"]) == (1026, True)
    assert (await anna.refused("memory.delete", path="team/none.md")).kind == "not_found"
    again = await anna.refused("team.share", path="team/freeze.md")
    assert again.kind == "already_shared"
    await anna.call("team.leave")
    await anna.call("memory.write", scope="team", path="freeze.md", body="Merges never stop.")
    assert "never" in await text(anna)
    new = await anna.refused("memory.write", scope="team", path="new.md", body="x", **FACTS)
    assert new.kind == "team_not_joined"
    change = (await anna.call("memory.delete", path="team/freeze.md"))["change"]
    assert not (await anna.folder() / "team/freeze.md").exists()
    await anna.call("memory.undo", change=change)
    assert "never" in await text(anna)


async def test_another_clone_needs_no_code(anna: Caller, server: TeamServer) -> None:
    """The device's token serves it; who leaves with one leaves the other joined."""
    await join(anna, server, "anna")
    await share(anna, LINES)
    clone = with_origin(Caller(anna.client, anna.home, anna.clock, anna.home.project("clone")))
    joined = (await clone.call("team.join", url=server.url))["joined"]
    assert (joined["member"], joined["types"]) == ("anna", {"project": 1})
    assert "Fridays" in await text(clone)
    assert (await clone.call("team.leave"))["revoked"]
    assert (await anna.call("team.pull"))["waits"] == ""


async def test_a_project_that_becomes_another_stops(anna: Caller, server: TeamServer) -> None:
    """Once origin names another repository nothing is sent or taken, and status says why."""
    await join(anna, server, "anna")
    with_origin(anna, "https://github.com/acme/other")
    status = await anna.call("team.status")
    assert status["state"] == "off"
    assert "github.com/acme/other" in status["paused"]
    assert (await anna.refused("team.push")).kind == "team_refused"
    with_origin(anna)
    assert (await anna.call("team.push"))["sent"] == []


async def test_switched_off_is_off_at_once(anna: Caller, server: TeamServer) -> None:
    """team.enabled = false stops the sync and the second directory in prompts; review is told."""
    await join(anna, server, "anna")
    config = Path(anna.home.places.config)
    assert "team" in (await anna.call("load_prompt"))["prompt"]
    config.write_text('[team]\npush = "review"\n')
    assert (await anna.call("team.status"))["review"]
    config.write_text("[team]\nenabled = false\n")
    assert (await anna.call("team.status"))["state"] == "off"
    assert (await anna.refused("team.pull")).kind == "team_refused"


async def test_doctor_and_status_know_the_team(
    anna: Caller, ben: Caller, server: TeamServer
) -> None:
    """What waits for a person is a warning with what helps; a token that others may read, too."""
    assert (await anna.plain("status"))["teams"] == {}
    rows = {row["name"]: row for row in (await anna.call("doctor"))["checks"]}
    assert (rows["teams"]["state"], "team" in rows) == ("ok", False)
    await join(anna, server, "anna")
    await join(ben, server, "ben")
    rows = {row["name"]: row for row in (await anna.call("doctor"))["checks"]}
    assert (rows["team"]["state"], rows["team"]["detail"][-5:]) == ("ok", "equal")
    await share(anna, LINES)
    await ben.call("team.pull")
    await share(anna, LINES.replace("Fridays", "Mondays"))
    await share(ben, LINES.replace("Fridays", "Tuesdays"))
    rows = {row["name"]: row for row in (await ben.call("doctor"))["checks"]}
    assert (rows["team"]["state"], "1 files wait" in rows["team"]["detail"]) == ("warning", True)
    config = Path(os.path.dirname(anna.home.places.config))
    (token,) = config.glob("team-*.token")
    token.chmod(0o644)
    rows = {row["name"]: row for row in (await anna.call("doctor"))["checks"]}
    assert (rows["teams"]["state"], token.name in rows["teams"]["detail"]) == ("warning", True)
    assert rows["team"]["state"] == "warning"
    assert list((await anna.plain("status"))["teams"].values()) == ["off"]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("team.join", {"url": "http://team.example"}),
        ("team.join", {"url": "https://anna:pw@team.example"}),
        ("team.join", {"url": "file:///etc/passwd"}),
        ("team.join", {"url": "https://x" * 200}),
        ("team.remove", {"path": "a.md", "reason": ""}),
        ("team.remove", {"path": "../a.md", "reason": "x"}),
        ("team.log", {"path": "team/../../a.md"}),
        ("team.restore", {"path": "a.md", "revision": 0}),
        ("team.resolve", {"path": "a.md", "how": "maybe"}),
        ("team.keep", {"path": "MEMORY.md"}),
        ("team.drop", {"path": "/etc/passwd"}),
    ],
)
async def test_what_cannot_be_meant_is_refused(
    anna: Caller, method: str, params: dict[str, str]
) -> None:
    """Addresses, paths and words that cannot be meant end with an error of their kind."""
    error = await anna.refused(method, **params)
    assert error.kind in {"team_refused", "invalid_params", "name_refused"}
    assert "pw" not in error.message
