"""What memd keeps in one file of a client, and how it gets in and out.

Rules of this file
- Hooks whose command names memd's hook file are ours, and so are values under the name ``memd``
  that run memctl. A value of this name that runs something else is foreign: it stays.
- ``removed`` gives back the very bytes that were there before ``installed``. Where the file has
  changed since, all that is not ours stays; lists and objects that ours left empty go, unless the
  backup has them.
- Installing what is installed changes nothing.
"""

import codecs
import os
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from memd.cli.setup import jsonc
from memd.cli.setup.files import FileRefusedError
from memd.cli.setup.hooks import MESSAGES, RULES, Hooks, deadline, delivers, is_ours

INSTALLED, OUTDATED, ABSENT, FOREIGN = "installed", "outdated", "absent", "foreign"
_NOT_UTF8 = "it is not UTF-8"
_NO_OBJECT = "it is no JSON object"
_NAME = "memd"
_SILENT, _DELIVERS = b"const MESSAGES = false\n", b"const MESSAGES = true\n"


class Piece(Protocol):
    """One file of a client. Its methods raise FileRefusedError for what cannot be edited."""

    @property
    def path(self) -> str:
        """The file."""

    def state(self, content: bytes | None) -> str:
        """Return whether memd's part is installed, outdated, absent or foreign in a content."""

    def installed(self, content: bytes | None) -> bytes:
        """Return the content with memd's part, and with nothing of an older one."""

    def removed(self, content: bytes, original: bytes | None) -> bytes | None:
        """Return the content without memd's part, ``None`` if the file was memd's alone.

        ``original`` is the content before the set-up, if a backup tells.
        """


class _All:
    """Holds every path."""

    def __contains__(self, path: object) -> bool:
        return True


_ALL = _All()


