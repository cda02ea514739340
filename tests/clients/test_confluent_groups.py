"""confluent-kafka (librdkafka): consumer groups as they grow, shrink and are fenced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.harness.confluent import consumer, delivered, poll_until, send
from tests.harness.served_cluster import Cluster, unique


@dataclass(eq=False)
class Member:
    """A group member that writes down what it was given and what it lost."""

    consumer: Consumer
    owned: set[int] = field(default_factory=set)
    given: list[set[int]] = field(default_factory=list)
    taken: list[set[int]] = field(default_factory=list)

    def join(self, topic: str, *, incremental: bool = False) -> None:
        def assigned(source: Consumer, partitions: list[TopicPartition]) -> None:
            got = {each.partition for each in partitions}
            self.given.append(got)
            self.owned = self.owned | got if incremental else got

        def lost(source: Consumer, partitions: list[TopicPartition]) -> None:
            gone = {each.partition for each in partitions}
            self.taken.append(gone)
            self.owned = self.owned - gone

        self.consumer.subscribe([topic], on_assign=assigned, on_revoke=lost)


@contextmanager
def member(cluster: Cluster, group: str, **options: str | int) -> Iterator[Member]:
    with consumer(cluster, group_id=group, heartbeat_interval_ms=200, **options) as made:
        yield Member(made)


def settle(members: list[Member], partitions: int) -> None:
    """Wait until each owns something, and all together every partition once."""

    def settled() -> bool:
        owned = [partition for each in members for partition in each.owned]
        return sorted(owned) == list(range(partitions)) and all(each.owned for each in members)

    poll_until("the group is balanced", [each.consumer for each in members], settled)


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_a_second_member_takes_its_share_and_gives_it_back(cluster: Cluster, strategy: str) -> None:
    topic, group = cluster.create_topic("shared", partitions=4), unique("group")
    incremental = strategy == "cooperative-sticky"
    with ExitStack() as stack:
        options = {"partition_assignment_strategy": strategy}
        first = stack.enter_context(member(cluster, group, **options))
        first.join(topic, incremental=incremental)
        settle([first], 4)
        with member(cluster, group, **options) as second:
            second.join(topic, incremental=incremental)
            settle([first, second], 4)
            assert len(first.owned) == len(second.owned) == 2
        settle([first], 4)


def test_cooperative_members_keep_what_they_can(cluster: Cluster) -> None:
    topic, group = cluster.create_topic("cooperative", partitions=4), unique("group")
    options = {"partition_assignment_strategy": "cooperative-sticky"}
    with member(cluster, group, **options) as first, member(cluster, group, **options) as second:
        first.join(topic, incremental=True)
        settle([first], 4)
        second.join(topic, incremental=True)
        settle([first, second], 4)
        # It was never without the two that it has now.
        assert [gone for gone in first.taken if gone] == [second.owned]


def test_three_members_read_everything_once(cluster: Cluster) -> None:
    topic, group = cluster.create_topic("shared", partitions=6), unique("group")
    with ExitStack() as stack:
        members = [stack.enter_context(member(cluster, group)) for _ in range(3)]
        for each in members:
            each.join(topic)
        settle(members, 6)
        sent = {f"{i}".encode() for i in range(300)}
        delivered(send(cluster, topic, sorted(sent), partitions=6))
        seen: list[bytes | None] = []

        def all_seen() -> bool:
            for each in members:
                for message in each.consumer.consume(100, 0.05):
                    assert message.error() is None
                    seen.append(message.value())
            return len(seen) >= 300

        poll_until("all were read", [], all_seen)
        assert sorted(value or b"" for value in seen) == sorted(sent)


def test_a_static_member_comes_back_unnoticed(cluster: Cluster) -> None:
    topic, group = cluster.create_topic("static", partitions=4), unique("group")
    with member(cluster, group, group_instance_id="a") as other:
        with member(cluster, group, group_instance_id="b") as leaving:
            other.join(topic)
            leaving.join(topic)
            settle([other, leaving], 4)
            had, rounds = set(leaving.owned), len(other.given)
        with member(cluster, group, group_instance_id="b") as back:
            back.join(topic)
            settle([other, back], 4)
            assert back.owned == had
            assert len(other.given) == rounds


def test_a_second_static_member_of_the_same_name_fences_the_first(cluster: Cluster) -> None:
    topic, group = cluster.create_topic("static"), unique("group")
    with member(cluster, group, group_instance_id="a") as first:
        first.join(topic)
        settle([first], 1)
        with member(cluster, group, group_instance_id="a") as second:
            second.join(topic)
            codes: set[int] = set()

            def fenced() -> bool:
                for each in (first, second):
                    message = each.consumer.poll(0.05)
                    error = message.error() if message is not None else None
                    if error is not None:
                        codes.add(error.code())
                return KafkaError._FATAL in codes or KafkaError.FENCED_INSTANCE_ID in codes

            poll_until("the first is fenced", [], fenced)


def test_a_member_that_says_nothing_is_dropped(cluster: Cluster) -> None:
    topic, group = cluster.create_topic("silent", partitions=2), unique("group")
    options = {"session_timeout_ms": 6000, "max_poll_interval_ms": 6000}
    with member(cluster, group, **options) as quiet, member(cluster, group, **options) as other:
        quiet.join(topic)
        other.join(topic)
        settle([quiet, other], 2)
        # From here on `quiet` is not polled: after 6 s its share is the other's.
        poll_until("its share is taken", [other.consumer], lambda: other.owned == {0, 1})


def test_a_session_timeout_out_of_bounds_is_refused(cluster: Cluster) -> None:
    topic, group = cluster.create_topic("bounds"), unique("group")
    with member(cluster, group, session_timeout_ms=1000) as impatient:
        impatient.join(topic)
        codes: list[int] = []

        def refused() -> bool:
            message = impatient.consumer.poll(0.05)
            error = message.error() if message is not None else None
            if error is not None:
                codes.append(error.code())
            return bool(codes)

        poll_until("it is refused", [], refused)
        assert codes == [KafkaError.INVALID_SESSION_TIMEOUT]


def test_members_without_a_common_protocol(cluster: Cluster) -> None:
    topic, group = cluster.create_topic("protocols"), unique("group")
    with (
        member(cluster, group, partition_assignment_strategy="range") as first,
        member(cluster, group, partition_assignment_strategy="roundrobin") as second,
    ):
        first.join(topic)
        settle([first], 1)
        second.join(topic)
        codes: list[int] = []

        def refused() -> bool:
            first.consumer.poll(0.05)
            message = second.consumer.poll(0.05)
            error = message.error() if message is not None else None
            if error is not None:
                codes.append(error.code())
            return bool(codes)

        poll_until("it is refused", [], refused)
        assert codes == [KafkaError.INCONSISTENT_GROUP_PROTOCOL]


def test_new_partitions_are_shared_out(cluster: Cluster) -> None:
    topic, group = cluster.create_topic("grows", partitions=1), unique("group")
    with member(cluster, group, topic_metadata_refresh_interval_ms=300) as only:
        only.join(topic)
        settle([only], 1)
        cluster.add_partitions(topic, 3)
        settle([only], 3)
