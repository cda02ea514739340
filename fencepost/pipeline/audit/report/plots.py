"""One partition drawn: its offsets over time, the lag of its followers, segments and lineage.

Figures are made without pyplot, which would keep them all, and come as SVG whose text is text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Final, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator

from fencepost.pipeline.audit.partition_summary import (
    Election,
    PartitionHistory,
    PartitionSummary,
    ReplicaInventory,
    TimeSeries,
)
from fencepost.pipeline.audit.report.lineage_lanes import LANE, draw_lanes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Where a finding is."""

    row: str | None
    """A broker, or ``tier``; None where it is of no replica."""
    offset: int
    time_ms: int | None


Dates: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.datetime64]]"

_APART: Final = 0.07
"""Of the whole width, between two elections that are labelled."""
_WIDTH: Final = 9.6
"""Of a drawing, in inches as all that follows."""
_LEFT: Final = 0.8
_RIGHT: Final = 0.15
_ABOVE: Final = 0.3
_BETWEEN: Final = 0.75
_BAR: Final = 0.7
"""Of a row, how high the largest segment is."""
_LEAST: Final = 0.15
"""Of that, how high one of no bytes is."""
_LOG_END: Final = "#2563a8"
_WATERMARK: Final = "#2e8b57"
_LATEST: Final = "#d9730d"
_GATED: Final = "#b3261e"
_ELECTION: Final = "#777777"
_LAGS: Final = ("#7b4fa3", "#a3684f", "#4f8fa3", "#8a8f3c", "#a34f7b")
_SHADES: Final = ("#9db8d6", "#6f95c2")
_FONT: Final = re.compile(r" font-family: [^;\"]*;")
"""The page has its own."""
_PATH: Final = re.compile(r' d="[^"]*"')
_FRACTION: Final = re.compile(r"(\.\d\d)\d+")
"""Decimals beyond a hundredth of a point are invisible; without them a page is half as large."""
_ID: Final = re.compile(r'(\bid="|url\(#|href="#)')


def render_svg(summary: PartitionSummary, wrong: Sequence[Mark], *, name: str) -> str:
    """A partition as SVG, to be put into a page.

    :param wrong: Where findings are.
    :param name: Begins the ids in it, so that no two drawings of a page share one.
    """
    with mpl.rc_context(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "fencepost",
            "font.size": 8.0,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#e4e4e4",
            "grid.linewidth": 0.6,
            # Of AutoDateFormatter and ConciseDateFormatter the shorter.
            "date.converter": "concise",
        }
    ):
        made = StringIO()
        # All that names neither a time nor a program: the same findings give the same page.
        none = dict.fromkeys(("Date", "Creator", "Type", "Format"))
        make_figure(summary, wrong).savefig(made, format="svg", metadata=none)
    text = made.getvalue()
    plain = _FONT.sub("", text[text.index("<svg") :])
    short = _PATH.sub(lambda path: _FRACTION.sub(r"\1", path[0]), plain)
    return _ID.sub(rf"\g<1>{name}-", short)


def make_figure(summary: PartitionSummary, wrong: Sequence[Mark]) -> Figure:
    """Up to four plots above each other, as there is something to show."""
    history = summary.history
    lanes = sum(len(each.sides) for each in summary.lineages)
    lags = history is not None and bool(history.lag)
    heights = [
        2.0 if history else 0,
        0.8 if lags else 0,
        0.2 + 0.34 * max(len(summary.replicas), 1),
        0.2 + LANE * lanes if lanes else 0,
    ]
    kept = [height for height in heights if height]
    made = Figure(figsize=(_WIDTH, sum(kept) + _BETWEEN * len(kept)))
    FigureCanvasSVG(made)
    axes = _axes(made, kept)
    if history is not None:
        _draw_offsets(axes[0], history, wrong)
    if history is not None and lags:
        axes[1].sharex(axes[0])
        _draw_lag(axes[1], history)
    _draw_segments(axes[-2 if lanes else -1], summary.replicas, wrong)
    if lanes:
        axes[-1].sharex(axes[-2])
        draw_lanes(axes[-1], summary.lineages)
        _scale_offsets(axes[-1])
    return made


def _axes(made: Figure, heights: Sequence[float]) -> "list[Axes]":
    """Axes of these heights in inches, from the top down.

    A layout engine would take as long as all the rest.
    """
    width, total = made.get_size_inches()
    axes, top = [], total
    for height in heights:
        top -= _ABOVE + height
        axes.append(
            made.add_axes(
                (_LEFT / width, top / total, 1 - (_LEFT + _RIGHT) / width, height / total)
            )
        )
        top -= _BETWEEN - _ABOVE
    return axes


def _draw_offsets(axes: "Axes", history: PartitionHistory, wrong: Sequence[Mark]) -> None:
    _steps(axes, history.log_end, "log end", _LOG_END)
    _steps(axes, history.high_watermark, "high watermark", _WATERMARK)
    latest = history.latest
    if latest.times:
        axes.plot(
            _dates(latest.times),
            latest.values,
            marker=".",
            markersize=4,
            linestyle="none",
            color=_LATEST,
            label="ListOffsets latest",
            gid="latest",
        )
    if history.gated.times:
        axes.plot(
            _dates(history.gated.times),
            np.zeros(len(history.gated.times)),
            marker="|",
            markersize=7,
            linestyle="none",
            color=_GATED,
            label="OFFSET_NOT_AVAILABLE",
            transform=axes.get_xaxis_transform(),
            gid="gated",
        )
    _draw_elections(axes, history)
    timed = [(mark.time_ms, mark.offset) for mark in wrong if mark.time_ms is not None]
    _draw_marks(axes, _dates([at for at, _ in timed]), [offset for _, offset in timed], "told")
    axes.set_ylabel("offset")
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_formatter(_offsets())
    if axes.get_legend_handles_labels()[1]:
        axes.legend(
            loc="lower left", frameon=False, ncols=4, bbox_to_anchor=(0, 1), borderaxespad=0
        )


