"""The lineage of a partition: KIP-101, KIP-279 and KIP-320 as their logs tell them."""

from __future__ import annotations

import pytest

from fencepost.pipeline.audit.lineage.model import Ancestor, EpochAnswer, Parting, Truncation
from tests.pipeline.audit.lineage.lineages import committed, lineages, pair, ranges, written
from tests.pipeline.audit.log_rows import batch, copied, in_tier, replica
from tests.pipeline.audit.summaries import event, traces

OLD = written(1, (0, 0, 15))
"""It had 6 to 14 alone, committed them, and came back as no leader."""
NEW = written(2, (0, 0, 6), (1, 6, 30))
"""It was elected uncleanly when it had 0 to 5."""


UNCLEAN_LOSS = (
    replica(1, high_watermark=15),
    replica(2, high_watermark=30, epochs=((0, 0), (1, 6))),
)


def test_replicas_that_agree_have_one_lineage() -> None:
    rows = written(1, (0, 0, 6), (2, 6, 20)) + written(2, (0, 0, 6), (2, 6, 20))
    (lineage,) = lineages(rows, replica(1), replica(2))
    assert not lineage.parts
    for side in lineage.sides:
        assert [(run.epoch, run.start, run.end) for run in side.runs] == [(0, 0, 6), (2, 6, 20)]
        assert (side.newest_epoch, side.records) == (2, 20)
    found = pair(lineage, 1, 2)
    assert (found.ancestor, found.parting) == (Ancestor(epoch=2, end=20), None)
    assert (found.single, found.truncation) == ((), Truncation(offset=20, records=0))


def test_an_unclean_election_after_a_loss_is_seen_from_both_sides() -> None:
    (lineage,) = lineages([*OLD, *NEW], *UNCLEAN_LOSS)
    assert lineage.parts
    assert [(side.broker, side.leads) for side in lineage.sides] == [(1, False), (2, True)]
    old, new = pair(lineage, 1, 2), pair(lineage, 2, 1)
    assert old.ancestor == new.ancestor == Ancestor(epoch=0, end=6)
    assert old.parting == Parting(offset=6, epoch=0, other_epoch=1, converges_at=None)
    assert new.parting == Parting(offset=6, epoch=1, other_epoch=0, converges_at=None)
    assert ranges(old) == [("diverging", 0, 6, 15)]
    assert ranges(new) == [("diverging", 1, 6, 30)]
    (lost,), (kept,) = old.single, new.single
    assert (lost.records, committed(lost), lost.acknowledged) == (9, (15, 1), None)
    assert (kept.records, committed(kept)) == (24, (30, 2))
    # KIP-101: the old leader asks where epoch 0 ends, and cuts there.
    assert old.truncation == Truncation(offset=6, records=9)
    # KIP-320: and so is a client told that has read up to 14 in epoch 0.
    assert new.answer == EpochAnswer(asked_epoch=0, epoch=0, end_offset=6)
    # Were the old one elected, the other would lose all that it has of epoch 1 (KIP-279).
    assert new.truncation == Truncation(offset=6, records=24)
    assert old.answer == EpochAnswer(asked_epoch=1, epoch=0, end_offset=15)


def test_without_checkpoints_the_batches_tell_the_same() -> None:
    (known,) = lineages([*OLD, *NEW], *UNCLEAN_LOSS)
    (found,) = lineages([*OLD, *NEW])
    assert [each.parting for each in found.pairs] == [each.parting for each in known.pairs]
    assert [each.truncation for each in found.pairs] == [each.truncation for each in known.pairs]
    assert [each.answer for each in found.pairs] == [each.answer for each in known.pairs]
    assert {committed(single) for each in found.pairs for single in each.single} == {(None, None)}


def test_a_high_watermark_says_up_to_where_records_were_committed() -> None:
    (lineage,) = lineages([*OLD, *NEW], replica(1, high_watermark=10), replica(2))
    (lost,) = pair(lineage, 1, 2).single
    assert (lost.start, lost.end, committed(lost)) == (6, 15, (10, 1))
    # It is not believed beyond the log end, nor of what another log has in its place.
    (lineage,) = lineages([*OLD, *NEW], replica(1), replica(2, high_watermark=99))
    assert [committed(each) for each in pair(lineage, 1, 2).single] == [(None, None)]
    assert [committed(each) for each in pair(lineage, 2, 1).single] == [(30, 2)]


