"""How an option is declared, and how a layer of parsed TOML is applied to declared options."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from typing import Any

Value = bool | int | float | str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """One source of options: where it comes from, in words, and its parsed TOML."""

    source: str
    options: Mapping[str, Any]


def one_of(*names: str) -> Callable[[Any], str]:
    """Return what says of a value that it is none of these names."""
    return lambda value: "" if value in names else f"must be one of {', '.join(names)}"


def option(
    default: Value,
    doc: str,
    low: float | None = None,
    high: float | None = None,
    *,
    secret: bool = False,
    booleans: bool = False,
    problem: Callable[[Any], str] | None = None,
) -> Any:
    """Declare one option: its default, what it does, and its bounds when it is a number.

    A secret one is in no ``repr``. A text with ``booleans`` may be written as true or false, too.
    ``problem`` says in words what is wrong with a value.
    """
    metadata = {"doc": doc, "low": low, "high": high, "problem": problem, "booleans": booleans}
    return field(default=default, metadata=metadata, repr=not secret)


def numbers(doc: str, low: int) -> Any:
    """Declare a table of whole numbers by names of the user's choice; none by default."""
    metadata = {"doc": doc, "low": low, "high": None}
    return field(default_factory=lambda: {}, metadata=metadata)  # noqa: PIE807 - a class is a table


def names(doc: str, *allowed: str) -> Any:
    """Declare a table of some names by names of the user's choice; none by default."""
    metadata = {"doc": doc, "low": None, "high": None, "allowed": allowed}
    return field(default_factory=lambda: {}, metadata=metadata)  # noqa: PIE807 - a class is a table


def applied(
    current: Any, options: Mapping[str, Any], source: str, prefix: str, problems: list[str]
) -> Any:
    """Return options with those of one layer in place; add a sentence for each bad one."""
    known: dict[str, Any] = {item.name: item for item in fields(current)}
    for key, value in options.items():
        name = f"{prefix}{key}"
        item = known.get(key)
        if item is None:
            problems.append(f"{source}: {name} is not an option of memd; it is ignored")
        elif isinstance(item.default_factory, type):
            if isinstance(value, Mapping):
                part = applied(getattr(current, key), value, source, f"{name}.", problems)
                current = replace(current, **{key: part})
            else:
                problems.append(f"{source}: {name} is a table of options, not a value")
        else:
            checked, problem = _check(item, value)
            if problem:
                problems.append(f"{source}: {name} {problem}; its default stands")
            else:
                current = replace(current, **{key: checked})
    return current


_WORDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    tuple: "a list of texts",
}


def _check(item: "Field[Any]", value: Any) -> tuple[Any, str]:
    """Return the value of an option, and what is wrong with it, "" if nothing is."""
    low, high = item.metadata["low"], item.metadata["high"]
    if item.default is MISSING:
        table = value if isinstance(value, Mapping) else {"": None}
        if allowed := item.metadata.get("allowed"):
            wrong = [key for key, name in table.items() if name not in allowed]
            return table, f"must be a table of {', '.join(allowed)}" if wrong else ""
        bad = [key for key, number in table.items() if type(number) is not int or number < low]
        return table, f"must be a table of whole numbers from {low} on" if bad else ""
    wanted = type(item.default)
    if wanted is float and type(value) is int:
        value = float(value)
    if item.metadata["booleans"] and type(value) is bool:
        value = str(value).lower()
    if wanted is tuple and type(value) is list and all(type(part) is str for part in value):
        value = tuple(value)
    if type(value) is not wanted:
        return None, f"must be {_WORDS[wanted]}"
    if low is not None and not low <= value <= high:
        return None, f"must be between {low:g} and {high:g}"
    problem = item.metadata["problem"]
    return value, problem(value) if problem else ""
