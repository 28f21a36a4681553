"""Insert and remove members of a JSON file with comments, without touching the rest of the text.

Rules of this file
- The text is never written as a whole: ``insert`` adds a member right after an opening bracket,
  ``remove`` cuts one out, so comments, order, indentation and line ends stay as they are.
- ``remove`` is the inverse of ``insert``: both together give back the same text
  (``test_in_and_out_gives_the_same_bytes``). Therefore a member in an empty container comes with
  the line break before the closing bracket, and one in another container with its comma.
- Comments and trailing commas are accepted everywhere. Any other text that is not JSON raises
  JsonShapeError, and so does a duplicate key on the way to a place.
"""

import json
import re
from collections.abc import Container, Iterator
from functools import lru_cache
from typing import Any

Path = tuple[str | int, ...]  # keys of objects and indices of lists, from the root on

_WHITE_SPACE = " \t\r\n"
# White space and comments between two tokens.
_GAP = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"')
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_CLOSING = {"{": "}", "[": "]"}
_MAX_DEPTH = 100  # containers in containers; the parser is recursive
_DUPLICATE_KEY = "the key {} is there twice"
_ALREADY_THERE = "{} is there already"
_NO_OBJECT = "{} is no object"
_NO_LIST = "{} is no list"
_NO_COMMA = "no comma and no {} stands"
_NO_MEMBER = "no key and colon stand"
_NO_VALUE = "no value stands"
_TOO_DEEP = "it is nested too deep"
_TEXT_BEHIND_END = "something stands behind its end"


class JsonShapeError(ValueError):
    """A text is not JSON, or a value on the way to the place is not a container."""

    def __init__(self, place: int, cause: str, name: str | int = "") -> None:
        super().__init__(f"{cause.format(name)} (at character {place + 1})")


class Node:
    """A value with the place of its first character and the one after its last."""

    def __init__(self, start: int, end: int = 0, value: Any = None) -> None:
        self.start = start
        self.end = end
        self.value = value
        self.children: list[Child] = []

    def child(self, step: str | int) -> "Child | None":
        """Return the child of a key or at an index. Raise JsonShapeError for a duplicate key."""
        if isinstance(step, int):
            return self.children[step] if step < len(self.children) else None
        named = [child for child in self.children if child.key == step]
        # Programs disagree about which of two equal keys counts.
        if len(named) > 1:
            raise JsonShapeError(named[1].start, _DUPLICATE_KEY, step)
        return named[0] if named else None


class Child:
    """A member of an object or an item of a list, with its place in the text.

    ``start`` is where its key, or the item, begins; ``after`` is the end of the comma or bracket
    before it; ``comma`` is the place of the comma after it, -1 if there is none.
    """

    def __init__(self, key: str | None, after: int, start: int, node: Node) -> None:
        self.key = key
        self.after = after
        self.start = start
        self.node = node
        self.comma = -1


@lru_cache(maxsize=4)
def parse(text: str) -> Node | None:
    """Return the root value of a text, ``None`` if it holds only white space and comments."""
    start = _skip_gap(text, 0)
    if start == len(text):
        return None
    root = _parse_value(text, start, 0)
    if _skip_gap(text, root.end) != len(text):
        raise JsonShapeError(root.end, _TEXT_BEHIND_END)
    return root


def find(root: Node | None, path: Path) -> Node | None:
    """Return the value at a path of keys and indices, ``None`` if there is none."""
    node = root
    for step in path:
        child = node.child(step) if node and _is_container_for(node, step) else None
        node = child.node if child else None
    return node


