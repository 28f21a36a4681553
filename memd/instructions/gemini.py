"""Find the files that Gemini CLI loads: the user's, then those from the root to ``cwd``. Pure.

It writes what a file imports into the place of ``@path``. So the text of the including file has it,
and an import is listed with a text that is empty. docs/decisions.md has what was observed of the
client.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from memd.core.names import is_text
from memd.core.text import read_object
from memd.instructions.imports import imports
from memd.instructions.loading import Folders, Loading, folders_down, is_below, nearest
from memd.instructions.values import (
    VIEW_CHARACTERS,
    InstructionDisk,
    InstructionFile,
    Resolution,
    ViewRequest,
)

IMPORT_DEPTH = 5
IMPORTS = 2000  # mentions in all files together, with each time that a file comes again
_NAME = "GEMINI.md"
_MARKERS = (".git",)
_TOO_DEEP = f"it is imported more than {IMPORT_DEPTH} files deep"
_OUTSIDE = "it lies outside of what the including file may import from"
_ADDRESS = re.compile(r"(?:file|https?)://")
# A text, which stays, or a comment. Each goes to the end if it has no end of its own.
_JSON_COMMENT = re.compile(
    r'("(?:[^"\\\n]|\\.)*+"?)|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?', re.DOTALL
)


def resolve(request: ViewRequest, disk: InstructionDisk) -> Resolution:
    """Return what Gemini loads."""
    loading = Loading(request, disk)
    own = _settings(loading, f"{request.gemini}/settings.json")
    brought = _settings(loading, posixpath.join(request.cwd, ".gemini/settings.json"))
    # What a repository brings names files of its own: none of the user's folder, none above it.
    markers = _texts(own.get("memoryBoundaryMarkers")) or _MARKERS
    names = tuple(_names(own)), tuple(_names({**own, **brought}))
    _GeminiView(loading, *names, tuple(markers)).resolve()
    return loading.result()


def _settings(loading: Loading, path: str) -> dict[str, Any]:
    """Return what a settings file says of the context; comments are allowed in it."""
    text = loading.disk.read(path).text
    values = read_object(_JSON_COMMENT.sub(lambda comment: comment[1] or " ", text))
    context = values.get("context", {})
    if (text.strip() and not values) or not isinstance(context, Mapping):
        loading.problem(path, "is not as Gemini wants it, and does not count")
        return {}
    return dict(context)


def _names(context: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of files; the usual one is always among them, none leads out of a folder.

    JSON can spell names of bytes that are no text, and no answer could name such a file.
    """
    names = [name.strip() for name in _texts(context.get("fileName"))]
    for name in dict.fromkeys([*(posixpath.normpath(name) for name in names if name), _NAME]):
        if not name.startswith(("/", "../")) and name != ".." and is_text(name):
            yield name


def _texts(value: Any) -> list[str]:
    """Return a text or a list of texts as a list; empty for anything else."""
    values = [value] if isinstance(value, str) else value
    is_list = isinstance(values, list) and all(isinstance(each, str) for each in values)
    return values if is_list else []


class _Expansion(Struct, frozen=True):
    """A file that is being expanded: what it may import from, and the imports that led here."""

    file: InstructionFile
    root: str
    chain: tuple[str, ...] = ()


class _GeminiView(Struct):
    """One resolution.

    ``names`` are those of the user's settings, ``project_names`` those that count in the project.
    ``raw`` are the texts by real path, ``None`` where one is not loaded.
    """

    loading: Loading
    names: Sequence[str]
    project_names: Sequence[str]
    markers: Sequence[str]
    raw: dict[str, str | None] = field(default_factory=dict)
    mentions: int = 0
    characters: int = 0

    def resolve(self) -> None:
        """Load everything, and list what is not loaded."""
        request = self.loading.request
        for name in self.names:
            self.place(posixpath.join(request.gemini, name), "user")
        root = nearest(self.loading.disk, request.cwd, self.markers)
        way = reversed(tuple(self.way(root, request.cwd)))
        first = {self.loading.real(path): path for path in way}
        # The client sorts the paths, by the units of UTF-16.
        for path in sorted(first.values(), key=lambda path: path.encode("utf-16-be", "replace")):
            self.place(path, "project", (root,))
        for path in self.loading.touched():
            if is_below(path, request.cwd) and path != request.cwd:
                for inner in self.way(root, posixpath.dirname(path)):
                    self.place(inner, "project", (root,))

    def way(self, root: str, folder: str) -> Iterator[str]:
        """Yield the paths that are there on the way down, but none at or above the user's."""
        request = self.loading.request
        for each in folders_down(root, folder):
            if not is_below(request.gemini, each) or not is_below(folder, request.gemini):
                names = self.project_names if is_below(each, request.root) else self.names
                paths = [posixpath.join(each, name) for name in names]
                yield from (path for path in paths if not self.loading.disk.read(path).missing)

    def place(self, path: str, scope: str, within: Folders = ()) -> None:
        """Load a file that counts by its place, with what it imports."""
        file = InstructionFile(path, "agents", scope)
        known = self.loading.files.get(self.loading.real(path))
        is_new = known is None or not known.loaded or known.included_by
        text = self.text(file, within) if is_new else None
        if text is not None:
            root = nearest(self.loading.disk, posixpath.dirname(path), self.markers)
            self.loading.load(file, "")  # it is listed before what it imports
            self.loading.fill(file, self.expanded(text, _Expansion(file, root)))

    def text(self, file: InstructionFile, within: Folders = (), why_not: str = "") -> str | None:
        """Return a file's text as it is, ``None`` where it is not loaded; once read it stays."""
        real = self.loading.real(file.path)
        if self.raw.get(real) is None:
            self.raw[real] = self.loading.fetch(file, within, why_not)
        return None if why_not else self.raw[real]

    def expanded(self, text: str, within: _Expansion) -> str:
        """Return a text with what it imports in the place of each mention."""
        pieces, at = list[str](), 0
        for mention in imports(text):
            self.mentions += 1
            if self.mentions > IMPORTS or self.characters > VIEW_CHARACTERS:
                why = f"is not expanded to its end: {IMPORTS:,} imports, or too many characters"
                self.loading.problem(within.file.path, why)
                break
            pieces += [text[at : mention.start()], self.inserted(mention[1], within)]
            at = mention.end()
        return "".join((*pieces, text[at:]))

    def inserted(self, name: str, within: _Expansion) -> str:
        """Return what stands in the place of a mention."""
        by, real = within.file, self.loading.real
        path = posixpath.normpath(posixpath.join(posixpath.dirname(by.path), name))
        file = InstructionFile(path, "include", by.scope, by.depth + 1, by.path)
        if file.depth > IMPORT_DEPTH:
            self.text(file, (), _TOO_DEEP)
            return f"@{name}"
        if path in within.chain:
            return f"<!-- File already processed: {name} -->"
        inside = is_below(real(path), real(within.root)) and not _ADDRESS.match(name)
        text = self.text(file, (), "" if inside else _OUTSIDE)
        if text is None:
            return f"<!-- Import failed: {name} -->"
        self.characters += len(text)
        known = self.loading.files.get(real(path))
        if known is None or not known.loaded:
            self.loading.load(file, "")
        inner = self.expanded(text, _Expansion(file, within.root, (*within.chain, path)))
        return f"<!-- Imported from: {name} -->\n{inner}\n<!-- End of import from: {name} -->"
