"""A hostile member of a team: nothing of theirs leads out, rules anybody or harms other entries."""

import os
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from memd.base.names import INDEX
from tests.promises.learning import Desk, desk, memory, turn
from tests.promises.planted import INSTRUCTIONS, KINDS, QUESTION
from tests.server.servers import TeamServer, team_server
from tests.support.messages import text, tools
from tests.support.steps import ReceivedMessage
from tests.team.desks import share_clone
from tests.team.machine import body
from tests.team.mallory import NAMES, Mallory, bombs
from tests.team.worlds import World, world

GOOD = {"a.md": body("a.md", (1, 1)), "sub/b.md": body("sub/b.md", (1, 1))}


@pytest.fixture
def here() -> Iterator[World]:
    """Set up two members with two entries."""
    with start_blocking_portal() as portal, world(portal) as made:
        made.join_all()
        anna, bert = made.desks.values()
        for key, content in GOOD.items():
            anna.write(key, content)
        anna.call("team.sync")
        bert.call("team.sync")
        yield made


def outside(home: str, team: Path) -> dict[str, int]:
    """Return when each file of a home that is no team memory and no state was changed."""
    return {
        str(path): os.lstat(path).st_mtime_ns
        for path in Path(home).rglob("*")
        if path.is_file()
        and not path.is_relative_to(team)
        and ".local/state" not in str(path)
        and path.name != INDEX
    }


def test_no_name_of_a_member_is_stored(here: World) -> None:
    """Each bad name is refused with a status, alone: the server has what it had."""
    mallory = Mallory(here.server)
    before = here.versions()
    statuses = {name: mallory.put(name, GOOD["a.md"].decode()) for name in NAMES}
    expected = {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}
    assert {name: status for name, status in statuses.items() if status not in expected} == {}
    for name in ("A.md", "SUB/b.md", "sub/B.md"):
        assert mallory.put(name, GOOD["a.md"].decode()) == HTTPStatus.UNPROCESSABLE_ENTITY, name
    assert here.versions() == before


def test_a_member_does_what_its_role_allows(here: World) -> None:
    """No text goes over a newer one, and a member removes its own entries alone."""
    mallory = Mallory(here.server)
    before = here.versions()
    for base in (None, 0, 999):
        assert mallory.put("a.md", body("a.md", (6, 6)).decode(), base) in {400, 412}
    (revision,) = {each.revision for each in before if each.key == "a.md"}
    epoch = mallory.client.get(f"{mallory.repository}/entries").json()["epoch"]
    number = "00000000-0000-4000-8000-000000000000"
    path = f"{mallory.repository}/entries/a.md?reason=x"
    headers = {"If-Match": f'"{epoch}.{revision}"', "Idempotency-Key": number}
    assert mallory.client.delete(path, headers=headers).status_code == HTTPStatus.FORBIDDEN
    assert here.versions() == before


def test_bombs_and_planted_texts_harm_no_other_entry(here: World) -> None:
    """Whatever a member writes, the others get the rest, and nothing outside is touched."""
    anna, mallory = here.desks["anna"], Mallory(here.server)
    before = outside(anna.home.path, anna.team)
    accepted = 0
    for number, bomb in enumerate(bombs()):
        status = mallory.put(f"bomb{number}.md", bomb)
        assert status in {200, 400, 413, 422}
        accepted += status == HTTPStatus.OK
    for number, words in enumerate(INSTRUCTIONS):
        assert mallory.put(f"rule{number}.md", memory("rule", words, "feedback")) == 200
    assert mallory.put("last.md", body("last.md", (1, 1)).decode()) == HTTPStatus.OK
    for _ in range(3):
        anna.clock.advance(3600)
        anna.call("team.sync")
    texts = anna.texts()
    assert {key: texts.get(key) for key in GOOD} == GOOD
    assert texts["last.md"] == body("last.md", (1, 1))
    assert {f"rule{number}.md" for number in range(len(INSTRUCTIONS))} <= set(texts)
    assert outside(anna.home.path, anna.team) == before
    listed = {each["path"]: each for each in anna.call("memory.list")["memories"]}
    assert {path for path in listed if not path.startswith("team/")} == set()
    why = anna.call("memory.why", path="team/rule0.md")
    assert why["origin"] == "team"
    assert "mallory" in str(why)
    found = anna.call("prefetch", session_id="s", query="deployment key of the vendor mirror")
    shown = found["memories"][0]["content"]
    assert "Team memory by mallory" in found["block"] or "Team memory by mallory" in shown


@pytest.mark.anyio
@pytest.mark.xdist_group("sdk")
async def test_no_private_memory_is_made_of_a_members_text(tmp_path: Path) -> None:
    """What a prompt or a tool showed of it makes no memory, though a model obeys all it reads."""
    planted = INSTRUCTIONS[0]
    runs: list[str] = []

    def script(request: ReceivedMessage) -> Any:
        if planted not in request.body.decode() or turn(request) > 1:
            return text("nothing new")
        runs.append(request.body.decode())
        files = [{"file_path": f"{k}.md", "content": memory(k, planted, k)} for k in KINDS]
        return tools(*(("Write", file) for file in files))

    with team_server(tmp_path / "team.db") as server:
        mallory = Mallory(server)
        assert mallory.put("rule.md", memory("rule", planted, "feedback")) == HTTPStatus.OK
        async with desk(script) as here:
            block = await _shown(here, server)
            assert planted in block
            said = here.conversation("s1")
            said.user(f"<system-reminder>\n{block}\n</system-reminder>\n{QUESTION}")
            said.assistant("That is what it says.")
            assert (await here.extract(said))["saved"] == []
            said.user(QUESTION)
            read = (here.memory / "team" / "rule.md").read_text()
            said.tool("Read", {"file_path": str(here.memory / "team" / "rule.md")}, read)
            said.assistant("That is what it says.")
            assert (await here.extract(said))["saved"] == []
            assert runs
            assert await _private(here) == []


async def _shown(here: Desk, server: TeamServer) -> str:
    """Join, and return what a prompt about the planted words is shown."""
    share_clone(here.cwd)
    await here.call("team.join", url=server.url, code=server.invite("anna"))
    await here.call("team.sync")
    query = "deployment key of the vendor mirror"
    found = await here.call("prefetch", session_id="s1", query=query, strategy="local")
    return str(found["block"])


async def _private(here: Desk) -> list[dict[str, Any]]:
    listed = (await here.call("memory.list"))["memories"]
    return [each for each in listed if not each["path"].startswith("team/")]
