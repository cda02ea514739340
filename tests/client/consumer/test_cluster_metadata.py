from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from fencepost.client.consumer.cluster_metadata import ClusterMetadata, LeaderAndEpoch
from fencepost.client.model import Partition
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

TP = Partition(topic="t", index=0)
BROKERS = tuple(
    MetadataResponseBroker(node_id=node, host="h", port=9000 + node) for node in (1, 2, 3)
)


def answer(
    leader: int, epoch: int, *, topic_id: UUID | None = None, error: int = ErrorCode.NONE
) -> MetadataResponse:
    partition = MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch)
    topic = MetadataResponseTopic(
        name="t", topic_id=topic_id, error_code=error, partitions=(partition,)
    )
    return MetadataResponse(brokers=BROKERS, topics=(topic,))


def known(leader: int | None, epoch: int) -> LeaderAndEpoch:
    return LeaderAndEpoch(leader=leader, epoch=epoch)


def test_an_older_epoch_does_not_replace_a_newer_one() -> None:
    metadata = ClusterMetadata()
    assert metadata.leader(TP) == known(None, -1)
    assert metadata.update(answer(2, 5))
    assert not metadata.update(answer(1, 4))
    assert metadata.leader(TP) == known(2, 5)
    assert metadata.update(answer(3, 6))
    assert metadata.leader(TP) == known(3, 6)


@given(st.lists(st.integers(0, 9), min_size=1))
def test_the_largest_epoch_leads_whatever_the_order_of_answers(epochs: list[int]) -> None:
    metadata = ClusterMetadata()
    for seen, epoch in enumerate(epochs, start=1):
        metadata.update(answer(epoch % 3 + 1, epoch))
        newest = max(epochs[:seen])
        assert metadata.leader(TP) == known(newest % 3 + 1, newest)


def test_no_leader_is_known_until_metadata_reaches_an_epoch_that_was_seen() -> None:
    metadata = ClusterMetadata()
    metadata.update(answer(1, 4))
    assert metadata.see_epoch(TP, 6)
    assert not metadata.see_epoch(TP, 5)
    assert not metadata.see_epoch(TP, None)
    assert metadata.leader(TP) == known(None, 6)
    assert not metadata.has_leaders([TP])
    metadata.update(answer(2, 5))
    assert metadata.leader(TP) == known(None, 6)
    metadata.update(answer(3, 6))
    assert metadata.leader(TP) == known(3, 6)


def test_epochs_begin_again_with_another_topic_of_the_same_name() -> None:
    metadata = ClusterMetadata()
    metadata.update(answer(2, 5, topic_id=UUID(int=1)))
    metadata.update(answer(1, 0, topic_id=UUID(int=2)))
    assert metadata.leader(TP) == known(1, 0)
    assert metadata.topic_id("t") == UUID(int=2)


def test_old_brokers_name_leaders_without_epochs() -> None:
    metadata = ClusterMetadata()
    metadata.update(answer(2, -1))
    assert metadata.leader(TP) == known(2, -1)
    metadata.update(answer(1, -1))
    assert metadata.leader(TP) == known(1, -1)


def test_a_leader_that_is_gone_is_none() -> None:
    metadata = ClusterMetadata()
    metadata.update(answer(-1, 3))
    assert metadata.leader(TP) == known(None, 3)


def test_topics_that_are_refused_keep_what_they_had() -> None:
    metadata = ClusterMetadata()
    metadata.update(answer(2, 5))
    metadata.update(answer(1, 0, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    assert metadata.refused == {"t": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert metadata.leader(TP) == known(2, 5)
    assert metadata.partition_count("t") == 1
    assert metadata.partition_count("u") is None


def test_another_answer_may_name_a_newer_leader() -> None:
    metadata = ClusterMetadata()
    metadata.update(answer(1, 4))
    assert not metadata.see_leader(TP, known(2, 4), {})
    assert not metadata.see_leader(TP, known(9, 5), {}), "an address is needed"
    assert metadata.see_leader(TP, known(9, 5), {9: ("h", 9009)})
    assert metadata.leader(TP) == known(9, 5)
    assert metadata.brokers[9] == ("h", 9009)
    metadata.see_epoch(TP, 8)
    assert not metadata.see_leader(TP, known(2, 7), {})
