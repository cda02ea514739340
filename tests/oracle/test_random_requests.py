"""What random requests to two clusters are made of; `tests.oracle.random_requests` sends them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final
from uuid import UUID

import pytest

from fencepost.protocol.apis import APIS, Api
from fencepost.protocol.codec import encode_request
from fencepost.protocol.messages.describe_transactions import (
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from fencepost.protocol.messages.fetch import PartitionData
from fencepost.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.harness.batches import build
from tests.oracle.random_requests.bounds import BOUNDS
from tests.oracle.random_requests.messages import RandomRequest, Ref, all_names
from tests.oracle.random_requests.pools import World
from tests.oracle.random_requests.reasons import REASONS, reason_of
from tests.oracle.random_requests.twins import UNKNOWN_ID, Difference, Twins

WORLD: Final = World(name="w", now_ms=1_700_000_000_000)
EACH: Final = 40


def requests(api: Api) -> Iterator[RandomRequest]:
    generator = WORLD.generator()
    for index in range(EACH):
        yield generator.request(random.Random(f"1/{index}"), index, api)


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_requests_of_every_api_can_be_sent(api: Api) -> None:
    twins = Twins()
    for request in requests(api):
        message = request.of_side(lambda ref: twins.value(ref, 0))
        assert encode_request(api, request.written, 1, "random", message)


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_a_seed_makes_the_same_requests_again(api: Api) -> None:
    assert list(requests(api)) == list(requests(api))


def test_every_bound_is_of_a_field() -> None:
    assert BOUNDS.keys() - all_names() == set()


def test_every_reason_is_of_an_api() -> None:
    apis = {api.name for api in APIS}
    for reason in REASONS:
        covered = [api for api in apis if reason.is_of(api)]
        assert covered, reason


def test_what_has_no_name_is_a_bug() -> None:
    assert reason_of("metadata", Difference("topics.error_code", 0, 3)) is None


def topics(*found: tuple[str, int]) -> MetadataResponse:
    return MetadataResponse(
        topics=tuple(MetadataResponseTopic(name=name, topic_id=UUID(int=n)) for name, n in found)
    )


def test_ids_may_differ_and_must_stay_what_they_are() -> None:
    twins = Twins()
    assert not twins.differences(topics(("a", 1), ("b", 2)), topics(("a", 8), ("b", 9)))
    assert not twins.differences(topics(("b", 2)), topics(("b", 9)))
    (different,) = twins.differences(topics(("b", 2)), topics(("b", 8)))
    assert different.path == "topics.topic_id"
    (different,) = twins.differences(topics(("a", 1)), topics(("c", 8)))
    assert different.path == "topics.name"


def test_ids_that_both_were_told_are_the_same_in_any_order() -> None:
    twins = Twins()
    told = [UNKNOWN_ID, UUID(str(twins.value(Ref("topic", "never"), 0)))]
    topics = [MetadataResponseTopic(topic_id=each) for each in told]
    left, right = (MetadataResponse(topics=tuple(each)) for each in (topics, topics[::-1]))
    assert [each.path for each in twins.differences(left, right)] == ["topics[order]"]
    assert twins.differences(left, left) == []


def test_another_order_is_told_as_one() -> None:
    found = Twins().differences(topics(("a", 1), ("b", 2)), topics(("b", 9), ("a", 8)))
    assert [each.path for each in found] == ["topics[order]"]


def test_the_partitions_of_a_transaction_have_no_order_and_replicas_have_one() -> None:
    def described(*indexes: int) -> DescribeTransactionsResponse:
        topic = TopicData(topic="a", partitions=indexes)
        return DescribeTransactionsResponse(transaction_states=(TransactionState(topics=(topic,)),))

    def placed(*replicas: int) -> MetadataResponse:
        partition = MetadataResponsePartition(replica_nodes=replicas)
        topic = MetadataResponseTopic(name="a", partitions=(partition,))
        return MetadataResponse(topics=(topic,))

    path = "transaction_states.topics.partitions"
    (found,) = Twins().differences(described(0, 1, 2), described(0, 2, 1))
    assert found.path == f"{path}[order]"
    assert {each.path for each in Twins().differences(described(0, 1), described(0, 2))} == {path}
    assert {each.path for each in Twins().differences(placed(1, 2), placed(2, 1))} == {
        "topics.partitions.replica_nodes"
    }


def test_what_one_answer_lacks_is_told() -> None:
    (found,) = Twins().differences(topics(("a", 1), ("b", 2)), topics(("a", 8)))
    assert (found.path, found.fencepost) == ("topics", ())
    assert found.kafka == topics(("b", 2)).topics


def test_the_time_of_an_append_may_differ_and_other_records_may_not() -> None:
    stamped = [build([(1, b"k", b"v")], attributes=8) for _ in range(2)]
    stamped[1] = stamped[1][:35] + bytes(8) + stamped[1][43:]
    others = [build([(time, b"k", b"v")]) for time in (1, 2)]
    assert not Twins().differences(*map(fetched, stamped))
    assert Twins().differences(*map(fetched, others))


def test_a_batch_is_of_the_same_producer_on_both_sides() -> None:
    own = [build([(1, b"k", b"v")], producer_id=each, producer_epoch=0) for each in (3, 4)]
    twins = Twins()
    assert not twins.differences(fetched(own[0]), fetched(own[1]))
    assert not twins.differences(fetched(own[0]), fetched(own[1]))
    assert twins.differences(fetched(own[0]), fetched(own[0]))


def fetched(records: bytes) -> PartitionData:
    return PartitionData(partition_index=0, records=(records,))
