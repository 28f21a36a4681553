"""The project's files as syntax trees, for the tests of the house rules."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One Python file: its path from the root, its text and its tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def lines(self) -> list[str]:
        """The lines of the file."""
        return self.text.splitlines()


@cache
def sources(folder: str) -> tuple[Source, ...]:
    """Return every Python file below a folder of the project."""
    found = []
    for file in sorted((ROOT / folder).rglob("*.py")):
        text = file.read_text()
        found.append(Source(str(file.relative_to(ROOT)), text, ast.parse(text)))
    return tuple(found)


def functions(tree: ast.AST) -> Iterator[Function]:
    """Yield every function and method of a tree."""
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node


def imports(tree: ast.AST) -> Iterator[str]:
    """Yield the dotted name of every module that a tree imports, wherever it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def body_lines(function: Function) -> int:
    """Return how many lines a function has without its docstring."""
    docstring = ast.get_docstring(function, clean=False)
    total = (function.end_lineno or function.lineno) - function.lineno + 1
    if docstring is None:
        return total
    first = function.body[0]
    return total - ((first.end_lineno or first.lineno) - first.lineno + 1)