def test_the_high_watermark_of_another_replica_counts_for_what_both_have() -> None:
    rows = [*OLD, *NEW, *written(3, (0, 0, 12))]
    (lineage,) = lineages(rows, replica(1), replica(2), replica(3, high_watermark=12))
    (lost,) = pair(lineage, 1, 2).single
    assert committed(lost) == (12, 3)


def test_the_trace_tells_what_was_acknowledged() -> None:
    def produced(offset: int, acks: int, error: int = 0) -> dict[str, object]:
        row = batch(offset, offset, 0)
        sent = {name: row[name] for name in ("base_offset", "last_offset", "count", "epoch", "crc")}
        return {"api": "Produce", "acks": acks, "error": error, "offset": offset, "batches": [sent]}

    trace = traces(
        produced(5, -1), produced(6, -1), produced(7, -1), produced(8, 1), produced(9, -1, 19)
    )
    (lineage,) = lineages([*OLD, *NEW], *UNCLEAN_LOSS, trace=trace)
    assert [each.acknowledged for each in pair(lineage, 1, 2).single] == [2]
    assert [each.acknowledged for each in pair(lineage, 2, 1).single] == [0]


def test_cluster_metadata_and_the_trace_tell_who_led_last() -> None:
    def leader(*elections: tuple[int, int], traced: bool = False) -> int | None:
        trace = traces(event("topic_created", topic="orders", leaders=[[1, 5]]))
        (lineage,) = lineages(
            [*OLD, *NEW], *UNCLEAN_LOSS, trace=trace if traced else None, elections=elections
        )
        return None if lineage.leader is None else lineage.leader.broker

    assert leader() == 2
    assert leader(traced=True) == 1
    assert leader((2, 4), (1, 5), (-1, 6)) == 1
    assert leader((2, 6), traced=True) == 2
    # Its log is not there: then the newest epoch decides.
    assert leader((1, 5), (3, 6)) == 2


def test_a_replica_that_is_held_back_has_not_parted() -> None:
    rows = written(1, (0, 0, 6), (1, 6, 30)) + written(2, (0, 0, 6))
    (lineage,) = lineages(rows, replica(1, epochs=((0, 0), (1, 6))), replica(2, high_watermark=6))
    assert not lineage.parts
    assert ranges(pair(lineage, 1, 2)) == [("beyond_end", 1, 6, 30)]
    assert ranges(pair(lineage, 2, 1)) == []
    assert pair(lineage, 2, 1).truncation == Truncation(offset=6, records=0)
    assert pair(lineage, 2, 1).answer == EpochAnswer(asked_epoch=1, epoch=0, end_offset=6)


def test_what_a_deposed_leader_wrote_behind_an_epoch_that_wrote_nothing_has_parted() -> None:
    """KIP-101: broker 1 leads in epoch 2 from offset 10 on, and no record was written since."""
    rows = written(1, (1, 0, 10)) + written(2, (1, 0, 15))
    (lineage,) = lineages(rows, replica(1, epochs=((1, 0), (2, 10))), replica(2, epochs=((1, 0),)))
    assert lineage.leader is not None
    assert lineage.leader.broker == 1
    found = pair(lineage, 2, 1)
    assert found.parting == Parting(offset=10, epoch=1, other_epoch=2, converges_at=None)
    assert ranges(found) == [("diverging", 1, 10, 15)]
    assert found.truncation == Truncation(offset=10, records=5)


def test_an_epoch_that_wrote_nothing_and_was_followed_by_another_parts_nothing() -> None:
    """Broker 2 led in epoch 1 from offset 8 on; broker 1, which kept 8 and 9, does so again."""
    rows = written(1, (0, 0, 10), (2, 10, 20)) + written(2, (0, 0, 8))
    (lineage,) = lineages(
        rows, replica(1, epochs=((0, 0), (2, 10))), replica(2, epochs=((0, 0), (1, 8)))
    )
    assert not lineage.parts
    assert pair(lineage, 2, 1).truncation == Truncation(offset=8, records=0)


