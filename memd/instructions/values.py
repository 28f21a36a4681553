"""The parameters and results of views of instruction files, and their port to a disk.

Source of the order, the limits and the reasons: docs/instructions.md.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from msgspec import Struct, field

FILE_BYTES = 1024 * 1024  # a larger file is never read
LONG_CHARACTERS = 40_000  # a longer file is loaded whole and named as a problem
TEXT_CHARACTERS = 100_000  # of all files together, as they are offered in a prompt
# Of one view. What comes later is not looked at, and that is a problem.
LISTED_FILES = 2000
FOLDER_ENTRIES = 20_000  # in all folders that are walked; of one folder, what the disk returns
VIEW_CHARACTERS = 1024 * 1024  # of all loaded files together
MENTIONS = 20_000  # of files by other files
TOUCHED_FILES = 200  # the first of them
GLOBS = 500  # of all rules together, braces taken apart


class View(StrEnum):
    """Whose rules decide which files are loaded."""

    CLAUDE = "claude"
    CODEX = "codex"
    GEMINI = "gemini"
    CURSOR = "cursor"
    UNION = "union"


class InstructionFile(Struct, frozen=True):
    """One file that a view knows of, in the order of loading; the later one counts more.

    ``path`` is absolute, as it was met. ``kind`` is managed, user, project, local, rule, include or
    agents (an AGENTS.md or what stands for it). ``scope`` is managed, user or project: whose file
    the one is that it was found through. ``depth`` counts includes, 0 for a file that was found by
    its place; ``included_by`` is the path of the file that names it. ``condition`` are the globs of
    a rule that loads with a matching file. ``chars`` are the characters that the model gets.
    ``why_not`` says in words why it is not ``loaded``.
    """

    path: str
    kind: str
    scope: str
    depth: int = 0
    included_by: str = ""
    condition: tuple[str, ...] = ()
    chars: int = 0
    loaded: bool = True
    why_not: str = ""


class Resolution(Struct, frozen=True):
    """What a view makes of a working directory.

    ``texts`` has for each loaded file, by its path, what a model gets of it; "" for one whose text
    stands in that of the file that includes it. ``problems`` are sentences about what a person may
    want to mend. ``external`` are the paths of includes that wait for a yes.
    """

    files: tuple[InstructionFile, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    external: tuple[str, ...] = ()


class ViewRequest(Struct, frozen=True):
    """Where a view looks: all paths are absolute, and real where that is said.

    ``cwd`` and ``root`` (the git root, or ``cwd`` where there is none) are real. ``home`` is the
    user's, ``config`` Claude Code's folder (CLAUDE_CONFIG_DIR, else ~/.claude), ``codex`` and
    ``gemini`` the folders of those (CODEX_HOME, else ~/.codex; ~/.gemini). ``managed`` is the
    folder of the machine's policy. ``touched`` are files that were read or changed: rules with a
    condition load with them, and files below ``cwd`` with what lies beside them. ``exclude`` are
    globs on absolute paths. ``external`` says that the user allowed includes from outside.
    """

    cwd: str
    root: str
    home: str
    config: str
    codex: str
    gemini: str
    managed: str
    touched: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    external: bool = False


class DiskText(Struct, frozen=True):
    """A text file as it is now: its real path and its text, or in words why it is not readable.

    ``missing`` says that there is no file of that name at all.
    """

    real: str
    text: str = ""
    why_not: str = ""
    missing: bool = False


class DiskEntry(Struct, frozen=True):
    """One entry of a folder, which may be anything; links are followed to say what it is.

    ``real`` is its real path.
    """

    name: str
    real: str
    folder: bool


class InstructionDisk(Protocol):
    """What a view may ask of a disk. All methods block and raise nothing."""

    def read(self, path: str) -> DiskText:
        """Read a text: only a regular file of the user or of root, of at most ``FILE_BYTES``.

        Links are followed. A FIFO, a device, a folder, another owner's file or one that is not
        readable comes back with a reason. A byte order mark and carriage returns are part of the
        text; what is no UTF-8 is replaced.
        """
        ...

    def entries(self, folder: str) -> tuple[DiskEntry, ...]:
        """Return what is in a folder by name, nothing where it is not there or not readable.

        At most ``FOLDER_ENTRIES``, in which case there may be more.
        """
        ...

    def real(self, path: str) -> str:
        """Return the real path of what is there; of what is not, the path."""
        ...

    def stamp(self, path: str) -> tuple[int, ...]:
        """Return what changes when the file, folder or link of a name is another or is written.

        Empty where nothing is. Links are not followed. What is put into a folder does not count.
        """
        ...