class JsonFile(Struct, frozen=True):
    """A JSON file with hooks, with values at paths, or both.

    ``wait`` is what a prompt gets in ms, ``None`` for what it gets now; ``extras`` says whether the
    hooks do more, by the names of ``Hooks.more``: what is not named stays as it is now.
    """

    path: str
    hooks: Hooks | None = None
    values: Mapping[jsonc.Path, Any] = field(default_factory=dict)
    wait: int | None = None
    extras: Mapping[str, bool] = field(default_factory=dict)

    def can(self, extra: str) -> bool:
        """Return whether the client has hooks for more."""
        return bool(self.hooks and extra in self.hooks.more)

    def has(self, extra: str, content: bytes | None) -> bool:
        """Return whether the hooks in a content do more."""
        return bool(_read(self.path, content, replace(self, extras={}).settled).extras[extra])

    def state(self, content: bytes | None) -> str:
        """As in Piece."""
        return str(_read(self.path, content, self._state))

    def installed(self, content: bytes | None) -> bytes:
        """As in Piece."""
        return _edit(self.path, content, self._installed)

    def removed(self, content: bytes, original: bytes | None) -> bytes | None:
        """As in Piece."""
        same: JsonFile = _read(self.path, content, self.settled)
        if original is not None and same.installed(original) == content:
            return original
        empty = _read(self.path, original, lambda text: [*jsonc.empty_containers(_root(text))])
        left = _edit(self.path, content, lambda text: self._without(text, empty))
        return None if original is None and left.strip() in {b"", b"{}"} else left

    def settled(self, text: str) -> "JsonFile":
        """Return the same with what the hooks in a text do, where that is not said."""
        if self.hooks is None:
            return replace(self, wait=0, extras=dict.fromkeys((MESSAGES, RULES), False))
        root, asking, prompt = _root(text), self.hooks.more.get(RULES, ()), self.hooks.prompt
        ours = [(path[1], item) for path in _ours(root) for item in _as_group(root, path)["hooks"]]
        now = {
            MESSAGES: any(delivers(item) for _, item in ours),
            RULES: any(event in asking for event, _ in ours),
        }
        wait = max((deadline(item) for event, item in ours if event == prompt), default=0)
        return replace(
            self, wait=wait if self.wait is None else self.wait, extras={**now, **self.extras}
        )

    def groups(self) -> dict[str, dict[str, Any]]:
        """Return what stands in the list of each event; of a file that is ``settled``."""
        hooks = self.hooks
        for extra, wanted in self.extras.items():
            hooks = hooks.doing(extra) if hooks and wanted else hooks
        return (
            {event: hooks.group(event, self.wait or 0) for event in hooks.events} if hooks else {}
        )

    def _state(self, text: str) -> str:
        root = _root(text)
        there = self._there(root)
        if any(not _runs_memctl(value) for value in there.values()):
            return FOREIGN
        if not there and not [*_ours(root)]:
            return ABSENT
        groups = self.settled(text).groups()
        return OUTDATED if self._stale(text, groups) or self._missing(text, groups) else INSTALLED

    def _installed(self, text: str) -> str:
        if self._state(text) == FOREIGN:
            names = ", ".join(".".join(map(str, path)) for path in self.values)
            raise ValueError(_foreign(names))
        groups = self.settled(text).groups()  # the hooks that tell it may be replaced
        for path in self._stale(text, groups):
            # A list that stays in use stays where it is, even if it is empty for a moment.
            stays = path in self.values or path[1] in groups
            text = jsonc.remove(text, path, _ALL if stays else ())
        for path, value in reversed(self._missing(text, groups)):
            text = jsonc.insert(text, path, value)
        return text

    def _without(self, text: str, stays: Container[jsonc.Path]) -> str:
        root = _root(text)
        there = self._there(root)
        paths = [*_ours(root), *(path for path in there if _runs_memctl(there[path]))]
        for path in reversed(paths):
            text = jsonc.remove(text, path, stays)
        return text

    def _there(self, root: jsonc.Node | None) -> dict[jsonc.Path, Any]:
        """Return the values under our names, whoever made them."""
        nodes = ((path, jsonc.find(root, path)) for path in self.values)
        return {path: node.value for path, node in nodes if node is not None}

    def _stale(self, text: str, groups: Mapping[str, Any]) -> list[jsonc.Path]:
        """Return what is ours and not as it ought to be, the last first."""
        root = _root(text)
        there = self._there(root)
        stale: list[jsonc.Path] = [path for path in there if there[path] != self.values[path]]
        ours = [*_ours(root)]
        for event in dict.fromkeys(path[1] for path in ours):
            mine = [path for path in ours if path[1] == event]
            if [_as_group(root, path) for path in mine] != [groups.get(str(event))]:
                stale += mine
        return stale[::-1]

    def _missing(self, text: str, groups: Mapping[str, Any]) -> list[tuple[jsonc.Path, Any]]:
        """Return what ought to be there and is not: paths as ``insert`` takes them, and values."""
        root = _root(text)
        there, present = self._there(root), {path[1] for path in _ours(root)}
        missing: list[tuple[jsonc.Path, Any]] = [
            (("hooks", event, ""), group) for event, group in groups.items() if event not in present
        ]
        return missing + [pair for pair in self.values.items() if pair[0] not in there]


class TableEntry(Struct, frozen=True):
    """An entry under the name ``memd`` in a group of a TOML or YAML file."""

    path: str
    language: Any
    group: str
    values: Mapping[str, Any]

    def state(self, content: bytes | None) -> str:
        """As in Piece."""
        return str(_read(self.path, content, self._state))

    def installed(self, content: bytes | None) -> bytes:
        """As in Piece."""
        return _edit(self.path, content, self._installed)

    def removed(self, content: bytes, original: bytes | None) -> bytes | None:
        """As in Piece."""
        if self.state(content) in {ABSENT, FOREIGN}:
            return content
        left = _edit(self.path, content, lambda text: self.language.remove(text, self.group, _NAME))
        return None if original is None and not left.strip() else left

    def _state(self, text: str) -> str:
        there = self.language.find(text, self.group, _NAME)
        if there is None:
            return ABSENT
        blank = self.language.insert("", self.group, _NAME, self.values)
        if there == self.language.find(blank, self.group, _NAME):
            return INSTALLED
        return OUTDATED if _runs_memctl(there) else FOREIGN

    def _installed(self, text: str) -> str:
        state = self._state(text)
        if state == FOREIGN:
            raise ValueError(_foreign(f"{self.group}.{_NAME}"))
        if state == INSTALLED:
            return text
        text = self.language.remove(text, self.group, _NAME)
        return str(self.language.insert(text, self.group, _NAME, self.values))


