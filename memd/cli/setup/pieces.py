"""The parts of a client's configuration files that memd writes, and how they are put in and out.

Rules of this file
- memd's own are hooks whose command names memd's hook file, and values under the name ``memd`` that
  run memctl. A value of this name that runs another program is foreign and stays.
- ``without_part`` returns the very bytes from before ``with_part``. If the file has changed since
  then, all that is not memd's stays; lists and objects that become empty go, unless the backup has
  them.
- Installing what is installed changes nothing.
"""

import codecs
import os
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from memd.cli.setup import jsonc, toml
from memd.cli.setup.files import file_refused
from memd.cli.setup.hooks import MESSAGES, RULES, Hooks, deadline_ms, delivers_messages, is_ours

INSTALLED, OUTDATED, ABSENT, FOREIGN = "installed", "outdated", "absent", "foreign"
_NOT_UTF8 = "it is not UTF-8"
_NO_OBJECT = "it is no JSON object"
_NAME = "memd"
# The line of a plugin that says whether it delivers messages, off and on.
_MESSAGES_OFF, _MESSAGES_ON = b"const MESSAGES = false\n", b"const MESSAGES = true\n"


class Piece(Protocol):
    """memd's part of one file of a client. Methods raise Refused if they cannot edit."""

    @property
    def path(self) -> str:
        """The absolute path of the file."""

    def state(self, content: bytes | None) -> str:
        """Return whether memd's part of a content is installed, outdated, absent or foreign."""

    def with_part(self, content: bytes | None) -> bytes:
        """Return the content with memd's current part in place of any older one."""

    def without_part(self, content: bytes, original: bytes | None) -> bytes | None:
        """Return the content without memd's part, ``None`` if the file held nothing else.

        ``original`` is the content before the set-up, if a backup has it.
        """


class _AllPaths:
    """A container that contains every path."""

    def __contains__(self, path: object) -> bool:
        return True


_ALL_PATHS = _AllPaths()


