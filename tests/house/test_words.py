"""Names are the field's (docs/architecture.md: Words)."""

import ast
import re

from tests.house.source import Files

PROGRAM = Files("memd")
# Words of our own, and what came in their place is in docs/architecture.md.
PRIVATE_WORDS = {
    "asked",
    "choice",
    "courtesy",
    "findings",
    "found",
    "kept",
    "late",
    "look",
    "looks",
    "manners",
    "marks",
    "minding",
    "morning",
    "offer",
    "outcome",
    "patience",
    "polite",
    "settle",
    "shade",
    "shadow",
    "shelf",
    "stance",
    "standing",
    "standstill",
    "telling",
    "told",
    "verdict",
    "vouching",
    "wish",
}
# What others know by these names: members of results and parameters.
KNOWN_BY_NAME = {"memd/recall/explain.py:kept", "memd/review/inbox.py:choice"}


def test_names_are_the_field_s_words() -> None:
    """No identifier is one of the private words, and no class name holds one."""
    wrong = [
        f"{s.path}:{name}"
        for s in PROGRAM
        for node in s.nodes
        for name in _names(node)
        if PRIVATE_WORDS.intersection(_parts(name)) and f"{s.path}:{name}" not in KNOWN_BY_NAME
    ]
    assert wrong == []


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return [node.attr]
    return []


def _parts(name: str) -> list[str]:
    """Return a whole identifier, or the words of a class name; "not found" is the field's."""
    if re.match("_*[A-Z][a-z]", name):
        return [part.lower() for part in re.findall("[A-Z][a-z]+", name.replace("NotFound", ""))]
    return [name.strip("_").lower()]
