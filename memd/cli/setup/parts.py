"""memd's part of one file of a client: whether it is there, how it is put in and taken out.

Rules of this file
- memd's own are hooks whose command names memd's hook file, and values under the name ``memd`` that
  run memctl. A value of this name that runs another program is foreign and stays.
- ``without`` returns the very bytes from before, if the file says what ``put`` made of its backup.
  Otherwise all that is not memd's stays; lists and objects that become empty go, unless the backup
  has them.
- Putting in what is in changes nothing.
"""

import codecs
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from memd.cli.setup import jsonc, toml
from memd.cli.setup.files import file_refused
from memd.cli.setup.hooks import MESSAGES, RULES, Extras, Hooks, extras_of, is_ours

INSTALLED, OUTDATED, ABSENT, FOREIGN = "installed", "outdated", "absent", "foreign"
_NOT_UTF8 = "it is not UTF-8"
_NO_OBJECT = "it is no JSON object"
_FOREIGN_VALUE = "{} is there already and not memd's own"
_NAME = b"memd"
# The line of a plugin that says whether it brings messages, off and on.
_MESSAGES_OFF, _MESSAGES_ON = b"const MESSAGES = false\n", b"const MESSAGES = true\n"
_LINE_MARK = b"# memd; memctl setup zsh --remove takes this line out"


class FilePart:
    """memd's part of the file at an absolute path. All methods raise Refused for a broken file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def state(self, content: bytes | None) -> str:
        """Return INSTALLED, OUTDATED, ABSENT or FOREIGN for memd's part of a content."""
        if content is None or not self.is_in(content):
            return FOREIGN if content is not None and self.is_foreign(content) else ABSENT
        return INSTALLED if self.put(content, {}) == content else OUTDATED

    def without(self, content: bytes, original: bytes | None) -> bytes | None:
        """Return the content without memd's part, ``None`` if there was no file before memd.

        ``original`` is the content before the set-up, if a backup has it.
        """
        if original is not None and self.put(original, self.extras(content)) == content:
            return original
        others = self.take(content, original or b"")
        return None if original is None and others.strip() in {b"", b"{}"} else others

    def is_in(self, content: bytes) -> bool:
        """Return whether a part of memd's is in a content, also that of an older memd."""
        raise NotImplementedError

    def is_foreign(self, content: bytes) -> bool:
        """Return whether something in the place of memd's part is another program's."""
        del content
        return False

    def extras(self, content: bytes) -> dict[str, int]:
        """Return the extras that the part in a content has, none of what this part cannot have."""
        del content
        return {}

    def put(self, content: bytes | None, wanted: Extras) -> bytes:
        """Return the content with memd's current part; other extras than the wanted ones stay."""
        raise NotImplementedError

    def take(self, content: bytes, original: bytes) -> bytes:
        """Return the content without memd's part."""
        raise NotImplementedError


