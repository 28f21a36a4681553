"""The parts of a client's configuration files that memd writes, and how they are put in and out.

Rules of this file
- memd's own are hooks whose command names memd's hook file, and values under the name ``memd`` that
  run memctl. A value of this name that runs another program is foreign and stays.
- ``removed`` returns the very bytes from before ``installed``. If the file has changed since then,
  all that is not memd's stays; lists and objects that become empty go, unless the backup has them.
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
    """memd's part of one file of a client. Methods raise FileRefusedError if they cannot edit."""

    @property
    def path(self) -> str:
        """The absolute path of the file."""

    def state(self, content: bytes | None) -> str:
        """Return whether memd's part of a content is installed, outdated, absent or foreign."""

    def installed(self, content: bytes | None) -> bytes:
        """Return the content with memd's current part in place of any older one."""

    def removed(self, content: bytes, original: bytes | None) -> bytes | None:
        """Return the content without memd's part, ``None`` if the file held nothing else.

        ``original`` is the content before the set-up, if a backup has it.
        """


class _All:
    """A container that contains every path."""

    def __contains__(self, path: object) -> bool:
        return True


_ALL = _All()


class JsonFile(Struct, frozen=True):
    """memd's part of a JSON file: hooks, values at paths, or both.

    ``wait`` is how long the hook may keep a prompt waiting in ms, ``None`` to leave it as it is in
    the file. ``extras`` switches duties of the hooks (``Hooks.more``) on or off; a duty that is not
    named stays as it is in the file.
    """

    path: str
    hooks: Hooks | None = None
    values: Mapping[jsonc.Path, Any] = field(default_factory=dict)
    wait: int | None = None
    extras: Mapping[str, bool] = field(default_factory=dict)

    def can(self, extra: str) -> bool:
        """Return whether the client has hooks for a duty: MESSAGES or RULES."""
        return bool(self.hooks and extra in self.hooks.more)

    def has(self, extra: str, content: bytes | None) -> bool:
        """Return whether the hooks in a file's content have a duty: MESSAGES or RULES."""
        return bool(_read(self.path, content, replace(self, extras={}).settled).extras[extra])

    def state(self, content: bytes | None) -> str:
        """Return INSTALLED, OUTDATED, ABSENT or FOREIGN for memd's part of a content."""
        return str(_read(self.path, content, self._state))

    def installed(self, content: bytes | None) -> bytes:
        """Return the content with memd's current hooks and values."""
        return _edit(self.path, content, self._installed)

    def removed(self, content: bytes, original: bytes | None) -> bytes | None:
        """Return the content without memd's hooks and values, ``None`` if nothing else is left."""
        same: JsonFile = _read(self.path, content, self.settled)
        # Nothing else has changed since the set-up, so the backup is the exact original.
        if original is not None and same.installed(original) == content:
            return original
        empty = _read(
            self.path, original, lambda text: [*jsonc.empty_containers(_parse_object(text))]
        )
        others = _edit(self.path, content, lambda text: self._without(text, empty))
        return None if original is None and others.strip() in {b"", b"{}"} else others

    def settled(self, text: str) -> "JsonFile":
        """Return this piece with ``wait`` and ``extras`` filled in from the hooks in a text."""
        if self.hooks is None:
            return replace(self, wait=0, extras=dict.fromkeys((MESSAGES, RULES), False))
        root, rule_events, prompt = (
            _parse_object(text),
            self.hooks.more.get(RULES, ()),
            self.hooks.prompt,
        )
        ours = [
            (path[1], item)
            for path in _our_hooks(root)
            for item in _hook_group(root, path)["hooks"]
        ]
        duties = {
            MESSAGES: any(delivers(item) for _, item in ours),
            RULES: any(event in rule_events for event, _ in ours),
        }
        wait = max((deadline(item) for event, item in ours if event == prompt), default=0)
        return replace(
            self, wait=wait if self.wait is None else self.wait, extras={**duties, **self.extras}
        )

    def groups(self) -> dict[str, dict[str, Any]]:
        """Return memd's entry for each event's list. The piece must be ``settled``."""
        hooks = self.hooks
        for duty, enabled in self.extras.items():
            hooks = hooks.with_duty(duty) if hooks and enabled else hooks
        return (
            {event: hooks.group(event, self.wait or 0) for event in hooks.events} if hooks else {}
        )

    def _state(self, text: str) -> str:
        """Return the state of memd's part in a text: INSTALLED, OUTDATED, ABSENT or FOREIGN."""
        root = _parse_object(text)
        values = self._present_values(root)
        if any(not _runs_memctl(value) for value in values.values()):
            return FOREIGN
        if not values and not [*_our_hooks(root)]:
            return ABSENT
        groups = self.settled(text).groups()
        return OUTDATED if self._stale(text, groups) or self._missing(text, groups) else INSTALLED

    def _installed(self, text: str) -> str:
        """Return the text with stale parts removed and missing ones inserted.

        Raise ValueError if a value under memd's name runs another program.
        """
        if self._state(text) == FOREIGN:
            names = ", ".join(".".join(map(str, path)) for path in self.values)
            raise ValueError(_foreign_message(names))
        groups = self.settled(
            text
        ).groups()  # computed before the loop removes the hooks it depends on
        for path in self._stale(text, groups):
            # A list that stays in use stays where it is, even if it is empty for a moment.
            stays = path in self.values or path[1] in groups
            text = jsonc.remove(text, path, _ALL if stays else ())
        # Each is inserted as the first child, so the last one is inserted first.
        for path, value in reversed(self._missing(text, groups)):
            text = jsonc.insert(text, path, value)
        return text

    def _without(self, text: str, stays: Container[jsonc.Path]) -> str:
        """Return the text without memd's parts; containers at paths in ``stays`` remain."""
        root = _parse_object(text)
        values = self._present_values(root)
        paths = [*_our_hooks(root), *(path for path in values if _runs_memctl(values[path]))]
        # From the end, because removing an item changes the indices of those after it.
        for path in reversed(paths):
            text = jsonc.remove(text, path, stays)
        return text

    def _present_values(self, root: jsonc.Node | None) -> dict[jsonc.Path, Any]:
        """Return the values in the file at memd's paths, whoever wrote them."""
        nodes = ((path, jsonc.find(root, path)) for path in self.values)
        return {path: node.value for path, node in nodes if node is not None}

    def _stale(self, text: str, groups: Mapping[str, Any]) -> list[jsonc.Path]:
        """Return the paths of memd's parts that differ from the current version, the last first."""
        root = _parse_object(text)
        present = self._present_values(root)
        stale: list[jsonc.Path] = [path for path in present if present[path] != self.values[path]]
        ours = [*_our_hooks(root)]
        for event in dict.fromkeys(path[1] for path in ours):
            event_hooks = [path for path in ours if path[1] == event]
            if [_hook_group(root, path) for path in event_hooks] != [groups.get(str(event))]:
                stale += event_hooks
        return stale[::-1]

    def _missing(self, text: str, groups: Mapping[str, Any]) -> list[tuple[jsonc.Path, Any]]:
        """Return the parts that are missing: paths for ``jsonc.insert``, with their values."""
        root = _parse_object(text)
        values, events = self._present_values(root), {path[1] for path in _our_hooks(root)}
        missing: list[tuple[jsonc.Path, Any]] = [
            (("hooks", event, ""), group) for event, group in groups.items() if event not in events
        ]
        return missing + [
            (path, value) for path, value in self.values.items() if path not in values
        ]


