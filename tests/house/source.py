"""The project's files as syntax trees, for the tests of the house rules."""

import ast
import gc
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
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

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree, which is walked once for all rules."""
        return tuple(ast.walk(self.tree))

    @property
    def functions(self) -> Iterator[Function]:
        """Every function and method."""
        return (node for node in self.nodes if isinstance(node, Function))

    @property
    def classes(self) -> Iterator[ast.ClassDef]:
        """Every class."""
        return (node for node in self.nodes if isinstance(node, ast.ClassDef))

    @property
    def imports(self) -> Iterator[str]:
        """The dotted name of every module that the file imports, wherever it does."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module

    def imports_in(self, modules: Collection[str]) -> Iterator[str]:
        """Yield the dotted name of each of these modules that the file imports."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in modules)
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = [f"{node.module}.{alias.name}" for alias in node.names]
                yield from (name for name in inner if name in modules)
                if node.module in modules and not all(name in modules for name in inner):
                    yield node.module


@cache
def sources(folder: str) -> tuple[Source, ...]:
    """Return every Python file below a folder of the project."""
    gc.disable()  # a million nodes that all stay: collecting among them takes most of the time
    try:
        results = []
        for file in sorted((ROOT / folder).rglob("*.py")):
            text = file.read_text()
            source = Source(str(file.relative_to(ROOT)), text, ast.parse(text))
            assert source.nodes
            results.append(source)
        gc.freeze()
    finally:
        gc.enable()
    return tuple(results)


class Files:
    """The Python files below a folder; they are read at the first test that looks at them."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __iter__(self) -> Iterator[Source]:
        return iter(sources(self._folder))


def body_lines(function: Function) -> int:
    """Return how many lines a function has without its docstring."""
    docstring = ast.get_docstring(function, clean=False)
    total = (function.end_lineno or function.lineno) - function.lineno + 1
    if docstring is None:
        return total
    first = function.body[0]
    return total - ((first.end_lineno or first.lineno) - first.lineno + 1)
