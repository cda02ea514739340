"""Plots: their scales, and that they are well-formed pictures."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from bench import plot

SPACE = "{http://www.w3.org/2000/svg}"


def places(picture: str) -> list[list[tuple[float, float]]]:
    """Those of the dots, by line."""
    return [
        [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in dots]
        for line in ET.fromstring(picture).iter(f"{SPACE}g")
        if (dots := line.findall(f"{SPACE}circle"))
    ]


def texts(picture: str) -> list[str]:
    return [text.text or "" for text in ET.fromstring(picture).iter(f"{SPACE}text")]


def test_equal_factors_are_equal_distances_and_more_is_to_the_right_and_higher() -> None:
    ((a, b, c),) = places(plot.svg("t", "x", "y", {"one": {10: 1, 100: 10, 1000: 100}}))
    assert a[0] < b[0] < c[0]
    assert a[1] > b[1] > c[1]
    assert b[0] - a[0] == pytest.approx(c[0] - b[0], abs=0.2)
    assert a[1] - b[1] == pytest.approx(b[1] - c[1], abs=0.2)


def test_points_are_joined_in_the_order_of_what_grows() -> None:
    ((a, b),) = places(plot.svg("t", "x", "y", {"one": {100: 1, 10: 2}}))
    assert a[0] < b[0]


def test_a_level_line_stays_within_the_picture() -> None:
    for x, y in places(plot.svg("t", "x", "y", {"one": {1: 5, 7: 5}}))[0]:
        assert plot.LEFT <= x <= plot.WIDTH - plot.RIGHT
        assert plot.TOP <= y <= plot.HEIGHT - plot.BOTTOM


def test_titles_and_names_are_shown_whatever_characters_they_have() -> None:
    picture = plot.svg("a < b", "x & y", "ns", {"one": {1: 1}, "two": {2: 3}})
    assert {"a < b", "x & y", "ns", "one", "two"} <= set(texts(picture))


@pytest.mark.parametrize(
    ("value", "text"), [(0.01, "0.01"), (1, "1"), (10_000, "10k"), (5e6, "5M"), (1e9, "1G")]
)
def test_ticks_are_short(value: float, text: str) -> None:
    assert plot.number(value) == text


@pytest.mark.parametrize("points", [{}, {0: 1}, {1: 0}])
def test_what_has_no_place_on_a_logarithmic_axis_is_refused(points: dict[float, float]) -> None:
    with pytest.raises(ValueError, match="positive"):
        plot.svg("t", "x", "y", {"one": points})