class TableEntry(Struct, frozen=True):
    """An entry under the name ``memd`` in a group of a TOML or YAML file.

    ``language`` is the module ``toml`` or ``yaml``.
    """

    path: str
    language: Any
    group: str
    values: Mapping[str, Any]

    def state(self, content: bytes | None) -> str:
        """Return INSTALLED, OUTDATED, ABSENT or FOREIGN for memd's entry in a content."""
        return str(_read(self.path, content, self._state))

    def installed(self, content: bytes | None) -> bytes:
        """Return the content with memd's current entry."""
        return _edit(self.path, content, self._installed)

    def removed(self, content: bytes, original: bytes | None) -> bytes | None:
        """Return the content without memd's entry, ``None`` if nothing else is left."""
        if self.state(content) in {ABSENT, FOREIGN}:
            return content
        others = _edit(
            self.path, content, lambda text: self.language.remove(text, self.group, _NAME)
        )
        return None if original is None and not others.strip() else others

    def _state(self, text: str) -> str:
        """Return the state of memd's entry in a text."""
        present = self.language.find(text, self.group, _NAME)
        if present is None:
            return ABSENT
        # Compare with what ``insert`` makes, because YAML values are read as they are written.
        fresh = self.language.insert("", self.group, _NAME, self.values)
        if present == self.language.find(fresh, self.group, _NAME):
            return INSTALLED
        return OUTDATED if _runs_memctl(present) else FOREIGN

    def _installed(self, text: str) -> str:
        """Return the text with the current entry. Raise ValueError if it is foreign."""
        state = self._state(text)
        if state == FOREIGN:
            raise ValueError(_foreign_message(f"{self.group}.{_NAME}"))
        if state == INSTALLED:
            return text
        text = self.language.remove(text, self.group, _NAME)
        return str(self.language.insert(text, self.group, _NAME, self.values))


