"""Find and replace links from memory to memory: ``[words](file.md)`` and ``[[name]]``. Pure.

Rules of this file
- A link's target is relative to the file that it stands in or, as in the index, to the memory
  directory. ``[[…]]`` names a memory by its name, its file's name or its path, without ``.md``.
- What stands in code is no link.
- Only the target changes: words, anchor, title and the way in which it was written stay.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import unquote

from memd.text.blocks import fenced

_SUFFIX = ".md"  # of a memory
_LINK = (
    r"(?m)(?P<code>(?P<mark>`+)(?!`).*?(?<!`)(?P=mark)(?!`))"
    r"|(?P<open>\]\(\s*<?)(?P<target>[^\s()<>#?]+)"
    r"|(?P<defined>^ {0,3}\[[^\]\n]+\]:[ \t]*<?)(?P<reference>[^\s<>#?]+)"
    r"|(?P<wiki>\[\[)(?P<name>[^\[\]|#\n]+)(?=[\]|#])"
)

_MEMORY_TARGET = r"(?i)(?!/|~|[a-z]+:)[\w./-]+\.md"  # what leads to a memory


def names(path: str, name: str = "") -> frozenset[str]:
    """Return all names that a link may use for a memory: its path, its name and its file's name."""
    bare = path.removesuffix(_SUFFIX)
    return frozenset({path, name or bare, bare, posixpath.basename(bare)})


class Known:
    """The paths of existing memories, and the names that ``[[name]]`` may use for them."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = frozenset(paths)
        self._names = frozenset[str]().union(*map(names, self.paths))

    def unlinked(self, text: str, path: str) -> str:
        """Return the text of the memory at ``path`` without the targets of its links to memories.

        Links to memories that do not exist lose their targets too.
        """

        def new_target(target: str) -> str:
            """Return "" for the target of a link to a memory, any other target as it is."""
            known = _possible_paths(target, path) & self.paths
            return "" if known or re.fullmatch(_MEMORY_TARGET, unquote(target)) else target

        def new_name(name: str) -> str:
            """Return "" for the name of a memory, any other name as it is."""
            return "" if name.strip().removesuffix(_SUFFIX) in self._names else name

        without_targets = _replace_targets(text, new_target, new_name)
        return without_targets.replace("[[]]", "").replace("]()", "]")


def targets(text: str, path: str) -> frozenset[str]:
    """Return all paths and names that the links of the memory at ``path`` may mean."""
    result: set[str] = set()

    def note_target(target: str) -> str:
        """Note the paths that a link's target may mean, and keep the target."""
        result.update(_possible_paths(target, path))
        return target

    def note_name(name: str) -> str:
        """Note the name in double brackets, and keep it."""
        result.add(name.strip().removesuffix(_SUFFIX))
        return name

    _replace_targets(text, note_target, note_name)
    return frozenset(result)


def _possible_paths(target: str, path: str) -> set[str]:
    """Return the paths that a target may mean: relative to its file or to the memory directory."""
    plain, folder = unquote(target), posixpath.dirname(path)
    return {posixpath.normpath(posixpath.join(folder, plain)), posixpath.normpath(plain)}


def _replace_targets(
    text: str, new_target: Callable[[str], str], new_name: Callable[[str], str]
) -> str:
    """Return a text in which the targets and names of its links are replaced; code stays.

    ``new_target`` returns the replacement of a target, ``new_name`` that of a name in double
    brackets.
    """
    if "](" not in text and "[[" not in text and "]:" not in text:
        return text

    def new_link(match: re.Match[str]) -> str:
        """Return one link with its target replaced, a piece of code as it is."""
        groups: Mapping[str, str | None] = match.groupdict()
        if groups["code"]:
            return match.group()
        if groups["wiki"]:
            return f"[[{new_name(groups['name'] or '')}"
        opening = groups["open"] or groups["defined"] or ""
        return opening + new_target(groups["target"] or groups["reference"] or "")

    parts = fenced(text)  # prose and code in turn
    parts[::2] = [re.sub(_LINK, new_link, part) for part in parts[::2]]
    return "".join(parts)
