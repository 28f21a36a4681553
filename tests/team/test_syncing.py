"""Syncs by themselves, and over lines that lose what goes over them."""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from uuid import uuid4

import anyio
import pytest
from anyio import to_thread

from memd.base.errors import Refused, Unavailable
from memd.base.team import Limits
from memd.server.storage import open_storage
from tests.server.servers import TeamServer, copy_database, team_server
from tests.support.clock import FakeClock
from tests.team.devices import Device, device, memory
from tests.team.relay import Relay, Sent, relay

pytestmark = pytest.mark.anyio
KEY, PATH, DAY = "releases.md", "team/releases.md", 86_400.0


@asynccontextmanager
async def lines(
    folder: Path, names: str = "ab", off: str = ""
) -> AsyncIterator[tuple[TeamServer, Relay, list[Device]]]:
    """Make a server, a relay before it, and members' devices that reach it through the relay."""
    clock = FakeClock()
    with (
        team_server(folder / "server.db", clock=clock.now) as server,
        relay(server.url.removeprefix("http://")) as line,
    ):
        async with AsyncExitStack() as stack, anyio.create_task_group() as group:
            devices: list[Device] = []
            for name in names:
                more = {"chance": lambda: 0.5, "memory_off": lambda _: off}
                made = device(folder / name, clock=clock, **more)
                devices.append(await stack.enter_async_context(made))
                await devices[-1].join(line.url, server.invite(name))
                group.start_soon(devices[-1].syncs.run)
            await anyio.wait_all_tasks_blocked()
            line.seen.clear()
            yield server, line, devices
            group.cancel_scope.cancel()
        assert [fault for one in devices for fault in one.faults] == []


async def calm(*devices: Device) -> None:
    """Return once no thread of the syncs is at work."""
    with anyio.fail_after(60):
        spare = to_thread.current_default_thread_limiter()
        quiet = 0
        while quiet < 20:
            await anyio.lowlevel.checkpoint()
            busy = spare.borrowed_tokens + sum(d.syncs._threads.borrowed_tokens for d in devices)
            quiet = 0 if busy else quiet + 1


async def until(holds: Callable[[], bool], *devices: Device, step: float = 1.0) -> None:
    """Let time pass in steps until something holds, for 10 minutes of the clock at most."""
    for _ in range(int(600 / step)):
        await calm(*devices)
        if holds():
            return
        devices[0].clock.advance(step)
    assert holds()


async def test_a_lost_answer_is_no_second_write_and_undoes_no_newer_edit(tmp_path: Path) -> None:
    """A batch whose answer is lost is one version, and what was written since is not taken back."""
    async with lines(tmp_path) as (server, line, (anna, ben)):
        line.plan.extend(["pass", "mute"])
        await anna.write(KEY, memory("releases", "First."))
        with pytest.raises(Unavailable):
            await anna.sync()
        await anna.write(KEY, memory("releases", "Second."))
        await anna.sync()
        await ben.sync()
        assert ben.texts() == anna.texts() == {KEY: memory("releases", "Second.")}
        client = server.client("carl")
        history = client.get(f"/v1/repos/{server.repository}/history?key={KEY}").json()
        versions = history["versions"]
        assert [each["revision"] for each in versions] == [2, 1]
        ids = [sent.headers["Idempotency-Key"] for sent, _ in line.seen if sent.method == "PUT"]
        assert ids[0] == ids[1] != ids[2]


async def test_a_lost_answer_to_what_another_has_changed_since(tmp_path: Path) -> None:
    """A batch that the server forgot is settled from the history: the newer text is taken."""
    async with lines(tmp_path) as (_, line, (anna, ben)):
        line.plan.extend(["pass", "mute"])
        await anna.write(KEY, memory("releases", "First."))
        with pytest.raises(Unavailable):
            await anna.sync()
        await ben.sync()
        await ben.write(KEY, memory("releases", "Ben's."))
        await ben.sync()
        anna.clock.advance(8 * DAY)
        await anna.sync()
        assert anna.texts() == ben.texts() == {KEY: memory("releases", "Ben's.")}
        assert anna.table.conflicts(anna.directory) == {}


async def test_what_the_server_had_already_hides_nothing(tmp_path: Path) -> None:
    """Who sends what another just wrote, with a text more, still gets that other text."""
    async with lines(tmp_path) as (_, line, (anna, ben)):
        line.plan.extend(["pass", "lose"])
        await anna.write(KEY, memory("releases", "The same."))
        with pytest.raises(Unavailable):
            await anna.sync()
        await ben.write(KEY, memory("releases", "The same."))
        await ben.write("more.md", memory("more", "Ben's."))
        await ben.sync()
        await anna.sync()
        assert anna.texts() == ben.texts()


