"""Compute what tokens cost, from a table of models in US dollars per million tokens. Pure.

Rules of this file
- The longest name in the table that a model's name equals, or continues after ``-``, ``@``, ``:``
  or ``[``, gives its price: a dated version costs what its model does.
- A model that no name fits costs the highest price of each column, so that an unknown name cannot
  exceed a cap. A user with a model at home writes a line of zeros.
- The user's lines come before the defaults in ``prices.txt``, which hold the dearer price where a
  price depends on the length of a prompt.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from msgspec import Struct

_COLUMNS = 5  # a model's name and four prices
_MILLION = 1_000_000
_DEAREST_DOLLARS = 100_000.0  # for a million tokens; a higher price is taken for a typing error


class Price(Struct, frozen=True):
    """US dollars per million tokens of each sort."""

    input: float
    output: float
    cache_read: float
    cache_created: float

    def money(self, read: int, written: int, cache_read: int, cache_created: int) -> float:
        """Return US dollars for so many tokens of each sort."""
        return (
            self.input * read
            + self.output * written
            + self.cache_read * cache_read
            + self.cache_created * cache_created
        ) / _MILLION


def price(model: str, table: str = "") -> Price:
    """Return a model's price from the user's lines, else from the defaults, else the dearest."""
    users, defaults = _parse_table(table), _default_prices()
    result = _longest_match(model, users) or _longest_match(model, defaults)
    return result or _dearest(defaults)


def problem(table: str) -> str:
    """Return what is wrong with the user's lines, in words that follow the option's name."""
    for number, line in enumerate(table.splitlines(), 1):
        if _without_comment(line) and _entry(line) is None:
            return f"must hold lines of a model's name and four prices; line {number} does not"
    return ""


def _longest_match(model: str, table: Mapping[str, Price]) -> Price | None:
    """Return the price of the longest name that fits a model, ``None`` where none does."""
    fitting = [name for name in table if _names_model(model, name)]
    return table[max(fitting, key=len)] if fitting else None


def _names_model(model: str, name: str) -> bool:
    """Return whether a price's name is a model's name, or its beginning up to a version."""
    return model == name or (model.startswith(name) and model[len(name)] in "-@:[")


def _dearest(table: Mapping[str, Price]) -> Price:
    """Return the highest price of each column."""
    prices = table.values()
    return Price(
        input=max(item.input for item in prices),
        output=max(item.output for item in prices),
        cache_read=max(item.cache_read for item in prices),
        cache_created=max(item.cache_created for item in prices),
    )


@cache
def _default_prices() -> Mapping[str, Price]:
    """Return the prices that come with memd, by name."""
    return _parse_table(files("memd.base").joinpath("prices.txt").read_text("utf-8"))


@cache
def _parse_table(table: str) -> Mapping[str, Price]:
    """Return the prices in a table's text, by name."""
    return MappingProxyType(dict(_prices_in(table)))


def _prices_in(table: str) -> Iterator[tuple[str, Price]]:
    """Yield the name and price of each line of a table that has one."""
    for line in table.splitlines():
        entry = _entry(line) if _without_comment(line) else None
        if entry is not None:
            yield entry


def _without_comment(line: str) -> str:
    """Return a line without its comment and outer spaces."""
    return line.partition("#")[0].strip()


def _entry(line: str) -> tuple[str, Price] | None:
    """Return the model and the price of a line, ``None`` if it is not one."""
    words = _without_comment(line).split()
    if len(words) != _COLUMNS:
        return None
    try:
        numbers = [float(word) for word in words[1:]]
    except ValueError:
        return None
    if not all(0 <= number <= _DEAREST_DOLLARS for number in numbers):
        return None
    return words[0], Price(*numbers)
