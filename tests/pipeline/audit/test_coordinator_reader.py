"""What a coordinator knows goes to the partitions that it is about, and says the same there."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from fencepost.broker.transactions.transaction_state import TransactionState
from fencepost.pipeline.audit.coordinator_log import (
    SCHEMA,
    CoordinatedProducer,
    CoordinatorLog,
    coordinator_log,
    last_records,
)
from fencepost.pipeline.audit.coordinator_reader import fold_partitions
from fencepost.pipeline.audit.metadata_rows import ClusterFacts, MetadataRow, ReplicaPart
from fencepost.pipeline.audit.metadata_tasks import Wanted
from fencepost.pipeline.audit.partition_metadata import partition_metadata
from fencepost.pipeline.audit.rule import ReplicaMetadata, TopicPartition
from tests.pipeline.audit.test_coordinator_log import KNOWN, row

S = TransactionState
DATA = (("t", 0), ("t", 1), ("u", 0))
WANTED = Wanted(directory="/logs", topics=frozenset({"t", "u"}), with_coordinators=True)


def metadata(
    rows: list[dict[str, object]], *partitions: int
) -> dict[TopicPartition, CoordinatorLog]:
    """What the metadata of each data partition say, where the coordinators' log has these rows."""
    there = [{"partition": each} for each in partitions]
    table = pa.Table.from_pylist([*rows, *there], SCHEMA)
    replica = ReplicaPart(
        replica=ReplicaMetadata(broker=1, clean=True, segments=(0,), epochs=None), is_cleaned=False
    )
    found = [MetadataRow(value=replica, partition=key) for key in DATA]
    found.append(MetadataRow(value=ClusterFacts(is_clean=True)))
    # Any task may fold any partition.
    for each in partitions:
        found += fold_partitions(WANTED, table.filter(pa.compute.equal(table["partition"], each)))
    known = partition_metadata(found, with_objects=False)
    assert list(known) == sorted(DATA)
    logs = {key: each.coordinators for key, each in known.items()}
    return {key: each for key, each in logs.items() if each is not None}


def in_partition(known: CoordinatedProducer, key: tuple[str, int]) -> tuple[object, ...]:
    """All of a producer that a rule may ask for, of one partition."""
    decision = known.decision if known.decision and key in known.decision.partitions else None
    return (
        *(known.transactional_id, known.state, known.epoch, known.timeout_ms),
        key in known.partitions,
        None if decision is None else replace(decision, partitions=frozenset()),
    )


@st.composite
def rows_of_logs(draw: st.DrawFn) -> list[dict[str, object]]:
    found = []
    for offset in range(draw(st.integers(0, 12))):
        producer = draw(st.integers(0, 3))
        value = structs.replace(
            KNOWN,
            producer_id=producer,
            producer_epoch=draw(st.integers(0, 2)),
            state=draw(st.sampled_from([S.EMPTY, S.ONGOING, S.PREPARE_ABORT, S.COMPLETE_ABORT])),
            partitions=draw(st.frozensets(st.sampled_from(DATA))),
            last_update_ms=offset,
        )
        # A transactional id is in one partition of the log.
        found.append(row(offset, f"id-{producer}", value, partition=producer % 2))
    return found


@given(rows=rows_of_logs())
def test_each_partition_is_told_what_all_of_the_log_says(rows: list[dict[str, object]]) -> None:
    whole = coordinator_log(last_records(pa.Table.from_pylist(rows, SCHEMA)), (0, 1), clean=True)
    assert whole is not None
    for key, own in metadata(rows, 0, 1).items():
        assert (own.whole, own.clean, own.latest_ms) == (True, True, whole.latest_ms)
        assert set(own.producers) == set(whole.producers)
        for producer, known in whole.producers.items():
            assert in_partition(own.producers[producer], key) == in_partition(known, key)


def test_a_partition_is_told_of_no_other() -> None:
    rows = [row(0, "x", structs.replace(KNOWN, state=S.ONGOING, partitions=frozenset(DATA)))]
    for key, own in metadata(rows, 0).items():
        assert own.producers[7].partitions == {key}


def test_a_log_of_which_a_partition_is_missing() -> None:
    assert {each.whole for each in metadata([], 0, 2).values()} == {False}
    assert {each.whole for each in metadata([], 0, 1).values()} == {True}
    assert metadata([]) == {}
