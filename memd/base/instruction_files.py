"""Instruction files as one text, for whoever puts them into a prompt."""

from msgspec import Struct


class InstructionFile(Struct, frozen=True):
    """One instruction file, in the order of loading; a later file counts more.

    ``path`` is the absolute path under which it was found. ``kind`` is managed, user, project,
    local, rule, include or agents (an AGENTS.md). ``scope`` is managed, user
    or project: that of the file itself, or of the file that includes it. ``depth`` is the number of
    includes that lead to it, and ``included_by`` the path of the file that includes it, "" for
    none. ``condition`` are the globs of a rule that is loaded for matching files. ``chars`` are the
    characters that the model gets. ``why_not`` says in words why it is not ``loaded``.
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


class InstructionText(Struct, frozen=True):
    """The text for a client's prompt, "" if no file is loaded.

    ``etag`` changes with the text. ``files`` are all files, also those that are not
    loaded. ``problems`` are sentences for a person.
    """

    text: str
    etag: str
    files: tuple[InstructionFile, ...]
    problems: tuple[str, ...]
