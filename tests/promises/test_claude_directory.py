"""A directory of memories as Claude Code writes them, through the whole daemon."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memd.client.aio import AsyncClient
from memd.core import limits
from memd.projects.project import slug
from memd.testing.daemon import Home, daemon_here, throw_away_home

pytestmark = pytest.mark.anyio

STAMPED = """---
name: {name}
description: {description}
metadata:
  node_type: memory
  type: {type}
  originSessionId: aa3faf1b-637c-4c1f-9119-ab2a9fc5580b
  modified: 2026-11-20T23:18:09.458Z
---

{body}
"""


def memory(name: str, description: str, body: str, kind: str = "project") -> bytes:
    """Return a file as Claude Code leaves it."""
    return STAMPED.format(name=name, description=description, body=body, type=kind).encode()


def fill(folder: Path) -> None:
    """Write 250 topics in every form that is met, and an index of 300 lines."""
    (folder / "area" / "deep").mkdir(parents=True)
    for number in range(244):
        text = memory(f"topic-{number}", f"Topic number {number}", f"Fact {number}.")
        (folder / f"topic_{number}.md").write_bytes(text)
    pnpm = memory("uses-pnpm", "Prefers pnpm over npm", "Use pnpm in the monorepo.", "feedback")
    (folder / "area" / "deep" / "uses-pnpm.md").write_bytes(pnpm)
    kafka = memory("kafka", "Consumer groups of the billing service", "Rebalance on deploy.")
    (folder / "windows.md").write_bytes(b"\xef\xbb\xbf" + kafka.replace(b"\n", b"\r\n"))
    flat = b"---\nname: flat\ndescription: quarterly: budget\ntype: reference\n---\nSee the wiki.\n"
    (folder / "flat.md").write_bytes(flat)
    (folder / "broken.md").write_bytes(b"---\nname: [\n- : {\n---\nThe zebra migration notes.\n")
    (folder / "plain.md").write_bytes(b"Just a giraffe without any head.\n")
    (folder / "latin.md").write_bytes(b"---\nname: caf\xe9\n---\n\xff\xfe\n")
    lines = [f"- [Topic {n}](topic_{n}.md) \u2014 fact {n}" for n in range(299)]
    lines.insert(5, "- [Long](flat.md) \u2014 " + "x" * 40_000)
    (folder / "MEMORY.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return every file's bytes and mtime."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def directory(home: Home, root: str) -> Path:
    """Return where Claude Code keeps the memories of a root."""
    return Path(home.path) / ".claude" / "projects" / slug(root) / "memory"


async def test_it_is_read_and_left_as_it_was() -> None:
    """Loading, listing, searching and prefetching are right and change no byte."""
    with throw_away_home() as home:
        cwd = home.project()
        folder = directory(home, cwd)
        folder.mkdir(parents=True)
        fill(folder)
        before = contents(folder)
        async with daemon_here(home), AsyncClient(home.places.socket, name="t") as client:
            listed = await client.call("memory.list", {"cwd": cwd})
            loaded = await client.call("load_prompt", {"cwd": cwd})
            results = await _results(client, cwd)
        after = contents(folder)
    assert after == before
    by_path = {memory["path"]: memory for memory in listed["memories"]}
    assert len(by_path) == 250
    assert by_path["area/deep/uses-pnpm.md"]["type"] == "feedback"
    assert by_path["windows.md"]["name"] == "kafka"
    assert by_path["flat.md"]["description"] == "quarterly: budget"
    assert by_path["broken.md"]["damaged"]
    assert (by_path["plain.md"]["name"], by_path["plain.md"]["damaged"]) == ("plain", False)
    assert (loaded["index"]["cut"], loaded["index"]["lines"]) == ("bytes", 300)
    shown = loaded["prompt"][loaded["prompt"].index("- [Topic 0]") :]
    assert len(shown.splitlines()) <= limits.INDEX_LINES + 5
    assert len(shown.encode()) <= limits.INDEX_BYTES + 1000
    assert "Topic 0" in loaded["prompt"]
    assert results == ["uses-pnpm.md", "windows.md", "flat.md", "broken.md", "plain.md"]


async def _results(client: AsyncClient, cwd: str) -> list[str]:
    queries = (
        "should I install this with npm or pnpm in the monorepo?",
        "how are consumer groups of the billing service rebalanced?",
        "where do I find the quarterly budget?",
        "what about the zebra migration?",
        "tell me about the giraffe please",
    )
    results = []
    for number, query in enumerate(queries):
        params: dict[str, Any] = {"cwd": cwd, "session_id": f"s{number}", "query": query}
        answer = await client.call("prefetch", params)
        results.append(Path(answer["memories"][0]["path"]).name if answer["memories"] else "")
    return results


async def test_an_index_of_many_lines_is_cut_with_a_warning() -> None:
    """Above 200 lines the first 200 are loaded, and a line says what was cut."""
    with throw_away_home() as home:
        cwd = home.project()
        folder = directory(home, cwd)
        folder.mkdir(parents=True)
        lines = [f"- [T{n}](t{n}.md) — fact {n}" for n in range(300)]
        (folder / "MEMORY.md").write_text("\n".join(lines))
        async with daemon_here(home), AsyncClient(home.places.socket, name="t") as client:
            loaded = await client.call("load_prompt", {"cwd": cwd})
    assert (loaded["index"]["cut"], loaded["index"]["lines"]) == ("lines", 300)
    assert "(t199.md)" in loaded["prompt"]
    assert "(t200.md)" not in loaded["prompt"]
    assert "300" in loaded["prompt"]


async def test_worktrees_share_and_a_forged_link_does_not() -> None:
    """Subdirectories and linked worktrees have one memory; a hostile checkout has its own."""
    with throw_away_home() as home:
        main = Path(home.project("main"))
        (main / "src").mkdir()
        linked = Path(home.path) / "linked"
        forged = Path(home.path) / "forged"
        for tree in (linked, forged):
            tree.mkdir()
        private = main / ".git" / "worktrees" / "linked"
        private.mkdir(parents=True)
        (private / "commondir").write_text("../..\n")
        (private / "gitdir").write_text(f"{linked}/.git\n")
        (linked / ".git").write_text(f"gitdir: {private}\n")
        (forged / ".git").write_text(f"gitdir: {private}\n")
        async with daemon_here(home), AsyncClient(home.places.socket, name="t") as client:
            results = [
                (await client.call("memory.list", {"cwd": str(cwd)}))["memory_dir"]
                for cwd in (main, main / "src", linked, forged)
            ]
    assert results[0] == results[1] == results[2] != results[3]


async def test_worktrees_of_the_real_git_share() -> None:
    """A worktree that git itself made shares the memory of its repository."""
    with throw_away_home() as home:
        if not made_by_git(home):
            pytest.skip("git is not installed: the link that it makes cannot be shown")
        async with daemon_here(home), AsyncClient(home.places.socket, name="t") as client:
            results = {
                (await client.call("memory.list", {"cwd": cwd}))["memory_dir"]
                for cwd in (f"{home.path}/repository", f"{home.path}/tree")
            }
    assert len(results) == 1


def made_by_git(home: Home) -> bool:
    """Let git make a repository and a worktree; return whether there is a git."""
    if shutil.which("git") is None:
        return False
    main = f"{home.path}/repository"
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    for command in (
        [*git, "init", "-q", main],
        [*git, "-C", main, "commit", "-q", "--allow-empty", "-m", "x"],
        [*git, "-C", main, "worktree", "add", "-q", f"{home.path}/tree"],
    ):
        subprocess.run(command, env=dict(home.environ), check=True, capture_output=True)
    return True
