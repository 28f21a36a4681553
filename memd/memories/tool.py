"""Plan the six commands of the Messages API's memory tool over a memory directory. Pure.

``/memories`` is the project's memory directory, ``/memories/MEMORY.md`` its index. A folder exists
while a memory lies in it. ``tool_text.py`` writes the results, ``tool_files.py`` the stored bytes;
the store checks names, sizes and secrets and keeps the index.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from msgspec import Struct

from memd.core.errors import MemdError
from memd.core.names import INDEX, TEAM, NameRefusedError, check_name, in_catalogue
from memd.core.text import one_line, sha256
from memd.core.values import Draft, FileEdit, Header, MemoryFile, Pointer, Tree
from memd.documents import index
from memd.memories import tool_files, tool_text
from memd.memories.tool_text import ROOT

_TITLE_CHARACTERS = 80
_HOOK_CHARACTERS = 120
_NO_PLACE = "logs and indexes are not memories"
_STRINGS = {
    "view": ("path",),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str", "new_str"),
    "insert": ("path", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}
_TEAMS = "{path} is shared with a team; a person removes it with memctl team remove"
_THE_INDEX = f"{ROOT}/{INDEX} is the index; it is edited, never deleted, moved or replaced"


class ToolRefusedError(MemdError):
    """A command of the memory tool cannot be run; the sentence is the tool's result."""

    code = 1011
    kind = "tool_refused"
    exit_status = 65


class ToolCommand(Struct, frozen=True):
    """One command: its name, its text parameters by name, and its numbers."""

    name: str
    texts: Mapping[str, str]
    insert_line: int = 0
    view_range: tuple[int, int] | None = None

    @property
    def path(self) -> str:
        """The path that the command is about; for a rename the old one."""
        return self.texts.get("path") or self.texts["old_path"]


class Stamp(Struct, frozen=True):
    """The stamps for a file's frontmatter: the session, and the time in ISO 8601, UTC."""

    session: str
    modified: str


@dataclass(slots=True)
class Editing:
    """An edit as a plan of the store; ``answer`` is the text of the result after it was called."""

    command: ToolCommand
    stamp: Stamp
    answer: str = field(default="", init=False)

    def __call__(self, tree: Tree) -> Draft:
        """Return the changes of the command to a tree. Raises ToolRefusedError."""
        draft, self.answer = _EDITS[self.command.name](self.command, tree, self.stamp)
        return draft


def parse(raw: Mapping[str, Any]) -> ToolCommand:
    """Return the command that a model sent. Raises ToolRefusedError in words for the model."""
    name = raw.get("command")
    if not isinstance(name, str) or name not in _STRINGS:
        _refuse(f"Unknown command: {name}. Commands are {', '.join(_STRINGS)}.")
    for key in _STRINGS[name]:
        if not isinstance(raw.get(key), str):
            _refuse(f"The command {name} needs `{key}`, a string.")
    texts = {key: raw[key] for key in _STRINGS[name]}
    if name == "insert":
        return ToolCommand(name, texts, insert_line=_number(raw.get("insert_line")))
    return ToolCommand(name, texts, view_range=_range(raw.get("view_range")))


def relative(path: str) -> str:
    """Return a path of the tool relative to the memory directory, "" for the directory itself.

    Raises ToolRefusedError for a path that is not below ``/memories``.
    """
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        _refuse(f"Path must start with {ROOT}, got: {path}")
    rest = path[len(ROOT) :].removeprefix("/")
    return rest.removesuffix("/")


def view_folder(command: ToolCommand, headers: tuple[Header, ...], raw_index: bytes | None) -> str:
    """Return the listing of a folder. Raises ToolRefusedError for an empty one."""
    folder = relative(command.path)
    sizes = {header.path: header.size for header in headers}
    if raw_index is not None:
        sizes[INDEX] = len(raw_index)
    start = f"{folder}/" if folder else ""
    below = {path[len(start) :]: size for path, size in sizes.items() if path.startswith(start)}
    if folder and not below:
        _refuse(tool_text.missing(command.path))
    return tool_text.listing(command.path, below)


def view_file(command: ToolCommand, content: bytes) -> str:
    """Return a file's content with line numbers. Raises ToolRefusedError."""
    text = _shown(command.path, content)
    if text.count("\n") >= tool_text.MOST_LINES:
        _refuse(f"File {command.path} exceeds maximum line limit of 999,999 lines.")
    return tool_text.content(command.path, text, command.view_range)


