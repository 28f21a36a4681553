"""The root that worktrees share, and links that are not believed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from memd.projects.git import find_checkout, find_root


def repository(path: Path) -> Path:
    """Make what git leaves at a repository's root."""
    (path / ".git" / "worktrees").mkdir(parents=True)
    return path


def worktree(main: Path, path: Path, *, common: str = "../..") -> Path:
    """Make what ``git worktree add`` leaves."""
    path.mkdir(parents=True)
    admin = main / ".git" / "worktrees" / path.name
    admin.mkdir()
    (admin / "commondir").write_text(f"{common}\n")
    (admin / "gitdir").write_text(f"{path}/.git\n")
    (path / ".git").write_text(f"gitdir: {admin}\n")
    return path


def test_real_worktrees_and_submodules(tmp_path: Path) -> None:
    """What git itself makes is understood: worktrees share, a submodule is its own project."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}

    def git(where: Path, *words: str) -> None:
        person = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
        command = ("git", "-C", str(where), *person, *words)
        subprocess.run(command, check=True, capture_output=True, env=env)

    main, other = tmp_path / "main", tmp_path / "other"
    for path in (main, other):
        path.mkdir()
        git(path, "init", "-q")
        git(path, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", str(tmp_path / "linked"))
    git(main, "submodule", "--quiet", "add", str(other), "sub")
    git(tmp_path, "clone", "-q", "--bare", str(main), "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tmp_path / "of-bare"))
    assert find_root(str(tmp_path / "linked")) == str(main)
    assert find_root(str(main / "sub")) == str(main / "sub")
    assert find_root(str(tmp_path / "of-bare")) == str(tmp_path / "bare.git")


def test_a_forged_link_is_its_own_project(tmp_path: Path) -> None:
    """A checkout that claims another project's git directory gains nothing."""
    main = repository(tmp_path / "main")
    linked = worktree(main, tmp_path / "linked")
    evil = tmp_path / "evil"
    evil.mkdir()
    (evil / "fake").mkdir()
    (evil / "fake" / "commondir").write_text(str(main / ".git"))
    (evil / "fake" / "gitdir").write_text(f"{evil}/.git")
    claims = [
        f"gitdir: {main}/.git/worktrees/linked",  # known, but another checkout's
        f"gitdir: {main}/.git",  # no linked worktree at all
        "gitdir: fake",  # points back, but does not lie in the main repository
        f"gitdir: {tmp_path}/nowhere",
        "gitdir: \0",
        "nonsense",
        "",
    ]
    for claim in claims:
        (evil / ".git").write_text(claim)
        assert find_root(str(evil)) == str(evil), claim
    (evil / ".git").unlink()
    for target in (linked / ".git", main / ".git", tmp_path / "nowhere"):
        (evil / ".git").symlink_to(target)
        assert find_root(str(evil)) == str(evil)
        (evil / ".git").unlink()
    os.mkfifo(evil / ".git")
    assert find_root(str(evil)) == str(evil)


def test_hostile_pointer_files_are_not_read(tmp_path: Path) -> None:
    """Links, folders and FIFOs in the git directory prove nothing and hang nothing."""
    main = repository(tmp_path / "main")
    linked = worktree(main, tmp_path / "linked")
    gitdir = main / ".git/worktrees/linked/gitdir"
    saved = gitdir.rename(tmp_path / "saved")
    gitdir.symlink_to(saved)
    assert find_root(str(linked)) == str(linked)
    gitdir.unlink()
    gitdir.mkdir()
    assert find_root(str(linked)) == str(linked)
    gitdir.rmdir()
    os.mkfifo(gitdir)
    assert find_root(str(linked)) == str(linked)
    gitdir.unlink()
    gitdir.write_text("elsewhere/.git/config")
    assert find_root(str(linked)) == str(linked)


def test_the_memo_follows_the_link_file(tmp_path: Path) -> None:
    """A refused link is tried again; a proven one is dropped when its ``.git`` is another."""
    main = repository(tmp_path / "main")
    linked = worktree(main, tmp_path / "linked")
    back = main / ".git/worktrees/linked/gitdir"
    right = back.read_text()
    back.write_text("/elsewhere/.git\n")
    assert find_root(str(linked)) == str(linked)
    back.write_text(right)
    assert find_root(str(linked)) == str(main)
    (linked / ".git").unlink()
    (linked / ".git").write_text("gitdir: /elsewhere\n")
    os.utime(linked / ".git", ns=(1, 1))
    assert find_root(str(linked)) == str(linked)


def test_a_worktree_is_a_checkout_of_its_own(tmp_path: Path) -> None:
    """It shares the root of the main repository and has files of its own."""
    main = repository(tmp_path / "main")
    linked = worktree(main, tmp_path / "linked")
    (linked / "sub").mkdir()
    assert find_root(str(linked / "sub")) == str(main)
    assert find_checkout(str(linked / "sub")) == str(linked)
    assert find_checkout(str(tmp_path)) == str(tmp_path)
