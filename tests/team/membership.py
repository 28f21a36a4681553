"""A membership that stands in a device's table without a server that was asked."""

from memd.team.values import Membership
from tests.team.devices import Device, memory

TOKEN = "t" * 43
OWN = memory("own", "Mine.", "user")  # a private one, so that a sync sends nothing


async def joined(home: Device, url: str) -> None:
    """Write down a membership of a server, without asking it, and a memory of one's own."""
    place = home.project
    home.memberships.add(
        Membership(
            root=place.root,
            directory=place.memory_dir,
            server=url,
            repository="r1",
            remote="github.com/acme/app",
            member="anna",
            device="laptop",
            token="",
            at=0.0,
            origin="github.com/acme/app",
        ),
        TOKEN,
    )
    home.team.mkdir(parents=True, exist_ok=True)
    (home.team / "own.md").write_text(OWN)
