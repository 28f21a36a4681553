"""The folders, results and limits of a reading of instruction files, and its port to a disk.

Source of the order, the limits and the reasons: docs/instructions.md.
"""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct, field

from memd.base.instruction_files import InstructionFile

FILE_BYTES = 1024 * 1024  # a larger file is never read
LONG_CHARACTERS = 40_000  # a longer file is loaded, and a problem names it
TEXT_CHARACTERS = 100_000  # of all files together in a prompt
# The limits of one reading. Anything above a limit is skipped, and a problem says so.
LISTED_FILES = 2000
FOLDER_ENTRIES = 20_000  # in all folders that are walked; of one folder, what the disk returns
LOADED_CHARACTERS = 1024 * 1024  # of all loaded files together
MENTIONS = 20_000  # of files by other files
TOUCHED_FILES = 200  # only the first ones count
GLOBS = 500  # of all rules together


class Resolution(Struct, frozen=True):
    """The instruction files of a working directory.

    ``texts`` has the text of each loaded file for the model, by path. ``problems`` are sentences
    about faults that a person may want to correct. ``external`` are the paths of includes that the
    user has not allowed.
    """

    files: tuple[InstructionFile, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    external: tuple[str, ...] = ()


class FilesRequest(Struct, frozen=True):
    """The folders in which instruction files are searched; all paths are absolute.

    ``cwd`` and ``root`` (the git root, or ``cwd`` without one) are real paths. ``home`` is the
    user's home, ``config`` the folder of Claude Code (CLAUDE_CONFIG_DIR, else ~/.claude), and
    ``managed`` that of the machine's policy. ``touched`` are files that were read or changed: they
    load rules with a condition, and the instruction files in their folders below ``cwd``.
    ``exclude`` are globs on absolute paths. ``external`` says that the user allowed includes from
    outside.
    """

    cwd: str
    root: str
    home: str
    config: str
    managed: str
    touched: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    external: bool = False


class DiskText(Struct, frozen=True):
    """The present text of a file with its real path, or in words why it cannot be read.

    ``missing`` says that there is no file with that name.
    """

    real: str
    text: str = ""
    why_not: str = ""
    missing: bool = False


class DiskEntry(Struct, frozen=True):
    """One entry of a folder: its name, its real path, and whether it is a folder.

    For a link, that is whether it leads to a folder.
    """

    name: str
    real: str
    folder: bool


class InstructionDisk(Protocol):
    """The methods of a disk by which files are found. All of them block and raise nothing."""

    def read(self, path: str) -> DiskText:
        """Read a text: only a regular file of the user or of root, of at most ``FILE_BYTES``.

        Links are followed. For a FIFO, a device, a folder, another owner's file or one that is not
        readable, the result has a reason. A byte order mark and carriage returns stay in the text,
        and bytes that are not UTF-8 are replaced.
        """
        ...

    def entries(self, folder: str) -> tuple[DiskEntry, ...]:
        """Return the entries of a folder by name; none if it is missing or cannot be read.

        At most ``FOLDER_ENTRIES`` are returned, even if there are more.
        """
        ...

    def real(self, path: str) -> str:
        """Return the real path of an existing file or folder; for others, the path itself."""
        ...


class StampedDisk(InstructionDisk, Protocol):
    """A disk that also tells whether something has changed."""

    def stamp(self, path: str) -> tuple[int, ...]:
        """Return numbers that change if a file, folder or link is replaced or a file is written.

        They are empty if nothing exists at the path. Links are not followed. A new entry in a
        folder does not change the folder's numbers.
        """
        ...
