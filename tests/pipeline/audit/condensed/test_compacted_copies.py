"""From which offset on compacted copies are put to each other by batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from fencepost.pipeline.audit.batch_arrays import batches_of
from fencepost.pipeline.audit.condensed.compacted_copies import (
    EVERYWHERE,
    NOWHERE,
    agree_across_gaps,
    epochs_part_at,
)
from fencepost.pipeline.audit.rule import PartitionEvidence, PartitionMetadata, ReplicaMetadata
from fencepost.pipeline.datasource.schemas import BATCHES
from tests.pipeline.audit.log_rows import Row, batch, copied, in_tier, of_broker, replica
from tests.pipeline.audit.summaries import NOW_MS, traces

ONE = [batch(0, 9), batch(20, 29, epoch=1), batch(40, 49, epoch=2)]


def parts_at(logs: Sequence[Sequence[Row]], replicas: Sequence[ReplicaMetadata] = ()) -> int:
    rows = [row for number, own in enumerate(logs) for row in of_broker(number + 1, *own)]
    table = pa.Table.from_pylist(rows, BATCHES)
    known = PartitionMetadata(replicas=tuple(replicas))
    return epochs_part_at(known, batches_of(table), table["broker"].to_numpy().astype(np.int64))


def test_epochs_whose_first_batches_a_cleaner_has_taken_do_not_part() -> None:
    other = [batch(5, 9), batch(30, 39, epoch=1), batch(42, 49, epoch=2)]
    assert parts_at([ONE, other]) == NOWHERE
    known = [replica(each, epochs=((0, 0), (1, 15), (2, 40))) for each in (1, 2)]
    assert parts_at([ONE, other], known) == NOWHERE


def test_copies_part_where_one_has_an_older_epoch_behind_the_begin_of_a_newer_one() -> None:
    assert parts_at([ONE, [batch(0, 9), batch(10, 24)]]) == 20
    assert parts_at([ONE, [batch(0, 9), batch(12, 14, epoch=2)]]) == 12


def test_what_a_checkpoint_says_of_offsets_before_a_log_counts() -> None:
    late = [batch(40, 49, epoch=2)]
    assert parts_at([ONE, late], [replica(2, epochs=((0, 0), (2, 40)))]) == 20
    assert parts_at([ONE, late], [replica(2, epochs=((0, 0), (1, 20), (2, 40)))]) == NOWHERE
    assert parts_at([ONE, []], [replica(2, epochs=((0, 0),), segments=(30,))]) == 20


@pytest.mark.parametrize(
    "epochs", [((0, 0), (1, 25)), ((0, 0), (1, 8)), ((1, 0), (0, 20)), ((0, 20), (1, 20))]
)
def test_where_a_log_contradicts_its_checkpoint_nothing_is_known(
    epochs: tuple[tuple[int, int], ...],
) -> None:
    assert parts_at([ONE], [replica(1, epochs=epochs)]) == EVERYWHERE


def evidence(*rows: Row, compacted: bool = True, **known: object) -> PartitionEvidence:
    where = {"topic": "orders", "partition": 0, "max_timestamp": NOW_MS}
    metadata = PartitionMetadata(replicas=(replica(1), replica(2)), compacted=compacted)
    return PartitionEvidence(
        topic="orders",
        partition=0,
        now_ms=NOW_MS,
        metadata=replace(metadata, **known),  # type: ignore[arg-type]  # as the tests say
        batches=pa.Table.from_pylist([{**row, **where} for row in rows], BATCHES),
        traces=None,
    )


def test_copies_agree_across_gaps_where_no_single_batch_is_asked_for() -> None:
    assert agree_across_gaps(evidence(*ONE))
    assert agree_across_gaps(evidence(batch(0, 9, count=3), compacted=False))
    assert not agree_across_gaps(evidence(*ONE, compacted=False))
    assert not agree_across_gaps(evidence(*ONE, *in_tier("a", batch(0, 9))))
    assert not agree_across_gaps(evidence(*ONE, tier=(copied("a", 0, 9),)))
    others = (replica(1), replica(2, topic_id="b"))
    assert not agree_across_gaps(evidence(*ONE, replicas=others))
    assert not agree_across_gaps(replace(evidence(*ONE), traces=traces()))
