"""A bar chart as numbers that a template draws as SVG. Pure."""

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10

from msgspec import Struct

WIDTH, HEIGHT = 720, 200
_LEFT, _BOTTOM, _TOP = 56, 24, 8
_TICKS = 4
_LABELS = 8
_STEPS = (1, 2, 2.5, 5, 10)
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
    most = max((sum(values.values()) for _, values in columns), default=0)
    step = _step(most)
    top = max(step * ceil(most / step), step)
    plot_height, floor_at = HEIGHT - _BOTTOM - _TOP, HEIGHT - _BOTTOM
    slot = (WIDTH - _LEFT) / max(len(columns), 1)
    bars, labels = [], []
    every = ceil(len(columns) / _LABELS)
    for n, (label, values) in enumerate(columns):
        x, y = _LEFT + n * slot, float(floor_at)
        for index, kind in enumerate(series):
            if value := values.get(kind, 0.0):
                height = plot_height * value / top
                y -= height
                width = min(slot * 0.72, 48.0)
                left = round(x + (slot - width) / 2, 2)
                words = f"{label}, {kind}: ${value:.4f}"
                bars.append(Bar(left, round(y, 2), round(width, 2), round(height, 2), index, words))
        if n % every == 0:
            labels.append(AxisMark(round(x + slot / 2, 2), label))
    count = round(top / step)
    lines = [
        AxisMark(round(floor_at - plot_height * n / count, 2), _dollars(step * n, step))
        for n in range(count + 1)
    ]
    return Chart(bars, lines, labels, series)


def _step(most: float) -> float:
    """Return a round step between lines, so that about four steps reach the highest column."""
    if most <= 0:
        return 1.0
    rough = most / _TICKS
    power = 10.0 ** floor(log10(rough))
    step = next(step for step in _STEPS if step * power >= rough * (1 - 1e-9))
    return max(step * power, _LEAST)


def _dollars(value: float, step: float) -> str:
    digits = max(0, ceil(-log10(step)) + (step * 10 ** ceil(-log10(step)) % 1 > 0))
    return f"${value:.{min(digits, 6)}f}"
