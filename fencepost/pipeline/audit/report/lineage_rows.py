"""The table of the lineage in the page: a row for each replica, and for the tier."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fencepost.pipeline.audit.lineage.description import (
    describe,
    describe_parting,
    describe_runs,
    side_name,
)
from fencepost.pipeline.audit.lineage.model import PartitionLineage, Relation, SideLineage
from fencepost.pipeline.audit.partition_summary import PartitionSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageRow:
    """One side of a partition."""

    partition: str
    """Empty but in the first row of the partition."""
    side: str
    leads: bool
    epochs: str
    high_watermark: int | None
    partings: tuple[str, ...]
    """From whom it parts, and where; in the row of the first of the two."""
    alone: int
    """Records that it has and the last leader has not, where they have parted."""
    truncated: int
    """Records that it would truncate as follower of the last leader."""


def lineage_rows(summaries: Iterable[PartitionSummary]) -> Iterator[LineageRow]:
    """The rows of some partitions, in their order."""
    for summary in summaries:
        name = f"{summary.topic}-{summary.partition}"
        for lineage in summary.lineages:
            for number, side in enumerate(lineage.sides):
                yield _row(lineage, side, "" if number else name)


def _row(lineage: PartitionLineage, side: SideLineage, name: str) -> LineageRow:
    leader = lineage.leader
    pair = None if leader is None else lineage.pair(side.broker, leader.broker)
    single = () if pair is None else pair.single
    truncation = None if pair is None else pair.truncation
    return LineageRow(
        partition=name,
        side=side_name(side.broker),
        leads=side.leads,
        epochs=describe_runs(side.runs),
        high_watermark=side.high_watermark,
        partings=tuple(
            describe_parting(each) for each in lineage.parted() if each.broker == side.broker
        ),
        alone=sum(each.records for each in single if each.relation is Relation.DIVERGING),
        truncated=0 if truncation is None else truncation.records,
    )


def lineage_notes(summary: PartitionSummary) -> Iterator[str]:
    """All that there is to tell of a drawn partition whose sides part."""
    for lineage in summary.lineages:
        if lineage.parts:
            yield from describe(lineage)
