"""Declare options, and apply a layer of parsed TOML to them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from typing import Any

from memd.base import gone

Value = bool | int | float | str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """One source of options: where it comes from, in words, and its parsed TOML."""

    source: str
    options: Mapping[str, Any]


class OneOf:
    """A check that a value is one of some names; the ``problem`` function of an option."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def __call__(self, value: Any) -> str:
        """Return a problem in words, "" if the value is one of the names."""
        return "" if value in self.names else f"must be one of {', '.join(self.names)}"


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
    """Declare one option: its default, its documentation, and its bounds if it is a number.

    A ``secret`` option is left out of ``repr``. With ``booleans`` a text may also be written as the
    TOML value true or false. ``problem`` is a function that returns in words what is wrong with a
    value, or "".
    """
    metadata = {"doc": doc, "low": low, "high": high, "problem": problem, "booleans": booleans}
    return field(default=default, metadata=metadata, repr=not secret)


def numbers(doc: str, low: int) -> Any:
    """Declare a table of whole numbers from ``low`` on, with keys that the user chooses."""
    return _table(doc=doc, low=low)


def names(doc: str, *allowed: str) -> Any:
    """Declare a table whose values are ``allowed`` names, with keys that the user chooses."""
    return _table(doc=doc, allowed=allowed)


def texts(doc: str, *keys: str) -> Any:
    """Declare a table of texts with some of the given keys."""
    return _table(doc=doc, keys=keys)


def _table(**metadata: Any) -> Any:
    """Declare an option that is a table."""
    metadata = {"low": None, "high": None} | metadata
    return field(default_factory=lambda: {}, metadata=metadata)  # noqa: PIE807 - a class is a table


def applied(
    current: Any, options: Mapping[str, Any], source: str, prefix: str, problems: list[str]
) -> Any:
    """Return ``current`` with the options of one layer applied.

    An unknown or invalid option is skipped, and a sentence on it is added to ``problems``. Names in
    these sentences begin with ``prefix``.
    """
    known: dict[str, Any] = {item.name: item for item in fields(current)}
    for key, value in options.items():
        name = f"{prefix}{key}"
        item = known.get(key)
        if item is None:
            problems.append(f"{source}: {_unknown(name)}")
            continue
        if not _is_section(item):
            checked_value, problem = _check(item, value)
            if problem:
                problems.append(f"{source}: {name} {problem}; its default stands")
            else:
                current = replace(current, **{key: checked_value})
        elif isinstance(value, Mapping):
            section = applied(getattr(current, key), value, source, f"{name}.", problems)
            current = replace(current, **{key: section})
        else:
            problems.append(f"{source}: {name} is a table of options, not a value")
    return current


def _unknown(name: str) -> str:
    """Return what is to be said of an option that does not exist."""
    if name in gone.SETTINGS:
        return f"{name} is gone, and ignored: {gone.SETTINGS[name]}"
    return f"{name} is not an option of memd; it is ignored"


def _is_section(item: "Field[Any]") -> bool:
    """Return whether a field is a section: a table of options, declared by a class of its own."""
    factory: Any = item.default_factory  # the class; MISSING or a function for an option
    return isinstance(factory, type)


def options_of(cls: type, prefix: str = "") -> Iterator[tuple[str, Any, str]]:
    """Yield each option's dotted name, default and documentation, in the order of declaration."""
    for item in fields(cls):
        if _is_section(item):
            section: Any = item.default_factory
            yield from options_of(section, f"{prefix}{item.name}.")
        else:
            default = {} if item.default is MISSING else item.default
            yield f"{prefix}{item.name}", default, item.metadata["doc"]


_TYPES_IN_WORDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    tuple: "a list of texts",
}


def _check(item: "Field[Any]", value: Any) -> tuple[Any, str]:
    """Return the checked value of an option, and a problem in words, "" if there is none."""
    low, high = item.metadata["low"], item.metadata["high"]
    if item.default is MISSING:  # the option is a table; its default is made by a function
        return value, _table_problem(item, value)
    wanted = type(item.default)
    # What TOML may write in another type. A bool is no int here, so types are compared exactly.
    if wanted is float and type(value) is int:
        value = float(value)
    elif item.metadata["booleans"] and type(value) is bool:
        value = str(value).lower()
    elif wanted is tuple and type(value) is list and all(type(part) is str for part in value):
        value = tuple(value)
    if type(value) is not wanted:
        return None, f"must be {_TYPES_IN_WORDS[wanted]}"
    if low is not None and not low <= value <= high:
        return None, f"must be between {low:g} and {high:g}"
    check = item.metadata["problem"]
    return value, check(value) if check else ""


def _table_problem(item: "Field[Any]", value: Any) -> str:
    """Return what is wrong with the value of an option that is a table, "" if nothing is."""
    allowed, low = item.metadata.get("allowed"), item.metadata["low"]
    values = value.values() if isinstance(value, Mapping) else [None]  # None never fits
    keys = item.metadata.get("keys")
    if keys:
        fits = all(type(text) is str for text in values) and set(value) <= set(keys)
        return "" if fits else f"must be a table of texts with the keys {', '.join(keys)}"
    if allowed:
        fits = all(name in allowed for name in values)
        return "" if fits else f"must be a table of {', '.join(allowed)}"
    fits = all(type(number) is int and number >= low for number in values)
    return "" if fits else f"must be a table of whole numbers from {low} on"
