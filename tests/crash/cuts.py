"""Real power cuts: a file system in a file, cut off from its medium while a process writes.

Usage: ``cuts.py <root> <start>``: writes memories until the disk is gone, and says the number of
each one that was acknowledged.
"""

import fcntl
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.crash.core import REFUSED, open_core
from tests.crash.kit import Edit, topic

SLOTS = 12
_SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN; XFS has the same number
_WITHOUT_LOG = 2  # what is not on the medium now will never be, not even the file system's journal
_SIZES = {"ext4": "32M", "xfs": "320M"}
_MAKE = {"ext4": ("mkfs.ext4", "-q", "-F"), "xfs": ("mkfs.xfs", "-q", "-f")}


def missing(system: str) -> str:
    """Return why a file system of this kind cannot be cut off here, or ""."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "real cuts need root on Linux"
    if shutil.which(_MAKE[system][0]) is None:
        return f"{_MAKE[system][0]} is not installed"
    if not os.path.exists("/dev/loop-control"):
        return "there are no loop devices"
    return ""


class Medium:
    """A file system in a file below a folder."""

    def __init__(self, system: str, folder: Path) -> None:
        self.system = system
        self.image = folder / "image"
        self.mountpoint = folder / "mounted"
        self.mountpoint.mkdir()
        self.refused = ""
        with open(self.image, "wb") as file:
            file.truncate(int(_SIZES[system][:-1]) << 20)
        subprocess.run([*_MAKE[system], str(self.image)], check=True, capture_output=True)

    @contextmanager
    def mounted(self) -> Iterator[Path]:
        """Mount it for the length of the block; ``refused`` says why that is not possible."""
        command = ["mount", "-o", "loop", "-t", self.system, str(self.image), str(self.mountpoint)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.refused = done.stderr.strip() if done.returncode else ""
        try:
            yield self.mountpoint
        finally:
            if not self.refused:
                subprocess.run(["umount", str(self.mountpoint)], check=True, capture_output=True)

    def cut(self) -> None:
        """Take the medium away; every later call fails until it is mounted anew."""
        folder = os.open(self.mountpoint, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, _SHUTDOWN, struct.pack("I", _WITHOUT_LOG))
        finally:
            os.close(folder)


def slot(number: int) -> str:
    """Return the name of the memory that the n-th write goes to."""
    return f"n{number % SLOTS}"


def main() -> None:
    """Write until that fails; one line for each acknowledged write."""
    root, start = sys.argv[1:]
    try:
        with open_core(Path(root)) as core:
            for number in count(int(start)):
                name = slot(number)
                body = topic(name, f"number {number}\n" * (number % 50 + 1))
                core.commit([Edit(f"{name}.md", body)])
                os.write(1, f"{number}\n".encode())
    except (REFUSED, OSError):
        return


if __name__ == "__main__":
    main()
