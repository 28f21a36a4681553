"""Links from memory to memory: ``[words](file.md)`` and ``[[name]]``. Pure.

Rules of this file
- A link's target is relative to the file that it stands in or, as in the index, to the memory
  directory. ``[[…]]`` names a memory by its name, its file's name or its path, without ``.md``.
- What stands in code is no link.
- Only the target changes: words, anchor, title and the way in which it was written stay.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import unquote

from memd.core.names import SUFFIX
from memd.core.values import PERSONAL
from memd.documents.document import Document
from memd.dream.similarity import fenced

_LINK = re.compile(
    r"(?P<code>(?P<mark>`+)(?!`).*?(?<!`)(?P=mark)(?!`))"
    r"|(?P<open>\]\(\s*<?)(?P<target>[^\s()<>#?]+)"
    r"|(?P<defined>^ {0,3}\[[^\]\n]+\]:[ \t]*<?)(?P<reference>[^\s<>#?]+)"
    r"|(?P<wiki>\[\[)(?P<name>[^\[\]|#\n]+)(?=[\]|#])",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Linked:
    """A memory as links name it: its path and the name that its frontmatter gives."""

    path: str
    name: str

    @property
    def bare(self) -> str:
        """The path without its suffix."""
        return self.path.removesuffix(SUFFIX)

    @property
    def stem(self) -> str:
        """The file's own name without folders and suffix."""
        return posixpath.basename(self.bare)

    @property
    def names(self) -> tuple[str, str, str]:
        """What may stand in double brackets for it."""
        return (self.name, self.stem, self.bare)


class LinkMoves:
    """Where links lead after merges. ``moved`` maps what is gone to what took it in."""

    def __init__(self, moved: Iterable[tuple[Linked, Linked]], stay: Iterable[Linked]) -> None:
        self._paths: dict[str, str] = {}
        self._names: dict[str, str] = {}
        retained = list(stay)
        known = {name for memory in retained for name in memory.names}
        counts: dict[str, int] = {}
        for memory in retained:
            for name in set(memory.names):
                counts[name] = counts.get(name, 0) + 1
        for old, new in moved:
            self._paths[old.path] = new.path
            for was, becomes in zip(old.names, new.names, strict=True):
                if was not in known:
                    unique = counts.get(becomes) == 1
                    self._names.setdefault(was, becomes if unique else new.bare)

    def repointed(self, text: str, path: str) -> str:
        """Return the text of the memory at ``path`` with links to what is gone led on."""
        folder = posixpath.dirname(path)

        def lead(target: str) -> str:
            return self._path(target, folder)

        def name(wiki: str) -> str:
            return self._name(wiki)

        return _replaced(text, lead, name)

    def _path(self, target: str, folder: str) -> str:
        plain = unquote(target)
        if near := self._paths.get(posixpath.normpath(posixpath.join(folder, plain))):
            return posixpath.relpath(near, folder or ".")
        return self._paths.get(posixpath.normpath(plain), target)

    def _name(self, wiki: str) -> str:
        bare = wiki.strip()
        result = self._names.get(bare.removesuffix(SUFFIX))
        if result is None:
            return wiki
        return wiki.replace(bare, result + (SUFFIX if bare.endswith(SUFFIX) else ""))


def led_on(texts: Mapping[str, Document], into: Mapping[str, str]) -> dict[str, Document]:
    """Return memories with their links led on to where memories went, as the pass does it.

    A person's own rules keep theirs. ``into`` maps what went to where; both are among the texts.
    """
    named = {path: Linked(path, text.name) for path, text in texts.items()}
    went = {old: new for old, new in into.items() if old in named and new in named}
    if not went:
        return dict(texts)
    stay = [memory for path, memory in named.items() if path not in went]
    moves = LinkMoves([(named[old], named[new]) for old, new in went.items()], stay)
    return {
        path: text
        if text.type in PERSONAL
        else replace(text, body=moves.repointed(text.body, path))
        for path, text in texts.items()
    }


def targets(text: str, path: str) -> frozenset[str]:
    """Return all that the links of the memory at ``path`` may mean: paths, and names."""
    result: set[str] = set()
    folder = posixpath.dirname(path)

    def lead(target: str) -> str:
        plain = unquote(target)
        result.update(
            {posixpath.normpath(posixpath.join(folder, plain)), posixpath.normpath(plain)}
        )
        return target

    def name(wiki: str) -> str:
        result.add(wiki.strip().removesuffix(SUFFIX))
        return wiki

    _replaced(text, lead, name)
    return frozenset(result)


def leads_to(result: frozenset[str], memory: Linked) -> bool:
    """Whether any of the ``targets`` of a text is this memory."""
    return memory.path in result or any(name in result for name in memory.names)


def _replaced(text: str, lead: Callable[[str], str], name: Callable[[str], str]) -> str:
    """Return a text with the targets of its links replaced, code left alone."""
    if "](" not in text and "[[" not in text and "]:" not in text:
        return text

    def one(match: re.Match[str]) -> str:
        parts: Mapping[str, str | None] = match.groupdict()
        if parts["code"]:
            return match.group()
        if parts["wiki"]:
            return f"[[{name(parts['name'] or '')}"
        opening = parts["open"] or parts["defined"] or ""
        return opening + lead(parts["target"] or parts["reference"] or "")

    parts = fenced(text)
    parts[::2] = [_LINK.sub(one, part) for part in parts[::2]]
    return "".join(parts)