def insert(text: str, path: Path, value: Any) -> str:
    """Return the text with a new member; the path's last step is its key, "" for a list item.

    Missing objects on the way are created. Raise JsonShapeError if another value is in the way.
    """
    node = parse(text)
    if node is None:
        root_text = json.dumps(_wrap_in_containers(path, value), indent=2, ensure_ascii=False)
        newline = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{newline}{root_text}\n".replace("\n", _newline(text))
    for depth, step in enumerate(path):
        adds_item = step == ""
        if not _is_container_for(node, 0 if adds_item else step):
            name = ".".join(map(str, path[:depth])) or "it"
            raise JsonShapeError(node.start, _NO_LIST if adds_item else _NO_OBJECT, name)
        child = node.child(step) if step else None
        if child is None:
            new_child = _wrap_in_containers(path[depth + 1 :], value)
            return _insert_child(text, node, str(step), new_child)
        node = child.node
    raise JsonShapeError(node.start, _ALREADY_THERE, ".".join(map(str, path)))


def remove(text: str, path: Path, lasting: Container[Path]) -> str:
    """Return the text without the value at a path and without containers emptied by that.

    The root and the containers at the paths in ``lasting`` remain even if they are empty.
    """
    root = parse(text)
    steps = path if find(root, path) else ()
    # Go up while the value is the only child: its container is removed as well.
    while len(steps) > 1 and steps[:-1] not in lasting:
        parent = find(root, steps[:-1])
        if parent is None or len(parent.children) > 1:
            break
        steps = steps[:-1]
    parent = find(root, steps[:-1])
    child = parent.child(steps[-1]) if parent and steps else None
    if parent is None or child is None:
        return text
    return _cut_child(text, parent, child)