class SettingsPart(FilePart):
    """Hooks in a JSON file, or values by their paths in a JSON or TOML file, or both."""

    def __init__(
        self, path: str, values: Mapping[jsonc.Path, Any] | None = None, hooks: Hooks | None = None
    ) -> None:
        super().__init__(path)
        self.values = values or {}
        self.hooks = hooks

    def is_in(self, content: bytes) -> bool:
        """Return whether a part of memd's is in a content, also that of an older memd."""
        return bool(_read(self.path, content, self._own))

    def is_foreign(self, content: bytes) -> bool:
        """Return whether a value under memd's name runs another program than memctl."""
        present = _read(self.path, content, self._present)
        return not all(map(_runs_memctl, present.values()))

    def extras(self, content: bytes) -> dict[str, int]:
        """Return the extras that the hooks in a content have."""
        if self.hooks is None:
            return {}
        groups: dict[str, list[Any]] = {}
        for path, group in _read(self.path, content, self._own).items():
            if path not in self.values:
                groups.setdefault(path[1], []).append(group)
        return extras_of(groups)

    def put(self, content: bytes | None, wanted: Extras) -> bytes:
        """Return the content with memd's current hooks and values."""
        extras = self.extras(content or b"")
        return _edited(
            self.path, content or b"", lambda text: self._put(text, {**extras, **wanted})
        )

    def take(self, content: bytes, original: bytes) -> bytes:
        """Return the content without memd's hooks and values."""
        lasting = _read(self.path, original, self._empty_containers)

        def change(text: str) -> str:
            for path in reversed([*self._own(text)]):  # removal moves what follows
                text = self._without_value(text, path, lasting)
            return text

        return _edited(self.path, content, change)

    def _put(self, text: str, extras: Extras) -> str:
        """Return the text with what differs replaced, and with what is missing."""
        if not all(map(_runs_memctl, self._present(text).values())):
            raise ValueError(_FOREIGN_VALUE.format(", ".join(map(_name, self.values))))
        wanted: dict[jsonc.Path, Any] = dict(self.values)
        if self.hooks:
            groups = self.hooks.groups(extras)
            wanted = {("hooks", event): group for event, group in groups.items()} | wanted
        own = self._own(text)
        present: dict[jsonc.Path, list[Any]] = {}
        for path, value in own.items():
            present.setdefault(self._place(path), []).append(value)
        right = {place for place in wanted if present.get(place) == [wanted[place]]}
        for path in reversed(own):
            if (place := self._place(path)) not in right:
                # A list that stays in use stays where it is, even if it is empty for a moment.
                lasting = [path[:depth] for depth in range(len(path))] if place in wanted else []
                text = self._without_value(text, path, lasting)
        # Each is inserted as the first child, so the last one is inserted first.
        for place in reversed([place for place in wanted if place not in right]):
            text = self._with_value(text, place, wanted[place])
        return text

    def _place(self, path: jsonc.Path) -> jsonc.Path:
        """Return where a value, or the hook of an event, belongs."""
        return path if path in self.values else path[:2]

    @property
    def _is_toml(self) -> bool:
        """Whether the file is a TOML file and no JSON file."""
        return self.path.endswith(".toml")

    def _with_value(self, text: str, place: jsonc.Path, value: Any) -> str:
        """Return the text with a value at its path, or a hook in its event's list."""
        if self._is_toml:
            return toml.insert(text, place, value)
        return jsonc.insert(text, place if place in self.values else (*place, ""), value)

    def _without_value(self, text: str, path: jsonc.Path, lasting: list[jsonc.Path]) -> str:
        """Return the text without the value at a path; containers in ``lasting`` remain."""
        return toml.remove(text, path) if self._is_toml else jsonc.remove(text, path, lasting)

    def _own(self, text: str) -> dict[jsonc.Path, Any]:
        """Return memd's values and hooks in a text, by their paths in its order."""
        own = {path: value for path, value in self._present(text).items() if _runs_memctl(value)}
        if self.hooks is None:
            return own
        return {**dict(_own_hooks(_parse_object(text))), **own}

    def _present(self, text: str) -> dict[jsonc.Path, Any]:
        """Return the values at memd's paths in a text, whoever wrote them."""
        if self._is_toml:
            values = {path: toml.find(text, path) for path in self.values}
        else:
            root = _parse_object(text)
            nodes = {path: jsonc.find(root, path) for path in self.values}
            values = {path: node.value for path, node in nodes.items() if node}
        return {path: value for path, value in values.items() if value is not None}

    def _empty_containers(self, text: str) -> list[jsonc.Path]:
        """Return the paths of objects and lists without members."""
        return [] if self._is_toml else [*jsonc.empty_containers(_parse_object(text))]