class Copy(Struct, frozen=True):
    """A file of memd's own in a folder of a client; ``source`` is where memd has it.

    ``extras`` as in JsonFile: a plugin that can deliver messages has a line that says so.
    """

    path: str
    source: str
    extras: Mapping[str, bool] = field(default_factory=dict)

    def can(self, extra: str) -> bool:
        """Return whether the plugin can do more. Raises FileRefusedError."""
        with_it, without = (
            replace(self, extras={extra: on}).installed(None) for on in (True, False)
        )
        return with_it != without

    def has(self, extra: str, content: bytes | None) -> bool:
        """Return whether the plugin in a content does more."""
        return extra == MESSAGES and _DELIVERS in (content or b"")

    def state(self, content: bytes | None) -> str:
        """As in Piece; what nobody changed since an older memd cannot be told from changed."""
        if content is None:
            return ABSENT
        if _NAME.encode() not in content:
            return FOREIGN
        return INSTALLED if content == self.installed(content) else OUTDATED

    def installed(self, content: bytes | None) -> bytes:
        """As in Piece."""
        if content and _NAME.encode() not in content:
            raise FileRefusedError(self.path, _foreign("it"))
        try:
            with open(self.source, "rb") as file:
                plain = file.read()
        except OSError as error:
            cause = f"{self.source}: {error.strerror}"
            raise FileRefusedError(self.path, cause) from error
        on = self.extras.get(MESSAGES, self.has(MESSAGES, content))
        return plain.replace(_SILENT, _DELIVERS) if on else plain

    def removed(self, content: bytes, original: bytes | None) -> bytes | None:
        """As in Piece."""
        return original if self.state(content) != FOREIGN else content


def _foreign(name: str) -> str:
    return f"{name} is there already and not memd's own"


def _runs_memctl(value: Any) -> bool:
    command = value.get("command", value.get("cmd")) if isinstance(value, dict) else None
    words = command if isinstance(command, list) else [command]
    return any(os.path.basename(str(word).strip('"')) == "memctl" for word in words)


def _root(text: str) -> jsonc.Node | None:
    root = jsonc.parse(text)
    if root is not None and not isinstance(root.value, dict):
        raise ValueError(_NO_OBJECT)
    return root


def _ours(root: jsonc.Node | None) -> Iterator[jsonc.Path]:
    """Yield the places of our hooks: a whole group where it has no others, else the item."""
    events = jsonc.find(root, ("hooks",))
    for event in events.value if events and isinstance(events.value, dict) else ():
        groups = jsonc.find(events, (event,))
        for index, group in enumerate(groups.value if groups and groups.children else ()):
            items = group.get("hooks") if isinstance(group, dict) else None
            mine = [is_ours(item) for item in items] if isinstance(items, list) else []
            if mine and all(mine):
                yield ("hooks", event, index)
            else:
                yield from (
                    ("hooks", event, index, "hooks", at) for at, ours in enumerate(mine) if ours
                )


def _as_group(root: jsonc.Node | None, path: jsonc.Path) -> dict[str, Any]:
    """Return a hook at a place of ``_ours`` as a group, with the matcher that it stands under."""
    group = jsonc.find(root, path[:3])
    item = jsonc.find(root, path[3:] and path)
    value = dict(group.value) if group else {}
    return value | {"hooks": [item.value]} if path[3:] and item else value


def _read(path: str, content: bytes | None, question: Callable[[str], Any]) -> Any:
    """Return what a question about the text of a file's content gives."""
    try:
        text = (content or b"").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileRefusedError(path, _NOT_UTF8) from error
    try:
        return question(text)
    except ValueError as error:
        raise FileRefusedError(path, str(error)) from error


def _edit(path: str, content: bytes | None, change: Callable[[str], str]) -> bytes:
    mark = codecs.BOM_UTF8 if content and content.startswith(codecs.BOM_UTF8) else b""
    return mark + str(_read(path, content, change)).encode()