def empty_containers(root: Node | None, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of all objects and lists without children."""
    if root and isinstance(root.value, dict | list):
        if not root.children:
            yield path
        for index, child in enumerate(root.children):
            yield from empty_containers(child.node, (*path, child.key or index))


def _is_container_for(node: Node, step: str | int) -> bool:
    """Return whether a node is the right container: a list for an index, an object for a key."""
    return isinstance(node.value, list if isinstance(step, int) else dict)


def _wrap_in_containers(path: Path, value: Any) -> Any:
    """Return a value inside the objects and lists that a path names."""
    for step in reversed(path):
        value = {step: value} if step else [value]
    return value


def _newline(text: str) -> str:
    """Return the line end that a text has."""
    return "\r\n" if "\r\n" in text else "\n"


def _skip_gap(text: str, place: int) -> int:
    """Return the place after the white space and comments that begin at a place."""
    match = _GAP.match(text, place)
    return match.end() if match else place


def _parse_value(text: str, start: int, depth: int) -> Node:
    """Parse the value at a place; ``depth`` counts its containers."""
    if depth > _MAX_DEPTH:
        raise JsonShapeError(start, _TOO_DEEP)
    if text[start : start + 1] in _CLOSING:
        return _parse_container(text, start, depth)
    match = _STRING.match(text, start) or _SCALAR.match(text, start)
    if match is None:
        raise JsonShapeError(start, _NO_VALUE)
    return Node(start, match.end(), json.loads(match[0]))


def _parse_container(text: str, start: int, depth: int) -> Node:
    """Parse the object or list at a place with all its children."""
    closing = _CLOSING[text[start]]
    node = Node(start)
    after = start + 1
    while True:
        place = _skip_gap(text, after)
        if text[place : place + 1] == closing:
            break
        lacks_comma = bool(node.children) and node.children[-1].comma < 0
        if lacks_comma:
            raise JsonShapeError(place, _NO_COMMA, closing)
        child = _parse_child(text, after, place, depth, keyed=closing == "}")
        comma = _skip_gap(text, child.node.end)
        if text[comma : comma + 1] == ",":
            child.comma = comma
        after = child.node.end if child.comma < 0 else child.comma + 1
        node.children.append(child)
    node.end = place + 1
    if closing == "}":
        node.value = {child.key: child.node.value for child in node.children}
    else:
        node.value = [child.node.value for child in node.children]
    return node


def _parse_child(text: str, after: int, place: int, depth: int, *, keyed: bool) -> Child:
    """Parse one child that follows the comma or bracket before ``after``.

    ``place`` is where it begins; ``keyed`` says that it is a member with a key.
    """
    if not keyed:
        return Child(None, after, place, _parse_value(text, place, depth + 1))
    key = _STRING.match(text, place)
    colon = _skip_gap(text, key.end()) if key else place
    if key is None or text[colon : colon + 1] != ":":
        raise JsonShapeError(place, _NO_MEMBER)
    node = _parse_value(text, _skip_gap(text, colon + 1), depth + 1)
    return Child(json.loads(key[0]), after, place, node)


def _insert_child(text: str, node: Node, key: str, value: Any) -> str:
    """Return the text with a new first child in a container; ``key`` is "" in a list."""
    before, after = text[: node.start + 1], text[node.start + 1 :]
    if _is_on_one_line(text, node):
        return f"{before}{_member_on_line(text, node, key, value)}{after}"
    return f"{before}{_member_on_own_line(text, node, key, value)}{after}"


def _is_on_one_line(text: str, node: Node) -> bool:
    """Return whether a container's children stand on the line of its opening bracket.

    An empty container counts as such if the whole text has one line and is more than "{}".
    """
    if node.children:
        return "\n" not in text[node.start : node.children[0].start]
    stripped = text.strip()
    return "\n" not in stripped and stripped != "{}"


def _member_on_line(text: str, node: Node, key: str, value: Any) -> str:
    """Return a new member, and its comma, for a container whose children stand on one line."""
    colon, comma = (": ", ", ") if '": ' in text else (":", ",")
    member = json.dumps(value, ensure_ascii=False, separators=(comma, colon))
    if key:
        member = f"{json.dumps(key)}{colon}{member}"
    if not node.children:
        return member
    gap = text[node.start + 1 : node.children[0].start]
    space = gap[: len(gap) - len(gap.lstrip(" \t"))]  # as before the child that was the first
    return f"{space}{member},"


def _member_on_own_line(text: str, node: Node, key: str, value: Any) -> str:
    """Return a new member with its line break and comma, indented as the text is."""
    newline = _newline(text)
    outer = _indentation(text, node.start)
    if node.children:
        inner = _indentation(text, node.children[0].start)
    else:
        inner = outer + _indent_unit(text)
    unit = inner.removeprefix(outer) or _indent_unit(text)
    member = json.dumps(value, indent=unit, ensure_ascii=False)
    if key:
        member = f"{json.dumps(key)}: {member}"
    member = f"\n{member}".replace("\n", newline + inner)
    return member + ("," if node.children else newline + outer)


def _cut_child(text: str, parent: Node, child: Child) -> str:
    """Return the text without a child, the inverse of ``_insert_child``."""
    end, gap = child.node.end, text[child.after : child.start]
    start = child.after + len(gap.rstrip(_WHITE_SPACE))  # of the text that is cut out
    if start > child.after:  # a comment before the child stays, with the line break that ends it
        start = child.after + len(gap.rstrip(" \t"))
    siblings = parent.children
    if len(siblings) == 1:
        remainder = text[child.comma + 1 if child.comma >= 0 else end :]
        if start == child.after:  # then the line break before the closing bracket goes as well
            remainder = remainder.removeprefix(_newline(text) + _indentation(text, parent.start))
        return text[:start] + remainder
    if child.comma >= 0:
        before_comma = text[end : child.comma].lstrip(_WHITE_SPACE)
        return text[:start] + before_comma + text[child.comma + 1 :]
    comma = siblings[siblings.index(child) - 1].comma  # of the child before the last one
    return text[:comma] + text[comma + 1 : start] + text[end:]


def _indentation(text: str, place: int) -> str:
    """Return the white space that begins the line of a place, up to the place at most."""
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_unit(text: str) -> str:
    """Return the first indentation in the text, two spaces if no line is indented."""
    match = re.search(r"\n([ \t]+)[^ \t\r\n]", text)
    return match[1] if match else "  "
