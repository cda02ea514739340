"""The rules about producers: they find what was done to what a cluster left, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow.compute as pc
import pytest
from msgspec.structs import replace

from fencepost.pipeline.audit.partition_summary import TransactionTotals, replica_inventories
from fencepost.pipeline.audit.rule import Violation
from fencepost.pipeline.datasource.segment_scan import scan_folder
from fencepost.storage.formats.checkpoints import decode_snapshot, encode_snapshot
from fencepost.storage.formats.indexes import decode_transactions, encode_transactions
from fencepost.storage.log.transactions import AbortedTransaction
from tests.pipeline.audit import damage
from tests.pipeline.audit.producer_histories import (
    ProducersLived,
    live,
    send_raw,
    transact,
    transactions,
)
from tests.pipeline.audit.producer_rows import TRANSACTIONAL
from tests.pipeline.audit.rigs import Left, rig, unexplained

WEEK_MS: Final = 7 * 24 * 3_600_000


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> ProducersLived:
    return live(tmp_path_factory.mktemp("lived"))


@pytest.fixture
def stopped(lived: ProducersLived, tmp_path: Path) -> Left:
    """What a cluster left that was stopped, to be damaged."""
    return lived.stopped.copy(tmp_path / "stopped")


def rules(found: list[Violation]) -> set[str]:
    return {each.rule for each in found}


def of_rule(name: str, found: list[Violation]) -> list[Violation]:
    return [each for each in found if each.rule == name]


def of_topic(name: str, found: list[Violation]) -> list[Violation]:
    return [each for each in found if each.topic == name]


def test_nothing_is_found_where_nothing_is_wrong(lived: ProducersLived) -> None:
    assert lived.killed.audit() == []
    assert lived.stopped.audit() == []


def test_an_open_transaction_that_its_coordinator_knows_is_open_for_as_long_as_it_is(
    lived: ProducersLived,
) -> None:
    assert lived.killed.audit("ledger", "other", later_ms=WEEK_MS) == []
    rows = scan_folder(lived.killed.place / "data", topics=["ledger"])
    (summary, *_) = replica_inventories(rows.filter(pc.equal(rows["broker"], 1)), {})
    assert summary.transactions == TransactionTotals(
        committed=2, aborted=5, aborted_records=30, open=1
    )


# -- producer-sequences ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sequence", "said"),
    [(6, "come where 3 is next"), (0, "come again: behind offset 2 3 is next")],
)
def test_a_sequence_number_that_does_not_follow(stopped: Left, sequence: int, said: str) -> None:
    header = damage.give_sequence(stopped.segments(2, "numbered")[0], 1, sequence)
    found = of_rule("producer-sequences", stopped.audit("numbered"))
    assert [(each.broker, each.segment, each.explanation) for each in found] == [(2, 0, None)] * 2
    assert said in found[0].message
    assert (found[0].offset, found[0].end_offset) == (header.base_offset, header.next_offset)


def test_a_producer_epoch_that_goes_back(stopped: Left) -> None:
    path = stopped.segments(1, "ledger")[0]
    damage.give_producer_epoch(path, 1, 5)
    found = of_rule("producer-sequences", stopped.audit("ledger"))
    assert any("goes on with epoch 0, and had epoch 5" in each.message for each in found)
    assert {(each.broker, each.place) for each in found} == {(1, "log")}


def test_a_segment_of_the_tier(stopped: Left) -> None:
    path = stopped.objects("tiered")[0]
    damage.give_sequence(path, 1, 9)
    found = of_rule("producer-sequences", stopped.audit("tiered"))
    assert {each.place for each in found} == {"tier"}


def test_a_broker_that_takes_any_sequence(tmp_path: Path) -> None:
    with rig(tmp_path / "rig", "producers_unchecked") as made:
        for topic in ("twice", "gap", "fenced"):
            made.create(topic)
            send_raw(made, topic, 0, epoch=1)
        send_raw(made, "twice", 0, epoch=1)
        send_raw(made, "gap", 5, epoch=1)
        send_raw(made, "fenced", 2, epoch=0)
        made.stop()
        left = made.left("left")
    found = unexplained(left.audit())
    assert {(each.topic, each.rule, each.offset) for each in found} == {
        (topic, "producer-sequences", 2) for topic in ("twice", "gap", "fenced")
    }
    assert len(found) == 9


# -- transactions ---------------------------------------------------------------------------------


def test_brokers_that_take_what_is_outside_of_a_transaction(tmp_path: Path) -> None:
    with rig(tmp_path / "rig", "producers_unchecked") as made:
        for topic in ("plain", "hanging"):
            made.create(topic)
            send_raw(made, topic, 0, attributes=TRANSACTIONAL)
        send_raw(made, "plain", 2)
        with transactions(made, "known") as producer:  # so that there is a coordinator's log
            transact(producer, ["hanging"], commit=True)
        made.stop()
        left = made.left("left")
    found = unexplained(left.audit(later_ms=WEEK_MS))
    plain, hanging = of_topic("plain", found), of_topic("hanging", found)
    assert rules(found) == {"transactions"}
    assert [(each.broker, each.offset) for each in plain[:3]] == [(1, 2), (2, 2), (3, 2)]
    assert {"outside of its transaction" in each.message for each in plain[:3]} == {True}
    assert [each.offset for each in hanging] == [0]
    assert "open, and no coordinator knows of it" in hanging[0].message


def test_coordinators_that_do_other_than_they_have_decided(tmp_path: Path) -> None:
    with rig(tmp_path / "rig", "markers_turned") as made:
        made.create("turned")
        with transactions(made, "turner") as producer:
            transact(producer, ["turned"], commit=True)
        made.stop()
        left = made.left("left")
    (found,) = unexplained(left.audit())
    assert (found.rule, found.topic, found.offset) == ("transactions", "turned", 6)
    assert "a marker says abort where transactional id turner has decided a commit" in found.message


def test_coordinators_that_forget_partitions(tmp_path: Path) -> None:
    with rig(tmp_path / "rig", "one_marker_enough") as made:
        for topic in ("all", "but-one"):
            made.create(topic)
        with transactions(made, "writer") as producer:
            transact(producer, ["all", "but-one"], commit=True)
        made.stop()
        left = made.left("left")
    assert left.audit() == []
    (found,) = unexplained(left.audit(later_ms=WEEK_MS))
    assert (found.rule, found.topic, found.offset) == ("transactions", "but-one", 0)
    assert "writer has none open: it is CompleteCommit" in found.message


def test_coordinators_whose_epoch_falls(tmp_path: Path) -> None:
    with rig(tmp_path / "rig", "coordinator_epochs_fall") as made:
        made.create("falling")
        with transactions(made, "falls") as producer:
            for _ in range(2):
                transact(producer, ["falling"], commit=True)
        made.stop()
        left = made.left("left")
    found = unexplained(left.audit())
    assert [(each.rule, each.broker, each.offset) for each in found] == [
        ("transactions", broker, 13) for broker in (1, 2, 3)
    ]


# -- producer-snapshots ---------------------------------------------------------------------------


def rewrite_snapshot(path: Path, number: int, **fields: object) -> None:
    """Let a producer in a snapshot have another state, under a checksum that is right."""
    entries = list(decode_snapshot(path.read_bytes()))
    entries[number] = replace(entries[number], **fields)
    path.write_bytes(encode_snapshot(entries))


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_snapshot_that_is_not_there(stopped: Left, number: int) -> None:
    path = stopped.segments(1, "ledger", ".snapshot")[number]
    path.unlink()
    (found,) = stopped.audit("ledger")
    assert (found.rule, found.broker, found.end_offset) == ("producer-snapshots", 1, int(path.stem))
    assert (found.message, found.explanation) == (f"{path.name}: it is not there", None)


def test_a_log_that_ends_before_its_last_snapshot(stopped: Left) -> None:
    header = damage.cut_last(stopped.segments(1, "numbered")[-1])
    (found,) = of_rule("producer-snapshots", stopped.audit("numbered"))
    assert (found.offset, found.end_offset) == (header.base_offset, header.next_offset)
    assert f"the log ends at {header.base_offset}" in found.message


def test_a_snapshot_with_a_flipped_bit(lived: ProducersLived, tmp_path: Path) -> None:
    for left, is_explained in ((lived.stopped, False), (lived.killed, True)):
        copy = left.copy(tmp_path / left.place.name)
        damage.flip(copy.segments(1, "ledger", ".snapshot")[1], 20)
        (found,) = copy.audit("ledger")
        assert (found.rule, found.segment, found.end_offset) == ("producer-snapshots", 20, 42)
        assert "fails its CRC" in found.message
        assert (found.explanation is not None) is is_explained


def test_a_snapshot_that_contradicts_the_log(stopped: Left) -> None:
    path = stopped.segments(1, "ledger", ".snapshot")[0]
    # Which producer has the smaller id goes by the coordinator that gave it first.
    entries = decode_snapshot(path.read_bytes())
    idle, busy = sorted(range(2), key=lambda number: entries[number].txn_first_offset is not None)
    batch = entries[idle].batches[0]._replace(last_sequence=4, last_offset=9)
    rewrite_snapshot(path, idle, producer_epoch=3, batches=(batch,), txn_first_offset=7)
    rewrite_snapshot(path, busy, txn_first_offset=None)
    found = stopped.audit("ledger")
    assert rules(found) == {"producer-snapshots"}
    # A producer that writes nothing more is as wrong in the snapshot after it.
    assert {(each.offset, each.end_offset) for each in found} - {(20, 42)} == {(0, 20)}
    said = "; ".join(each.message.partition(": ")[2] for each in found)
    for text in (
        "epoch 3, and by the log 0",
        "last sequence number 4, and by the log 11",
        "last offset 9, and by the log 12",
        "one from offset 7 on is open, and by the log no transaction is",
        "no transaction is open, and by the log one from offset 14 on is",
    ):
        assert text in said


@pytest.mark.parametrize("mutant", ["snapshots_not_written", "snapshots_without_batches"])
def test_brokers_without_right_snapshots(tmp_path: Path, mutant: str) -> None:
    with rig(tmp_path / "rig", mutant) as made:
        made.create("numbered")
        for _ in range(2):
            send_raw(made, "numbered", 0)
            made.about("numbered", "roll")
        made.stop()
        left = made.left("left")
    found = unexplained(left.audit("numbered"))
    assert rules(found) == {"producer-snapshots"}
    assert {each.broker for each in found} == {1, 2, 3}


# -- transaction-index ----------------------------------------------------------------------------


def rewrite_index(path: Path, base: int, number: int, **fields: int) -> AbortedTransaction:
    """Let an entry say something else."""
    entries = decode_transactions(path.read_bytes(), base)
    right = entries[number]
    entries[number] = right._replace(**fields)
    path.write_bytes(encode_transactions(entries))
    return right


def test_a_transaction_index_that_is_not_there(stopped: Left) -> None:
    stopped.segments(1, "ledger", ".txnindex")[1].unlink()
    found = stopped.audit("ledger")
    assert rules(found) == {"transaction-index"}
    assert [(each.broker, each.segment, each.offset) for each in found] == [
        (1, 20, 26),
        (1, 20, 27),
        (1, 20, 41),
    ]
    assert {"has no entry" in each.message for each in found} == {True}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"first_offset": 17}, "begins at offset 14, and its entry says 17"),
        ({"last_stable_offset": 20}, "last stable offset 20, and by the log 28 is it"),
        ({"producer_id": 99}, "there is an entry for the transaction of producer 99"),
        (
            {"last_offset": 30},
            "that the marker 30 aborts, and none is there",
        ),
    ],
)
def test_an_entry_of_a_transaction_index(stopped: Left, fields: dict[str, int], said: str) -> None:
    path = stopped.segments(2, "ledger", ".txnindex")[1]
    rewrite_index(path, 20, 1, **fields)
    found = stopped.audit("ledger")
    assert rules(found) == {"transaction-index"}
    assert {(each.broker, each.explanation) for each in found} == {(2, None)}
    assert any(said in each.message for each in found)


def test_a_last_stable_offset_before_the_segment(stopped: Left) -> None:
    path = stopped.segments(2, "ledger", ".txnindex")[1]
    right = rewrite_index(path, 20, 0, last_stable_offset=15)
    assert right.last_stable_offset == 14  # where the other producer's transaction began
    (found,) = stopped.audit("ledger")
    assert "says last stable offset 15, and by the log 14 is it" in found.message


def test_a_transaction_index_that_makes_no_sense(stopped: Left) -> None:
    path = stopped.segments(1, "ledger", ".txnindex")[0]
    path.write_bytes(path.read_bytes()[:-1])
    (found,) = stopped.audit("ledger")
    assert (found.rule, found.segment) == ("transaction-index", 0)
    assert "33 bytes are no entries" in found.message


def test_a_transaction_index_in_the_tier(stopped: Left) -> None:
    stopped.objects("tiered", ".txnindex")[1].unlink()
    found = stopped.audit("tiered")
    assert rules(found) == {"transaction-index"}
    assert {(each.place, each.segment) for each in found} == {("tier", 13)}


def test_brokers_that_index_no_aborts(tmp_path: Path) -> None:
    with rig(tmp_path / "rig", "aborts_not_indexed") as made:
        made.create("unindexed")
        with transactions(made, "writer") as producer:
            transact(producer, ["unindexed"], commit=False)
        made.stop()
        left = made.left("left")
    found = unexplained(left.audit("unindexed"))
    assert [(each.rule, each.broker, each.offset) for each in found] == [
        ("transaction-index", broker, 6) for broker in (1, 2, 3)
    ]