def repeated(command: ToolCommand, content: bytes | None) -> str:
    """Return the result of a command that ran before; ``content`` is the file as it is now."""
    if command.name == "str_replace":
        text = _shown(command.path, content or b"")
        return tool_text.snippet(text, max(0, text.find(command.texts["new_str"])))
    return _done(command)


def _create(command: ToolCommand, tree: Tree, stamp: Stamp) -> tuple[Draft, str]:
    """Return the change that creates a file, and the result's text."""
    path, text = relative(command.path), command.texts["file_text"]
    if path == INDEX:
        raw = tree.index()
        if raw is not None:
            _refuse(f"File {command.path} already exists")
        return Draft((FileEdit(INDEX, text.encode(), base=""),)), _done(command)
    _check(path)
    if tree.read(path) is not None or _below(tree, path):
        _refuse(f"File {command.path} already exists")
    content = tool_files.stored(path, text, None, session=stamp.session, modified=stamp.modified)
    return Draft((FileEdit(path, content, base=""),)), _done(command)


def _replace(command: ToolCommand, tree: Tree, stamp: Stamp) -> tuple[Draft, str]:
    """Return the change that replaces one text in a file, and the result's text."""
    old, new = command.texts["old_str"], command.texts["new_str"]
    text, file = _file(command, tree)
    count = text.count(old)
    if count == 0:
        _refuse(tool_text.no_match(command.path, old))
    if count > 1:
        _refuse(tool_text.matches(old, _lines_with(text, old)))
    at = text.find(old)
    changed = text[:at] + new + text[at + len(old) :]
    return _edited(command, tree, file, changed, stamp), tool_text.snippet(changed, at)


def _insert(command: ToolCommand, tree: Tree, stamp: Stamp) -> tuple[Draft, str]:
    """Return the change that inserts lines into a file, and the result's text."""
    text, file = _file(command, tree)
    lines = tool_text.lines_of(text)
    if not 0 <= command.insert_line <= len(lines):
        _refuse(tool_text.bad_line(command.insert_line, len(lines)))
    lines.insert(command.insert_line, command.texts["insert_text"].rstrip("\n"))
    changed = "\n".join(lines)
    if not changed.endswith("\n"):
        changed += "\n"
    return _edited(command, tree, file, changed, stamp), _done(command)


def _delete(command: ToolCommand, tree: Tree, _stamp: Stamp) -> tuple[Draft, str]:
    """Return the change that deletes a file or folder, and the result's text."""
    path = relative(command.path)
    if not path:
        _refuse(f"Cannot delete the {ROOT} directory itself")
    files = _under(tree, path, command.path)
    edits = (FileEdit(file.header.path, None, base=file.hash) for file in files)
    return Draft(tuple(edits)), _done(command)


def _rename(command: ToolCommand, tree: Tree, _stamp: Stamp) -> tuple[Draft, str]:
    """Return the change that moves a file or folder, and the result's text."""
    old, new = relative(command.path), relative(command.texts["new_path"])
    if not old:
        _refuse(f"Cannot rename the {ROOT} directory itself")
    if not new or new == INDEX or _exists(tree, new):
        _refuse(f"The destination {command.texts['new_path']} already exists")
    files = _under(tree, old, command.path)
    if new.startswith(f"{old}/"):
        _refuse(f"{command.path} cannot be moved into itself")
    lines = {entry.path: entry for entry in index.entries(tree.index() or b"")}
    edits: list[FileEdit] = []
    pointers: dict[str, Pointer] = {}
    for file in files:
        source = file.header.path
        target = new + source[len(old) :]
        _check(target)
        content = tool_files.renamed(target, file)
        edits.append(FileEdit(source, None, base=file.hash))
        edits.append(FileEdit(target, content, base="", mtime_ns=file.header.mtime_ns))
        entry = lines.get(source)
        if entry is not None and entry.title != file.header.name:
            pointers[target] = Pointer(entry.title, entry.hook)
    return Draft(tuple(edits), pointers), _done(command)


_EDITS = {
    "create": _create,
    "str_replace": _replace,
    "insert": _insert,
    "delete": _delete,
    "rename": _rename,
}


def _done(command: ToolCommand) -> str:
    """Return the text of a successful command's result."""
    path = command.path
    return {
        "create": f"File created successfully at: {path}",
        "insert": f"The file {path} has been edited.",
        "delete": f"Successfully deleted {path}",
        "rename": f"Successfully renamed {path} to {command.texts.get('new_path', '')}",
    }[command.name]