def test_a_follower_compares_older_epochs_until_both_logs_know_one() -> None:
    """The story of KIP-279: both were elected while the other was away, twice."""
    rows = written(1, (0, 0, 10), (1, 10, 20), (3, 20, 30))
    rows += written(2, (0, 0, 10), (2, 10, 25), (4, 25, 28))
    (lineage,) = lineages(rows)
    first, second = pair(lineage, 1, 2), pair(lineage, 2, 1)
    assert first.parting == Parting(offset=10, epoch=1, other_epoch=2, converges_at=None)
    # 3 is answered with 2, which ends at 25; of that broker 1 knows 1, which ends at 20; 1 is
    # answered with 0, which ends at 10.
    assert first.truncation == Truncation(offset=10, records=20)
    assert second.truncation == Truncation(offset=10, records=18)
    assert first.answer == EpochAnswer(asked_epoch=4, epoch=3, end_offset=30)
    assert second.answer == EpochAnswer(asked_epoch=3, epoch=2, end_offset=25)


def test_a_batch_is_truncated_as_a_whole() -> None:
    rows = written(1, (0, 0, 15), size=5) + written(2, (0, 0, 10), (0, 10, 12), (1, 12, 20), size=5)
    (lineage,) = lineages(rows)
    assert pair(lineage, 1, 2).truncation == Truncation(offset=10, records=5)


def test_batches_that_differ_in_one_epoch_part_although_the_epochs_agree() -> None:
    other = written(2, (0, 0, 10))
    other[4] |= {"crc": 7}
    (lineage,) = lineages([*written(1, (0, 0, 10)), *other], replica(1), replica(2))
    found = pair(lineage, 1, 2)
    assert found.parting == Parting(offset=4, epoch=0, other_epoch=0, converges_at=5)
    assert found.ancestor == Ancestor(epoch=0, end=4)
    assert ranges(found) == [("diverging", 0, 4, 5)]
    # What one of them has behind where they agree again is no part of the difference.
    (lineage,) = lineages([*written(1, (0, 0, 12)), *other], replica(1), replica(2))
    assert ranges(pair(lineage, 1, 2)) == [("diverging", 0, 4, 5), ("beyond_end", 0, 10, 12)]


def test_batches_that_differ_behind_the_end_of_one_log_part_as_well() -> None:
    """The last batch of the one log is cut shorter than that of the other."""
    rows = [batch(0, 4), batch(5, 9), batch(0, 4, broker=2), batch(5, 6, broker=2)]
    (lineage,) = lineages(rows)
    assert pair(lineage, 1, 2).parting == Parting(
        offset=5, epoch=0, other_epoch=0, converges_at=None
    )


def test_a_gap_is_no_parting_and_is_told() -> None:
    rows = written(1, (0, 0, 10)) + written(2, (0, 0, 3), (0, 6, 10))
    (lineage,) = lineages(rows, replica(1), replica(2))
    assert not lineage.parts
    assert ranges(pair(lineage, 1, 2)) == [("gap", 0, 3, 6)]
    assert pair(lineage, 1, 2).ancestor == Ancestor(epoch=0, end=10)
    (lineage,) = lineages(rows, replica(1), replica(2), compacted=True)
    assert ranges(pair(lineage, 1, 2)) == []


def test_compacted_logs_part_by_their_epochs_where_no_batch_is_in_both() -> None:
    rows = [batch(0, 2), batch(6, 8), batch(20, 22)]
    rows += [batch(0, 2, broker=2), batch(3, 5, 1, broker=2), batch(9, 11, 1, broker=2)]
    (lineage,) = lineages(rows, compacted=True)
    assert pair(lineage, 1, 2).parting == Parting(
        offset=3, epoch=0, other_epoch=1, converges_at=None
    )
    assert ranges(pair(lineage, 1, 2)) == [("diverging", 0, 6, 23)]
    (lineage,) = lineages([batch(0, 2), batch(6, 8), batch(20, 22, 2), *rows[3:]], compacted=True)
    # What compaction has left of epoch 0 says nothing of where it ended.
    assert pair(lineage, 1, 2).parting == Parting(
        offset=3, epoch=0, other_epoch=1, converges_at=None
    )