class Copy(FilePart):
    """A file that memd copies from ``source``; a plugin may have a line that switches messages."""

    def __init__(self, path: str, source: str) -> None:
        super().__init__(path)
        self.source = source

    def is_in(self, content: bytes) -> bool:
        """Return whether the file is memd's, whoever changed it since."""
        return _NAME in content

    def is_foreign(self, content: bytes) -> bool:
        """Return whether the file is another program's."""
        return _NAME not in content

    def extras(self, content: bytes) -> dict[str, int]:
        """Return whether the plugin brings messages, nothing if it cannot."""
        is_switched = _MESSAGES_ON in content or _MESSAGES_OFF in content
        return {MESSAGES: _MESSAGES_ON in content} if is_switched else {}

    def put(self, content: bytes | None, wanted: Extras) -> bytes:
        """Return the bytes of the source, with messages on or off."""
        if content and self.is_foreign(content):
            raise file_refused(self.path, _FOREIGN_VALUE.format("it"))
        try:
            with open(self.source, "rb") as file:
                plugin = file.read()
        except OSError as error:
            raise file_refused(self.path, f"{self.source}: {error.strerror}") from error
        brings = {**self.extras(content or b""), **wanted}.get(MESSAGES)
        return plugin.replace(_MESSAGES_OFF, _MESSAGES_ON) if brings else plugin

    def take(self, content: bytes, original: bytes) -> bytes:
        """Return nothing: the whole file is memd's."""
        del content
        return original


class Line(FilePart):
    """One line at the end of a person's text file, found again by its comment."""

    def __init__(self, path: str, line: str) -> None:
        super().__init__(path)
        self.line = line

    def is_in(self, content: bytes) -> bool:
        """Return whether a line of memd's is in a content."""
        return _LINE_MARK in content

    def put(self, content: bytes | None, wanted: Extras) -> bytes:
        """Return the content with the line at its end and without an older one."""
        del wanted
        content = content or b""
        line = b"%s  %s" % (self.line.encode(), _LINE_MARK)
        if [own for own in content.splitlines() if _LINE_MARK in own] == [line]:
            return content
        others = self.take(content, b"")
        newline = b"" if not others or others.endswith(b"\n") else b"\n"
        return b"%s%s%s\n" % (others, newline, line)

    def take(self, content: bytes, original: bytes) -> bytes:
        """Return the content without the lines that have memd's comment."""
        del original
        lines = content.splitlines(keepends=True)
        return b"".join(line for line in lines if _LINE_MARK not in line)


def can_have(part: FilePart) -> set[str]:
    """Return which extras a part can have: MESSAGES, RULES or none."""
    if isinstance(part, Copy):
        return {*part.extras(part.put(None, {}))}
    return {MESSAGES, RULES} if isinstance(part, SettingsPart) and part.hooks else set()


def _name(path: jsonc.Path) -> str:
    """Return a path as a person writes it."""
    return ".".join(map(str, path))


def _runs_memctl(value: Any) -> bool:
    """Return whether the command of a server's entry is memctl."""
    command = value.get("command") if isinstance(value, dict) else None
    words = command if isinstance(command, list) else [command]
    return any(os.path.basename(str(word)) == "memctl" for word in words)


def _parse_object(text: str) -> jsonc.Node | None:
    """Return the root of a JSON text. Raise ValueError if it is not an object."""
    root = jsonc.parse(text)
    if root is not None and not isinstance(root.value, dict):
        raise ValueError(_NO_OBJECT)
    return root


def _own_hooks(root: jsonc.Node | None) -> Iterator[tuple[jsonc.Path, Any]]:
    """Yield memd's hooks as groups: a whole group if all in it are memd's, else each item."""
    events = jsonc.find(root, ("hooks",))
    if events is None or not isinstance(events.value, dict):
        return
    for event in events.value:
        groups = jsonc.find(events, (event,))
        for index, group in enumerate(groups.value if groups and groups.children else ()):
            items = group.get("hooks") if isinstance(group, dict) else None
            if not isinstance(items, list):
                continue
            own = [place for place, item in enumerate(items) if is_ours(item)]
            path = ("hooks", event, index)
            if items and len(own) == len(items):
                yield path, group
            else:
                for place in own:
                    yield (*path, "hooks", place), {**group, "hooks": [items[place]]}


def _read(path: str, content: bytes, function: Callable[[str], Any]) -> Any:
    """Return ``function(text)`` for a content. Raise Refused for its ValueError."""
    try:
        return function(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise file_refused(path, _NOT_UTF8) from error
    except ValueError as error:
        raise file_refused(path, str(error)) from error


def _edited(path: str, content: bytes, change: Callable[[str], str]) -> bytes:
    """Return the content after ``change(text)``, with its byte order mark if it had one."""
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    return mark + str(_read(path, content, change)).encode()
