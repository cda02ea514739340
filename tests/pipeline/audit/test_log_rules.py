"""The rules about logs: they find what was done to what a cluster left, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fencepost.pipeline.audit.lineage.model import Truncation
from fencepost.pipeline.audit.rule import Missing, Violation
from fencepost.protocol.records import iter_headers
from fencepost.storage.formats.checkpoints import decode_offsets, encode_offsets
from tests.pipeline.audit import damage
from tests.pipeline.audit.log_histories import Lived, diverge, fill, live, lose_uncleanly
from tests.pipeline.audit.rigs import TIERED, Left, rig, unexplained


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    return live(tmp_path_factory.mktemp("lived"))


@pytest.fixture
def stopped(lived: Lived, tmp_path: Path) -> Left:
    """What a cluster left that was stopped, to be damaged."""
    return lived.stopped.copy(tmp_path / "stopped")


@pytest.fixture
def killed(lived: Lived, tmp_path: Path) -> Left:
    """What a cluster left that was killed, to be damaged."""
    return lived.killed.copy(tmp_path / "killed")


def rules(found: list[Violation]) -> set[str]:
    return {each.rule for each in found}


def of_rule(name: str, found: list[Violation]) -> list[Violation]:
    """What one rule finds: an index that names a damaged batch is told of as well."""
    return [each for each in found if each.rule == name]


# -- nothing wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize("traced", [True, False])
def test_nothing_is_found_where_nothing_is_wrong(lived: Lived, traced: bool) -> None:
    assert lived.killed.audit(traced=traced) == []
    assert lived.stopped.audit(traced=traced) == []


@pytest.mark.parametrize("traced", [True, False])
def test_no_replicas_part_where_all_were_truncated(lived: Lived, traced: bool) -> None:
    for left in (lived.killed, lived.stopped):
        found = left.lineages(traced=traced)
        assert set(found) >= {"plain", "tiered", "compacted", "truncated", "unclean"}
        assert [topic for topic, each in found.items() if any(one.parts for one in each)] == []


def test_what_was_lived(lived: Lived) -> None:
    left = lived.stopped
    assert len(left.segments(1, "plain")) == 3
    assert all(damage.batches(path) for path in left.segments(1, "plain"))
    for topic in ("compacted", "changed"):
        data = b"".join(path.read_bytes() for path in left.segments(2, topic))
        headers = [header for _, header in iter_headers(data)]
        assert sum(each.record_count for each in headers) < headers[-1].next_offset
    assert (
        "shortened 0 7"
        in (left.log(1, "shortened").parent / "log-start-offset-checkpoint").read_text()
    )
    assert damage.batches(left.segments(1, "shortened")[0])[0][1].base_offset < 7
    assert left.segments(1, "expired")[0].stem == f"{60:020d}"
    assert left.segments(1, "tiered")[0].stem == f"{90:020d}"
    starts = [int(path.name.partition("-")[0]) for path in left.objects("tiered")]
    assert starts == [0, 30, 60, 90]
    for topic in ("truncated", "unclean"):
        epochs = (left.log(1, topic) / "leader-epoch-checkpoint").read_text()
        assert len(epochs.splitlines()) >= 4, epochs


# -- crc-and-structure ----------------------------------------------------------------------------


def test_a_flipped_bit(stopped: Left) -> None:
    position = damage.flip_in(stopped.segments(2, "plain")[0], 3)
    (found,) = stopped.audit("plain")
    assert (found.rule, found.broker, found.segment, found.position) == (
        "crc-and-structure",
        2,
        0,
        position,
    )
    assert (found.offset, found.explanation) == (9, None)


def test_a_flipped_bit_of_a_broker_that_was_killed(killed: Left) -> None:
    damage.flip_in(killed.segments(2, "plain")[-1], 1)
    (found,) = killed.audit("plain")
    assert (found.rule, found.explanation) == ("crc-and-structure", None)


def test_what_was_written_last_may_be_damaged_by_a_crash(killed: Left) -> None:
    damage.flip_in(killed.segments(2, "plain")[-1], -1)
    (found,) = of_rule("crc-and-structure", killed.audit("plain"))
    assert found.explanation is not None
    assert "recovery" in found.explanation
    for broker in (1, 3):
        damage.flip_in(killed.segments(broker, "plain")[-1], -1)
    found_now = of_rule("crc-and-structure", killed.audit("plain"))
    assert [each.explanation for each in found_now] == [None] * 3


def test_bytes_that_are_no_batch(stopped: Left) -> None:
    path = stopped.segments(3, "plain")[1]
    position, header = damage.batches(path)[4]
    damage.overwrite(path, position, bytes(header.size))
    found = stopped.audit("plain")
    assert rules(found) <= {"crc-and-structure", "true-indexes"}
    (damaged,) = of_rule("crc-and-structure", found)
    assert (damaged.broker, damaged.position, damaged.explanation) == (3, position, None)


def test_a_flipped_bit_in_the_tier(stopped: Left) -> None:
    damage.flip_in(stopped.objects("tiered")[0], 2)
    (found,) = stopped.audit("tiered")
    assert (found.rule, found.place, found.segment) == ("crc-and-structure", "tier", 0)


# -- torn-tail ------------------------------------------------------------------------------------


def test_a_torn_tail(stopped: Left) -> None:
    damage.tear(stopped.segments(3, "plain")[-1])
    (found,) = stopped.audit("plain")
    assert (found.rule, found.broker, found.offset, found.explanation) == ("torn-tail", 3, 81, None)


def test_a_torn_tail_of_what_was_never_acknowledged(killed: Left) -> None:
    damage.tear(killed.segments(3, "plain")[-1])
    (found,) = killed.audit("plain")
    assert found.rule == "torn-tail"
    assert found.explanation is not None


def test_a_torn_tail_of_a_closed_segment(stopped: Left) -> None:
    damage.tear(stopped.segments(3, "plain")[0])
    (found,) = stopped.audit("plain")
    assert (found.rule, found.segment, found.explanation) == ("torn-tail", 0, None)


def test_a_tail_cut_between_two_batches(stopped: Left) -> None:
    header = damage.cut_last(stopped.segments(1, "plain")[-1])
    found = stopped.audit("plain")
    assert rules(found) <= {"torn-tail", "true-indexes", "producer-snapshots"}
    (short,) = of_rule("torn-tail", found)
    assert (short.broker, short.offset, short.end_offset, short.explanation) == (
        1,
        header.base_offset,
        81,
        None,
    )


def test_what_was_committed_may_be_missing_after_a_crash_where_others_have_it(
    killed: Left,
) -> None:
    damage.cut_last(killed.segments(1, "plain")[-1])
    short = of_rule("torn-tail", killed.audit("plain"))
    assert [each.explanation is not None for each in short] == [True]
    for broker in (2, 3):
        damage.cut_last(killed.segments(broker, "plain")[-1])
    short = of_rule("torn-tail", killed.audit("plain"))
    assert [each.explanation for each in short] == [None] * 3


def test_checkpoints_that_were_copied_after_the_logs_tell_of_no_loss(killed: Left) -> None:
    """A broker that runs while it is copied has them so. A log that was cut since is newer."""
    logs = [killed.segments(broker, "plain")[-1] for broker in (1, 2, 3)]
    for log in logs:
        damage.cut_last(log)
        os.utime(log, (0, 0))
    short = of_rule("torn-tail", killed.audit("plain"))
    assert all("its checkpoints are newer" in (each.explanation or "") for each in short)
    assert [each.missing for each in short] == [None] * 3
    os.utime(logs[0])
    short = of_rule("torn-tail", killed.audit("plain"))
    assert [each.missing for each in short] == [Missing.FROM_COPY, None, None]
    assert [each.explanation is None for each in short] == [True, False, False]


def test_what_was_durable_is_missing(killed: Left) -> None:
    recovery_points = killed.log(1, "plain").parent / "recovery-point-offset-checkpoint"
    assert "\nplain 0 60\n" in recovery_points.read_text(), "closed segments were flushed"
    path = killed.segments(1, "plain")[-1]
    damage.lose_segment(path)
    damage.cut_last(killed.segments(1, "plain")[-1])
    short = of_rule("torn-tail", killed.audit("plain"))
    assert [(each.broker, each.offset, each.explanation) for each in short] == [(1, 57, None)]


# -- contiguous-offsets ---------------------------------------------------------------------------


def test_a_lost_segment(stopped: Left) -> None:
    damage.lose_segment(stopped.segments(2, "plain")[1])
    (found,) = stopped.audit("plain")
    assert (found.rule, found.broker, found.offset, found.end_offset) == (
        "contiguous-offsets",
        2,
        30,
        60,
    )


def test_a_batch_that_was_written_twice(stopped: Left) -> None:
    header = damage.write_twice(stopped.segments(1, "truncated")[-1])
    found = stopped.audit("truncated")
    assert rules(found) == {"contiguous-offsets"}
    assert {each.offset for each in found} == {header.base_offset}


def test_a_batch_that_was_written_twice_to_a_compacted_log(stopped: Left) -> None:
    damage.write_twice(stopped.segments(1, "compacted")[-1])
    assert rules(stopped.audit("compacted")) == {"contiguous-offsets"}


def test_a_segment_by_another_name(stopped: Left) -> None:
    for path in stopped.log(2, "plain").glob(f"{30:020d}.*"):
        path.rename(path.with_name(f"{33:020d}{path.suffix}"))
    found = stopped.audit("plain")
    assert "contiguous-offsets" in rules(found)


# -- monotonic-epochs -----------------------------------------------------------------------------


def test_an_epoch_that_falls(stopped: Left) -> None:
    header = damage.give_epoch(stopped.segments(1, "truncated")[-1], -2, 0)
    found = stopped.audit("truncated")
    assert rules(found) == {"monotonic-epochs", "replicas-agree"}
    own = of_rule("monotonic-epochs", found)
    assert {(each.broker, each.offset) for each in own} == {(1, header.base_offset)}
    assert unexplained(found) == found


def test_a_checkpoint_that_lacks_an_epoch(stopped: Left) -> None:
    file = stopped.log(3, "truncated") / "leader-epoch-checkpoint"
    version, count, first, second, *others = file.read_text().splitlines()
    assert second.split()[1] == "12"
    file.write_text("\n".join([version, str(int(count) - 1), first, *others, ""]))
    (found,) = stopped.audit("truncated")
    assert (found.rule, found.broker, found.offset) == ("monotonic-epochs", 3, 12)


@pytest.mark.parametrize("text", [None, "", "0\n0\n", "0\n2\n1 12\n0 0\n", "0\n2\n0 0\n1 900\n"])
def test_a_checkpoint_that_makes_no_sense(stopped: Left, text: str | None) -> None:
    file = stopped.log(3, "plain") / "leader-epoch-checkpoint"
    if text is None:
        file.unlink()
    else:
        file.write_text(text)
    found = stopped.audit("plain")
    assert rules(found) == {"monotonic-epochs"}
    assert {each.broker for each in unexplained(found)} == {3}


def test_a_crash_may_leave_a_checkpoint_without_the_newest_epoch(killed: Left) -> None:
    file = killed.log(1, "truncated") / "leader-epoch-checkpoint"
    file.write_text("0\n1\n0 0\n")
    own = of_rule("monotonic-epochs", killed.audit("truncated"))
    assert own
    assert unexplained(own) == []


# -- replicas-agree -------------------------------------------------------------------------------


def test_replicas_with_other_records(stopped: Left) -> None:
    header = damage.falsify(stopped.segments(2, "plain")[0], 4)
    found = stopped.audit("plain")
    assert rules(found) == {"replicas-agree"}
    assert [(each.offset, each.end_offset) for each in found] == [
        (header.base_offset, header.next_offset)
    ] * 2
    assert unexplained(found) == found


def test_records_before_the_log_start_need_not_agree(stopped: Left) -> None:
    damage.falsify(stopped.segments(2, "shortened")[0], 0)
    found = stopped.audit("shortened")
    assert rules(found) == {"replicas-agree"}
    assert unexplained(found) == []
    damage.falsify(stopped.segments(2, "shortened")[0], 3)
    assert rules(unexplained(stopped.audit("shortened"))) == {"replicas-agree"}


def test_a_log_start_that_is_wrong_hides_nothing(stopped: Left) -> None:
    file = stopped.log(1, "plain").parent / "log-start-offset-checkpoint"
    entries = decode_offsets(file.read_bytes())
    file.write_bytes(encode_offsets({**entries, ("plain", 0): 99_999}))
    damage.falsify(stopped.segments(2, "plain")[0], 4)
    found = unexplained(stopped.audit("plain"))
    assert rules(found) == {"log-start-in-log", "replicas-agree"}


def test_committed_records_that_an_unclean_election_lost(tmp_path: Path) -> None:
    with rig(tmp_path / "rig") as made:
        made.create("t")
        made.create("again", 1, 2)
        made.produce("again", 9)
        lose_uncleanly(made, "t")
        made.control._ask("DELETE", "/v1/topics/again")
        made.create("again", 2, 3)  # broker 1 still has the log of another topic of this name
        made.produce("again", 12)
        made.stop()
        left = made.left("left")
    found = left.audit(traced=True)
    (again,) = of_rule("one-topic-id", found)
    assert again.broker == 1
    assert "deleted and created again" in (again.explanation or "")
    found.remove(again)
    assert rules(found) == {"replicas-agree"}
    assert {(each.offset, each.broker) for each in found} == {(6, 1)}
    assert all("unclean" in (each.explanation or "") for each in found)
    assert len(found) == 2
    found = left.audit("t")
    assert len(found) == 2
    assert unexplained(found) == []
    for traced in (True, False):
        (lineage,) = left.lineages(traced=traced)["t"]
        assert [(each.broker, each.other) for each in lineage.parted()] == [(1, 2), (1, 3)]
        lost, kept = lineage.pair(1, 2), lineage.pair(2, 1)
        assert lost is not None
        assert kept is not None
        (range_,) = lost.single
        assert (range_.start, range_.end, range_.committed_end) == (6, 15, 15)
        assert range_.acknowledged == (9 if traced else None)
        assert lost.truncation == Truncation(offset=6, records=9)
        assert kept.answer is not None
        assert (kept.answer.asked_epoch, kept.answer.end_offset) == (range_.epoch, 6)
        assert lineage.leader is not None
        assert lineage.leader.broker == 2
    assert len(left.lineages()["again"]) == 2


# -- tier-and-log ---------------------------------------------------------------------------------


def test_a_lost_object(stopped: Left) -> None:
    stopped.objects("tiered")[0].unlink()
    found = unexplained(stopped.audit("tiered"))
    assert rules(found) == {"tier-and-log"}
    assert {(each.offset, each.end_offset) for each in found} == {(0, 30)}
    assert {each.broker for each in found} == {None, 1, 2, 3}


def test_a_lost_segment_in_the_tier(stopped: Left) -> None:
    for path in stopped.objects("tiered", ""):
        if path.name.startswith(f"{30:020d}"):
            path.unlink()
    found = stopped.audit("tiered")
    assert rules(found) == {"tier-and-log"}
    assert {(each.offset, each.end_offset, each.explanation) for each in found} == {(30, 60, None)}


def test_all_is_lost_in_the_tier(stopped: Left) -> None:
    for path in stopped.objects("tiered", ""):
        path.unlink()
    found = stopped.audit("tiered")
    assert rules(found) == {"tier-and-log"}
    assert {(each.broker, each.offset, each.end_offset) for each in found} == {
        (broker, 0, 90) for broker in (1, 2, 3)
    }


def test_an_object_that_was_cut(stopped: Left) -> None:
    damage.cut_last(stopped.objects("tiered")[1])
    assert "tier-and-log" in rules(unexplained(stopped.audit("tiered")))


def test_other_records_in_the_tier(stopped: Left) -> None:
    header = damage.falsify(stopped.objects("tiered")[-1], 2)
    assert header.base_offset == 96
    found = stopped.audit("tiered")
    assert rules(found) == {"tier-and-log"}
    assert {(each.broker, each.offset, each.explanation) for each in found} == {
        (broker, 96, None) for broker in (1, 2, 3)
    }


def test_a_lost_object_of_what_is_still_here(stopped: Left) -> None:
    stopped.objects("tiered")[-1].unlink()
    found = stopped.audit("tiered")
    assert [(each.rule, each.offset) for each in found] == [("tier-and-log", 90)] * len(found)
    assert unexplained(found) == []


def test_metadata_that_say_other_epochs(stopped: Left) -> None:
    def other_epochs(fields: dict[str, object]) -> None:
        fields["segmentLeaderEpochs"] = [{"leaderEpoch": 0, "offset": 60}]

    damage.change_metadata(stopped.objects("tiered", ".json")[2], other_epochs)
    found = unexplained(stopped.audit("tiered"))
    assert rules(found) == {"tier-and-log"}


def test_metadata_that_make_no_sense(stopped: Left) -> None:
    stopped.objects("tiered", ".json")[0].write_text("{}")
    found = unexplained(stopped.audit("tiered"))
    assert rules(found) == {"tier-and-log"}
    assert any("metadata" in each.message for each in found)


def test_copies_that_are_not_finished_count_for_nothing(stopped: Left) -> None:
    def begin(fields: dict[str, object]) -> None:
        fields["remoteLogSegmentState"] = "COPY_SEGMENT_STARTED"

    damage.change_metadata(stopped.objects("tiered", ".json")[0], begin)
    found = stopped.audit("tiered")
    assert {(each.offset, each.end_offset) for each in found} == {(0, 30)}


# -- true-indexes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_that_is_not_so(stopped: Left, suffix: str) -> None:
    path = stopped.segments(2, "plain", suffix)[0]
    assert path.stat().st_size >= 12
    damage.flip(path, 7)
    found = stopped.audit("plain")
    assert rules(found) == {"true-indexes"}
    assert {(each.broker, each.segment, each.explanation) for each in found} == {(2, 0, None)}


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_that_is_not_there(stopped: Left, suffix: str) -> None:
    stopped.segments(2, "plain", suffix)[1].unlink()
    (found,) = stopped.audit("plain")
    assert (found.rule, found.segment, found.explanation) == ("true-indexes", 30, None)


def test_an_index_in_the_tier(stopped: Left) -> None:
    path = stopped.objects("tiered", ".index")[0]
    damage.flip(path, 7)
    found = stopped.audit("tiered")
    assert rules(found) == {"true-indexes"}
    assert {each.place for each in found} == {"tier"}


def test_an_index_of_a_broker_that_was_killed(killed: Left) -> None:
    path = killed.segments(2, "plain", ".index")[0]
    damage.flip(path, 7)
    found = killed.audit("plain")
    assert rules(found) == {"true-indexes"}
    assert unexplained(found) == found


# -- brokers that do wrong ------------------------------------------------------------------------


def test_clusters_with_faults_in_them(tmp_path: Path) -> None:
    names = ("nothing_truncated", "everything_closed_deleted", "epochs_of_segments_forgotten")
    with rig(tmp_path / "rig", *names) as made:
        diverge(made, "diverged")
        made.create("gap", **TIERED)
        fill(made, "gap", 1)
        made.about("gap", "tier", action="upload")
        fill(made, "gap", 2)
        made.about("gap", "tier", action="delete-local")
        made.create("forgotten", **TIERED)
        made.produce("forgotten", 6)
        made.about("forgotten", "elect", leader=2)
        fill(made, "forgotten", 1)
        made.about("forgotten", "tier", action="upload")
        made.stop()
        left = made.left("left")
    found = left.audit(traced=True)
    assert {(each.topic, each.rule) for each in unexplained(found)} == {
        ("diverged", "replicas-agree"),
        ("gap", "tier-and-log"),
        ("forgotten", "tier-and-log"),
    }
    assert {each.offset for each in found if each.topic == "diverged"} == {12}
    gaps = {(each.offset, each.end_offset) for each in found if each.topic == "gap"}
    assert gaps == {(30, 90)}