def test_compacted_batches_of_different_epochs_are_not_the_same_though_they_overlap() -> None:
    rows = [batch(0, 2), batch(6, 11), batch(0, 2, broker=2), batch(9, 11, 1, broker=2)]
    (lineage,) = lineages(rows, compacted=True)
    assert pair(lineage, 1, 2).parting == Parting(
        offset=9, epoch=0, other_epoch=1, converges_at=None
    )
    assert ranges(pair(lineage, 2, 1)) == [("diverging", 1, 9, 12)]


def test_what_is_deleted_in_one_log_is_before_its_start() -> None:
    rows = written(1, (0, 0, 6), (1, 6, 10)) + written(2, (1, 8, 10))
    (lineage,) = lineages(
        rows, replica(1), replica(2, segments=(8,), epochs=((1, 8),), log_start=8)
    )
    assert not lineage.parts
    assert ranges(pair(lineage, 1, 2)) == [("before_start", 0, 0, 6), ("before_start", 1, 6, 8)]


def test_a_partition_without_a_batch_has_a_lineage() -> None:
    (lineage,) = lineages([], replica(1, epochs=((3, 0),)), replica(2, epochs=None))
    assert [(s.broker, s.start, s.end, s.newest_epoch) for s in lineage.sides] == [
        (1, None, 0, 3),
        (2, None, 0, None),
    ]
    assert not lineage.parts
    assert pair(lineage, 2, 1).truncation == Truncation(offset=0, records=0)
    (nothing,) = lineages([])
    assert (nothing.sides, nothing.pairs, nothing.leader) == ((), (), None)


def test_old_formats_know_no_epoch_to_compare() -> None:
    rows = written(1, (-1, 0, 10)) + written(2, (-1, 0, 10))
    (lineage,) = lineages(rows, replica(1, epochs=None), replica(2, epochs=None))
    found = pair(lineage, 1, 2)
    assert (found.truncation, found.answer, lineage.leader) == (None, None, None)
    assert found.ancestor == Ancestor(epoch=-1, end=10)
    (lineage,) = lineages(written(1, (-1, 0, 10)) + written(2, (0, 0, 5)))
    assert pair(lineage, 1, 2).truncation is None
    assert pair(lineage, 2, 1).answer is None


def test_incarnations_of_a_topic_are_compared_each_by_itself() -> None:
    rows = [*OLD, *NEW, *written(3, (5, 0, 4))]
    found = lineages(rows, replica(1), replica(2), replica(3, topic_id="b", epochs=((5, 0),)))
    assert [(each.topic_id, [side.broker for side in each.sides]) for each in found] == [
        ("a", [1, 2]),
        ("b", [3]),
    ]


def test_many_ranges_are_counted_and_some_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    where = "fencepost.pipeline.audit.lineage.partition_lineage.MAX_SINGLE"
    monkeypatch.setattr(where, 3)
    rows = written(1, (0, 0, 21)) + written(2, *((0, at, at + 1) for at in range(0, 22, 2)))
    (lineage,) = lineages(rows, replica(1), replica(2))
    found = pair(lineage, 1, 2)
    assert (len(found.single), found.single_total) == (3, 10)


# -- the tier -------------------------------------------------------------------------------------


def test_what_only_the_tier_has_is_of_the_lineage_of_the_epochs() -> None:
    rows = written(1, (1, 20, 30))
    rows += in_tier("x", *written(1, (0, 0, 10))) + in_tier(
        "y", *written(1, (0, 10, 12), (1, 12, 25))
    )
    (lineage,) = lineages(
        rows,
        replica(1, segments=(20,), epochs=((0, 0), (1, 12))),
        tier=[copied("x", 0, 9), copied("y", 10, 24, (0, 10), (1, 12))],
    )
    assert not lineage.parts
    (_, tier) = lineage.sides
    assert (tier.broker, tier.start, tier.end) == (None, 0, 25)
    assert [(run.epoch, run.start, run.end) for run in tier.runs] == [(0, 0, 12), (1, 12, 25)]
    seen = pair(lineage, None, 1)
    assert seen.ancestor == Ancestor(epoch=1, end=25)
    assert ranges(seen) == [("before_start", 0, 0, 12), ("before_start", 1, 12, 20)]
    assert {committed(each) for each in seen.single} == {(12, None), (20, None)}
    assert ranges(pair(lineage, 1, None)) == [("beyond_end", 1, 25, 30)]
    assert (seen.truncation, seen.answer) == (None, None)
    assert pair(lineage, 1, None).answer == EpochAnswer(asked_epoch=1, epoch=1, end_offset=30)


