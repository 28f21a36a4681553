"""Members of a JSON file, with comments or without, put in and taken out by their place.

Rules of this file
- Nothing of the text is written anew: ``insert`` adds one piece right behind an opening bracket,
  ``remove`` takes one piece out, so comments, order, indentation and line ends stay as they are.
- ``remove`` is the inverse of ``insert``: both together give back the same text
  (``test_in_and_out_gives_the_same_bytes``). For that a piece in an empty container brings the
  line break before the closing bracket along, and one in another container brings its comma.
- Comments and trailing commas are read wherever they stand; anything else that JSON does not know
  raises JsonShapeError, and so does a key on the way to a place that stands there twice.
"""

import json
import re
from collections.abc import Container, Iterator
from typing import Any

from msgspec import Struct, field

Path = tuple[str | int, ...]

_SPACE = " \t\r\n"
_GAP = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"')
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_CLOSING = {"{": "}", "[": "]"}
_MAX_DEPTH = 100
_TWICE = "the key {} is there twice"
_TAKEN = "{} is there already"
_NO_OBJECT = "{} is no object"
_NO_LIST = "{} is no list"
_NOT_ENDED = "no comma and no {} stands"
_NO_MEMBER = "no key and colon stand"
_NO_VALUE = "no value stands"
_TOO_DEEP = "it is nested too deep"
_MORE = "something stands behind its end"


class JsonShapeError(ValueError):
    """A text is no JSON, or not of the shape in which something has its place."""

    def __init__(self, place: int, cause: str, name: str | int = "") -> None:
        super().__init__(f"{cause.format(name)} (at character {place + 1})")


class Node(Struct):
    """A value and where it stands; ``children`` are those of an object or a list."""

    start: int
    end: int = 0
    value: Any = None
    children: "list[Child]" = field(default_factory=list)

    def child(self, step: str | int) -> "Child | None":
        """Return the child of a key or at an index. Raises JsonShapeError for a key twice."""
        if isinstance(step, int):
            return self.children[step] if step < len(self.children) else None
        named = [child for child in self.children if child.key == step]
        if len(named) > 1:
            raise JsonShapeError(named[1].start, _TWICE, step)
        return named[0] if named else None


class Child(Struct):
    """A member or an item: ``start`` is that of its key, ``after`` the end of what stands before.

    ``comma`` is the place of the comma behind it, -1 if there is none.
    """

    key: str | None
    after: int
    start: int
    node: Node
    comma: int = -1


def parse(text: str) -> Node | None:
    """Return the root, ``None`` where a text holds nothing but space and comments."""
    start = _gap(text, 0)
    if start == len(text):
        return None
    root = _value(text, start, 0)
    if _gap(text, root.end) != len(text):
        raise JsonShapeError(root.end, _MORE)
    return root


def find(root: Node | None, path: Path) -> Node | None:
    """Return the value at a path, ``None`` if there is none."""
    for step in path:
        child = root.child(step) if root and _holds(root, step) else None
        root = child.node if child else None
    return root


def insert(text: str, path: Path, value: Any) -> str:
    """Return a text with a new member at a path whose last step is its key, "" for a list's item.

    Objects that are missing on the way are made. Raises JsonShapeError for what is in the way.
    """
    node = parse(text)
    if node is None:
        made = json.dumps(_wrapped(path, value), indent=2, ensure_ascii=False)
        newline = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{newline}{made}\n".replace("\n", _newline(text))
    for depth, step in enumerate(path):
        if not _holds(node, 0 if step == "" else step):
            name = ".".join(map(str, path[:depth])) or "it"
            raise JsonShapeError(node.start, _NO_LIST if step == "" else _NO_OBJECT, name)
        child = node.child(step) if step else None
        if child is None:
            return _put(text, node, str(step), _wrapped(path[depth + 1 :], value))
        node = child.node
    raise JsonShapeError(node.start, _TAKEN, ".".join(map(str, path)))


def remove(text: str, path: Path, stays: Container[Path]) -> str:
    """Return a text without what stands at a path, and without containers left empty by that.

    The root stays, and so do the containers at the paths of ``stays``.
    """
    root = parse(text)
    steps = path if find(root, path) else ()
    while len(steps) > 1 and steps[:-1] not in stays:
        parent = find(root, steps[:-1])
        if parent is None or len(parent.children) > 1:
            break
        steps = steps[:-1]
    parent = find(root, steps[:-1])
    child = parent.child(steps[-1]) if parent and steps else None
    if parent is None or child is None:
        return text
    return _cut(text, parent, child)