def _draw_elections(axes: "Axes", history: PartitionHistory) -> None:
    """Lines, and who leads in which epoch where there is room to write it."""
    times = [each.time_ms for each in history.elections]
    shown = [times[0], times[-1]] if times else [0, 0]
    for series in (history.log_end, history.high_watermark, history.latest):
        shown += (series.times[0], series.times[-1]) if series.times else ()
    room = _APART * (max(shown) - min(shown))
    labelled: float | None = None
    for number, each in enumerate(history.elections):
        at = _dates((each.time_ms,))[0]
        color = _GATED if each.unclean else _ELECTION
        axes.axvline(
            at, color=color, linewidth=0.8, linestyle=(0, (4, 3)), gid=f"election-{number}"
        )
        if labelled is None or each.time_ms - labelled >= room:
            labelled = each.time_ms
            axes.text(
                at,
                1.0,
                f" {_election(each, traced=history.from_trace)}",
                transform=axes.get_xaxis_transform(),
                color=color,
                fontsize=7,
                va="top",
            )


def _election(election: Election, *, traced: bool) -> str:
    if election.leader is not None:
        return f"{election.leader} in {election.epoch}"
    return f"none in {election.epoch}" if traced else f"epoch {election.epoch}"


def _draw_lag(axes: "Axes", history: PartitionHistory) -> None:
    for number, each in enumerate(history.lag):
        color = _LAGS[number % len(_LAGS)]
        _steps(axes, each.records, f"broker {each.broker}", color, gid=f"lag-{each.broker}")
    axes.set_ylabel("lag, records")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_formatter(_offsets())
    axes.legend(loc="lower left", frameon=False, ncols=6, bbox_to_anchor=(0, 1), borderaxespad=0)


def _draw_segments(
    axes: "Axes", inventories: Sequence[ReplicaInventory], wrong: Sequence[Mark]
) -> None:
    """A row for each replica: the offsets of its segments, as high as they are large."""
    rows = [_row(each) for each in inventories]
    largest = max((span.bytes for each in inventories for span in each.spans), default=0) or 1
    for row, each in enumerate(inventories):
        foot = row + _BAR / 2
        tops = [foot - _BAR * (_LEAST + (1 - _LEAST) * span.bytes / largest) for span in each.spans]
        # One collection: hundreds of single bars take seconds.
        axes.add_collection(
            PolyCollection(
                [
                    _box(span.start, max(span.end, span.start + 1), top, foot)
                    for span, top in zip(each.spans, tops, strict=True)
                ],
                facecolors=[_SHADES[number % 2] for number in range(len(each.spans))],
                gid=f"segments-{rows[row]}",
            )
        )
    axes.autoscale_view()
    at = [(mark.offset, rows.index(mark.row)) for mark in wrong if mark.row in rows]
    _draw_marks(axes, [offset for offset, _ in at], [row for _, row in at], "held")
    nowhere = sorted({mark.offset for mark in wrong if mark.row not in rows})
    for number, offset in enumerate(nowhere):
        axes.axvline(
            offset, color=_GATED, linewidth=0.8, linestyle=":", gid=f"findings-nowhere-{number}"
        )
    axes.set_axisbelow(True)
    axes.grid(visible=False, axis="y")
    axes.set_yticks(range(len(inventories)), [_label(each) for each in inventories])
    axes.set_ylim(len(inventories) - 0.4, -0.6)
    axes.set_xlabel("offsets of segments")
    _scale_offsets(axes)


def _scale_offsets(axes: "Axes") -> None:
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.xaxis.set_major_formatter(_offsets())


def _box(left: int, right: int, top: float, foot: float) -> list[tuple[float, float]]:
    return [(left, foot), (left, top), (right, top), (right, foot)]


def _draw_marks(axes: "Axes", x: "Sequence[int] | Dates", y: Sequence[int], name: str) -> None:
    if len(y):
        axes.plot(
            x,
            y,
            marker="x",
            markersize=6,
            linestyle="none",
            color=_GATED,
            gid=f"findings-{name}",
        )


def _steps(
    axes: "Axes", series: TimeSeries, label: str, color: str, *, gid: str | None = None
) -> None:
    if series.times:
        axes.step(
            _dates(series.times),
            series.values,
            where="post",
            color=color,
            linewidth=1.1,
            label=label,
            gid=gid or label.replace(" ", "-"),
        )


def _dates(times: Sequence[int]) -> Dates:
    return np.array(times, dtype="datetime64[ms]")


def _offsets() -> FuncFormatter:
    return FuncFormatter(lambda value, _: f"{value:,.0f}")


def _row(inventory: ReplicaInventory) -> str:
    return "tier" if inventory.broker is None else str(inventory.broker)


def _label(inventory: ReplicaInventory) -> str:
    where = "tier" if inventory.broker is None else f"broker {inventory.broker}"
    return f"{where}\n{EngFormatter('B', places=1)(inventory.bytes)}"
