"""Which folders git ignores: what git itself says is the measure."""

import subprocess
from pathlib import Path

import pytest

from memd.projects.ignoring import is_ignored

FOLDER = ".claude/agent-memory-local"
CASES: list[tuple[dict[str, str], bool]] = [
    ({}, False),
    ({".gitignore": ".claude/agent-memory-local/\n"}, True),
    ({".gitignore": "/.claude/agent-memory-local\n"}, True),
    ({".gitignore": "agent-memory-local\n"}, True),
    ({".gitignore": ".claude\n"}, True),
    ({".gitignore": ".claude/\n!.claude/agent-memory-local/\n"}, True),
    ({".gitignore": ".claude/*\n!.claude/agent-memory-local/\n"}, False),
    ({".gitignore": "**/agent-*-local/\n"}, True),
    ({".gitignore": ".claude/**\n"}, True),
    ({".gitignore": "*-local   \n"}, True),
    ({".gitignore": "# agent-memory-local\n\n"}, False),
    ({".gitignore": "agent-memory-loca[k-m]\n"}, True),
    ({".gitignore": "agent-memory-loca[!k-m]\n"}, False),
    ({".gitignore": "memory-local\n"}, False),
    ({".gitignore": "agent-memory-loca?\n"}, True),
    ({".gitignore": "/agent-memory-local\n"}, False),
    ({".gitignore": "\\.claude\n"}, True),
    ({".gitignore": "agent-memory-\\*\n"}, False),
    ({".gitignore": "[\n"}, False),
    ({".claude/.gitignore": "/agent-memory-local/\n"}, True),
    ({".claude/.gitignore": "*\n"}, True),
    ({".gitignore": ".claude/*-local\n", ".claude/.gitignore": "!agent-memory-local\n"}, False),
    ({".git/info/exclude": "agent-memory-local/\n"}, True),
    ({"../home/.config/git/ignore": "**/.claude/agent-memory-local/\n"}, True),
]


@pytest.mark.parametrize(("files", "ignored"), CASES)
def test_a_folder_is_ignored_where_git_ignores_it(
    tmp_path: Path, files: dict[str, str], *, ignored: bool
) -> None:
    """A folder counts as ignored exactly where git ignores it."""
    home, root = tmp_path / "home", tmp_path / "root"
    for folder in (home, root / FOLDER / "a"):
        folder.mkdir(parents=True)
    (root / FOLDER / "a" / "x.md").write_text("x")
    environ = {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin"}
    subprocess.run(["git", "init", "-q"], cwd=root, env=environ, check=True)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    words = ["git", "check-ignore", "-q", FOLDER]
    git = subprocess.run(words, cwd=root, env=environ, check=False).returncode == 0
    ours = is_ignored(str(root), FOLDER, str(home), {})
    assert (git, ours) == (ignored, ignored)
