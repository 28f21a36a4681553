"""Compute what tokens cost, from a table of models in US dollars per million tokens. Pure.

Rules of this file
- The longest name in the table that a model's name equals, or continues after ``-``, ``@``, ``:``
  or ``[``, gives its price: a dated version costs what its model does.
- A model that no name fits costs the highest price of each column, so that an unknown name cannot
  exceed a cap. A user with a model at home writes a line of zeros.
- The user's lines come before the defaults in ``prices.txt``, which hold the dearer price where a
  price depends on the length of a prompt.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import astuple

from memd.base.package_files import read_text

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
    columns = zip(*map(astuple, defaults.values()), strict=True)
    return result or Price(*map(max, columns))


def problem(table: str) -> str:
    """Return what is wrong with the user's lines, in words that follow the option's name."""
    for number, line in enumerate(table.splitlines(), 1):
        words = _words(line)
        if words and _price(words) is None:
            return f"must hold lines of a model's name and four prices; line {number} does not"
    return ""


def _longest_match(model: str, table: Mapping[str, Price]) -> Price | None:
    """Return the price of the longest name that fits a model, ``None`` where none does."""
    fitting = [
        name
        for name in table
        if model == name or (model.startswith(name) and model[len(name)] in "-@:[")
    ]
    return table[max(fitting, key=len)] if fitting else None


@cache
def _default_prices() -> Mapping[str, Price]:
    """Return the prices that come with memd, by name."""
    return _parse_table(read_text("base/prices.txt"))


@cache
def _parse_table(table: str) -> Mapping[str, Price]:
    """Return the prices in a table's text, by name; lines that hold none are left out."""
    prices: dict[str, Price] = {}
    for words in map(_words, table.splitlines()):
        entry = _price(words)
        if entry is not None:
            prices[words[0]] = entry
    return MappingProxyType(prices)


def _words(line: str) -> list[str]:
    """Return the words of a line without its comment."""
    return line.partition("#")[0].split()


def _price(words: Sequence[str]) -> Price | None:
    """Return the price in the words of a line, ``None`` if it has none."""
    if len(words) != _COLUMNS:
        return None
    try:
        numbers = [float(word) for word in words[1:]]
    except ValueError:
        return None
    return Price(*numbers) if all(0 <= each <= _DEAREST_DOLLARS for each in numbers) else None
