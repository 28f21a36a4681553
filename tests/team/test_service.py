"""Two devices and a server: what one writes the other has, whatever the order."""

import random
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from memd.core.events import TEAM_CONFLICT, TEAM_SUPPRESSED
from memd.core.text import sha256
from memd.files.directory import UnwrittenFileError
from memd.server.values import Role
from memd.team.errors import TeamHeldError, TeamRefusedError
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


async def test_what_one_writes_the_other_has(team: Team) -> None:
    """A memory written on one device stands on the other, with whose words it is."""
    await team.anna.write(KEY, memory("releases", LINES))
    result = await team.anna.syncs.push(team.anna.directory)
    assert (result.sent, result.left) == ((PATH,), 0)
    result = await team.ben.syncs.pull(team.ben.directory)
    assert result.taken == (PATH,)
    assert team.ben.texts() == team.anna.texts() == {KEY: memory("releases", LINES)}
    author = team.ben.table.author(team.ben.directory, PATH)
    assert author is not None
    assert (author.member, author.at) == ("anna", team.clock.now())
    assert "releases" in (team.ben.team / "MEMORY.md").read_text()


async def test_edits_of_different_lines_merge(team: Team) -> None:
    """Two edits of different lines are both in the text that all have in the end."""
    await team.shared()
    await team.anna.write(KEY, memory("releases", LINES.replace("Tag", "Sign")))
    await team.ben.write(KEY, memory("releases", LINES.replace("publish", "announce")))
    await team.sync()
    merged = LINES.replace("Tag", "Sign").replace("publish", "announce")
    assert team.anna.texts() == team.ben.texts() == {KEY: memory("releases", merged)}


async def test_a_conflict_keeps_both_texts_and_a_person_decides(team: Team) -> None:
    """The server's text stands, ours is listed whole, and what is decided is what all have."""
    await team.shared("Tag first.")
    await team.anna.write(KEY, memory("releases", "Sign first."))
    await team.ben.write(KEY, memory("releases", "Build first."))
    await team.sync(team.anna, team.ben)
    assert team.ben.texts() == team.anna.texts() == {KEY: memory("releases", "Sign first.")}
    [shown] = await team.ben.syncs.diff(team.ben.directory)
    assert (shown.state, shown.ours) == ("conflict", memory("releases", "Build first."))
    assert [e.params["path"] for e in team.ben.sink.events if e.topic == TEAM_CONFLICT] == [PATH]
    result = await team.ben.syncs.resolve(team.ben.directory, PATH, "ours")
    assert result.sent == (PATH,)
    await team.sync()
    assert team.anna.texts() == {KEY: memory("releases", "Build first.")}
    assert (await team.ben.syncs.status(team.ben.directory)).conflicts == ()


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


async def test_a_deleted_file_comes_back(team: Team) -> None:
    """Deleting a file removes it for nobody: the next sync restores it."""
    await team.shared()
    (team.ben.team / KEY).unlink()
    await team.sync(team.ben, team.anna)
    assert team.ben.texts() == team.anna.texts() == {KEY: memory("releases", LINES)}


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


async def test_a_removal_removes_everywhere_and_is_taken_back(team: Team) -> None:
    """A removed memory goes on all devices, and only a restore brings it back."""
    await team.shared()
    await team.ben.write("own.md", memory("own", "Mine."))
    await team.sync()
    with pytest.raises(TeamRefusedError):  # another member's
        await team.ben.syncs.remove(team.ben.directory, PATH, "outdated")
    await team.anna.syncs.remove(team.anna.directory, PATH, "outdated")
    await team.sync()
    assert list(team.anna.texts()) == list(team.ben.texts()) == ["own.md"]
    await team.ben.syncs.restore(team.ben.directory, "team/own.md")
    with pytest.raises(TeamRefusedError):  # its text is for maintainers
        await team.ben.syncs.restore(team.ben.directory, "team/none.md")


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


async def test_an_edit_of_what_was_removed_is_held(team: Team) -> None:
    """A change of a removed memory stays here and goes nowhere before a person says so."""
    await team.shared()
    await team.anna.syncs.remove(team.anna.directory, PATH, "outdated")
    await team.ben.write(KEY, memory("releases", "Newer."))
    await team.sync()
    assert (list(team.anna.texts()), list(team.ben.texts())) == ([], [KEY])
    [held] = (await team.ben.syncs.status(team.ben.directory)).held
    assert (held.key, held.reason, held.detail) == (KEY, "removed", "outdated")
    await team.ben.syncs.keep(team.ben.directory, PATH)
    await team.sync()
    assert team.anna.texts() == {KEY: memory("releases", "Newer.")}


async def test_what_may_not_be_shared_is_held_and_the_rest_goes(team: Team) -> None:
    """A secret and a memory about a person stay here; a held file that is dropped is gone."""
    team.anna.team.mkdir(parents=True)
    token = "ghp_" + "".join(random.Random(1).choices(ALNUM, k=36))  # noqa: S311 - made up
    (team.anna.team / "secret.md").write_text(memory("secret", f"token: {token}"))
    (team.anna.team / "me.md").write_text(memory("me", "I am Anna.", "user"))
    (team.anna.team / "fine.md").write_text(memory("fine", "Fine."))
    await team.sync()
    held = {h.key: h.reason for h in (await team.anna.syncs.status(team.anna.directory)).held}
    assert held == {"secret.md": "secret", "me.md": "type"}
    (team.anna.team / "umlaut.md").write_text(memory("überall", "Anywhere."))
    result = await team.anna.syncs.push(team.anna.directory)
    assert [(file.reason, "small letters" in file.detail) for file in result.held] == [
        ("refused", True)
    ]
    assert (await team.anna.syncs.pull(team.anna.directory)).waiting == 3
    await team.anna.syncs.drop(team.anna.directory, "team/umlaut.md")
    assert list(team.ben.texts()) == ["fine.md"]
    with pytest.raises(TeamHeldError):
        await team.anna.syncs.keep(team.anna.directory, "team/me.md")
    await team.anna.syncs.drop(team.anna.directory, "team/me.md")
    assert list(team.anna.texts()) == ["fine.md", "secret.md"]
    assert token not in team.server.log.getvalue()


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


async def test_a_reader_gets_all_and_sends_nothing(team: Team, tmp_path: Path) -> None:
    """Who may only read has what others write, and own changes stay here."""
    await team.shared()
    async with device(tmp_path / "carl", clock=team.clock) as carl:
        await carl.join(team.server.url, team.server.invite("carl", Role.READER))
        await carl.write("own.md", memory("own", "Carl's."))
        with pytest.raises(TeamRefusedError):
            await carl.syncs.push(carl.directory)
        await team.anna.write(KEY, memory("releases", "Newer."))
        await team.sync()
        await carl.syncs.pull(carl.directory)
        own, others = memory("own", "Carl's."), memory("releases", "Newer.")
        assert carl.texts() == {"own.md": own, KEY: others}
        assert [e.topic for e in carl.sink.events].count(TEAM_SUPPRESSED) == 1


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


async def test_leaving_ends_the_token_and_leaves_the_files(team: Team) -> None:
    """Who left sends nothing more; the files stay, or go where that was asked."""
    await team.shared()
    left = await team.anna.syncs.leave(team.anna.directory, remove=False)
    assert (left.revoked, list(team.anna.texts())) == (True, [KEY])
    left = await team.ben.syncs.leave(team.ben.directory, remove=True)
    assert (left.revoked, team.ben.texts()) == (True, {})
