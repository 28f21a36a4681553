"""A bar chart as numbers that a template draws as SVG. Pure."""

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10

from msgspec import Struct

WIDTH, HEIGHT = 720, 200  # all lengths are in units of the SVG
_LEFT, _BOTTOM, _TOP = 56, 24, 8  # the margins around the bars
_LINES = 4  # about so many horizontal lines
_LABELS = 8  # the most labels of columns
_STEPS = (1, 2, 2.5, 5, 10)  # round steps between lines, times a power of ten
_LEAST = 0.0001  # dollars; a finer scale says nothing


class Bar(Struct, frozen=True):
    """One segment of a column; ``series`` is the index of its kind."""

    x: float
    y: float
    width: float
    height: float
    series: int
    words: str


class AxisMark(Struct, frozen=True):
    """A mark on an axis: its position and its text."""

    at: float
    words: str


class Chart(Struct, frozen=True):
    """A chart of stacked columns: their bars and labels, and the horizontal lines."""

    bars: Sequence[Bar]
    lines: Sequence[AxisMark]
    labels: Sequence[AxisMark]
    series: Sequence[str]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    bottom: int = HEIGHT - _BOTTOM


def chart(columns: Sequence[tuple[str, Mapping[str, float]]], series: Sequence[str]) -> Chart:
    """Return a chart of columns, each a label with its dollars by kind."""
    highest = max((sum(values.values()) for _, values in columns), default=0)
    step = _step(highest)
    top = max(step * ceil(highest / step), step)  # the dollars at the uppermost line
    plot_height, floor_y = HEIGHT - _BOTTOM - _TOP, HEIGHT - _BOTTOM
    slot = (WIDTH - _LEFT) / max(len(columns), 1)  # the width for a column and its gaps
    width = min(slot * 0.72, 48.0)
    bars, labels = [], []
    columns_per_label = ceil(len(columns) / _LABELS)
    for n, (label, values) in enumerate(columns):
        x, y = _LEFT + n * slot, float(floor_y)
        left = round(x + (slot - width) / 2, 2)
        for index, kind in enumerate(series):
            if value := values.get(kind, 0.0):
                height = plot_height * value / top
                y -= height
                words = f"{label}, {kind}: ${value:.4f}"
                bars.append(Bar(left, round(y, 2), round(width, 2), round(height, 2), index, words))
        if n % columns_per_label == 0:
            labels.append(AxisMark(round(x + slot / 2, 2), label))
    count = round(top / step)
    lines = []
    for n in range(count + 1):
        y = round(floor_y - plot_height * n / count, 2)
        lines.append(AxisMark(y, _dollars(step * n, step)))
    return Chart(bars, lines, labels, series)


def _step(highest: float) -> float:
    """Return a round step between lines, so that about four steps reach the highest column."""
    if highest <= 0:
        return 1.0
    rough = highest / _LINES
    power = 10.0 ** floor(log10(rough))
    # Rounding errors must not make a step that is just right too small.
    step = next(step for step in _STEPS if step * power >= rough * (1 - 1e-9))
    return max(step * power, _LEAST)


def _dollars(value: float, step: float) -> str:
    """Return the dollars at a line, with as many digits as tell neighbouring lines apart."""
    digits = ceil(-log10(step))
    needs_one_more = step * 10**digits % 1 > 0  # the step begins with 2.5
    return f"${value:.{min(max(0, digits + needs_one_more), 6)}f}"
