"""Opening and reading below a memory directory, and refusing the rest."""

import os
from pathlib import Path

import pytest

from memd.base.errors import Refused
from memd.store.directory import Directory


@pytest.fixture
def memories(tmp_path: Path) -> Path:
    """Make a memory directory with ordinary and hostile contents."""
    (tmp_path / "secret.md").write_bytes(b"secret")
    root = tmp_path / "memory"
    (root / "sub").mkdir(parents=True)
    (root / "a.md").write_bytes(b"a")
    (root / "folder.md").mkdir()
    (root / "link.md").symlink_to("a.md")
    (root / "out.md").symlink_to(tmp_path / "secret.md")
    (root / "sub" / "loop").symlink_to(root)
    os.mkfifo(root / "fifo.md")
    return root


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "/a.md", "a//b.md", "../secret.md", "sub/../../secret.md", "a.md/"),
        *("./a.md", "a\0.md", "\ud800.md", "\udcff.md", "link.md", "out.md", "sub/loop/a.md"),
        *("folder.md", "fifo.md", "x" * 300 + ".md"),
    ],
)
def test_what_leads_out_or_is_no_file_is_refused(memories: Path, name: str) -> None:
    """Traversal, links and what is no regular file end in one kind of error, without hanging."""
    with Directory(str(memories)) as directory:
        with pytest.raises(Refused) as caught:
            directory.stat(name)
        assert caught.value.sentence.isprintable()
        with pytest.raises(Refused):
            directory.read(name, 10)


def test_a_strangers_file_is_refused(memories: Path) -> None:
    """Only files of this user, of root and of the directory's owner count as memories."""
    status = (memories / "a.md").stat()
    foreign = os.stat_result(
        (status.st_mode, 0, 0, 1, 4242, 0, 0, status.st_atime, status.st_mtime, status.st_ctime)
    )
    with Directory(str(memories)) as directory:
        with pytest.raises(Refused, match="another user"):
            directory._check("a.md", foreign)
        directory._check("a.md", status)
