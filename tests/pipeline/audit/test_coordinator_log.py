"""What the coordinators' log says, in whatever parts and replicas it comes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fencepost.broker.transactions.records import TransactionRecord, encode
from fencepost.broker.transactions.transaction_metadata import TransactionMetadata
from fencepost.broker.transactions.transaction_state import TransactionState
from fencepost.pipeline.audit.coordinator_log import (
    SCHEMA,
    CoordinatorLog,
    coordinator_log,
    last_records,
)
from tests.pipeline.audit.producer_rows import splits

S = TransactionState
KNOWN = TransactionMetadata(
    producer_id=7, producer_epoch=1, timeout_ms=1000, state=S.EMPTY, last_update_ms=1
)
PARTITIONS = frozenset({("t", 0)})


def row(
    offset: int, name: str, value: TransactionMetadata | None, **where: int
) -> dict[str, object]:
    key, data = encode(TransactionRecord(transactional_id=name, value=value))
    place = {"partition": 0, "broker": 1, "epoch": 0, **where}
    return {**place, "offset": offset, "key": key, "value": data}


def history(offset: int, name: str, producer: int, **where: int) -> list[dict[str, object]]:
    values = [
        replace(KNOWN, producer_id=producer),
        replace(KNOWN, producer_id=producer, state=S.ONGOING, partitions=PARTITIONS),
        replace(KNOWN, producer_id=producer, state=S.PREPARE_COMMIT, partitions=PARTITIONS),
        replace(KNOWN, producer_id=producer, state=S.COMPLETE_COMMIT, last_update_ms=9),
    ]
    return [row(offset + at, name, value, **where) for at, value in enumerate(values)]


def read(rows: list[dict[str, object]], *partitions: int) -> CoordinatorLog:
    table = pa.Table.from_pylist(rows, SCHEMA)
    found = coordinator_log(last_records(table), partitions or (0,), clean=True)
    assert found is not None
    return found


def test_the_last_state_and_the_last_decision() -> None:
    found = read(history(0, "x", 7))
    producer = found.producers[7]
    assert (producer.transactional_id, producer.state) == ("x", S.COMPLETE_COMMIT)
    assert producer.decision is not None
    assert (producer.decision.committed, producer.decision.epoch) == (True, 1)
    assert producer.decision.partitions == PARTITIONS
    assert (found.latest_ms, found.whole) == (9, True)


def test_an_id_that_has_expired_is_not_known() -> None:
    assert read([*history(0, "x", 7), row(4, "x", None)]).producers == {}


def test_the_replica_that_goes_furthest_counts() -> None:
    behind = history(0, "x", 7)[:2]
    ahead = history(0, "x", 7, broker=2)
    assert read([*behind, *ahead]).producers[7].state is S.COMPLETE_COMMIT
    newer = [{**each, "epoch": 1} for each in behind]
    assert read([*newer, *ahead]).producers[7].state is S.ONGOING


@pytest.mark.parametrize(("partitions", "whole"), [((0, 1, 2), True), ((0, 2), False)])
def test_whether_all_partitions_are_there(partitions: tuple[int, ...], whole: bool) -> None:
    assert read([], *partitions).whole is whole
    assert coordinator_log(SCHEMA.empty_table(), (), clean=True) is None


@given(st.data())
def test_any_split_gives_what_the_whole_gives(data: st.DataObject) -> None:
    rows = [
        *history(0, "x", 7),
        *history(4, "y", 8),
        *history(8, "x", 9),
        *history(0, "z", 10, partition=1),
        row(12, "y", None),
    ]
    rows = data.draw(st.permutations(rows))
    parts = [
        last_records(pa.Table.from_pylist(rows[start:end], SCHEMA))
        for start, end in data.draw(splits(len(rows)))
    ]
    kept = last_records(pa.concat_tables(parts))
    assert coordinator_log(kept, (0, 1), clean=True) == read(rows, 0, 1)