def empty_containers(root: Node | None, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of all objects and lists that hold nothing."""
    if root and isinstance(root.value, dict | list):
        if not root.children:
            yield path
        for index, child in enumerate(root.children):
            yield from empty_containers(child.node, (*path, child.key or index))


def _holds(node: Node, step: str | int) -> bool:
    return isinstance(node.value, list if isinstance(step, int) else dict)


def _wrapped(path: Path, value: Any) -> Any:
    for step in reversed(path):
        value = {step: value} if step else [value]
    return value


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _gap(text: str, place: int) -> int:
    match = _GAP.match(text, place)
    return match.end() if match else place


def _value(text: str, start: int, depth: int) -> Node:
    if depth > _MAX_DEPTH:
        raise JsonShapeError(start, _TOO_DEEP)
    if text[start : start + 1] in _CLOSING:
        return _container(text, start, depth)
    match = _STRING.match(text, start) or _SCALAR.match(text, start)
    if match is None:
        raise JsonShapeError(start, _NO_VALUE)
    return Node(start, match.end(), json.loads(match[0]))


def _container(text: str, start: int, depth: int) -> Node:
    closing = _CLOSING[text[start]]
    node = Node(start)
    after = start + 1
    while True:
        place = _gap(text, after)
        if text[place : place + 1] == closing:
            break
        if node.children and node.children[-1].comma < 0:
            raise JsonShapeError(place, _NOT_ENDED, closing)
        child = _child(text, after, place, depth, keyed=closing == "}")
        comma = _gap(text, child.node.end)
        if text[comma : comma + 1] == ",":
            child.comma = comma
        after = child.comma + 1 or child.node.end
        node.children.append(child)
    node.end = place + 1
    children = node.children
    node.value = (
        {child.key: child.node.value for child in children}
        if closing == "}"
        else [child.node.value for child in children]
    )
    return node


def _child(text: str, after: int, place: int, depth: int, *, keyed: bool) -> Child:
    if not keyed:
        return Child(None, after, place, _value(text, place, depth + 1))
    key = _STRING.match(text, place)
    colon = _gap(text, key.end()) if key else place
    if key is None or text[colon : colon + 1] != ":":
        raise JsonShapeError(place, _NO_MEMBER)
    node = _value(text, _gap(text, colon + 1), depth + 1)
    return Child(json.loads(key[0]), after, place, node)


def _put(text: str, node: Node, key: str, value: Any) -> str:
    """Return a text with a first child more in a container."""
    inside = text[node.start + 1 : node.children[0].start if node.children else node.end]
    whole = text.strip()
    lines = "\n" in inside or (not node.children and ("\n" in whole or whole == "{}"))
    if not lines:  # a container on one line stays on it
        colon, comma = (": ", ", ") if '": ' in text else (":", ",")
        made = json.dumps(value, ensure_ascii=False, separators=(comma, colon))
        space = inside[: len(inside) - len(inside.lstrip(" \t"))] if node.children else ""
        made = f"{space}{json.dumps(key)}{colon}{made}" if key else f"{space}{made}"
        made += "," if node.children else ""
    else:
        newline = _newline(text)
        outer = _indent(text, node.start)
        inner = _indent(text, node.children[0].start) if node.children else outer + _unit(text)
        unit = inner.removeprefix(outer) or _unit(text)
        made = json.dumps(value, indent=unit, ensure_ascii=False)
        made = f"{json.dumps(key)}: {made}" if key else made
        made = f"\n{made}".replace("\n", newline + inner)
        made += "," if node.children else newline + outer
    return text[: node.start + 1] + made + text[node.start + 1 :]


def _cut(text: str, parent: Node, child: Child) -> str:
    """Return a text without a child: what ``_put`` adds, or what is left of it."""
    end, gap = child.node.end, text[child.after : child.start]
    # Where a comment stands between, it stays, with the end of its line.
    before = child.start - len(gap) + len(gap.rstrip(_SPACE))
    if before > child.after:
        before = child.start - len(gap) + len(gap.rstrip(" \t"))
    siblings = parent.children
    if len(siblings) == 1:
        line = _newline(text) + _indent(text, parent.start)
        rest = text[child.comma + 1 if child.comma >= 0 else end :]
        return text[:before] + (rest.removeprefix(line) if child.after == before else rest)
    if child.comma >= 0:
        return text[:before] + text[end : child.comma].lstrip(_SPACE) + text[child.comma + 1 :]
    comma = siblings[siblings.index(child) - 1].comma
    return text[:comma] + text[comma + 1 : before] + text[end:]


def _indent(text: str, place: int) -> str:
    """Return the space that begins the line of a place, as far as the place."""
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    match = re.search(r"\n([ \t]+)[^ \t\r\n]", text)
    return match[1] if match else "  "
