"""What the rules about logs make of rows: what is wrong, what is explained, what is neither."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from fencepost.pipeline.audit.rule import (
    PartitionEvidence,
    PartitionMetadata,
    ReplicaMetadata,
    TierSegment,
    Violation,
)
from fencepost.pipeline.audit.rules import RULES
from fencepost.pipeline.datasource.schemas import BATCHES, TRACES
from tests.pipeline.audit.log_rows import (
    Row,
    batch,
    copied,
    in_tier,
    missing,
    of_broker,
    replica,
)
from tests.pipeline.audit.rigs import LOG_RULES
from tests.pipeline.audit.summaries import NOW_MS


def event(kind: str, broker: int | None = None, **details: object) -> Row:
    return {"kind": kind, "topic": "t", "partition": 0, "broker": broker} | {
        "details": json.dumps(details)
    }


def elected(epoch: int, *, unclean: bool = False) -> Row:
    return event("leader_changed", leader_epoch=epoch, unclean=unclean)


def judge(
    rows: Sequence[Row],
    *replicas: ReplicaMetadata,
    tier: Sequence[TierSegment] = (),
    trace: Sequence[Row] | None = None,
    compacted: bool = False,
) -> list[Violation]:
    """What all rules about logs say."""
    evidence = PartitionEvidence(
        topic="t",
        partition=0,
        metadata=PartitionMetadata(
            replicas=replicas,
            tier=tuple(tier),
            with_tier=bool(tier),
            compacted=compacted,
        ),
        batches=pa.Table.from_pylist(list(rows), schema=BATCHES),
        now_ms=NOW_MS,
        traces=None if trace is None else pa.Table.from_pylist(list(trace), schema=TRACES),
    )
    return [each for name in LOG_RULES for each in RULES[name].check(evidence)]


def told(found: Sequence[Violation]) -> list[tuple[str, int | None, bool]]:
    """Rules, offsets, and whether there is an explanation."""
    return [(each.rule, each.offset, each.explanation is not None) for each in found]


# -- logs alone -----------------------------------------------------------------------------------


def test_nothing_is_known() -> None:
    assert judge([]) == []
    assert judge([], replica()) == []


def test_a_log_of_which_nothing_but_batches_is_known() -> None:
    """It was made after the checkpoints were read."""
    found = judge([batch(0, 4), batch(5, 9)])
    assert told(found) == [("monotonic-epochs", 0, True)]


def test_offsets_that_hide_in_what_is_damaged_are_not_missing() -> None:
    damaged: Row = {"place": "log", "broker": 1, "segment": 0, "position": 500, "size": 500}
    damaged |= {"problem": "structure", "message": "no batch"}
    rows = [batch(0, 4), damaged, batch(10, 14)]
    assert told(judge(rows, replica())) == [("crc-and-structure", 5, False)]
    del rows[1]
    assert told(judge(rows, replica())) == [("contiguous-offsets", 5, False)]
    assert judge(rows, replica(), compacted=True) == []


@pytest.mark.parametrize(
    "signs", [{"count": 3}, {"attributes": 0x40}], ids=["records are gone", "delete horizon"]
)
def test_batches_tell_that_a_cleaner_was_there(signs: Row) -> None:
    rows = [batch(0, 4) | signs, batch(10, 14)]
    assert judge(rows, replica()) == []


@pytest.mark.parametrize("compacted", [False, True])
def test_no_cleaner_leaves_an_offset_twice(compacted: bool) -> None:
    rows = [batch(0, 4), batch(5, 9), batch(8, 12, position=1000)]
    found = judge(rows, replica(), compacted=compacted)
    assert told(found) == [("contiguous-offsets", 8, False)]


@pytest.mark.parametrize(("recovery_point", "explained"), [(5, True), (6, False)])
def test_what_was_durable_is_not_lost_by_a_crash(recovery_point: int, explained: bool) -> None:
    torn: Row = {"place": "log", "broker": 1, "segment": 0, "position": 500, "size": 40}
    torn |= {"problem": "trailing", "message": "40 bytes at the end are no whole batch"}
    crashed = replica(clean=False, recovery_point=recovery_point)
    found = judge([batch(0, 4), torn], crashed)
    assert told(found) == [("torn-tail", 5, explained)]


@pytest.mark.parametrize(
    ("recovery_point", "segments", "found"),
    [
        (0, (0,), []),
        (0, (0, 5), [("true-indexes", None, True)]),
        (5, (0, 5), [("true-indexes", None, True)]),
        (6, (0, 5), [("true-indexes", None, False)]),
    ],
    ids=["active", "closed", "indexed after it was synced", "closed and durable"],
)
def test_what_is_indexed_again_after_a_crash(
    recovery_point: int, segments: tuple[int, ...], found: list[tuple[str, int | None, bool]]
) -> None:
    false: Row = {"place": "log", "broker": 1, "segment": 0, "position": 8, "size": 8}
    false |= {"problem": "offset-index", "message": "entry 1 is not so"}
    crashed = replica(clean=False, segments=segments, recovery_point=recovery_point)
    rows = [batch(0, 4), false, batch(5, 9, segment=segments[-1])]
    assert told(judge(rows, crashed)) == found
    in_order = replace(crashed, clean=True)
    assert told(judge(rows, in_order)) == [("true-indexes", None, False)]


def test_what_retention_may_take_while_it_is_read() -> None:
    rows = [missing(".log", 0), missing(".index", 0), batch(5, 9, segment=5)]
    runs = replica(clean=False, segments=(0, 5), recovery_point=10)
    found = judge(rows, runs)
    assert told(found) == [("crc-and-structure", 0, True), ("true-indexes", None, True)]
    found = judge(rows, replica(segments=(0, 5), recovery_point=10))
    assert told(found) == [("crc-and-structure", 0, False), ("true-indexes", None, False)]
    rows = [batch(0, 4), missing(".log", 5), batch(10, 14, segment=10)]
    runs = replica(clean=False, segments=(0, 5, 10), recovery_point=15)
    assert told(judge(rows, runs))[0] == ("crc-and-structure", 5, False)


def test_a_disk_that_was_lost() -> None:
    empty = replica(clean=False, high_watermark=10, recovery_point=10)
    assert told(judge([], empty, trace=[])) == [("torn-tail", 0, False)]
    assert told(judge([], empty, trace=[event("replica_wiped", 1)])) == [("torn-tail", 0, True)]
    assert told(judge([], empty, trace=[event("replica_wiped", 2)])) == [("torn-tail", 0, False)]


def test_a_log_that_was_cut_back_to_an_unclean_leader() -> None:
    """The checkpoint of its high watermark lags behind."""
    rows = [batch(0, 4), *of_broker(2, batch(0, 4), batch(5, 6, 1))]
    cut = replica(1, clean=False, high_watermark=10)
    leader = replica(2, clean=False, high_watermark=7, epochs=((0, 0), (1, 5)))
    clean, unclean = [elected(1)], [elected(1, unclean=True)]
    assert told(judge(rows, cut, leader, trace=unclean)) == [("torn-tail", 5, True)]
    assert told(judge(rows, cut, leader)) == [("torn-tail", 5, True)]
    assert told(judge(rows, cut, leader, trace=clean)) == [("torn-tail", 5, False)]
    in_order = replace(cut, clean=True)
    assert told(judge(rows, in_order, leader, trace=unclean)) == [("torn-tail", 5, False)]


@pytest.mark.parametrize(("log_start", "found"), [(0, 1), (7, 0)])
def test_epochs_before_the_log_start_are_forgotten(log_start: int, found: int) -> None:
    rows = [batch(0, 4), batch(5, 9), batch(10, 14)]
    kept = replica(epochs=((0, 7),), log_start=log_start)
    assert len(judge(rows, kept)) == found
    assert judge(rows, replace(kept, clean=False)) == []


@pytest.mark.parametrize(
    ("epochs", "explained"),
    [(((0, 0),), True), (((0, 0), (2, 5)), False)],
    ids=["it lacks the newest", "it says another"],
)
def test_what_a_crash_may_leave_in_the_checkpoint_of_epochs(
    epochs: tuple[tuple[int, int], ...], explained: bool
) -> None:
    found = judge([batch(0, 4), batch(5, 9, 1)], replica(clean=False, epochs=epochs))
    assert told(found) == [("monotonic-epochs", 5, explained)]


@pytest.mark.parametrize(
    ("rows", "epochs", "message"),
    [
        ([batch(0, 4, 1), batch(5, 9, 0)], ((1, 0),), "epoch 0 follows one of 1"),
        ([batch(0, 4)], ((0, 0), (1, 900)), "lets epoch 1 begin at 900, and the log ends at 5"),
        ([batch(0, 4)], ((0, 0), (0, 3)), "epoch 0 from offset 3 on follows epoch 0 from 0 on"),
    ],
)
def test_epochs_that_make_no_sense(
    rows: list[Row], epochs: tuple[tuple[int, int], ...], message: str
) -> None:
    found = judge(rows, replica(epochs=epochs))
    assert {each.rule for each in found} == {"monotonic-epochs"}
    assert [message in each.message for each in found].count(True) == 1


def test_messages_of_old_formats_have_no_epochs() -> None:
    assert judge([batch(0, 4, -1), batch(5, 9, -1)], replica(epochs=())) == []


# -- replicas -------------------------------------------------------------------------------------

_OLD = [batch(0, 4), batch(5, 9)]
_NEW = of_broker(2, batch(0, 4), batch(5, 9, 2), batch(10, 14, 2))


def pair(
    committed: int, epochs: tuple[tuple[int, int], ...] = ((0, 0),)
) -> tuple[ReplicaMetadata, ReplicaMetadata]:
    return (
        replica(1, high_watermark=committed, epochs=epochs),
        replica(2, high_watermark=committed, epochs=((0, 0), (2, 5))),
    )


def test_what_was_never_committed_may_differ() -> None:
    (found,) = judge([*_OLD, *_NEW], *pair(5))
    assert told([found]) == [("replicas-agree", 5, True)]
    assert "broker 1 does not know them as committed" in str(found.explanation)


def test_a_high_watermark_that_lags_hides_no_loss() -> None:
    old, new = pair(10)
    lagging = replace(new, high_watermark=0)
    clean = [elected(1), elected(2)]
    found = judge([*_OLD, *_NEW], old, lagging, trace=clean)
    assert told(found) == [("replicas-agree", 5, False)]
    found = judge([*_OLD, *_NEW], replace(old, high_watermark=0), new, trace=clean)
    assert told(found) == [("replicas-agree", 5, True)], "who comes back truncates"


@pytest.mark.parametrize(
    ("trace", "explained"),
    [
        (None, True),
        ([elected(1), elected(2, unclean=True)], True),
        ([elected(1, unclean=True), elected(2)], True),
        ([elected(1)], True),
        ([elected(1), elected(2), event("replica_wiped", 2)], True),
        ([elected(1), elected(2)], False),
        ([elected(1), elected(2), elected(3, unclean=True)], False),
    ],
)
def test_what_was_committed_may_differ_behind_an_unclean_election(
    trace: list[Row] | None, explained: bool
) -> None:
    found = judge([*_OLD, *_NEW], *pair(10), trace=trace)
    assert told(found) == [("replicas-agree", 5, explained)]


def test_no_high_watermark_excuses_two_contents_of_one_epoch() -> None:
    rows = [*_OLD, *of_broker(2, batch(0, 4), batch(5, 9, crc=1))]
    found = judge(rows, replica(1), replica(2))
    assert told(found) == [("replicas-agree", 5, False)]


def test_what_was_deleted_may_differ() -> None:
    rows = [*_OLD, *of_broker(2, batch(0, 4, crc=1), batch(5, 9))]
    found = judge(rows, replica(1, log_start=5, epochs=((0, 5),)), replica(2))
    assert told(found) == [("replicas-agree", 0, True)]
    assert told(judge(rows, replica(1), replica(2))) == [("replicas-agree", 0, False)]


def test_a_log_start_beyond_the_log_is_damage_and_hides_none() -> None:
    rows = [*_OLD, *of_broker(2, batch(0, 4, crc=1), batch(5, 9))]
    wrong = replica(1, log_start=99_999)
    found = judge(rows, wrong, replica(2))
    assert told(found) == [("log-start-in-log", 99_999, False), ("replicas-agree", 0, False)]
    # A mismatch of epochs, and a gap below the tier, are found as well.
    assert told(judge([batch(0, 4, 1)], replace(wrong, epochs=((0, 0),)))) == [
        ("log-start-in-log", 99_999, False),
        ("monotonic-epochs", 0, False),
    ]
    rows = [*in_tier("s", batch(5, 9)), batch(10, 14, segment=10)]
    found = judge(rows, here(10, log_start=99_999), tier=[copied("s", 5, 9)])
    assert ("tier-and-log", 0, False) in told(found)
    crashed = replace(wrong, clean=False)
    assert told(judge(_OLD, crashed)) == [("log-start-in-log", 99_999, True)]
    assert judge(_OLD, replica(1, log_start=10)) == [], "all may be deleted"


def test_logs_that_part_do_not_meet_again() -> None:
    rows = [*_OLD, batch(10, 14, 2), *_NEW]
    found = judge(rows, *pair(0, epochs=((0, 0), (2, 10))), trace=[elected(2, unclean=True)])
    assert told(found) == [("replicas-agree", 5, False)]


def test_old_formats_can_not_tell() -> None:
    rows = [batch(0, 4, -1), *of_broker(2, batch(0, 4, -1, crc=1))]
    both = replica(1, epochs=()), replica(2, epochs=())
    assert told(judge(rows, *both)) == [("replicas-agree", 0, True)]
    found = judge(rows, *(replace(each, high_watermark=5) for each in both))
    assert told(found) == [("replicas-agree", 0, True)]


def test_topics_of_the_same_name_are_not_compared() -> None:
    rows = [*_OLD, *of_broker(2, batch(0, 4, crc=1))]
    found = judge(rows, replica(1), replica(2, topic_id="b"))
    assert told(found) == [("one-topic-id", None, True)]
    assert len(judge(rows, replica(1), replica(2))) == 1


# -- the tier -------------------------------------------------------------------------------------


def here(
    start: int,
    *,
    clean: bool = True,
    log_start: int | None = None,
    epochs: tuple[tuple[int, int], ...] = ((0, 0),),
) -> ReplicaMetadata:
    return replica(segments=(start,), clean=clean, log_start=log_start, epochs=epochs)


def test_a_gap_at_the_beginning_needs_to_be_certain() -> None:
    rows = [*in_tier("s", batch(5, 9)), batch(10, 14, segment=10)]
    tier = [copied("s", 5, 9)]
    assert told(judge(rows, here(10), tier=tier)) == [("tier-and-log", 0, False)]
    assert judge(rows, here(10, log_start=5, epochs=((0, 5),)), tier=tier) == []
    # The tier was expired, and the log start is not checkpointed yet.
    assert judge(rows, here(10, clean=False), tier=tier) == []


def test_a_gap_in_the_middle_is_one() -> None:
    rows = [*in_tier("s", batch(0, 4)), batch(10, 14, segment=10)]
    for clean in (True, False):
        found = judge(rows, here(10, clean=clean), tier=[copied("s", 0, 4)])
        assert told(found) == [("tier-and-log", 5, False)]
    lost = [event("tier_lost", objects=6)]
    found = judge(rows, here(10), tier=[copied("s", 0, 4)], trace=lost)
    assert told(found) == [("tier-and-log", 5, True)]


def test_copies_of_several_leaders_may_overlap() -> None:
    rows = [
        *in_tier("a", batch(0, 4), batch(5, 9)),
        *in_tier("b", batch(5, 9), batch(10, 14)),
        batch(15, 19, segment=15),
    ]
    assert judge(rows, here(15), tier=[copied("a", 0, 9), copied("b", 5, 14)]) == []


def test_a_copy_of_another_lineage_fills_no_gap() -> None:
    rows = [*in_tier("s", batch(0, 4), batch(5, 9, 1)), batch(10, 14, 2, segment=10)]
    tier = [copied("s", 0, 9, (0, 0), (1, 5))]
    log = here(10, epochs=((0, 0), (2, 5)))
    clean = [elected(1), elected(2)]
    found = judge(rows, log, tier=tier, trace=clean)
    assert told(found) == [("tier-and-log", 5, False)] * 2
    found = judge(rows, log, tier=tier)
    assert told(found) == [("tier-and-log", 5, False), ("tier-and-log", 5, True)]


def test_what_was_truncated_may_be_in_the_tier_after_an_unclean_election() -> None:
    rows = [batch(0, 4), batch(5, 9, 2), *in_tier("s", batch(0, 4), batch(5, 9, 1))]
    tier = [copied("s", 0, 9, (0, 0), (1, 5))]
    log = replica(epochs=((0, 0), (2, 5)))
    unclean = [elected(1), elected(2, unclean=True)]
    assert told(judge(rows, log, tier=tier, trace=unclean)) == [("tier-and-log", 5, True)]
    # A leader whose directory is not here may have copied it.
    newer = [copied("s", 0, 9, (0, 0), (3, 5))]
    rows = [batch(0, 4), *in_tier("s", batch(0, 4), batch(5, 9, 3))]
    assert judge(rows, replica(), tier=newer) == []


def test_an_object_that_ends_with_half_a_batch() -> None:
    torn: Row = {"base_offset": None, "position": 500, "size": 40, "problem": "trailing"}
    torn |= {"message": "40 bytes at the end are no whole batch"}
    rows = [*in_tier("s", batch(0, 4)), {**torn, "place": "tier", "segment": 0, "segment_id": "s"}]
    found = judge([*rows, batch(5, 9, segment=5)], here(5), tier=[copied("s", 0, 4)])
    assert [(each.rule, each.place, each.position) for each in found] == [
        ("torn-tail", "tier", 500)
    ]


def test_offsets_that_an_object_lacks() -> None:
    rows = [*in_tier("s", batch(0, 4), batch(10, 14)), batch(15, 19, segment=15)]
    found = judge(rows, here(15), tier=[replace(copied("s", 0, 14), bytes=1000)])
    assert [(each.rule, each.place, each.offset, each.end_offset) for each in found] == [
        ("contiguous-offsets", "tier", 5, 10)
    ]


def test_what_is_not_finished_or_of_another_topic_counts_for_nothing() -> None:
    rows = [batch(0, 4), *in_tier("s", batch(0, 4, crc=1))]
    other = copied("s", 0, 4)
    assert told(judge(rows, replica(), tier=[other])) == [("tier-and-log", 0, False)]
    assert judge(rows, replica(), tier=[replace(other, finished=False)]) == []
    assert judge(rows, replica(), tier=[replace(other, topic_id="b")]) == []


@pytest.mark.parametrize(
    "told_otherwise",
    [{"start_offset": 1}, {"end_offset": 5}, {"bytes": 499}, {"epochs": ((1, 0),)}],
)
def test_an_object_is_what_its_metadata_say(told_otherwise: Row) -> None:
    rows = [batch(0, 4), *in_tier("s", batch(0, 4))]
    assert judge(rows, replica(), tier=[copied("s", 0, 4)]) == []
    wrong = replace(copied("s", 0, 4), **told_otherwise)  # type: ignore[arg-type]  # one of its own
    found = judge(rows, replica(), tier=[wrong])
    assert ("tier-and-log", False) in {(rule, explained) for rule, _, explained in told(found)}


def test_epochs_before_the_log_start_go_by_the_one_there() -> None:
    rows = [batch(5, 9, 1, segment=5), *in_tier("s", batch(0, 2), batch(3, 4, 1))]
    tier = [copied("s", 0, 4, (1, 0))]
    started = replica(segments=(5,), epochs=((1, 3),), log_start=3)
    assert judge(rows, started, tier=tier) == []


def test_what_was_deleted_need_not_be_in_the_tier() -> None:
    gone: Row = {"place": "tier", "segment": 0, "segment_id": "s", "problem": "missing"}
    gone |= {"message": "s.log is not there"}
    rows = [gone, batch(5, 9, segment=5)]
    tier = [copied("s", 0, 4)]
    assert judge(rows, here(5, log_start=5, epochs=((0, 5),)), tier=tier) == []
    assert told(judge(rows, here(5), tier=tier)) == [("tier-and-log", 0, False)] * 2
