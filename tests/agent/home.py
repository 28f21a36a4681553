"""A home with a memory directory, a project, transcripts, and canaries all around."""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memd.agent.places import Root
from memd.agent.step import ToolResult
from memd.agent.view import CALL_FILES, AgentView, Meter, open_roots, root_of
from memd.agent.workspace import Workspace
from memd.dream.sources import Transcripts
from memd.dream.workspace import DreamWorkspace

NOW = 1_760_000_000.0
CANARY = "CANARY-7f3a-do-not-tell"
TOKEN = "gh" + "p_" + "a7Kx92LmQw84ErTy61UiOp30AsDf57GhJk2Z"


def memory(name: str, body: str = "text", kind: str = "project") -> str:
    """Return a valid memory."""
    return (
        f"---\nname: {name}\ndescription: about {name}\nmetadata:\n  type: {kind}\n---\n\n{body}\n"
    )


class Home:
    """Folders below one path; ``memory``, ``project`` and ``transcripts`` are the roots."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.memory = path / ".claude" / "projects" / "p" / "memory"
        self.transcripts = self.memory.parent
        self.project = path / "code" / "p"
        for folder in (self.memory / "sub", self.project / "src", self.project / ".git"):
            folder.mkdir(parents=True)
        self._fill_memory()
        self._fill_project()
        self._fill_outside()

    def _fill_memory(self) -> None:
        files = {
            "MEMORY.md": "- [A](a.md) - first\n- [B](sub/b.md) - second\n",
            "a.md": memory("a", "alpha\nbeta\ngamma"),
            "sub/b.md": memory("b", "beta two"),
            "rule.md": memory("rule", "always test", "feedback"),
            "broken.md": "---\nname: [\n---\nbroken\n",
            ".consolidate-lock": CANARY,
        }
        for name, text in files.items():
            (self.memory / name).write_text(text, encoding="utf-8")

    def _fill_project(self) -> None:
        files = {
            "src/main.py": "def main():\n    return 1\n",
            "README.md": f"# P\nthe token is {TOKEN}\nend\n",
            ".env": CANARY,
            "credentials.json": CANARY,
            "server.pem": CANARY,
            ".git/config": CANARY,
            "redos.txt": "a" * 5000,
        }
        for name, text in files.items():
            (self.project / name).write_text(text, encoding="utf-8")
        line = f'{{"type":"user","text":"we deploy with {TOKEN}"}}\n'
        (self.transcripts / "s.jsonl").write_text(line, encoding="utf-8")

    def _fill_outside(self) -> None:
        outside = self.path / "secret.txt"
        outside.write_text(CANARY, encoding="utf-8")
        (self.path / ".ssh").mkdir()
        (self.path / ".ssh" / "id_rsa").write_text(CANARY, encoding="utf-8")
        other = self.path / ".claude" / "projects" / "other" / "memory"
        other.mkdir(parents=True)
        (other / "o.md").write_text(CANARY, encoding="utf-8")
        (self.path / "code" / "p-evil").mkdir()
        (self.path / "code" / "p-evil" / "x.md").write_text(CANARY, encoding="utf-8")
        for root in (self.memory, self.project):
            (root / "link_out.md").symlink_to(outside)
            (root / "link_dir").symlink_to(self.path)
            (root / "dangling.md").symlink_to(self.path / "made-by-agent")
            os.link(outside, root / "hard.md")
            os.mkfifo(root / "fifo.md")
        with socket.socket(socket.AF_UNIX) as bound:
            here = os.open(self.memory, os.O_RDONLY)
            try:
                bound.bind(f"/proc/self/fd/{here}/sock.md")
            finally:
                os.close(here)

    def workspace(self, **options: Any) -> Workspace:
        """Return a workspace on the three roots."""
        wanted = {"origin": "user"} | options
        return Workspace(
            str(self.memory),
            project=str(self.project),
            transcripts=(str(self.transcripts),),
            **wanted,
        )

    def dream(self) -> DreamWorkspace:
        """Return the workspace of a dream on the three roots."""
        folders = (str(self.transcripts),)
        return DreamWorkspace(
            str(self.memory),
            transcripts_of=Transcripts(folders, str),
            project=str(self.project),
            transcripts=folders,
        )

    @contextmanager
    def view(
        self, written: Mapping[str, bytes | None] | None = None, files: int = CALL_FILES
    ) -> Iterator[AgentView]:
        """Look through the three roots, at so many files."""
        roots: tuple[Root, ...] = (
            root_of("memory", str(self.memory)),
            root_of("project", str(self.project)),
            root_of("transcripts", str(self.transcripts)),
        )
        folders = open_roots(roots)
        try:
            yield AgentView(roots, folders, written or {}, {}, meter=Meter(never, files), now=NOW)
        finally:
            for folder in folders.values():
                folder.close()

    def snapshot(self) -> dict[str, tuple[int, int, int, str]]:
        """Return what lies below the home: kind, size, mtime and content of everything."""
        results: dict[str, tuple[int, int, int, str]] = {}
        for folder, _, files in os.walk(self.path):
            for name in ["", *files]:
                path = os.path.join(folder, name)
                status = os.lstat(path)
                plain = os.path.isfile(path) and not os.path.islink(path)
                text = Path(path).read_text(encoding="utf-8") if plain else ""
                results[path] = (status.st_mode, status.st_size, status.st_mtime_ns, text)
        return results


def never() -> bool:
    """Say that there is time."""
    return False


def call(workspace: Workspace, tool: str, **given: Any) -> ToolResult:
    """Run one tool call."""
    return workspace.call(tool, given, NOW, never)
