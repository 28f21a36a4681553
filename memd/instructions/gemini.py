"""Find the files that Gemini CLI loads: the user's, then those from the root to ``cwd``. Pure.

It replaces ``@path`` by the text of the imported file. So the text of the importing file contains
it, and the imported file is listed with an empty text. What was observed of the client is in
docs/decisions.md.
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
IMPORTS = 2000  # the most mentions in all texts together, counting repeated ones
_NAME = "GEMINI.md"
_ROOT_MARKERS = (".git",)
_TOO_DEEP = f"it is imported more than {IMPORT_DEPTH} files deep"
_OUTSIDE = "it lies outside of what the including file may import from"
_ADDRESS = re.compile(r"(?:file|https?)://")
# A string, which is not changed, or a comment. One without an end goes to the end of the text.
_JSON_COMMENT = re.compile(
    r'("(?:[^"\\\n]|\\.)*+"?)|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?', re.DOTALL
)


def resolve(request: ViewRequest, disk: InstructionDisk) -> Resolution:
    """Return the files that Gemini loads."""
    loading = Loading(request, disk)
    user_settings = _settings(loading, f"{request.gemini}/settings.json")
    project_settings = _settings(loading, posixpath.join(request.cwd, ".gemini/settings.json"))
    # A repository's settings only name files, and none in the user's folder.
    markers = _as_texts(user_settings.get("memoryBoundaryMarkers")) or _ROOT_MARKERS
    names = tuple(_file_names(user_settings))
    project_names = tuple(_file_names({**user_settings, **project_settings}))
    _GeminiView(loading, names, project_names, tuple(markers)).resolve()
    return loading.result()


def _settings(loading: Loading, path: str) -> dict[str, Any]:
    """Return the member ``context`` of a settings file, in which comments are allowed."""
    text = loading.disk.read(path).text
    values = read_object(_JSON_COMMENT.sub(lambda comment: comment[1] or " ", text))
    context = values.get("context", {})
    if (text.strip() and not values) or not isinstance(context, Mapping):
        loading.problem(path, "is not as Gemini wants it, and does not count")
        return {}
    return dict(context)


def _file_names(context: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of files, always with GEMINI.md; names that lead out of a folder are skipped.

    So are names that are no valid text, which JSON can contain and no answer could.
    """
    names = [name.strip() for name in _as_texts(context.get("fileName"))]
    normal_names = [posixpath.normpath(name) for name in names if name]
    for name in dict.fromkeys([*normal_names, _NAME]):
        if not name.startswith(("/", "../")) and name != ".." and is_text(name):
            yield name


def _as_texts(value: Any) -> list[str]:
    """Return a text or a list of texts as a list; empty for anything else."""
    values = [value] if isinstance(value, str) else value
    is_list = isinstance(values, list) and all(isinstance(each, str) for each in values)
    return values if is_list else []


class _Expansion(Struct, frozen=True):
    """A file whose imports are being replaced.

    ``root`` is the folder from which it may import. ``chain`` are the paths of the imports that
    led to it.
    """

    file: InstructionFile
    root: str
    chain: tuple[str, ...] = ()


