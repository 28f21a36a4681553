"""How much memory a pull from a hostile server takes, in a process that does nothing else."""

import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio

from memd.base.errors import Unavailable
from memd.remote.link import HttpRequest, Link
from tests.team.devices import device
from tests.team.membership import joined


async def _main(calm: str, attacked: str, folder: str) -> None:
    """Print the bytes by which a pull from ``attacked`` raises the process's highest use.

    What is loaded once is no attack's cost, so ``calm`` is asked first.
    """
    async with device(Path(folder)) as home:
        await joined(home, attacked)
        async with Link(calm) as link:
            await link.send(HttpRequest("GET", "/"))
        Path("/proc/self/clear_refs").write_text("5")  # the highest use so far is forgotten
        before = _memory("VmRSS")
        with suppress(Unavailable):
            await home.sync()
        sys.stdout.write(str(_memory("VmHWM") - before))


def _memory(name: str) -> int:
    """Return one of the kernel's figures of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


if __name__ == "__main__":
    anyio.run(partial(_main, *sys.argv[1:]))
