"""Line plots as small SVG files: both axes logarithmic, a line a server, in any colour scheme."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 480
HEIGHT: Final = 280
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 34, 44
COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
"""Told apart by all eyes, on white and on black."""
GREY: Final = "#808080"

Points = Mapping[float, float]
"""What was measured, by the value that grows; both are positive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A logarithmic axis from ``low`` to ``high``, between two places of the picture."""

    low: float
    high: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        """Its place."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """The powers of ten on it; every second or third of them where there are many."""
        first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
        step = max((last - first) // 5, 1)
        return [10.0**power for power in range(first, last + 1, step)]


def _axis(values: Sequence[float], begin: float, end: float) -> Axis:
    """Whole decades around the values, or halves and doubles of a single one."""
    low = 10 ** math.floor(math.log10(min(values)) + 1e-9)
    high = 10 ** math.ceil(math.log10(max(values)) - 1e-9)
    return Axis(low=low, high=high if high > low else low * 10, begin=begin, end=end)


def number(value: float) -> str:
    """A tick's: 0.01, 1, 10k, 5M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def svg(title: str, x_title: str, y_title: str, lines: Mapping[str, Points]) -> str:
    """The picture.

    :raises ValueError: Without a point, or with a value that is not positive.
    """
    xs = [x for points in lines.values() for x in points]
    ys = [y for points in lines.values() for y in points.values()]
    if not xs or min(xs) <= 0 or min(ys) <= 0:
        raise ValueError("a logarithmic plot needs positive values")
    x_axis = _axis(xs, LEFT, WIDTH - RIGHT)
    y_axis = _axis(ys, HEIGHT - BOTTOM, TOP)
    middle = f"{(LEFT + WIDTH - RIGHT) / 2:g}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        f' font-family="sans-serif" font-size="11" fill="{GREY}">',
        f'<text x="{LEFT}" y="14" font-size="13">{escape(title)}</text>',
        *_grid(x_axis, y_axis),
        f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_title)}</text>',
        f'<text x="{LEFT}" y="28">{escape(y_title)}</text>',
    ]
    for index, (name, points) in enumerate(lines.items()):
        parts += _line(name, points, x_axis, y_axis, COLOURS[index % len(COLOURS)], index)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _grid(x_axis: Axis, y_axis: Axis) -> list[str]:
    stroke = f'stroke="{GREY}" stroke-width="0.5" stroke-opacity="0.5"'
    parts = []
    for tick in x_axis.ticks():
        x = x_axis.at(tick)
        parts.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" {stroke}/>')
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">'
            f"{number(tick)}</text>"
        )
    for tick in y_axis.ticks():
        y = y_axis.at(tick)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" {stroke}/>')
        parts.append(
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{number(tick)}</text>'
        )
    return parts


def _line(
    name: str, points: Points, x_axis: Axis, y_axis: Axis, colour: str, index: int
) -> list[str]:
    places = [(x_axis.at(x), y_axis.at(y)) for x, y in sorted(points.items())]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in places)
    key_x = WIDTH - RIGHT - 90 * (index + 1)
    return [
        f'<g fill="{colour}"><path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        f'{dots}<text x="{key_x}" y="28">{escape(name)}</text></g>',
    ]
