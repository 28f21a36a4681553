"""A memory directory with all that may lie in one, for the tests of what opens it."""

import os
from pathlib import Path


def hostile(tmp_path: Path) -> Path:
    """Make a memory directory with ordinary, foreign and hostile contents."""
    (tmp_path / "secret.md").write_bytes(b"secret")
    root = tmp_path / "memory"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "logs").mkdir()
    (root / ".obsidian").mkdir()
    for name in ("a.md", "Über mich.md", "sub/b.md", "sub/deep/c.md", "MEMORY.md"):
        (root / name).write_bytes(name.encode())
    for name in ("logs/2026.md", ".hidden.md", ".obsidian/x.md", "sub/MEMORY.md", "notes.txt"):
        (root / name).write_bytes(b"not a memory")
    (root / "folder.md").mkdir()
    (root / "link.md").symlink_to("a.md")
    (root / "out.md").symlink_to(tmp_path / "secret.md")
    (root / "sub" / "loop").symlink_to(root)
    os.mkfifo(root / "fifo.md")
    return root
