"""Two devices and a server: what one writes the other has, whatever the order."""

from pathlib import Path

import pytest

from tests.server.servers import team_server
from tests.team.devices import device, memory

pytestmark = pytest.mark.anyio


async def test_what_one_writes_the_other_has(tmp_path: Path) -> None:
    """A memory written on one device stands on the other after both have synced."""
    with team_server(tmp_path / "server.db") as server:
        async with device(tmp_path / "a") as anna, device(tmp_path / "b") as ben:
            await anna.join(server.url, server.invite("anna"))
            await ben.join(server.url, server.invite("ben"))
            await anna.write("releases.md", memory("releases", "Tag first."))
            result = await anna.syncs.push(anna.directory)
            assert result.sent == ("team/releases.md",)
            result = await ben.syncs.pull(ben.directory)
            assert result.taken == ("team/releases.md",)
            assert ben.texts() == anna.texts()