class JsonFile(Struct, frozen=True):
    """memd's part of a JSON file: hooks, values at paths, or both.

    ``wait`` is how long the hook may keep a prompt waiting in ms, ``None`` to leave it as it is in
    the file. ``extras`` switches duties of the hooks (``Hooks.duty_events``) on or off; a duty that
    is not named stays as it is in the file.
    """

    path: str
    hooks: Hooks | None = None
    values: Mapping[jsonc.Path, Any] = field(default_factory=dict)
    wait: int | None = None
    extras: Mapping[str, bool] = field(default_factory=dict)

    def can_have_duty(self, duty: str) -> bool:
        """Return whether the client has hooks for a duty: MESSAGES or RULES."""
        return bool(self.hooks and duty in self.hooks.duty_events)

    def has_duty(self, duty: str, content: bytes | None) -> bool:
        """Return whether the hooks in a file's content have a duty: MESSAGES or RULES."""
        piece: JsonFile = _read(self.path, content, replace(self, extras={}).filled_from)
        return piece.extras[duty]

    def state(self, content: bytes | None) -> str:
        """Return INSTALLED, OUTDATED, ABSENT or FOREIGN for memd's part of a content."""
        return str(_read(self.path, content, self._state))

    def with_part(self, content: bytes | None) -> bytes:
        """Return the content with memd's current hooks and values."""
        return _edit(self.path, content, self._text_with_part)

    def without_part(self, content: bytes, original: bytes | None) -> bytes | None:
        """Return the content without memd's hooks and values, ``None`` if nothing else is left."""
        filled: JsonFile = _read(self.path, content, self.filled_from)
        # Nothing else has changed since the set-up, so the backup is the exact original.
        if original is not None and filled.with_part(original) == content:
            return original
        empty_paths = _read(
            self.path, original, lambda text: [*jsonc.empty_containers(_parse_object(text))]
        )
        others = _edit(self.path, content, lambda text: self._text_without_part(text, empty_paths))
        return None if original is None and others.strip() in {b"", b"{}"} else others

    def filled_from(self, text: str) -> "JsonFile":
        """Return this piece with ``wait`` and ``extras`` filled in from the hooks in a text."""
        if self.hooks is None:
            return replace(self, wait=0, extras=dict.fromkeys((MESSAGES, RULES), False))
        root, rule_events = _parse_object(text), self.hooks.duty_events.get(RULES, ())
        own_hooks = []  # pairs of an event and a hook of memd's
        for path in _our_hooks(root):
            own_hooks += [(path[1], hook) for hook in _hook_group(root, path)["hooks"]]
        duties = {
            MESSAGES: any(delivers_messages(hook) for _, hook in own_hooks),
            RULES: any(event in rule_events for event, _ in own_hooks),
        }
        wait = self.wait
        if wait is None:
            prompt_hooks = [hook for event, hook in own_hooks if event == self.hooks.prompt]
            wait = max((deadline_ms(hook) for hook in prompt_hooks), default=0)
        return replace(self, wait=wait, extras={**duties, **self.extras})

    def groups(self) -> dict[str, dict[str, Any]]:
        """Return memd's entry for each event's list. The piece must be ``filled_from`` a text."""
        hooks = self.hooks
        if hooks is None:
            return {}
        for duty, is_on in self.extras.items():
            hooks = hooks.with_duty(duty) if is_on else hooks
        return {event: hooks.group(event, self.wait or 0) for event in hooks.events}

    def _state(self, text: str) -> str:
        """Return the state of memd's part in a text: INSTALLED, OUTDATED, ABSENT or FOREIGN."""
        root = _parse_object(text)
        values = self._present_values(root)
        if any(not _runs_memctl(value) for value in values.values()):
            return FOREIGN
        if not values and not [*_our_hooks(root)]:
            return ABSENT
        groups = self.filled_from(text).groups()
        return (
            OUTDATED
            if self._stale_paths(text, groups) or self._missing_parts(text, groups)
            else INSTALLED
        )

    def _text_with_part(self, text: str) -> str:
        """Return the text with stale parts removed and missing ones inserted.

        Raise ValueError if a value under memd's name runs another program.
        """
        if self._state(text) == FOREIGN:
            names = ", ".join(".".join(map(str, path)) for path in self.values)
            raise ValueError(_foreign_message(names))
        groups = self.filled_from(text).groups()  # before the loop removes the hooks that it reads
        for path in self._stale_paths(text, groups):
            # A list that stays in use stays where it is, even if it is empty for a moment.
            is_used_again = path in self.values or path[1] in groups
            text = jsonc.remove(text, path, _ALL_PATHS if is_used_again else ())
        # Each is inserted as the first child, so the last one is inserted first.
        for path, value in reversed(self._missing_parts(text, groups)):
            text = jsonc.insert(text, path, value)
        return text

    def _text_without_part(self, text: str, lasting: Container[jsonc.Path]) -> str:
        """Return the text without memd's parts; containers at paths in ``lasting`` remain."""
        root = _parse_object(text)
        values = self._present_values(root)
        own_values = [path for path, value in values.items() if _runs_memctl(value)]
        paths = [*_our_hooks(root), *own_values]
        # From the end, because removing an item changes the indices of those after it.
        for path in reversed(paths):
            text = jsonc.remove(text, path, lasting)
        return text

    def _present_values(self, root: jsonc.Node | None) -> dict[jsonc.Path, Any]:
        """Return the values in the file at memd's paths, whoever wrote them."""
        nodes = ((path, jsonc.find(root, path)) for path in self.values)
        return {path: node.value for path, node in nodes if node is not None}

    def _stale_paths(self, text: str, groups: Mapping[str, Any]) -> list[jsonc.Path]:
        """Return the paths of memd's parts that differ from the current version, the last first."""
        root = _parse_object(text)
        present = self._present_values(root)
        stale: list[jsonc.Path] = [path for path in present if present[path] != self.values[path]]
        own_paths = [*_our_hooks(root)]
        for event in dict.fromkeys(path[1] for path in own_paths):
            event_paths = [path for path in own_paths if path[1] == event]
            present_groups = [_hook_group(root, path) for path in event_paths]
            if present_groups != [groups.get(str(event))]:
                stale += event_paths
        return stale[::-1]

    def _missing_parts(self, text: str, groups: Mapping[str, Any]) -> list[tuple[jsonc.Path, Any]]:
        """Return the parts that are missing: paths for ``jsonc.insert``, with their values."""
        root = _parse_object(text)
        present_values = self._present_values(root)
        present_events = {path[1] for path in _our_hooks(root)}
        missing: list[tuple[jsonc.Path, Any]] = [
            (("hooks", event, ""), group)
            for event, group in groups.items()
            if event not in present_events
        ]
        missing += [item for item in self.values.items() if item[0] not in present_values]
        return missing


