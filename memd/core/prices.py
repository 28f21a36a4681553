"""What tokens cost: a table of models, in US dollars per million tokens. Pure.

Rules of this file
- The longest name in the table that a model's name equals, or continues after ``-``, ``@``, ``:``
  or ``[``, gives its price: a dated version costs what its model does.
- A model without a fitting name costs, in each column, what the dearest does: a cap must not be
  passed because a name was new. Whoever runs a model at home writes a line of zeros.
- The user's lines come before the defaults in ``prices.txt``, which hold the dearer price where a
  price depends on the length of a prompt.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

_COLUMNS = 5
_MILLION = 1_000_000
_DEAREST_DOLLARS = 100_000.0  # a million tokens that cost more are a slip of the pen


@dataclass(frozen=True, slots=True)
class Price:
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
    """Return what a model costs by the user's lines, else by the defaults, else by the dearest."""
    own, known = _parse(table), _defaults()
    result = _longest(model, own) or _longest(model, known)
    return result or _dearest(known)


def problem(table: str) -> str:
    """Return what is wrong with the user's lines, in words that follow the option's name."""
    for number, line in enumerate(table.splitlines(), 1):
        if _said(line) and _entry(line) is None:
            return f"must hold lines of a model's name and four prices; line {number} does not"
    return ""


def _longest(model: str, table: Mapping[str, Price]) -> Price | None:
    fitting = [name for name in table if _fits(model, name)]
    return table[max(fitting, key=len)] if fitting else None


def _fits(model: str, name: str) -> bool:
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
def _defaults() -> Mapping[str, Price]:
    return _parse(files("memd.core").joinpath("prices.txt").read_text("utf-8"))


@cache
def _parse(table: str) -> Mapping[str, Price]:
    return MappingProxyType(dict(_entries(table)))


def _entries(table: str) -> Iterator[tuple[str, Price]]:
    for line in table.splitlines():
        entry = _entry(line) if _said(line) else None
        if entry is not None:
            yield entry


def _said(line: str) -> str:
    return line.partition("#")[0].strip()


def _entry(line: str) -> tuple[str, Price] | None:
    """Return the model and the price of a line, ``None`` if it is not one."""
    words = _said(line).split()
    if len(words) != _COLUMNS:
        return None
    try:
        numbers = [float(word) for word in words[1:]]
    except ValueError:
        return None
    if not all(0 <= number <= _DEAREST_DOLLARS for number in numbers):
        return None
    return words[0], Price(*numbers)