class _GeminiView(Struct):
    """One resolution.

    ``names`` are the file names of the user's settings, ``project_names`` those that count in the
    project. ``raw_texts`` are the texts by real path, ``None`` for a file that is not loaded.
    ``mentions`` and ``characters`` count the imports so far and their texts.
    """

    loading: Loading
    names: Sequence[str]
    project_names: Sequence[str]
    markers: Sequence[str]
    raw_texts: dict[str, str | None] = field(default_factory=dict)
    mentions: int = 0
    characters: int = 0

    def resolve(self) -> None:
        """Load everything, and list what is not loaded."""
        request = self.loading.request
        for name in self.names:
            self.load_by_place(posixpath.join(request.gemini, name), "user")
        root = nearest(self.loading.disk, request.cwd, self.markers)
        paths = tuple(self.existing_paths(root, request.cwd))
        # Of paths with the same real path the first one counts.
        by_real_path = {self.loading.real(path): path for path in reversed(paths)}
        # The client sorts the paths by the units of UTF-16.
        for path in sorted(
            by_real_path.values(), key=lambda path: path.encode("utf-16-be", "replace")
        ):
            self.load_by_place(path, "project", (root,))
        for path in self.loading.touched():
            if is_below(path, request.cwd) and path != request.cwd:
                for inner in self.existing_paths(root, posixpath.dirname(path)):
                    self.load_by_place(inner, "project", (root,))

    def existing_paths(self, root: str, folder: str) -> Iterator[str]:
        """Yield the paths of existing files in the folders from ``root`` down to ``folder``.

        If ``folder`` lies below the user's own folder of Gemini, that one and the folders above it
        are skipped.
        """
        request = self.loading.request
        for each in folders_down(root, folder):
            if not is_below(request.gemini, each) or not is_below(folder, request.gemini):
                names = self.project_names if is_below(each, request.root) else self.names
                paths = [posixpath.join(each, name) for name in names]
                yield from (path for path in paths if not self.loading.disk.read(path).missing)

    def load_by_place(self, path: str, scope: str, within: Folders = ()) -> None:
        """Load a file that counts by its name and folder, with the texts that it imports."""
        file = InstructionFile(path, "agents", scope)
        known = self.loading.files.get(self.loading.real(path))
        is_new = known is None or not known.loaded or known.included_by
        text = self.fetch_once(file, within) if is_new else None
        if text is not None:
            root = nearest(self.loading.disk, posixpath.dirname(path), self.markers)
            self.loading.load(file, "")  # it is listed before what it imports
            self.loading.fill(file, self.expand(text, _Expansion(file, root)))

    def fetch_once(
        self, file: InstructionFile, within: Folders = (), why_not: str = ""
    ) -> str | None:
        """Return a file's text with its mentions, ``None`` if it is not loaded; read it once."""
        real = self.loading.real(file.path)
        if self.raw_texts.get(real) is None:
            self.raw_texts[real] = self.loading.fetch(file, within, why_not)
        return None if why_not else self.raw_texts[real]

    def expand(self, text: str, within: _Expansion) -> str:
        """Return a text in which each mention is replaced by the imported text."""
        pieces, at = list[str](), 0
        for mention in imports(text):
            self.mentions += 1
            if self.mentions > IMPORTS or self.characters > VIEW_CHARACTERS:
                why = f"is not expanded to its end: {IMPORTS:,} imports, or too many characters"
                self.loading.problem(within.file.path, why)
                break
            pieces += [text[at : mention.start()], self.replacement(mention[1], within)]
            at = mention.end()
        return "".join((*pieces, text[at:]))

    def replacement(self, name: str, within: _Expansion) -> str:
        """Return the text that replaces the mention of ``name`` in the file of ``within``."""
        by, real = within.file, self.loading.real
        path = posixpath.normpath(posixpath.join(posixpath.dirname(by.path), name))
        file = InstructionFile(path, "include", by.scope, by.depth + 1, by.path)
        if file.depth > IMPORT_DEPTH:
            self.fetch_once(file, (), _TOO_DEEP)
            return f"@{name}"
        if path in within.chain:
            return f"<!-- File already processed: {name} -->"
        is_inside = is_below(real(path), real(within.root)) and not _ADDRESS.match(name)
        text = self.fetch_once(file, (), "" if is_inside else _OUTSIDE)
        if text is None:
            return f"<!-- Import failed: {name} -->"
        self.characters += len(text)
        known = self.loading.files.get(real(path))
        if known is None or not known.loaded:
            self.loading.load(file, "")
        inner = self.expand(text, _Expansion(file, within.root, (*within.chain, path)))
        return f"<!-- Imported from: {name} -->\n{inner}\n<!-- End of import from: {name} -->"
