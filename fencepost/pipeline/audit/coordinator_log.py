"""What the transaction coordinator's log says of each producer: ``__transaction_state`` (KIP-98).

Of each transactional id its last record counts, and its last decision: the record that says that
the transaction is to be committed or aborted, and in which partitions. `last_records` keeps these
of any part of the log, and of what several parts left: the fold of that log.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.broker.coordinator.record_fields import MalformedRecord
from fencepost.broker.metadata.image import TRANSACTION_TOPIC
from fencepost.broker.transactions.records import TransactionRecord, decode
from fencepost.broker.transactions.transaction_metadata import (
    EPOCH_BUMP_VERSION,
    NO_PRODUCER_ID,
    TopicPartition,
    TransactionMetadata,
)
from fencepost.broker.transactions.transaction_state import PREPARING, TransactionState
from fencepost.pipeline.datasource.schemas import RECORDS

TOPIC: Final = TRANSACTION_TOPIC
COLUMNS: Final = ("partition", "broker", "epoch", "offset", "key", "value")
SCHEMA: Final = pa.schema([RECORDS.field(name) for name in COLUMNS])
"""What of the level ``records`` is needed."""
_STATE_AT: Final = 16
"""In the value of a record, of every version."""
_KEY_COLUMNS: Final = ("partition", "broker", "key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """How a transaction is to end."""

    committed: bool
    epoch: int
    """Of the producer, in the markers."""
    has_own_epoch: bool
    """Whether no other transaction has the epoch (KIP-890)."""
    decided_ms: int
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatedProducer:
    """What a coordinator knows of a producer id."""

    transactional_id: str
    state: TransactionState
    """Of its transactional id; EMPTY where that has another producer id by now."""
    epoch: int
    timeout_ms: int
    partitions: frozenset[TopicPartition]
    """Of the transaction that is open or decided."""
    decision: Decision | None
    """The last one that is in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorLog:
    """What all coordinators know."""

    producers: Mapping[int, CoordinatedProducer] = field(default_factory=dict)
    whole: bool = False
    """Whether each partition of the log is there: what none of them knows is not known."""
    clean: bool = False
    """Whether all brokers have ended in order, so that all logs are of one moment."""
    latest_ms: int = -1
    """When the newest record was written: what began later may not be in the log yet."""


def last_records(rows: pa.Table) -> pa.Table:
    """Of each key in each replica the last record, and the last decision.

    :param rows: `SCHEMA`, of any replicas and in any order.
    """
    keyed = rows.filter(pc.is_valid(rows["key"])).combine_chunks()
    if not keyed.num_rows:
        return keyed
    order = pc.sort_indices(
        keyed, sort_keys=[(name, "ascending") for name in (*_KEY_COLUMNS, "offset")]
    )
    keyed = keyed.take(order)
    states = pc.binary_slice(pc.fill_null(keyed["value"], b""), _STATE_AT, _STATE_AT + 1)
    decided = pc.is_in(states, pa.array([bytes([state]) for state in sorted(PREPARING)]))
    number = np.arange(keyed.num_rows)
    last = _last_of_key(keyed)
    # Of the decisions of a key only the last one counts.
    decisions = number[decided.to_numpy(zero_copy_only=False)]
    counted = last.copy()
    counted[decisions[_last_of_key(keyed.take(decisions))]] = True
    return keyed.filter(pa.array(counted))


def _last_of_key(rows: pa.Table) -> "np.typing.NDArray[np.bool_]":
    changes = np.zeros(max(rows.num_rows - 1, 0), bool)
    for name in _KEY_COLUMNS:
        column = rows[name].combine_chunks()
        differs = pc.not_equal(column[1:], column[:-1])
        changes |= pc.fill_null(differs, fill_value=False).to_numpy(zero_copy_only=False)
    return np.append(changes, True)[: rows.num_rows]


def coordinator_log(
    rows: pa.Table, partitions: Collection[int], *, clean: bool
) -> CoordinatorLog | None:
    """What the replicas that go furthest say.

    :param rows: What `last_records` keeps of all of them.
    :param partitions: Of the topic, by the directories that are there.
    :param clean: Whether all brokers have ended in order.
    :returns: None where there is no such log.
    """
    if not partitions:
        return None
    known: dict[str, TransactionMetadata] = {}
    decisions: dict[str, TransactionMetadata] = {}
    for record in _records(last_records(_furthest(rows))):
        if record.value is None:
            known.pop(record.transactional_id, None)
            continue
        known[record.transactional_id] = record.value
        if record.value.state in PREPARING:
            decisions[record.transactional_id] = record.value
    producers: dict[int, CoordinatedProducer] = {}
    for name, value in known.items():
        for producer in _producer_ids(value, decisions.get(name)):
            producers[producer] = _producer(name, producer, value, decisions.get(name))
    return CoordinatorLog(
        producers=producers,
        whole=sorted(partitions) == list(range(len(partitions))),
        clean=clean,
        latest_ms=max((each.last_update_ms for each in known.values()), default=-1),
    )


def _furthest(rows: pa.Table) -> pa.Table:
    """Of each partition the records of one replica: of the newest leader epoch, or the longest."""
    ends = rows.group_by(["partition", "broker"], use_threads=False).aggregate(
        [("epoch", "max"), ("offset", "max")]
    )
    best: dict[int, tuple[int, int, int]] = {}
    for row in ends.to_pylist():
        rank = (row["epoch_max"], row["offset_max"], row["broker"])
        best[row["partition"]] = max(rank, best.get(row["partition"], rank))
    chosen = pa.table(
        {
            "partition": pa.array(best, pa.int32()),
            "broker": pa.array([broker for _, _, broker in best.values()], pa.int32()),
        }
    )
    return rows.join(chosen, ["partition", "broker"], join_type="inner", use_threads=False)


def _records(rows: pa.Table) -> list[TransactionRecord]:
    """The records in order; one that can't be read says nothing."""
    found: list[TransactionRecord] = []
    for row in rows.sort_by([("partition", "ascending"), ("offset", "ascending")]).to_pylist():
        try:
            record = decode(row["key"], row["value"])
        except MalformedRecord:
            continue
        if record is not None:
            found.append(record)
    return found


def _producer_ids(value: TransactionMetadata, decided: TransactionMetadata | None) -> set[int]:
    ids = {value.producer_id, value.previous_producer_id}
    return (ids if decided is None else ids | {decided.producer_id}) - {NO_PRODUCER_ID}


def _producer(
    name: str, producer: int, value: TransactionMetadata, decided: TransactionMetadata | None
) -> CoordinatedProducer:
    is_own = producer == value.producer_id
    of_it = decided is not None and decided.producer_id == producer
    return CoordinatedProducer(
        transactional_id=name,
        state=value.state if is_own else TransactionState.EMPTY,
        epoch=value.producer_epoch if is_own else 2**15 - 1,
        timeout_ms=value.timeout_ms,
        partitions=value.partitions if is_own else frozenset(),
        decision=_decision(decided) if decided is not None and of_it else None,
    )


def _decision(value: TransactionMetadata) -> Decision:
    return Decision(
        committed=value.state is TransactionState.PREPARE_COMMIT,
        epoch=value.producer_epoch,
        has_own_epoch=value.client_version >= EPOCH_BUMP_VERSION,
        decided_ms=value.last_update_ms,
        partitions=value.partitions,
    )
