"""Conversations about what a transaction leaves in partitions: markers, and offsets of groups."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from fencepost.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from fencepost.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from fencepost.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from fencepost.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from fencepost.protocol.messages.sync_group import SyncGroupRequest
from fencepost.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from fencepost.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.broker.transactions.talk import Talk
from tests.broker.transactions.workbench import Producer
from tests.harness.driver import versions
from tests.harness.records import batch
from tests.harness.typed_requests import produce_request

OFFSETS: Final = "__consumer_offsets"
UNKNOWN_ID: Final = (1 << 40) + 7
"""A producer id that no broker has given out."""
_FIRST_WITH_MEMBER: Final = 3
_FIRST_WITH_IMPLICIT: Final = 5
"""The version of TxnOffsetCommit that adds the group's partition by itself (KIP-890)."""


def producer(talk: Talk, name: str, *, version: int = 5) -> Producer:
    return Producer(talk, talk.name(name), version=version)  # type: ignore[arg-type]  # one of its versions


# -- markers ------------------------------------------------------------------------------------


def markers(talk: Talk) -> None:
    """Each version writes markers: in and out of transactions, old, again, to no partition."""
    for version in versions("write_txn_markers"):
        for transaction_version in (0, 1, 2) if version >= 2 else (0,):
            _written(talk, version, transaction_version)
        _answered_by_producer(talk, version)


def _marker(
    who: Producer, topic: str, *partitions: int, coordinator_epoch: int = 0, level: int = 0
) -> WritableTxnMarker:
    """The marker that commits what a producer has written with its epoch."""
    return WritableTxnMarker(
        producer_id=who.id,
        producer_epoch=who.epoch,
        transaction_result=True,
        topics=(WritableTxnMarkerTopic(name=topic, partition_indexes=partitions),),
        coordinator_epoch=coordinator_epoch,
        transaction_version=level,
    )


def _write(talk: Talk, version: int, *written: WritableTxnMarker) -> None:
    talk.ask(1, "write_txn_markers", version, WriteTxnMarkersRequest(markers=written))


def _written(talk: Talk, version: int, level: int) -> None:
    """By a producer that is new to its partition, and then has a transaction there."""
    topic = talk.create(f"{version}-{level}")
    who = producer(talk, f"{version}-{level}")
    who.init()
    who.init()
    marker = _marker(who, topic, 0, level=level)
    _write(talk, version, marker)
    _write(talk, version, marker)
    _show(talk, topic)
    _open(talk, who, topic)
    _show(talk, topic)
    for epoch in (who.epoch - 1, who.epoch, who.epoch, who.epoch + 1):
        _write(talk, version, replace(marker, producer_epoch=epoch))
        _show(talk, topic)
    fresh = replace(marker, producer_epoch=who.epoch + 2)
    _write(talk, version, replace(fresh, coordinator_epoch=3, transaction_result=False))
    _show(talk, topic)
    _write(talk, version, replace(fresh, coordinator_epoch=2))
    _write(talk, version, replace(fresh, producer_epoch=fresh.producer_epoch + 1))
    _write(talk, version, _marker(who, topic, 0, 1, 7, -1, level=level))
    _write(talk, version, _marker(who, talk.name("nope"), 0, level=level))
    _write(talk, version, _marker(who, topic, level=level))
    _show(talk, topic)


def _answered_by_producer(talk: Talk, version: int) -> None:
    """Several markers in a request, and none."""
    topic = talk.create(f"several-{version}")
    one, other = producer(talk, f"one-{version}"), producer(talk, f"other-{version}")
    for who in (one, other):
        who.init()
    _write(talk, version)
    _write(talk, version, replace(_marker(one, topic, 0), topics=()))
    _write(talk, version, _marker(one, topic, 0), _marker(other, topic, 0, 1))
    _write(talk, version, _marker(one, topic, 0), _marker(one, topic, 1))
    _show(talk, topic, 0, 1)


def _open(talk: Talk, who: Producer, topic: str) -> None:
    """Let a producer write to partition 0 in a transaction."""
    who.add(0, topic=topic, version=5)
    records = batch(b"v", producer=(who.id, who.epoch, 0), transactional=True)
    request = replace(produce_request((topic, 0, records)), transactional_id=who.transactional_id)
    talk.ask(1, "produce", 11, request)


def _show(talk: Talk, topic: str, *partitions: int) -> None:
    """What the leader knows of its producers."""
    asked = TopicRequest(name=topic, partition_indexes=partitions or (0,))
    talk.ask(1, "describe_producers", 0, DescribeProducersRequest(topics=(asked,)))


# -- a group's offsets --------------------------------------------------------------------------


def group_offsets(talk: Talk) -> None:
    """Each version commits offsets in a transaction, which ends well, badly, or was never there."""
    talk.find_group_coordinator()
    for version in versions("txn_offset_commit"):
        who = producer(talk, f"{version}", version=5 if version >= _FIRST_WITH_IMPLICIT else 4)
        group = talk.name(f"g{version}")
        stranger = producer(talk, f"stranger-{version}")
        stranger.id, stranger.epoch = UNKNOWN_ID, 0
        _commit(talk, version, stranger, group, 1)
        who.init()
        _commit(talk, version, who, group, 1)
        for commit in (True, False):
            _transaction(talk, version, who, group, commit=commit)
        _refused(talk, version, who, group)
        if version >= _FIRST_WITH_MEMBER:
            _of_member(talk, version, who)