def test_a_tier_with_an_older_lineage_parts_segment_by_segment() -> None:
    """Two leaders have copied 30 and later; the records of the deposed one stay in the tier."""
    rows = written(1, (1, 0, 40), (2, 40, 60))
    rows += in_tier("a", *written(1, (1, 0, 30)))
    rows += in_tier("b", *written(1, (1, 30, 50)))
    rows += in_tier("c", *written(1, (1, 30, 40), (2, 40, 45)))
    (lineage,) = lineages(
        rows,
        replica(1, epochs=((1, 0), (2, 40))),
        tier=[
            copied("a", 0, 29, (1, 0)),
            copied("b", 30, 49, (1, 30)),
            copied("c", 30, 44, (1, 30), (2, 40)),
        ],
    )
    tier = lineage.sides[-1]
    assert [(run.epoch, run.start, run.end, run.records) for run in tier.runs] == [
        (1, 0, 50, 50),
        (2, 40, 45, 5),
    ]
    seen = pair(lineage, None, 1)
    assert seen.parting == Parting(offset=40, epoch=1, other_epoch=2, converges_at=None)
    assert seen.ancestor == Ancestor(epoch=2, end=45)
    assert ranges(seen) == [("diverging", 1, 40, 50)]
    assert ranges(pair(lineage, 1, None)) == [("diverging", 2, 45, 50), ("beyond_end", 2, 50, 60)]


def test_epochs_in_the_tier_that_can_not_be_count_for_nothing() -> None:
    rows = written(1, (1, 10, 20)) + in_tier("x", *written(1, (1, 0, 10)))
    there = [copied("x", 0, 9, (-1, 0), (0, -5), (1, 0))]
    (lineage,) = lineages(rows, replica(1, epochs=((1, 0),), log_start=0), tier=there)
    assert not lineage.parts


def test_the_tier_parts_where_its_first_segment_does() -> None:
    rows = written(1, (1, 0, 40), (2, 40, 70))
    rows += in_tier("a", *written(1, (1, 40, 50))) + in_tier("b", *written(1, (1, 50, 60)))
    segments = [copied("a", 40, 49, (1, 40)), copied("b", 50, 59, (1, 50))]
    for there, offset in ((segments, 40), (segments[1:], 50)):
        (lineage,) = lineages(rows, replica(1, epochs=((1, 0), (2, 40))), tier=there)
        assert pair(lineage, None, 1).parting == Parting(
            offset=offset, epoch=1, other_epoch=2, converges_at=None
        )


def test_an_older_lineage_in_the_tier_shows_when_the_log_itself_is_gone_there() -> None:
    rows = written(1, (2, 60, 70)) + in_tier("b", *written(1, (1, 30, 50)))
    (lineage,) = lineages(
        rows,
        replica(1, segments=(60,), epochs=((1, 0), (2, 40))),
        tier=[copied("b", 30, 49, (1, 30))],
    )
    parting = Parting(offset=40, epoch=1, other_epoch=2, converges_at=None)
    assert pair(lineage, None, 1).parting == parting
    # The log had epoch 1 up to 59, and so was never truncated where the segment has epoch 2.
    rows = written(1, (3, 60, 70)) + in_tier("b", *written(1, (1, 30, 40), (2, 40, 50)))
    (lineage,) = lineages(
        rows,
        replica(1, segments=(60,), epochs=((1, 0), (3, 60))),
        tier=[copied("b", 30, 49, (1, 30), (2, 40))],
    )
    parting = Parting(offset=40, epoch=2, other_epoch=1, converges_at=None)
    assert pair(lineage, None, 1).parting == parting
    # And the other way round: the tier has the newer lineage, the log was never truncated.
    rows = written(1, (0, 0, 15)) + in_tier("b", *written(1, (0, 0, 6), (1, 6, 30)))
    (lineage,) = lineages(rows, replica(1), tier=[copied("b", 0, 29, (0, 0), (1, 6))])
    seen = pair(lineage, 1, None)
    assert seen.parting == Parting(offset=6, epoch=0, other_epoch=1, converges_at=None)
    assert seen.ancestor == Ancestor(epoch=0, end=6)
    assert ranges(seen) == [("diverging", 0, 6, 15)]
    assert ranges(pair(lineage, None, 1)) == [("diverging", 1, 6, 30)]


