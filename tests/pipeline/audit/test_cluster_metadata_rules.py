"""What the rules make of what cluster metadata say: elections, reassignments, deletions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from msgspec import structs

from fencepost.broker.metadata.image import PartitionImage
from fencepost.pipeline.audit.cluster_metadata import (
    Assignment,
    LeaderElection,
    MetadataReading,
    MetadataSource,
    PartitionClusterMetadata,
    PartitionIncarnation,
)
from fencepost.pipeline.audit.rule import (
    AbsentReplica,
    PartitionEvidence,
    PartitionMetadata,
    ReplicaMetadata,
    TierSegment,
    Violation,
)
from fencepost.pipeline.audit.rules import RULES
from fencepost.pipeline.datasource.schemas import BATCHES
from tests.pipeline.audit import trace_rows
from tests.pipeline.audit.log_rows import Row, batch, copied, in_tier, of_broker, replica
from tests.pipeline.audit.rigs import LOG_RULES
from tests.pipeline.audit.summaries import NOW_MS
from tests.pipeline.audit.trace_rows import event

SOURCE = MetadataSource(path="m", unit="offset", start=0, end=100)
CLEAN, UNCLEAN, UNKNOWN = False, True, None


def election(epoch: int, unclean: bool | None) -> LeaderElection:
    return LeaderElection(
        offset=epoch,
        time_ms=None,
        leader=epoch + 1,
        leader_epoch=epoch,
        partition_epoch=epoch,
        isr=(epoch + 1,),
        elr=(),
        is_recovering=False,
        is_unclean=unclean,
    )


def known(
    *unclean: bool | None, first: int = 0, replicas: tuple[int, ...] = (1, 2)
) -> PartitionIncarnation:
    """Elections of one epoch after the other."""
    return PartitionIncarnation(
        topic_id="a",
        created=0,
        deleted=None,
        elections=tuple(election(first + n, each) for n, each in enumerate(unclean)),
        assignments=(Assignment(offset=7, replicas=replicas),),
        last=PartitionImage(replicas=replicas, isr=replicas, leader=replicas[0]),
    )


def cluster(*incarnations: PartitionIncarnation) -> PartitionClusterMetadata:
    return PartitionClusterMetadata(
        reading=MetadataReading(source=SOURCE), incarnations=incarnations
    )


def judge(
    rows: Sequence[Row],
    *replicas: ReplicaMetadata,
    metadata: PartitionClusterMetadata,
    tier: Sequence[TierSegment] = (),
    trace: Sequence[Row] | None = None,
) -> list[Violation]:
    """What all rules about logs say."""
    evidence = PartitionEvidence(
        topic="t",
        partition=0,
        metadata=PartitionMetadata(
            replicas=replicas, tier=tuple(tier), with_tier=bool(tier), cluster=metadata
        ),
        batches=pa.Table.from_pylist(list(rows), schema=BATCHES),
        now_ms=NOW_MS,
        traces=None if trace is None else trace_rows.evidence(*trace).traces,
    )
    return [each for name in LOG_RULES for each in RULES[name].check(evidence)]


# -- committed records that another epoch has replaced ------------------------------------------

_ROWS = [
    batch(0, 4),
    batch(5, 9),
    *of_broker(2, batch(0, 4), batch(5, 9, 3)),
]
_PAIR = (
    replica(1, high_watermark=10),
    replica(2, high_watermark=10, epochs=((0, 0), (3, 5))),
)


def explanation(
    *incarnations: PartitionIncarnation, trace: Sequence[Row] | None = None
) -> str | None:
    """Of batches of epoch 3 in the place of committed ones of epoch 0."""
    (found,) = judge(_ROWS, *_PAIR, metadata=cluster(*incarnations), trace=trace)
    assert (found.rule, found.offset) == ("replicas-agree", 5)
    return found.explanation


_SAID = "the cluster metadata say that the election of leader epoch {} was unclean, leader {}"
_MAY_BE = (
    "an unclean election of leader epoch 3 explains it, and there is no trace and no cluster "
    "metadata that tell of every election before"
)


@pytest.mark.parametrize(
    ("elections", "expected"),
    [
        ((CLEAN, UNCLEAN, CLEAN, CLEAN), _SAID.format(1, 2)),
        ((CLEAN, CLEAN, CLEAN, UNCLEAN), _SAID.format(3, 4)),
        ((CLEAN, CLEAN, CLEAN, CLEAN), None),
        ((UNKNOWN, CLEAN, CLEAN, CLEAN, UNCLEAN), None),
        ((UNCLEAN, CLEAN, CLEAN, CLEAN, UNCLEAN), None),
        ((CLEAN, CLEAN, CLEAN), _MAY_BE),
        ((CLEAN, UNKNOWN, CLEAN, CLEAN), _MAY_BE),
    ],
)
def test_elections(elections: tuple[bool | None, ...], expected: str | None) -> None:
    assert explanation(known(*elections)) == expected


def test_a_history_that_begins_in_between_concludes_nothing_from_what_it_lacks() -> None:
    assert explanation(known(CLEAN, CLEAN, first=2)) == _MAY_BE
    assert explanation(known(CLEAN, UNCLEAN, first=2)) == _SAID.format(3, 4)


def test_metadata_of_another_topic_of_the_name_say_nothing() -> None:
    other = replace(known(CLEAN, UNCLEAN, CLEAN, CLEAN), topic_id="b")
    assert explanation(other) == _MAY_BE
    assert explanation(known(CLEAN, CLEAN, CLEAN, CLEAN), other) is None
    assert explanation() == _MAY_BE


def elected(epoch: int, *, unclean: bool = False) -> Row:
    details = {"leader": 1, "leader_epoch": epoch, "unclean": unclean}
    return event("leader_changed", details=details)


def test_metadata_and_a_trace() -> None:
    clean, unclean = known(CLEAN, CLEAN, CLEAN, CLEAN), known(CLEAN, CLEAN, UNCLEAN, CLEAN)
    assert explanation(clean, trace=[]) is None
    assert explanation(unclean, trace=[elected(3)]) == _SAID.format(2, 3)
    assert explanation(clean, trace=[elected(2, unclean=True)]) == (
        "the election of leader epoch 2 was unclean"
    )
    wiped = event("replica_wiped", broker=2)
    assert explanation(clean, trace=[wiped]) == "broker 2 lost its disk"
    assert explanation(known(CLEAN), trace=[]) == (
        "the trace does not tell of the election of leader epoch 3"
    )


def test_what_was_truncated_is_in_the_tier() -> None:
    rows = [
        batch(0, 4),
        batch(5, 9, 3),
        *in_tier("x", batch(0, 4), batch(5, 9)),
    ]
    leader = replica(1, epochs=((0, 0), (3, 5)))
    for elections, expected in (
        ((CLEAN, CLEAN, UNCLEAN, CLEAN), _SAID.format(2, 3)),
        ((CLEAN, CLEAN, CLEAN, CLEAN), None),
    ):
        metadata = cluster(known(*elections))
        (found,) = judge(rows, leader, metadata=metadata, tier=[copied("x", 0, 9)])
        assert (found.rule, found.explanation) == ("tier-and-log", expected)


def test_a_log_that_was_cut_back() -> None:
    rows = [batch(0, 4), *of_broker(2, batch(0, 4), batch(5, 6, 1))]
    cut = replica(1, clean=False, high_watermark=10)
    leader = replica(2, clean=False, high_watermark=7, epochs=((0, 0), (1, 5)))
    for elections, expected in (((CLEAN, UNCLEAN), _SAID.format(1, 2)), ((CLEAN, CLEAN), None)):
        (found,) = judge(rows, cut, leader, metadata=cluster(known(*elections)))
        assert (found.rule, found.explanation) == ("torn-tail", expected)


# -- replicas that no reader is served from -----------------------------------------------------

_NO_REPLICA = "the cluster metadata say that broker 1 is no replica any more, since offset 7"
_DELETED = "the cluster metadata say that the topic was deleted, at offset 9"


def left_over() -> list[tuple[PartitionIncarnation, str | None]]:
    """Metadata of a partition whose replica on broker 1 is looked at, and what they explain."""
    return [
        (known(CLEAN), None),
        (known(CLEAN, replicas=(2, 3)), _NO_REPLICA),
        (replace(known(CLEAN), deleted=9), _DELETED),
        (replace(known(CLEAN, replicas=(2, 3)), topic_id="b"), None),
    ]


@pytest.mark.parametrize(("metadata", "expected"), left_over())
def test_a_log_that_ends_too_early(metadata: PartitionIncarnation, expected: str | None) -> None:
    (found,) = judge([batch(0, 4)], replica(1, high_watermark=9), metadata=cluster(metadata))
    assert (found.rule, found.explanation) == ("torn-tail", expected)


@pytest.mark.parametrize(("metadata", "expected"), left_over())
def test_a_gap_in_front_of_a_log(metadata: PartitionIncarnation, expected: str | None) -> None:
    rows = [batch(8, 9, segment=8), *in_tier("x", batch(0, 4))]
    log = replica(1, segments=(8,))
    found = judge(rows, log, metadata=cluster(metadata), tier=[copied("x", 0, 4)])
    (gap,) = [each for each in found if each.rule == "tier-and-log"]
    assert (gap.offset, gap.end_offset, gap.explanation) == (5, 8, expected)


@pytest.mark.parametrize(("metadata", "expected"), left_over())
def test_what_was_acknowledged_elsewhere(
    metadata: PartitionIncarnation, expected: str | None
) -> None:
    given = trace_rows.evidence(
        *acknowledged(),
        metadata=PartitionMetadata(replicas=(replica(1),), cluster=cluster(metadata)),
        batches=[batch(0, 4)],
    )
    (found,) = RULES["acknowledged-present"].check(given)
    assert (found.offset, found.explanation) == (5, expected)


# -- elections that a trace lacks ---------------------------------------------------------------


def acknowledged() -> list[Row]:
    """Offsets 5 to 9 are acknowledged in epoch 0."""
    sent = {
        "base_offset": 5,
        "last_offset": 9,
        "count": 5,
        "epoch": 0,
        "crc": 50,
    }
    row = {"api": "Produce", "acks": -1, "offset": 5, "batches": [sent]}
    return [trace_rows.created("a"), row]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (known(CLEAN, CLEAN, CLEAN), None),
        (known(CLEAN, UNCLEAN, CLEAN), _SAID.format(1, 2)),
        (known(CLEAN, UNKNOWN, CLEAN), "the trace does not tell of the election of epoch 1"),
        (known(CLEAN, first=2), "the trace does not tell of the election of epoch 1"),
    ],
)
def test_an_election_that_the_trace_lacks(
    metadata: PartitionIncarnation, expected: str | None
) -> None:
    """As where the server was killed in between."""
    given = trace_rows.evidence(
        *acknowledged(),
        elected(2),
        metadata=PartitionMetadata(
            replicas=(replica(1, epochs=((0, 0), (2, 5))),), cluster=cluster(metadata)
        ),
        batches=[batch(0, 4)],
    )
    (found,) = RULES["acknowledged-present"].check(given)
    assert (found.offset, found.explanation) == (5, expected)


# -- a tier of which the metadata are known, and not the objects --------------------------------


@pytest.mark.parametrize("with_objects", [True, False])
def test_what_the_tier_is_said_to_have_is_there(with_objects: bool) -> None:
    metadata = PartitionMetadata(
        replicas=(replica(1, segments=(10,)),),
        tier=(copied("x", 0, 9),),
        with_tier=True,
        with_objects=with_objects,
    )
    given = trace_rows.evidence(
        *acknowledged(), metadata=metadata, batches=[batch(10, 14, segment=10)]
    )
    rules = ("acknowledged-present", "tier-and-log")
    found = {name: [each.offset for each in RULES[name].check(given)] for name in rules}
    missing = {"acknowledged-present": [5], "tier-and-log": [0]}
    assert found == (missing if with_objects else {name: [] for name in rules})


# -- assigned-replicas --------------------------------------------------------------------------


def lacking(
    *absent: AbsentReplica,
    replicas: tuple[ReplicaMetadata, ...] = (),
    isr: tuple[int, ...] = (1, 2),
    trace: Sequence[Row] | None = None,
) -> list[tuple[int | None, str | None, bool]]:
    """Brokers, explanations, and whether records are known to be missing."""
    metadata = known(CLEAN)
    metadata = replace(metadata, last=structs.replace(metadata.last, isr=isr))
    evidence = PartitionEvidence(
        topic="t",
        partition=0,
        metadata=PartitionMetadata(replicas=replicas, absent=absent, cluster=cluster(metadata)),
        batches=BATCHES.empty_table(),
        now_ms=NOW_MS,
        traces=None if trace is None else trace_rows.evidence(*trace).traces,
    )
    found = RULES["assigned-replicas"].check(evidence)
    return [(each.broker, each.explanation, each.missing is not None) for each in found]


def test_a_replica_in_sync_that_is_not_there() -> None:
    assert lacking() == []
    assert lacking(AbsentReplica(broker=1, end=10)) == [(1, None, True)]
    assert lacking(AbsentReplica(broker=1, end=0)) == [(1, None, False)]
    other = replica(2, high_watermark=5)
    assert lacking(AbsentReplica(broker=1, end=None), replicas=(other,)) == [(1, None, True)]
    both = (AbsentReplica(broker=1, end=7), AbsentReplica(broker=2, end=9))
    assert lacking(*both) == [(1, None, True), (2, None, True)]


def test_a_replica_that_may_not_be_there_yet() -> None:
    new = "nothing tells of a record, and broker 1 may not have made it yet"
    assert lacking(AbsentReplica(broker=1, end=None)) == [(1, new, False)]
    assert lacking(AbsentReplica(broker=1, end=None), replicas=(replica(2),)) == [(1, new, False)]
    late = "broker 1 is not in sync, and makes the directory when it starts"
    assert lacking(AbsentReplica(broker=1, end=5), isr=(2,)) == [(1, late, False)]
    wiped = event("replica_wiped", broker=1)
    assert lacking(AbsentReplica(broker=1, end=5), trace=[wiped]) == [
        (1, "broker 1 lost its disk", True)
    ]
    other = event("replica_wiped", broker=2)
    assert lacking(AbsentReplica(broker=1, end=5), trace=[other]) == [(1, None, True)]
