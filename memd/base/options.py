"""Declare options, and apply a layer of parsed TOML to them."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

from memd.base import gone


class Layer(Struct, frozen=True):
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


class Setting(Struct, frozen=True):
    """What is said of an option beside its type and default: ``Annotated[int, Setting("…")] = 5``.

    ``doc`` is its documentation; ``low`` and ``high`` are the bounds of a number. With ``booleans``
    a text may also be written as the TOML value true or false. ``problem`` is a function that
    returns in words what is wrong with a value, or "". A table has keys that the user chooses, or
    some of ``keys``, and any values, or ``allowed`` names, or whole numbers from ``low`` on.
    """

    doc: str
    low: float | None = None
    high: float | None = None
    booleans: bool = False
    problem: Callable[[Any], str] | None = None
    is_table: bool = False
    allowed: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


def numbers(doc: str, low: int) -> Setting:
    """Return a table of whole numbers from ``low`` on, with keys that the user chooses."""
    return Setting(doc, low, is_table=True)


def names(doc: str, *allowed: str) -> Setting:
    """Return a table whose values are ``allowed`` names, with keys that the user chooses."""
    return Setting(doc, is_table=True, allowed=allowed)


def texts(doc: str, *keys: str) -> Setting:
    """Return a table of texts with some of the given keys."""
    return Setting(doc, is_table=True, keys=keys)


@cache
def _declared(cls: Any) -> Mapping[str, Any]:
    """Return the options of a class by name; a section, which has options itself, is its class."""
    hints = get_type_hints(cls, include_extras=True)
    return {name: getattr(hint, "__metadata__", (hint,))[0] for name, hint in hints.items()}


def applied(
    current: Any, options: Mapping[str, Any], source: str, prefix: str, problems: list[str]
) -> Any:
    """Return ``current`` with the options of one layer applied.

    An unknown or invalid option is skipped, and a sentence on it is added to ``problems``. Names in
    these sentences begin with ``prefix``.
    """
    cls: Any = type(current)
    known, defaults = _declared(cls), cls()
    for key, value in options.items():
        name = f"{prefix}{key}"
        item = known.get(key)
        if item is None:
            problems.append(f"{source}: {_unknown(name)}")
            continue
        if isinstance(item, Setting):
            checked_value, problem = _check(item, type(getattr(defaults, key)), value)
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
        return f"{name} no longer exists: {gone.SETTINGS[name]}"
    return f"{name} is not an option of memd; it is ignored"


def options_of(cls: Any, prefix: str = "") -> Iterator[tuple[str, Any, str]]:
    """Yield each option's dotted name, default and documentation, in the order of declaration."""
    defaults = cls()
    for name, item in _declared(cls).items():
        if isinstance(item, Setting):
            yield f"{prefix}{name}", getattr(defaults, name), item.doc
        else:
            yield from options_of(item, f"{prefix}{name}.")


_TYPES_IN_WORDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    tuple: "a list of texts",
}


def _check(option: Setting, wanted: type[Any], value: Any) -> tuple[Any, str]:
    """Return the checked value of an option, and a problem in words, "" if there is none."""
    if option.is_table:
        return value, _table_problem(option, value)
    low, high = option.low, option.high
    # What TOML may write in another type. A bool is no int here, so types are compared exactly.
    if wanted is float and type(value) is int:
        value = float(value)
    elif option.booleans and type(value) is bool:
        value = str(value).lower()
    elif wanted is tuple and type(value) is list and all(type(part) is str for part in value):
        value = tuple(value)
    if type(value) is not wanted:
        return None, f"must be {_TYPES_IN_WORDS[wanted]}"
    if low is not None and high is not None and not low <= value <= high:
        return None, f"must be between {low:g} and {high:g}"
    return value, option.problem(value) if option.problem else ""


def _table_problem(option: Setting, value: Any) -> str:
    """Return what is wrong with the value of an option that is a table, "" if nothing is."""
    values = value.values() if isinstance(value, Mapping) else [None]  # None never fits
    if option.keys:
        fits = all(type(text) is str for text in values) and set(value) <= set(option.keys)
        return "" if fits else f"must be a table of texts with the keys {', '.join(option.keys)}"
    if option.allowed:
        fits = all(name in option.allowed for name in values)
        return "" if fits else f"must be a table of {', '.join(option.allowed)}"
    low = option.low or 0
    fits = all(type(number) is int and number >= low for number in values)
    return "" if fits else f"must be a table of whole numbers from {low} on"