def _file(command: ToolCommand, tree: Tree) -> tuple[str, MemoryFile | None]:
    """Return the text that the program sees, and the file; ``None`` as the file of the index."""
    path = relative(command.path)
    if path == INDEX:
        raw = tree.index()
        if raw is not None:
            return _shown(command.path, raw), None
    if not path or _below(tree, path):
        _refuse(f"The path {command.path} is not a file.")
    file = tree.read(path)
    if file is None:
        _refuse(tool_text.missing(command.path))
    return _shown(command.path, file.content), file


def _edited(
    command: ToolCommand, tree: Tree, file: MemoryFile | None, text: str, stamp: Stamp
) -> Draft:
    """Return the edit that gives a file (``None`` for the index) a new text, and its index line."""
    raw = tree.index()
    if file is None:
        return Draft((FileEdit(INDEX, text.encode(), base=sha256(raw or b"")),))
    path = file.header.path
    _check(path)
    if text == _shown(command.path, file.content):
        return Draft()
    content = tool_files.stored(path, text, file, session=stamp.session, modified=stamp.modified)
    edits = [FileEdit(path, content, base=file.hash)]
    listed = _listed_anew(raw, file, tool_files.description(path, text))
    if raw is not None and listed != raw and tool_files.shown(content) != content.decode():
        edits.append(FileEdit(INDEX, listed, base=sha256(raw)))
    return Draft(tuple(edits))


def _listed_anew(raw: bytes | None, file: MemoryFile, description: str) -> bytes | None:
    """Return the index with a new hook for a file, if the old hook was the file's description."""
    for entry in index.entries(raw or b""):
        if entry.path == file.header.path and raw is not None:
            from_header = Pointer(file.header.name, file.header.description)
            if index.with_pointer(raw, entry.path, from_header) == raw:
                hook = one_line(description, _HOOK_CHARACTERS)
                title = one_line(entry.title, _TITLE_CHARACTERS)
                return index.with_pointer(raw, entry.path, Pointer(title, hook))
    return raw


def _under(tree: Tree, path: str, named: str) -> list[MemoryFile]:
    """Return the file at a path, or all files in a folder. Raises ToolRefusedError.

    ``named`` is the path as the program named it.
    """
    if path == INDEX:
        _refuse(_THE_INDEX)
    paths = _below(tree, path) or [path]
    files = [file for result in paths if (file := tree.read(result)) is not None]
    if not files:
        _refuse(tool_text.gone(named))
    if any(file.header.path.startswith(TEAM) for file in files):
        _refuse(_TEAMS.format(path=named))
    return files


def _exists(tree: Tree, path: str) -> bool:
    """Return whether a path is a memory or a folder."""
    return any(header.path == path for header in tree.headers()) or bool(_below(tree, path))


def _below(tree: Tree, folder: str) -> list[str]:
    """Return the paths of the memories in a folder."""
    return sorted(header.path for header in tree.headers() if header.path.startswith(f"{folder}/"))


def _check(path: str) -> None:
    """Raise NameRefusedError for a path that no memory may have."""
    check_name(path)
    if not in_catalogue(path):
        raise NameRefusedError(path, _NO_PLACE)


def _shown(path: str, content: bytes) -> str:
    """Return the text of a file that the program sees. Raises ToolRefusedError."""
    try:
        return tool_files.shown(content)
    except UnicodeDecodeError:
        _refuse(f"The file {path} is not UTF-8 text.")


def _lines_with(text: str, part: str) -> list[int]:
    """Return the numbers of the lines at which a part of the text begins."""
    result: list[int] = []
    at = text.find(part)
    while at >= 0:
        result.append(text.count("\n", 0, at) + 1)
        at = text.find(part, at + 1)
    return result


def _number(value: object) -> int:
    """Return the line number to insert at. Raises ToolRefusedError."""
    if not isinstance(value, int) or isinstance(value, bool):
        _refuse("The command insert needs `insert_line`, a whole number.")
    return value


def _range(value: object) -> tuple[int, int] | None:
    """Return a ``view_range``, ``None`` if it is no pair. Raises ToolRefusedError."""
    if not isinstance(value, (list, tuple)) or len(value) != len(("first", "last")):
        return None
    if not all(isinstance(line, int) and not isinstance(line, bool) for line in value):
        _refuse("`view_range` is a list of two line numbers; -1 as the second is the last line.")
    return value[0], value[1]


def _refuse(sentence: str) -> NoReturn:
    """Raise ToolRefusedError with a sentence for the model."""
    raise ToolRefusedError(sentence)
