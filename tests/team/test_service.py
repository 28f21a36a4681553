"""Two devices and a server: what one writes the other has, whatever the order."""

import random
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from memd.core.text import sha256
from memd.files.directory import UnwrittenFileError
from memd.team.errors import TeamRefusedError
from tests.bases import move_bases
from tests.documents.secret_samples import ALNUM
from tests.server.servers import TeamServer, team_server
from tests.support.clock import FakeClock
from tests.team.devices import ORIGIN, Device, device, memory

pytestmark = pytest.mark.anyio
KEY, PATH = "releases.md", "team/releases.md"
LINES = "Tag first.\n\nThen build.\n\nThen publish."


@dataclass
class Team:
    """A server, and two members' devices that share one clock with it."""

    server: TeamServer
    clock: FakeClock
    anna: Device
    ben: Device

    async def sync(self, *devices: Device) -> None:
        """Let devices push in turn, all of them twice if none is named: then all are equal."""
        for each in devices or (self.anna, self.ben) * 2:
            await each.syncs.push(each.directory)

    async def shared(self, text: str = LINES) -> None:
        """Have one memory on both devices."""
        await self.anna.write(KEY, memory("releases", text))
        await self.sync(self.anna, self.ben)


@pytest.fixture
async def team(tmp_path: Path) -> AsyncIterator[Team]:
    """Make a team of two."""
    clock = FakeClock()
    with team_server(tmp_path / "server.db", clock=clock.now) as server:
        async with AsyncExitStack() as devices:
            both = []
            for name in ("anna", "ben"):
                one = await devices.enter_async_context(device(tmp_path / name, clock=clock))
                await one.join(server.url, server.invite(name))
                both.append(one)
            yield Team(server, clock, *both)
            assert [fault for one in both for fault in one.faults] == []


async def test_what_goes_out_is_in_the_history(team: Team) -> None:
    """A text that another program saved is in the history when it is sent, and stays there."""
    await team.shared()
    texts = [memory("releases", text) for text in ("Tag it.", "Sign it.")]
    for text in texts:
        (team.anna.team / KEY).write_text(text)
        team.clock.advance(60)
        await team.sync(team.anna)
    changes = await team.anna.store.history(team.anna.directory, path=PATH)
    hashes = [file.after for change in changes for file in change.files if file.path == PATH]
    assert hashes[:2] == [sha256(text.encode()) for text in reversed(texts)]


async def test_a_text_that_is_not_kept_here_comes_from_the_server(team: Team) -> None:
    """A deleted file comes back, too, where the text of its base is not kept on the device."""
    for text in (LINES, "Tag last."):
        await team.anna.write(KEY, memory("releases", text))
        await team.sync(team.anna)
    await team.sync(team.ben)
    oldest = team.server.storage.history(team.server.repository, KEY)[-1]
    base = team.ben.table.bases(team.ben.directory)[KEY]
    moved = replace(base, hash=oldest.hash, revision=oldest.revision)
    move_bases(team.ben.table, team.ben.directory, [moved])  # as an accepted backup does
    (team.ben.team / KEY).unlink()
    await team.ben.syncs.pull(team.ben.directory)
    assert team.ben.texts() == {KEY: memory("releases", LINES)}


async def test_a_file_in_a_folders_place_stops_no_sync(team: Team) -> None:
    """What cannot be restored is left out and told; the others go, and it comes back later."""
    await team.ben.write("sub/deep.md", memory("deep", "Deep."))
    await team.shared()
    await team.sync()
    shutil.rmtree(team.anna.team / "sub")
    (team.anna.team / "sub").write_text("a file")
    (team.anna.team / KEY).unlink()
    await team.anna.write("own.md", memory("own", "Mine."))
    await team.sync(team.anna, team.ben)
    assert {KEY, "own.md"} <= set(team.anna.texts())
    assert "own.md" in team.ben.texts()
    [left] = (await team.anna.syncs.status(team.anna.directory)).left_out
    assert left.key == "sub/deep.md"
    (team.anna.team / "sub").unlink()
    await team.sync(team.anna)
    assert team.anna.texts() == team.ben.texts()
    assert (await team.anna.syncs.status(team.anna.directory)).left_out == ()