def _transaction(talk: Talk, version: int, who: Producer, group: str, *, commit: bool) -> None:
    """Commit offsets, look at them while they are pending, and end the transaction."""
    if version < _FIRST_WITH_IMPLICIT:
        _add_offsets(talk, who, group)
    _commit(talk, version, who, group, 10, partitions=(0, 1, 7))
    _commit(talk, version, who, group, 11)
    _offsets(talk, group)
    who.end(commit=commit)
    talk.settle(who.transactional_id)
    _offsets(talk, group)


def _refused(talk: Talk, version: int, who: Producer, group: str) -> None:
    """What is wrong with the producer, the group or the topic."""
    older, newer = _with_epoch(talk, who, -1), _with_epoch(talk, who, 1)
    _commit(talk, version, older, group, 1)
    _commit(talk, version, newer, group, 1)
    _commit(talk, version, who, "", 1)
    _commit(talk, version, who, group, 1, topic=talk.name("nope"))
    _commit(talk, version, who, group, 1, topic=talk.name("nope"), partitions=())
    _commit(talk, version, who, group, 1, partitions=())
    _commit(talk, version, who, group, 1, metadata="m" * 5000)
    nameless = _with_epoch(talk, who, 0)
    nameless.transactional_id = ""
    _commit(talk, version, nameless, talk.name(f"nameless-{version}"), 1)
    who.end(commit=False)
    talk.settle(who.transactional_id)
    if version >= _FIRST_WITH_MEMBER:
        _commit(talk, version, who, group, 1, generation=1, member="x")
        _commit(talk, version, who, talk.name("no group"), 1, generation=1, member="x")


def _of_member(talk: Talk, version: int, who: Producer) -> None:
    """With generation and member of a consumer (KIP-447)."""
    group = talk.name(f"joined-{version}")
    join = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=1_000_000,
        rebalance_timeout_ms=1000,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range"),),
    )
    joined = talk.ask(1, "join_group", 3, join)
    member, generation = joined.member_id, joined.generation_id
    sync = SyncGroupRequest(group_id=group, generation_id=generation, member_id=member)
    talk.ask(1, "sync_group", 2, sync)
    if version < _FIRST_WITH_IMPLICIT:
        _add_offsets(talk, who, group)
    for its_generation, its_member, instance in (
        (generation, member, None),
        (generation + 1, member, None),
        (generation, "stranger", None),
        (generation, member, "i"),
        (-1, "", None),
        (-1, "stranger", None),
    ):
        of_whom = {"generation": its_generation, "member": its_member, "instance": instance}
        _commit(talk, version, who, group, 20, **of_whom)  # type: ignore[arg-type]  # one of its versions
    who.end(commit=True)
    talk.settle(who.transactional_id)
    _offsets(talk, group)


def _with_epoch(talk: Talk, who: Producer, by: int) -> Producer:
    """The same producer with an epoch that differs by so much."""
    other = Producer(talk, who.transactional_id, version=who.version)  # type: ignore[arg-type]  # one of its versions
    other.id, other.epoch = who.id, who.epoch + by
    return other


def _add_offsets(talk: Talk, who: Producer, group: str) -> None:
    request = AddOffsetsToTxnRequest(
        transactional_id=who.transactional_id,
        producer_id=who.id,
        producer_epoch=who.epoch,
        group_id=group,
    )
    talk.ask(1, "add_offsets_to_txn", 4, request)


def _commit(
    talk: Talk,
    version: int,
    who: Producer,
    group: str,
    offset: int,
    *,
    topic: str = "t",
    partitions: tuple[int, ...] = (0,),
    generation: int = -1,
    member: str = "",
    instance: str | None = None,
    metadata: str = "m",
) -> None:
    committed = tuple(
        TxnOffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=offset,
            committed_metadata=metadata,
            committed_leader_epoch=0 if version >= 2 else -1,
        )
        for index in partitions
    )
    request = TxnOffsetCommitRequest(
        transactional_id=who.transactional_id,
        group_id=group,
        producer_id=who.id,
        producer_epoch=who.epoch,
        topics=(TxnOffsetCommitRequestTopic(name=topic, partitions=committed),),
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
    )
    talk.ask(1, "txn_offset_commit", version, request)


def _offsets(talk: Talk, group: str) -> None:
    """The group's offsets, for a reader that waits for transactions and for one that does not."""
    topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(0, 1)),)
    for require_stable in (True, False):
        request = OffsetFetchRequest(
            groups=(OffsetFetchRequestGroup(group_id=group, topics=topics),),
            require_stable=require_stable,
        )
        talk.ask(1, "offset_fetch", 9, request)


# -- markers of a group's partition -------------------------------------------------------------


def group_markers(talk: Talk) -> None:
    """Markers that come to the partition of a group's offsets, of its producer and of another."""
    talk.find_group_coordinator()
    for version in versions("write_txn_markers"):
        for commit in (True, False):
            who = producer(talk, f"{version}{commit}")
            group = talk.name(f"g{version}{commit}")
            who.init()
            who.init()
            _commit(talk, 5, who, group, 10)
            level = 2 if version >= 2 else 0
            marker = replace(_marker(who, OFFSETS, 0, level=level), transaction_result=commit)
            for epoch in (who.epoch - 1, who.epoch, who.epoch + 1):
                _write(talk, version, replace(marker, producer_epoch=epoch))
                _offsets(talk, group)
            _write(talk, version, replace(marker, producer_id=UNKNOWN_ID))
            _write(talk, version, _marker(who, OFFSETS, 99, level=level))