def test_a_replica_behind_the_tier_has_not_parted() -> None:
    rows = written(1, (0, 0, 10)) + in_tier("b", *written(1, (0, 0, 20), (1, 20, 30)))
    (lineage,) = lineages(rows, replica(1), tier=[copied("b", 0, 29, (0, 0), (1, 20))])
    assert not lineage.parts
    assert ranges(pair(lineage, None, 1)) == [("beyond_end", 0, 10, 20), ("beyond_end", 1, 20, 30)]
    assert ranges(pair(lineage, 1, None)) == []


def test_the_tier_tells_that_what_it_shares_was_committed() -> None:
    rows = [*OLD, *NEW, *in_tier("a", *written(1, (0, 0, 12)))]
    (lineage,) = lineages(rows, replica(1), replica(2), tier=[copied("a", 0, 11)])
    (lost,) = pair(lineage, 1, 2).single
    assert committed(lost) == (12, None)


def test_other_batches_in_the_tier_part_although_the_epochs_agree() -> None:
    copy = in_tier("a", *written(1, (0, 0, 12)))
    copy[3] |= {"crc": 1}
    (lineage,) = lineages([*OLD, *copy], replica(1), tier=[copied("a", 0, 11)])
    assert pair(lineage, 1, None).parting == Parting(
        offset=3, epoch=0, other_epoch=0, converges_at=4
    )
    assert ranges(pair(lineage, None, 1)) == [("diverging", 0, 3, 4)]
    assert ranges(pair(lineage, 1, None)) == [("diverging", 0, 3, 4), ("beyond_end", 0, 12, 15)]


def test_of_a_tier_whose_objects_were_not_read_the_metadata_tell_the_epochs() -> None:
    rows = written(1, (1, 35, 40), (2, 40, 60))
    (lineage,) = lineages(
        rows,
        replica(1, segments=(35,), epochs=((1, 0), (2, 40))),
        tier=[
            copied("a", 0, 29, (1, 0)),
            copied("b", 30, 49, (1, 30)),
            copied("c", 30, 69, (1, 30), (2, 40)),
        ],
        with_objects=False,
    )
    tier = lineage.sides[-1]
    assert (tier.broker, tier.start, tier.end, tier.newest_epoch) == (None, 0, 70, 2)
    assert [(run.epoch, run.start, run.end) for run in tier.runs] == [(1, 0, 50), (2, 40, 70)]
    seen = pair(lineage, None, 1)
    assert seen.parting == Parting(offset=40, epoch=1, other_epoch=2, converges_at=None)
    assert seen.ancestor == Ancestor(epoch=2, end=60)
    assert ranges(seen) == [
        ("before_start", 1, 0, 35),
        ("diverging", 1, 40, 50),
        ("beyond_end", 2, 60, 70),
    ]
    assert ranges(pair(lineage, 1, None)) == []


def test_a_segment_whose_records_are_lost_is_no_side_though_its_metadata_are_there() -> None:
    (lineage,) = lineages(OLD, replica(1), tier=[copied("a", 0, 9)], with_objects=True)
    assert len(lineage.sides) == 1
    (lineage,) = lineages(OLD, replica(1), tier=[copied("a", 0, 9)], with_objects=False)
    assert len(lineage.sides) == 2


def test_metadata_say_nothing_of_offsets_that_a_segment_does_not_have() -> None:
    """An epoch that began before the segment, and one that ended before it."""
    segment = copied("a", 10, 19, (0, 2), (1, 5))
    (lineage,) = lineages([], replica(1), tier=[segment], with_objects=False)
    tier = lineage.sides[-1]
    assert [(run.epoch, run.start, run.end) for run in tier.runs] == [(1, 10, 20)]