class Copy(Struct, frozen=True):
    """A file that memd copies into a folder of a client from ``source``.

    ``extras`` as in JsonFile: a plugin that can deliver messages has a line that says whether it
    does.
    """

    path: str
    source: str
    extras: Mapping[str, bool] = field(default_factory=dict)

    def can(self, extra: str) -> bool:
        """Return whether the plugin can take on a duty. Raise FileRefusedError."""
        with_it, without = (
            replace(self, extras={extra: on}).installed(None) for on in (True, False)
        )
        return with_it != without

    def has(self, extra: str, content: bytes | None) -> bool:
        """Return whether the plugin in a content has a duty."""
        return extra == MESSAGES and _DELIVERS in (content or b"")

    def state(self, content: bytes | None) -> str:
        """Return the state of the file; OUTDATED if it differs from memd's, whoever changed it."""
        if content is None:
            return ABSENT
        if _NAME.encode() not in content:
            return FOREIGN
        return INSTALLED if content == self.installed(content) else OUTDATED

    def installed(self, content: bytes | None) -> bytes:
        """Return the bytes of the source, with delivery of messages on or off."""
        if content and _NAME.encode() not in content:
            raise FileRefusedError(self.path, _foreign_message("it"))
        try:
            with open(self.source, "rb") as file:
                plain = file.read()
        except OSError as error:
            cause = f"{self.source}: {error.strerror}"
            raise FileRefusedError(self.path, cause) from error
        on = self.extras.get(MESSAGES, self.has(MESSAGES, content))
        return plain.replace(_SILENT, _DELIVERS) if on else plain

    def removed(self, content: bytes, original: bytes | None) -> bytes | None:
        """Return the original file, ``None`` if there was none; a foreign file stays."""
        return original if self.state(content) != FOREIGN else content


def _foreign_message(name: str) -> str:
    return f"{name} is there already and not memd's own"


def _runs_memctl(value: Any) -> bool:
    """Return whether the command of a server's entry is memctl."""
    command = value.get("command", value.get("cmd")) if isinstance(value, dict) else None
    words = command if isinstance(command, list) else [command]
    return any(os.path.basename(str(word).strip('"')) == "memctl" for word in words)


def _parse_object(text: str) -> jsonc.Node | None:
    """Return the root of a JSON text. Raise ValueError if it is not an object."""
    root = jsonc.parse(text)
    if root is not None and not isinstance(root.value, dict):
        raise ValueError(_NO_OBJECT)
    return root


def _our_hooks(root: jsonc.Node | None) -> Iterator[jsonc.Path]:
    """Yield the paths of memd's hooks: a whole group if all in it are memd's, else the item."""
    events = jsonc.find(root, ("hooks",))
    for event in events.value if events and isinstance(events.value, dict) else ():
        groups = jsonc.find(events, (event,))
        for index, group in enumerate(groups.value if groups and groups.children else ()):
            items = group.get("hooks") if isinstance(group, dict) else None
            own = [is_ours(item) for item in items] if isinstance(items, list) else []
            if own and all(own):
                yield ("hooks", event, index)
            else:
                yield from (
                    ("hooks", event, index, "hooks", at) for at, ours in enumerate(own) if ours
                )


def _hook_group(root: jsonc.Node | None, path: jsonc.Path) -> dict[str, Any]:
    """Return the hook at a path of ``_our_hooks`` as a group, with its group's matcher."""
    group = jsonc.find(root, path[:3])
    item = jsonc.find(root, path[3:] and path)
    value = dict(group.value) if group else {}
    return value | {"hooks": [item.value]} if path[3:] and item else value


def _read(path: str, content: bytes | None, function: Callable[[str], Any]) -> Any:
    """Return ``function(text)`` for the content. Raise FileRefusedError for its ValueError."""
    try:
        text = (content or b"").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileRefusedError(path, _NOT_UTF8) from error
    try:
        return function(text)
    except ValueError as error:
        raise FileRefusedError(path, str(error)) from error


def _edit(path: str, content: bytes | None, change: Callable[[str], str]) -> bytes:
    """Return the content after ``change(text)``, with its byte order mark if it had one."""
    mark = codecs.BOM_UTF8 if content and content.startswith(codecs.BOM_UTF8) else b""
    return mark + str(_read(path, content, change)).encode()
