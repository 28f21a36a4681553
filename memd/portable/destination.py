"""Check that an export may be written to a path. Blocks."""

import os
import re
from collections.abc import Iterable

from msgspec import Struct

from memd.base.names import is_temporary, is_text
from memd.portable.errors import destination_refused
from memd.projects.project import is_of_agent

_SUFFIX = ".tar.gz"
_OTHER_ARCHIVE = r"(?i).*\.(?:tar|tgz|zip|gz|tbz2?|txz|bz2|xz|zst|7z)"
_NOT_ABSOLUTE = "it is named by an absolute path alone"
_NO_NAME = "it has a character that no path can have, or no name"
_OTHER_FORMAT = "an archive is written as .tar.gz, or as a folder"
_TEMPORARY_NAME = "memd gives such names to files that are not in place"
_NO_FOLDER = "the folder that it is to lie in is not there"
_NAME_IS_TAKEN = "something of this name is there, and nothing is ever overwritten"
_IN_AGENT_MEMORY = "it lies in a memory directory"


class Destination(Struct, frozen=True):
    """A free name in a folder (its real path); ``packed`` if a tar.gz is written there."""

    folder: str
    name: str
    packed: bool

    @property
    def path(self) -> str:
        """The whole path."""
        return f"{self.folder.rstrip('/')}/{self.name}"


def check_destination(path: str, forbidden: Iterable[tuple[str, str]]) -> Destination:
    """Return the checked destination of an export. Raises Refused if it is not allowed.

    ``forbidden`` are pairs of a directory in which exports are not allowed and the reason.
    """
    folder, name = os.path.split(os.path.normpath(path))
    packed = name.endswith(_SUFFIX) and name != _SUFFIX
    rules = (
        ("\0" in path or not is_text(path) or not name, _NO_NAME),
        (not path.startswith("/"), _NOT_ABSOLUTE),
        (is_temporary(name), _TEMPORARY_NAME),
        (not packed and bool(re.fullmatch(_OTHER_ARCHIVE, name)), _OTHER_FORMAT),
    )
    why = next((reason for is_broken, reason in rules if is_broken), "")
    if why:
        raise destination_refused(path, why)
    result = Destination(os.path.realpath(folder), name, packed)
    why = _reason_against_folder(result.folder, forbidden)
    if not why and not os.path.isdir(result.folder):
        why = _NO_FOLDER
    elif not why and os.path.lexists(result.path):
        why = _NAME_IS_TAKEN
    if why:
        raise destination_refused(path, why)
    return result


def _reason_against_folder(folder: str, forbidden: Iterable[tuple[str, str]]) -> str:
    """Return why exports into a folder (its real path) are not allowed, "" if they are."""
    for directory, why in forbidden:
        if f"{folder}/".startswith(f"{os.path.realpath(directory).rstrip('/')}/"):
            return why
    ancestor = folder
    while ancestor != "/":
        if is_of_agent(ancestor):
            return _IN_AGENT_MEMORY
        ancestor = os.path.dirname(ancestor)
    return ""
