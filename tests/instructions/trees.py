"""Trees of instruction files on a real disk, and what is loaded of them."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from memd.base.instruction_files import InstructionFile
from memd.instructions import claude
from memd.instructions.disk import RealDisk
from memd.instructions.values import FilesRequest, Resolution


@dataclass(frozen=True, slots=True)
class InstructionTree:
    """A folder with a home, a machine's policy and a project ``repo`` in ``outer``."""

    top: Path
    disk: RealDisk

    @property
    def home(self) -> Path:
        """The user's home."""
        return self.top / "home"

    @property
    def repo(self) -> Path:
        """The project, which is root and working directory unless a test says otherwise."""
        return self.top / "outer" / "repo"

    def write(self, name: str, text: str | bytes = "Text.\n") -> Path:
        """Write a file, its name relative to the project unless it is absolute."""
        path = self.repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def request(
        self,
        cwd: str = "",
        touched: Iterable[str] = (),
        exclude: Iterable[str] = (),
        *,
        external: bool = False,
    ) -> FilesRequest:
        """Return a request for a folder of the project; ``touched`` are relative to that."""
        folder = os.path.normpath(self.repo / cwd)
        return FilesRequest(
            cwd=folder,
            root=str(self.repo),
            home=str(self.home),
            config=str(self.home / ".claude"),
            managed=str(self.top / "managed"),
            touched=tuple(os.path.join(folder, name) for name in touched),
            exclude=tuple(exclude),
            external=external,
        )

    def resolve(self, request: FilesRequest | None = None) -> "Seen":
        """Return what is loaded for a request, by default one for the whole project."""
        return Seen(self, claude.resolve(request or self.request(), self.disk))


@dataclass(frozen=True, slots=True)
class Seen:
    """A resolution with names relative to the project."""

    tree: InstructionTree
    resolution: Resolution

    @property
    def loaded(self) -> list[str]:
        """The names of what is loaded, in order."""
        return [self.name(file) for file in self.resolution.files if file.loaded]

    @property
    def refused(self) -> dict[str, str]:
        """Why the others are not loaded, by name."""
        files = self.resolution.files
        return {self.name(file): file.why_not for file in files if not file.loaded}

    def name(self, file: InstructionFile) -> str:
        """Return the name of a file from the project's folder."""
        return os.path.relpath(file.path, self.tree.repo)


def make_tree(top: Path) -> InstructionTree:
    """Make an empty tree."""
    tree = InstructionTree(Path(os.path.realpath(top)), RealDisk())
    for folder in (tree.home, tree.repo):
        folder.mkdir(parents=True)
    return tree