async def test_thirty_days_offline_lose_nothing(tmp_path: Path) -> None:
    """After 30 days without a line, with edits on both sides, all are equal but the conflicts."""
    async with lines(tmp_path) as (_, line, (anna, ben)):
        for name in ("both", "apart"):
            await anna.write(f"{name}.md", memory(name, "One.\n\nTwo.\n\nThree."))
        await anna.sync()
        await ben.sync()
        line.gone = True
        anna.syncs.visited(anna.directory)
        for day in range(30):
            await anna.write(f"day-{day}.md", memory(f"day-{day}", "Anna's."))
            await ben.write(f"ben-{day}.md", memory(f"ben-{day}", "Ben's."))
            anna.syncs.noticed(anna.directory, [f"team/day-{day}.md"])
            anna.clock.advance(DAY)
            await calm(anna, ben)
        for one, word in ((anna, "Uno."), (ben, "Eins.")):
            await one.write("apart.md", memory("apart", f"{word}\n\nTwo.\n\nThree."))
        await anna.write("both.md", memory("both", "Uno.\n\nTwo.\n\nThree."))
        await ben.write("both.md", memory("both", "One.\n\nTwo.\n\nDrei."))
        line.gone = False
        for one in (anna, ben, anna, ben):
            await one.sync()
        assert anna.texts() == ben.texts()
        assert len(anna.texts()) == 62
        assert anna.texts()["both.md"] == memory("both", "Uno.\n\nTwo.\n\nDrei.")
        assert list(ben.table.conflicts(ben.directory)) == ["apart.md"]


async def test_a_project_that_is_off_is_not_synced(tmp_path: Path) -> None:
    """Where the files switch memory off nothing comes or goes by itself, and the state says why."""
    why = "autoMemoryEnabled is false in /p/.claude/settings.json"
    async with lines(tmp_path, "a", off=why) as (_, line, (anna,)):
        await anna.write(KEY, memory("releases", "Tag first."))
        anna.syncs.noticed(anna.directory, [PATH])
        anna.syncs.visited(anna.directory)
        for _ in range(40):
            await calm(anna)
            anna.clock.advance(10)
        status = await anna.status()
        assert (status.state, status.paused) == ("off", why)
        assert line.seen == []


async def test_a_server_from_a_backup_changes_nothing_before_it_is_accepted(
    tmp_path: Path,
) -> None:
    """A restored server removes and overwrites nothing; what it lost is sent once accepted."""
    async with lines(tmp_path) as (_, line, (anna, ben)):
        await anna.write(KEY, memory("releases", "Old."))
        await anna.sync()
        await ben.sync()
        copy_database(tmp_path / "server.db", tmp_path / "restored.db")
        await anna.write(KEY, memory("releases", "New."))
        await anna.write("later.md", memory("later", "After the backup."))
        await anna.sync()
        await ben.sync()
        texts = anna.texts()
        with closing(open_storage(str(tmp_path / "restored.db"))) as copy:
            copy.renew()
        with team_server(tmp_path / "restored.db", clock=anna.clock.now) as restored:
            line.upstream = restored.url.removeprefix("http://")
            for one in (anna, ben):
                result = await one.sync()
                assert (bool(result.waits), result.sent, one.texts()) == (True, (), texts)
            with pytest.raises(Refused, match="backup"):
                await anna.remove(PATH, "outdated")
            for one in (anna, ben, anna, ben):
                result = await one.accept()
                assert (result.waits, one.texts()) == ("", texts)
            assert anna.table.conflicts(anna.directory) == ben.table.conflicts(ben.directory) == {}
            held = restored.client("carl").get(f"/v1/repos/{restored.repository}/entries").json()
            assert {each["key"]: each["content"] for each in held["entries"]} == texts


async def test_a_pull_that_removes_much_waits(tmp_path: Path) -> None:
    """Seven removals of seven remove nothing before a person accepts them."""
    async with lines(tmp_path) as (server, _, (anna, ben)):
        for number in range(7):
            await anna.write(f"{number}.md", memory(str(number), "Text."))
        await anna.sync()
        await ben.sync()
        client = server.client("a")
        path = f"/v1/repos/{server.repository}/entries"
        page = client.get(path).json()
        for entry in page["entries"]:
            etag = f'"{page["epoch"]}.{entry["revision"]}"'
            headers = {"If-Match": etag, "Idempotency-Key": str(uuid4())}
            client.delete(f"{path}/{entry['key']}?reason=none", headers=headers).raise_for_status()
            if entry["key"] == "3.md":
                anna.clock.advance(DAY)
        waits = (await ben.sync()).waits
        assert (waits, len(ben.texts())) == ("the server removes 7 of 7 memories at once", 7)
        await ben.accept()
        assert ben.texts() == {}


async def test_a_full_repository_takes_updates_and_holds_the_rest(tmp_path: Path) -> None:
    """What has no room is held, updates go on, and more room ends the hold by itself."""
    async with lines(tmp_path, "a") as (server, _, (anna,)):
        server.storage.limits = Limits(max_entries=3, put_entries=2)
        for number in range(5):
            await anna.write(f"{number}.md", memory(str(number), "Text."))
        result = await anna.sync()
        assert ({held.reason for held in result.held}, len(result.sent)) == ({"full"}, 3)
        await anna.write("0.md", memory("0", "Newer."))
        assert (await anna.sync()).sent == ("team/0.md",)
        server.storage.limits = Limits(put_entries=1)
        assert sorted((await anna.sync()).sent) == ["team/3.md", "team/4.md"]
        assert (await anna.status()).state == "equal"


async def test_a_server_that_hangs_does_not_keep_memd_from_ending(tmp_path: Path) -> None:
    """A sync that waits for its server ends with the daemon, and its batch waits on disk."""
    reached = threading.Event()
    over = threading.Event()

    def hang(_: Sent) -> None:
        reached.set()
        over.wait(60)

    async with lines(tmp_path, "a") as (_, line, (anna,)):
        line.before = hang
        await anna.write(KEY, memory("releases", "Tag first."))
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(anna.sync)
                await to_thread.run_sync(reached.wait)
                group.cancel_scope.cancel()
        over.set()
        line.before = None
        assert (await anna.sync()).sent == (PATH,)
