"""Curves over one axis as an SVG, one panel below the other. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

_WIDTH, _HEIGHT = 720, 150  # of one panel
_LEFT, _TOP, _RIGHT, _BOTTOM = 60, 24, 16, 22
_STEPS = 4  # lines of a panel's grid
_STYLE = (
    "text{font:12px sans-serif;fill:#555}line{stroke:#ccc}"
    "polyline{fill:none;stroke:#2060a0;stroke-width:1.5}"
)


@dataclass(frozen=True, slots=True)
class Curve:
    """A panel: its title and a value for each point of the axis."""

    title: str
    values: Sequence[float]


def chart(axis: str, points: Sequence[float], curves: Sequence[Curve]) -> str:
    """Return the curves as an SVG whose panels begin at zero."""
    height = len(curves) * _HEIGHT + _BOTTOM
    panels = [_panel(points, curve, at * _HEIGHT) for at, curve in enumerate(curves)]
    ends = (
        f'<text x="{_LEFT}" y="{height - 6}">0</text>'
        f'<text x="{_WIDTH - _RIGHT}" y="{height - 6}" text-anchor="end">'
        f"{max(points):.0f} {axis}</text>"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}">'
        f'<style>{_STYLE}</style><rect width="100%" height="100%" fill="#fff"/>'
        f"{''.join(panels)}{ends}</svg>\n"
    )


def _panel(points: Sequence[float], curve: Curve, top: float) -> str:
    most = max(curve.values) * 1.1 or 1.0
    floor, room = top + _HEIGHT, _HEIGHT - _TOP
    width = (_WIDTH - _LEFT - _RIGHT) / (max(points) or 1.0)
    dots = " ".join(
        f"{_LEFT + x * width:.1f},{floor - y / most * room:.1f}"
        for x, y in zip(points, curve.values, strict=True)
    )
    grid = "".join(
        f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{most * step / _STEPS:.0f}</text>'
        for step in range(_STEPS + 1)
        for y in (floor - room * step / _STEPS,)
    )
    title = f'<text x="{_LEFT}" y="{top + _TOP - 8:.1f}">{curve.title}</text>'
    return f'{title}{grid}<polyline points="{dots}"/>'
