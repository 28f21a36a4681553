"""Plan the six commands of the Messages API's memory tool over a memory directory. Pure.

``/memories`` is the project's memory directory, ``/memories/MEMORY.md`` its index. A folder exists
while a memory lies in it. ``tool_text.py`` writes the results, ``tool_files.py`` the stored bytes;
the store checks names, sizes and secrets and keeps the index.
"""

from collections.abc import Mapping
from typing import Any, NoReturn

from msgspec import Struct

from memd.base.errors import Invalid
from memd.base.names import INDEX, TEAM
from memd.base.text import sha256
from memd.base.values import Draft, FileEdit, Header, MemoryFile, Pointer, Tree
from memd.memories import tool_files, tool_text
from memd.memories.tool_text import ROOT
from memd.memories.writing import check_place
from memd.store import index

_TEXT_PARAMETERS = {  # by command
    "view": ("path",),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str", "new_str"),
    "insert": ("path", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}
_RANGE_NUMBERS = 2  # the first and the last line
_BAD_RANGE = "`view_range` is a list of two line numbers; -1 as the second is the last line."
_SHARED = "{path} is a team's; a person removes it, with memctl team remove or memctl rm"
_INDEX_STAYS = f"{ROOT}/{INDEX} is the index; it is edited, never deleted, moved or replaced"


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


class Editing(Struct):
    """An edit as a plan of the store, which calls it with the directory as it is now."""

    command: ToolCommand
    stamp: Stamp
    answer: str = ""  # the text of the result, once it was called

    def __call__(self, tree: Tree) -> Draft:
        """Return the changes of the command to a tree. Raises Invalid."""
        draft, self.answer = _EDITS[self.command.name](self.command, tree, self.stamp)
        return draft


def parse(raw: Mapping[str, Any]) -> ToolCommand:
    """Return the command that a model sent. Raises Invalid in words for the model."""
    name = raw.get("command")
    if not isinstance(name, str) or name not in _TEXT_PARAMETERS:
        _refuse(f"Unknown command: {name}. Commands are {', '.join(_TEXT_PARAMETERS)}.")
    for key in _TEXT_PARAMETERS[name]:
        if not isinstance(raw.get(key), str):
            _refuse(f"The command {name} needs `{key}`, a string.")
    texts = {key: raw[key] for key in _TEXT_PARAMETERS[name]}
    if name == "insert":
        return ToolCommand(name, texts, insert_line=_line_number(raw.get("insert_line")))
    return ToolCommand(name, texts, view_range=_view_range(raw.get("view_range")))


def relative(path: str) -> str:
    """Return a path of the tool relative to the memory directory, "" for the directory itself.

    Raises Invalid for a path that is not below ``/memories``.
    """
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        _refuse(f"Path must start with {ROOT}, got: {path}")
    return path.removeprefix(ROOT).removeprefix("/").removesuffix("/")


def view_folder(command: ToolCommand, headers: tuple[Header, ...], raw_index: bytes | None) -> str:
    """Return the listing of a folder. Raises Invalid for an empty one."""
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
    """Return a file's content with line numbers. Raises Invalid."""
    text = _shown_text(command.path, content)
    if text.count("\n") >= tool_text.MOST_LINES:
        _refuse(f"File {command.path} exceeds maximum line limit of 999,999 lines.")
    return tool_text.content(command.path, text, command.view_range)


def repeated_answer(command: ToolCommand, content: bytes | None) -> str:
    """Return the result of a command that ran before; ``content`` is the file as it is now."""
    if command.name == "str_replace":
        text = _shown_text(command.path, content or b"")
        place = text.find(command.texts["new_str"])  # -1 if it was changed since
        return tool_text.snippet(text, max(0, place))
    return _success_text(command)


def _create(command: ToolCommand, tree: Tree, stamp: Stamp) -> tuple[Draft, str]:
    """Return the change that creates a file, and the result's text."""
    path, text = relative(command.path), command.texts["file_text"]
    if path == INDEX:
        raw_index = tree.index()
        if raw_index is not None:
            _refuse(f"File {command.path} already exists")
        return Draft((FileEdit(INDEX, text.encode(), base=""),)), _success_text(command)
    check_place(path)
    if tree.read(path) is not None or _paths_below(tree, path):
        _refuse(f"File {command.path} already exists")
    content = tool_files.stored(path, text, None, session=stamp.session, modified=stamp.modified)
    return Draft((FileEdit(path, content, base=""),)), _success_text(command)


def _str_replace(command: ToolCommand, tree: Tree, stamp: Stamp) -> tuple[Draft, str]:
    """Return the change that replaces one text in a file, and the result's text."""
    old, new = command.texts["old_str"], command.texts["new_str"]
    text, file = _file_text(command, tree)
    count = text.count(old)
    if count == 0:
        _refuse(tool_text.no_match(command.path, old))
    if count > 1:
        _refuse(tool_text.matches(old, _lines_with(text, old)))
    place = text.find(old)
    changed = text.replace(old, new)
    return _make_draft(command, tree, file, changed, stamp), tool_text.snippet(changed, place)


def _insert(command: ToolCommand, tree: Tree, stamp: Stamp) -> tuple[Draft, str]:
    """Return the change that inserts lines into a file, and the result's text."""
    text, file = _file_text(command, tree)
    lines = tool_text.lines_of(text)
    if not 0 <= command.insert_line <= len(lines):
        _refuse(tool_text.bad_line(command.insert_line, len(lines)))
    lines.insert(command.insert_line, command.texts["insert_text"].rstrip("\n"))
    changed = "\n".join(lines)
    if not changed.endswith("\n"):
        changed += "\n"
    return _make_draft(command, tree, file, changed, stamp), _success_text(command)


def _delete(command: ToolCommand, tree: Tree, _stamp: Stamp) -> tuple[Draft, str]:
    """Return the change that deletes a file or folder, and the result's text."""
    path = relative(command.path)
    if not path:
        _refuse(f"Cannot delete the {ROOT} directory itself")
    files = _files_at(tree, path, command.path)
    edits = (FileEdit(file.header.path, None, base=file.hash) for file in files)
    return Draft(tuple(edits)), _success_text(command)


def _rename(command: ToolCommand, tree: Tree, _stamp: Stamp) -> tuple[Draft, str]:
    """Return the change that moves a file or folder, and the result's text."""
    old, new = relative(command.path), relative(command.texts["new_path"])
    if not old:
        _refuse(f"Cannot rename the {ROOT} directory itself")
    if not new or new == INDEX or _exists(tree, new):
        _refuse(f"The destination {command.texts['new_path']} already exists")
    files = _files_at(tree, old, command.path)
    if new.startswith(f"{old}/"):
        _refuse(f"{command.path} cannot be moved into itself")
    lines = {entry.path: entry for entry in index.entries(tree.index() or b"")}
    edits: list[FileEdit] = []
    pointers: dict[str, Pointer] = {}
    for file in files:
        source = file.header.path
        target = new + source[len(old) :]
        check_place(target)
        content = tool_files.renamed(target, file)
        edits.append(FileEdit(source, None, base=file.hash))
        edits.append(FileEdit(target, content, base="", mtime_ns=file.header.mtime_ns))
        entry = lines.get(source)
        # The store makes a line from the memory's head; another title was given by somebody.
        header = file.header
        if entry and not index.is_own_title(entry.title, header.name, header.description):
            pointers[target] = Pointer(entry.title, entry.hook)
    return Draft(tuple(edits), pointers), _success_text(command)


_EDITS = {
    "create": _create,
    "str_replace": _str_replace,
    "insert": _insert,
    "delete": _delete,
    "rename": _rename,
}


def _success_text(command: ToolCommand) -> str:
    """Return the text of a successful command's result."""
    path = command.path
    return {
        "create": f"File created successfully at: {path}",
        "insert": f"The file {path} has been edited.",
        "delete": f"Successfully deleted {path}",
        "rename": f"Successfully renamed {path} to {command.texts.get('new_path', '')}",
    }[command.name]


def _file_text(command: ToolCommand, tree: Tree) -> tuple[str, MemoryFile | None]:
    """Return the text that the program sees, and the file; ``None`` as the file of the index."""
    path = relative(command.path)
    if path == INDEX:
        raw_index = tree.index()
        if raw_index is not None:
            return _shown_text(command.path, raw_index), None
    if not path or _paths_below(tree, path):
        _refuse(f"The path {command.path} is not a file.")
    file = tree.read(path)
    if file is None:
        _refuse(tool_text.missing(command.path))
    return _shown_text(command.path, file.content), file


def _make_draft(
    command: ToolCommand, tree: Tree, file: MemoryFile | None, text: str, stamp: Stamp
) -> Draft:
    """Return the edit that gives a file (``None`` for the index) a new text, and its index line."""
    if file is None:
        return Draft((FileEdit(INDEX, text.encode(), base=sha256(tree.index() or b"")),))
    path = file.header.path
    check_place(path)
    if text == _shown_text(command.path, file.content):
        return Draft()
    content = tool_files.stored(path, text, file, session=stamp.session, modified=stamp.modified)
    return Draft((FileEdit(path, content, base=file.hash),))


def _files_at(tree: Tree, path: str, given_path: str) -> list[MemoryFile]:
    """Return the file at a path, or all files in a folder. Raises Invalid.

    ``given_path`` is the path as the program named it.
    """
    if path == INDEX:
        _refuse(_INDEX_STAYS)
    paths = _paths_below(tree, path) or [path]
    files = [file for file in map(tree.read, paths) if file is not None]
    if not files:
        _refuse(tool_text.gone(given_path))
    if any(file.header.path.startswith(TEAM) for file in files):
        _refuse(_SHARED.format(path=given_path))
    return files


def _exists(tree: Tree, path: str) -> bool:
    """Return whether a path is a memory or a folder."""
    return any(header.path == path for header in tree.headers()) or bool(_paths_below(tree, path))


def _paths_below(tree: Tree, folder: str) -> list[str]:
    """Return the paths of the memories in a folder."""
    return sorted(header.path for header in tree.headers() if header.path.startswith(f"{folder}/"))


def _shown_text(path: str, content: bytes) -> str:
    """Return the text of a file that the program sees. Raises Invalid."""
    try:
        return tool_files.shown(content)
    except UnicodeDecodeError:
        _refuse(f"The file {path} is not UTF-8 text.")


def _lines_with(text: str, part: str) -> list[int]:
    """Return the numbers of the lines at which a part of the text begins."""
    result: list[int] = []
    place = text.find(part)
    while place >= 0:
        result.append(text.count("\n", 0, place) + 1)
        place = text.find(part, place + 1)
    return result


def _line_number(value: object) -> int:
    """Return the line number to insert at. Raises Invalid."""
    if not isinstance(value, int) or isinstance(value, bool):
        _refuse("The command insert needs `insert_line`, a whole number.")
    return value


def _view_range(value: object) -> tuple[int, int] | None:
    """Return a ``view_range``, ``None`` if it is no pair. Raises Invalid."""
    if not isinstance(value, (list, tuple)) or len(value) != _RANGE_NUMBERS:
        return None
    if not all(isinstance(line, int) and not isinstance(line, bool) for line in value):
        _refuse(_BAD_RANGE)
    return value[0], value[1]


def _refuse(sentence: str) -> NoReturn:
    """Raise Invalid with a sentence for the model."""
    raise Invalid(sentence)