class TableEntry(Struct, frozen=True):
    """A table under the name ``memd`` in a group of a TOML file."""

    path: str
    group: str
    values: Mapping[str, Any]

    def state(self, content: bytes | None) -> str:
        """Return INSTALLED, OUTDATED, ABSENT or FOREIGN for memd's entry in a content."""
        return str(_read(self.path, content, self._state))

    def with_part(self, content: bytes | None) -> bytes:
        """Return the content with memd's current entry."""
        return _edit(self.path, content, self._text_with_part)

    def without_part(self, content: bytes, original: bytes | None) -> bytes | None:
        """Return the content without memd's entry, ``None`` if nothing else is left."""
        if self.state(content) in {ABSENT, FOREIGN}:
            return content
        others = _edit(self.path, content, lambda text: toml.remove(text, self.group, _NAME))
        return None if original is None and not others.strip() else others

    def _state(self, text: str) -> str:
        """Return the state of memd's entry in a text."""
        present = toml.find(text, self.group, _NAME)
        if present is None:
            return ABSENT
        if present == self.values:
            return INSTALLED
        return OUTDATED if _runs_memctl(present) else FOREIGN

    def _text_with_part(self, text: str) -> str:
        """Return the text with the current entry. Raise ValueError if it is foreign."""
        state = self._state(text)
        if state == FOREIGN:
            raise ValueError(_foreign_message(f"{self.group}.{_NAME}"))
        if state == INSTALLED:
            return text
        text = toml.remove(text, self.group, _NAME)
        return toml.insert(text, self.group, _NAME, self.values)


class Copy(Struct, frozen=True):
    """A file that memd copies into a folder of a client from ``source``.

    ``extras`` as in JsonFile: a plugin that can deliver messages has a line that says whether it
    does.
    """

    path: str
    source: str
    extras: Mapping[str, bool] = field(default_factory=dict)

    def can_have_duty(self, duty: str) -> bool:
        """Return whether the plugin can take on a duty. Raise Refused."""
        with_duty = replace(self, extras={duty: True}).with_part(None)
        without_duty = replace(self, extras={duty: False}).with_part(None)
        return with_duty != without_duty

    def has_duty(self, duty: str, content: bytes | None) -> bool:
        """Return whether the plugin in a content has a duty."""
        return duty == MESSAGES and _MESSAGES_ON in (content or b"")

    def state(self, content: bytes | None) -> str:
        """Return the state of the file; OUTDATED if it differs from memd's, whoever changed it."""
        if content is None:
            return ABSENT
        if _NAME.encode() not in content:
            return FOREIGN
        return INSTALLED if content == self.with_part(content) else OUTDATED

    def with_part(self, content: bytes | None) -> bytes:
        """Return the bytes of the source, with delivery of messages on or off."""
        if content and _NAME.encode() not in content:
            raise file_refused(self.path, _foreign_message("it"))
        try:
            with open(self.source, "rb") as file:
                plugin = file.read()
        except OSError as error:
            cause = f"{self.source}: {error.strerror}"
            raise file_refused(self.path, cause) from error
        delivers = self.extras.get(MESSAGES, self.has_duty(MESSAGES, content))
        return plugin.replace(_MESSAGES_OFF, _MESSAGES_ON) if delivers else plugin

    def without_part(self, content: bytes, original: bytes | None) -> bytes | None:
        """Return the original file, ``None`` if there was none; a foreign file stays."""
        return original if self.state(content) != FOREIGN else content


def _foreign_message(name: str) -> str:
    """Return a sentence that something under memd's name is another program's."""
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
    if events is None or not isinstance(events.value, dict):
        return
    for event in events.value:
        groups = jsonc.find(events, (event,))
        for index, group in enumerate(groups.value if groups and groups.children else ()):
            items = group.get("hooks") if isinstance(group, dict) else None
            if not isinstance(items, list):
                continue
            own_indices = [place for place, item in enumerate(items) if is_ours(item)]
            if items and len(own_indices) == len(items):
                yield ("hooks", event, index)
            else:
                yield from (("hooks", event, index, "hooks", place) for place in own_indices)


def _hook_group(root: jsonc.Node | None, path: jsonc.Path) -> dict[str, Any]:
    """Return the hook at a path of ``_our_hooks`` as a group, with its group's matcher."""
    group_node = jsonc.find(root, path[:3])
    group = dict(group_node.value) if group_node else {}
    leads_into_group = bool(path[3:])
    item_node = jsonc.find(root, path) if leads_into_group else None
    return group | {"hooks": [item_node.value]} if item_node else group


def _read(path: str, content: bytes | None, function: Callable[[str], Any]) -> Any:
    """Return ``function(text)`` for the content. Raise Refused for its ValueError."""
    try:
        text = (content or b"").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise file_refused(path, _NOT_UTF8) from error
    try:
        return function(text)
    except ValueError as error:
        raise file_refused(path, str(error)) from error


def _edit(path: str, content: bytes | None, change: Callable[[str], str]) -> bytes:
    """Return the content after ``change(text)``, with its byte order mark if it had one."""
    has_mark = content is not None and content.startswith(codecs.BOM_UTF8)
    mark = codecs.BOM_UTF8 if has_mark else b""
    return mark + str(_read(path, content, change)).encode()