async def test_a_reason_that_is_refused_stops_no_sync(team: Team) -> None:
    """The server refuses two lines and a secret as a reason; what is edited then still goes."""
    await team.shared()
    secret = "ghp_" + "".join(random.Random(1).choices(ALNUM, k=36))  # noqa: S311 - a made-up one
    for reason in ("two\nlines", f"the token {secret}"):
        with pytest.raises(TeamRefusedError, match=r"reason|secret"):
            await team.anna.syncs.remove(team.anna.directory, PATH, reason)
        assert (await team.anna.syncs.status(team.anna.directory)).paused == ""


async def test_a_new_code_mends_a_token_that_others_use(team: Team) -> None:
    """A second clone that begins with a dead token says so, and a code mends both clones."""
    await team.shared()
    [token] = [each for each in team.server.storage.tokens() if each.member == "anna"]
    team.server.storage.revoke(token.number, now=team.clock.now())
    clone = team.anna.home / "clone"
    (clone / ".git").mkdir(parents=True)
    (clone / ".git/config").write_text(f'[remote "origin"]\n\turl = {ORIGIN}\n')
    second = replace(team.anna.project, root=str(clone), memory_dir=str(clone / "memory"))
    with pytest.raises(TeamRefusedError, match="--code-file"):
        await team.anna.syncs.join(second, team.server.url, "", "")
    await team.anna.syncs.join(second, team.server.url, "", team.server.invite("anna"))
    assert (clone / "memory" / PATH).is_file()
    await team.anna.syncs.pull(team.anna.directory)


async def test_a_link_is_neither_followed_nor_replaced(team: Team, tmp_path: Path) -> None:
    """What a link stands for is left out and told, and comes in once the link is gone."""
    outside = tmp_path / "outside.md"
    outside.write_text(memory("outside", "Untouched."))
    team.ben.team.mkdir(parents=True)
    for name in (KEY, "own.md"):
        (team.ben.team / name).symlink_to(outside)
    await team.shared()
    [left] = (await team.ben.syncs.status(team.ben.directory)).left_out
    assert (left.key, (team.ben.team / KEY).is_symlink()) == (KEY, True)
    assert outside.read_text() == memory("outside", "Untouched.")
    assert list(team.anna.texts()) == [KEY]  # a link is not sent either
    (team.ben.team / KEY).unlink()
    assert (await team.ben.syncs.pull(team.ben.directory)).taken == (PATH,)
    assert (await team.ben.syncs.status(team.ben.directory)).left_out == ()


async def test_a_code_is_not_spent_where_no_token_can_be_stored(team: Team, tmp_path: Path) -> None:
    """With a file in the place of the settings nothing is sent, and the code is good afterwards."""
    code = team.server.invite("carl")
    async with device(tmp_path / "carl", clock=team.clock) as carl:
        config = carl.home / "config"
        config.write_text("a file")
        with pytest.raises(UnwrittenFileError, match="config cannot be written"):
            await carl.join(team.server.url, code)
        config.unlink()
        assert (await carl.join(team.server.url, code)).member == "carl"
        assert {path.name.partition(".")[2] for path in config.iterdir()} == {"toml", "token"}


async def test_leaving_with_a_token_that_was_revoked_is_no_fault(team: Team) -> None:
    """A token that the server does not take is not called good; a lost one cannot be revoked."""
    for token in team.server.storage.tokens():
        if token.member == "anna":
            team.server.storage.revoke(token.number, now=team.clock.now())
    left = await team.anna.syncs.leave(team.anna.directory, remove=False)
    assert (left.revoked, left.why) == (True, "")
    for file in Path(team.ben.memberships.folder).glob("*.token"):
        file.unlink()
    left = await team.ben.syncs.leave(team.ben.directory, remove=False)
    assert (left.revoked, "not on this device" in left.why) == (False, True)
