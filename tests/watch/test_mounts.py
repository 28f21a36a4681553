"""Which file systems tell of every change."""

from pathlib import Path

import pytest

from memd.watch.inotify import kind_of, tells

LINES = """\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 27 0:40 / /home rw shared:1 - nfs4 server:/home rw
41 40 0:41 / /home/me/local\\040disk rw - xfs /dev/sdb rw
42 41 0:42 / /home/me/local\\040disk/far rw - fuse.sshfs far: rw
43 27 0:43 / /over rw - ext4 /dev/vdb rw
44 27 0:44 / /over rw - 9p share rw
nonsense
"""


@pytest.mark.parametrize(
    ("directory", "kind", "told"),
    [
        ("/var/memory", "ext4", True),
        ("/home/me", "nfs4", False),
        ("/homes", "ext4", True),
        ("/home/me/local disk/memory", "xfs", True),
        ("/home/me/local disk/far/memory", "fuse.sshfs", False),
        ("/over", "9p", False),
    ],
)
def test_the_nearest_mount_decides(tmp_path: Path, directory: str, kind: str, told: bool) -> None:  # noqa: FBT001 - a table's column
    """The longest mount point above a directory, and the last of two, is where it lies."""
    (tmp_path / "mountinfo").write_text(LINES)
    assert kind_of(directory, LINES.splitlines()) == kind
    assert tells(directory, str(tmp_path / "mountinfo")) is told


def test_what_is_not_known_does_not_tell(tmp_path: Path) -> None:
    """Without a list of mounts, or with an empty one, nothing is promised."""
    (tmp_path / "empty").touch()
    assert not tells("/", str(tmp_path / "none"))
    assert not tells("/", str(tmp_path / "empty"))
