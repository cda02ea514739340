"""The lineage of a partition drawn: a lane for each replica and for the tier, coloured by epoch."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from matplotlib.collections import PolyCollection

from fencepost.pipeline.audit.lineage.epoch_runs import EpochRun
from fencepost.pipeline.audit.lineage.model import PartitionLineage, SideLineage

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_RUNS: Final = 200
"""Leader epochs of a lane that are drawn: the newest."""
LANE: Final = 0.3
"""The height of a lane, in inches."""
_BAR: Final = 0.7
"""Of a lane, how high its epochs are."""
_LABELLED: Final = 0.03
"""Of the whole width, how wide a range is that its epoch is written into."""
_COLORS: Final = ("#8fb8de", "#f2c178", "#9ccf9c", "#d8a0c8", "#c9b8e8", "#e8a598", "#8fd0cf")
"""Of leader epochs, by turns."""
_PARTING: Final = "#b3261e"
_WATERMARK: Final = "#2e8b57"


def draw_lanes(axes: "Axes", lineages: Sequence[PartitionLineage]) -> None:
    """Draw every side of some lineages: offsets from left to right, an epoch in one colour.

    A dashed line is where two sides part, in the lanes between them; a tick is a high watermark.
    """
    sides = [side for lineage in lineages for side in lineage.sides]
    names = [lane_name(side) for side in sides]
    ends = [run.end for side in sides for run in side.runs]
    starts = [run.start for side in sides for run in side.runs]
    width = max(ends, default=1) - min(starts, default=0)
    for lane, side in enumerate(sides):
        _draw_side(axes, lane, side, width)
    first = 0
    for lineage in lineages:
        _draw_partings(axes, lineage, first)
        first += len(lineage.sides)
    axes.autoscale_view()
    axes.set_axisbelow(True)
    axes.grid(visible=False, axis="y")
    axes.set_yticks(range(len(sides)), names)
    axes.set_ylim(len(sides) - 0.4, -0.6)
    axes.set_xlabel("offsets by leader epoch")


def lane_name(side: SideLineage) -> str:
    """As it is written beside its lane."""
    return "tier" if side.broker is None else f"broker {side.broker}"


def _draw_side(axes: "Axes", lane: int, side: SideLineage, width: int) -> None:
    runs = side.runs[-MAX_RUNS:]
    rows = stack(runs)
    height = _BAR / (max(rows, default=0) + 1)
    boxes, colors = [], []
    for run, row in zip(runs, rows, strict=True):
        top = lane - _BAR / 2 + row * height
        boxes.append(_box(run.start, max(run.end, run.start + 1), top, top + height))
        colors.append(_COLORS[run.epoch % len(_COLORS)])
        if run.end - run.start >= _LABELLED * width:
            axes.text(
                (run.start + run.end) / 2,
                top + height / 2,
                str(run.epoch),
                ha="center",
                va="center",
                fontsize=6.5,
            )
    name = "tier" if side.broker is None else str(side.broker)
    axes.add_collection(PolyCollection(boxes, facecolors=colors, gid=f"lineage-{name}"))
    if side.high_watermark is not None:
        axes.plot(
            [side.high_watermark],
            [lane],
            marker="|",
            markersize=12,
            linestyle="none",
            color=_WATERMARK,
            gid=f"watermark-{name}",
        )


def stack(runs: Sequence[EpochRun]) -> list[int]:
    """A row for each run, so that no two of a row overlap: the tier may have several lineages."""
    ends: list[int] = []
    rows = []
    for run in runs:
        free = next((row for row, end in enumerate(ends) if end <= run.start), len(ends))
        if free == len(ends):
            ends.append(run.end)
        else:
            ends[free] = run.end
        rows.append(free)
    return rows


def _draw_partings(axes: "Axes", lineage: PartitionLineage, first: int) -> None:
    """A line from the one side to the other, at the offset where they part.

    :param first: The lane of the first side.
    """
    lanes = {side.broker: first + number for number, side in enumerate(lineage.sides)}
    for number, pair in enumerate(lineage.parted()):
        assert pair.parting is not None, "the pair parts"
        ends = sorted((lanes[pair.broker], lanes[pair.other]))
        axes.plot(
            [pair.parting.offset] * 2,
            [ends[0] - 0.45, ends[1] + 0.45],
            color=_PARTING,
            linewidth=1.2,
            linestyle=(0, (4, 2)),
            gid=f"parts-{first + number}",
        )


def _box(left: int, right: int, top: float, foot: float) -> list[tuple[float, float]]:
    return [(left, foot), (left, top), (right, top), (right, foot)]
