"""An error for a topic, a partition or a group is theirs alone, in every API and version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias
from uuid import UUID

import pytest

from fencepost.broker.faults.kinds import Refuse
from fencepost.broker.faults.request_fields import TopicFields, topic_fields
from fencepost.protocol.apis import APIS, Api
from fencepost.protocol.codec.schema import FieldSchema, message_schema
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.create_topics import CreateTopicsRequest
from fencepost.protocol.messages.delete_groups import DeleteGroupsRequest
from fencepost.protocol.messages.describe_groups import DescribeGroupsRequest
from fencepost.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from fencepost.protocol.messages.elect_leaders import ElectLeadersRequest
from fencepost.protocol.messages.find_coordinator import FindCoordinatorRequest
from fencepost.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from fencepost.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from fencepost.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.broker.faults.faulty import CODE, set_fault
from tests.harness.driver import NEWEST, Driver, Message
from tests.harness.driver_requests import create
from tests.harness.typed_requests import creatable
from tests.protocol.messages import Content, ours, smallest

Told: TypeAlias = dict[tuple[str, int | None], int]
"""Error codes by topic and partition; by None where an answer tells of topics alone."""
OF_TOPIC: Final = 2
_GIVEN: Final = {"group_id": "g", "acks": 1}
NAMING_PARTITIONS: Final = (
    *("produce", "fetch", "list_offsets", "offset_commit", "offset_fetch", "delete_records"),
    *("offset_for_leader_epoch", "elect_leaders", "alter_partition_reassignments"),
    *("offset_delete", "describe_quorum", "describe_producers"),
    *("alter_replica_log_dirs", "write_txn_markers", "txn_offset_commit"),
)
"""The APIs whose answers have an element for each topic and partition that is asked about."""
NAMING_TOPICS: Final = (
    *("metadata", "create_topics", "delete_topics", "describe_configs", "alter_configs"),
    *("create_partitions", "incremental_alter_configs", "describe_topic_partitions"),
)
"""Those whose answers have one for each topic."""


def versions_of(names: Sequence[str]) -> list[tuple[Api, int]]:
    apis = [api for api in APIS if api.name in names]
    return [(api, v) for api in apis for v in range(api.min_version, api.max_version + 1)]


BY_TOPIC: Final = versions_of((*NAMING_PARTITIONS, *NAMING_TOPICS))
NEWEST_BY_TOPIC: Final = [case for case in BY_TOPIC if case[1] == case[0].max_version]
BY_PARTITION: Final = versions_of(NAMING_PARTITIONS)


def title(case: tuple[Api, int]) -> str:
    return f"{case[0].title}-v{case[1]}"


def shape_of(api: Api) -> TopicFields:
    found = topic_fields(api)
    assert found is not None
    return found


@pytest.fixture
def driver() -> Driver:
    """One broker that leads everything and coordinates group g, which has committed offsets."""
    driver = Driver(1)
    create(driver, "t", [(1,), (1,)])
    create(driver, "u", [(1,), (1,)])
    driver.ask(1, "find_coordinator", 1, FindCoordinatorRequest(key="g"))
    commit(driver, "g")
    return driver


def commit(driver: Driver, group: str) -> None:
    partitions = tuple(
        OffsetCommitRequestPartition(partition_index=index, committed_offset=7) for index in (0, 1)
    )
    topics = tuple(OffsetCommitRequestTopic(name=n, partitions=partitions) for n in ("t", "u"))
    answer = driver.ask(1, "offset_commit", 2, OffsetCommitRequest(group_id=group, topics=topics))
    assert not any(p.error_code for topic in answer.topics for p in topic.partitions)


class Asking:
    """A request of any API that names topics t and u, both partitions of each."""

    def __init__(self, driver: Driver, api: Api, version: int) -> None:
        self.shape = shape_of(api)
        self._topics = driver.cluster.controller.image.topics
        wire = message_schema(api.name, "request", version)
        content = smallest(wire)
        for field in wire.fields:
            if field.name in self.shape.request_fields:
                content[field.name] = self._named(field)
            elif field.name == self.shape.container:
                content[field.name] = (self._container(field),)
            elif field.name == "groups" and field.struct is not None:
                content["groups"] = (self._group(field),)
            elif field.name in _GIVEN:
                content[field.name] = _GIVEN[field.name]
        self.request = ours(wire, content)

    def _container(self, field: FieldSchema) -> Content:
        assert field.struct is not None
        arrays = [each for each in field.struct.fields if each.name in self.shape.request_fields]
        named = {each.name: self._named(each) for each in arrays}
        return {**smallest(field.struct), **named}

    def _group(self, field: FieldSchema) -> Content:
        assert field.struct is not None
        content = smallest(field.struct)
        (topics,) = (each for each in field.struct.fields if each.name == "topics")
        return {**content, "group_id": "g", "topics": self._named(topics)}

    def _named(self, field: FieldSchema) -> tuple[Any, ...]:
        return tuple(self._topic(field, name) for name in ("t", "u"))

    def _topic(self, field: FieldSchema, name: str) -> Content | str:
        if field.struct is None:
            return name
        content = smallest(field.struct)
        given: Content = {
            self.shape.name: name,
            "topic_id": self._topics[name].topic_id,
            "resource_type": OF_TOPIC,
        }
        if self.shape.name in content and "topic_id" in content:
            given["topic_id"] = None  # one or the other
        for inner in field.struct.fields:
            if inner.name == self.shape.partitions:
                given[inner.name] = tuple(self._partition(inner, index) for index in (0, 1))
        return {key: given.get(key, value) for key, value in content.items()}

    def _partition(self, field: FieldSchema, index: int) -> Content | int:
        if field.struct is None:
            return index
        assert self.shape.index is not None
        return {**smallest(field.struct), self.shape.index: index}


def told(driver: Driver, shape: TopicFields, answer: Message) -> Told:
    """What an answer says of each topic and partition; each once."""
    names: dict[UUID, str] = dict(driver.cluster.controller.image.names)
    found: Told = {}
    inside = getattr(answer, shape.response_container or "groups", ())
    for holder in inside or (answer,):
        assert getattr(holder, "error_code", 0) != CODE
        assert shape.response_field is not None
        for topic in getattr(holder, shape.response_field):
            name = getattr(topic, shape.response_name or shape.name) or names[topic.topic_id]
            inner = shape.response_partitions
            partitions = () if inner is None else getattr(topic, inner)
            codes = {
                (name, getattr(p, shape.response_index or "")): p.error_code for p in partitions
            }
            own = getattr(topic, "error_code", None)
            if own is not None and (own or not codes):
                codes[name, None] = own
            assert not codes.keys() & found.keys()
            found.update(codes)
    return found


def test_every_api_that_names_topics_is_here() -> None:
    """They are written down, as reading all schemas takes each worker that collects a second."""
    found = [(api.name, topic_fields(api)) for api in APIS]
    told = {name: fields for name, fields in found if fields and fields.response_field}
    assert set(told) == {*NAMING_PARTITIONS, *NAMING_TOPICS}
    assert {name for name in told if told[name].partitions} == set(NAMING_PARTITIONS)


@pytest.mark.parametrize("case", BY_PARTITION, ids=title)
def test_a_partition_is_refused_and_the_others_are_not(
    case: tuple[Api, int], driver: Driver
) -> None:
    api, version = case
    asking = Asking(driver, api, version)
    fault = set_fault(driver, api.name, Refuse(CODE), topic="t", partition=1)
    codes = told(driver, asking.shape, driver.ask(1, api.name, version, asking.request))
    assert codes.keys() == {("t", 0), ("t", 1), ("u", 0), ("u", 1)}
    assert {at for at, code in codes.items() if code == CODE} == {("t", 1)}
    assert fault.hits == 1


@pytest.mark.parametrize("case", BY_TOPIC, ids=title)
def test_a_topic_is_refused_and_the_other_is_not(case: tuple[Api, int], driver: Driver) -> None:
    api, version = case
    asking = Asking(driver, api, version)
    set_fault(driver, api.name, Refuse(CODE), topic="t")
    codes = told(driver, asking.shape, driver.ask(1, api.name, version, asking.request))
    assert {name for name, _ in codes} == {"t", "u"}
    assert {name for (name, _), code in codes.items() if code == CODE} == {"t"}
    assert CODE not in {code for (name, _), code in codes.items() if name == "u"}
    assert {code for (name, _), code in codes.items() if name == "t"} == {CODE}


@pytest.mark.parametrize("case", NEWEST_BY_TOPIC, ids=title)
def test_a_request_that_does_not_name_the_topic_does_not_fit(
    case: tuple[Api, int], driver: Driver
) -> None:
    api, version = case
    asking = Asking(driver, api, version)
    fault = set_fault(driver, api.name, Refuse(CODE), topic="v")
    codes = told(driver, asking.shape, driver.ask(1, api.name, version, asking.request))
    assert CODE not in codes.values()
    assert fault.hits == 0


@pytest.mark.parametrize("case", BY_TOPIC, ids=title)
def test_a_request_for_the_refused_topic_alone(case: tuple[Api, int], driver: Driver) -> None:
    api, version = case
    asking = Asking(driver, api, version)
    set_fault(driver, api.name, Refuse(CODE), topic="t", count=None)
    set_fault(driver, api.name, Refuse(CODE), topic="u", count=None)
    codes = told(driver, asking.shape, driver.ask(1, api.name, version, asking.request))
    assert {name for (name, _), code in codes.items() if code == CODE} == {"t"}
    driver.cluster.faults.reset()
    set_fault(driver, api.name, Refuse(CODE))
    answer = driver.ask(1, api.name, version, asking.request)
    assert str(int(CODE)) in repr(answer)


def test_what_is_refused_is_not_applied_and_the_rest_is(driver: Driver) -> None:
    set_fault(driver, "create_topics", Refuse(CODE), topic="new")
    request = CreateTopicsRequest(topics=(creatable("new"), creatable("other")), timeout_ms=1000)
    answer = driver.ask(1, "create_topics", NEWEST, request)
    assert {t.name: t.error_code for t in answer.topics} == {"new": CODE, "other": 0}
    assert "new" not in driver.cluster.controller.image.topics
    assert "other" in driver.cluster.controller.image.topics


def test_a_topic_that_metadata_refuses_is_not_created(driver: Driver) -> None:
    set_fault(driver, "metadata", Refuse(CODE), topic="new")
    asked = tuple(MetadataRequestTopic(name=name) for name in ("new", "t"))
    answer = driver.ask(1, "metadata", 12, MetadataRequest(topics=asked))
    assert {t.name: t.error_code for t in answer.topics} == {"new": CODE, "t": 0}
    assert "new" not in driver.cluster.controller.image.topics


@pytest.mark.parametrize(("version", "everything"), [(0, ()), (1, None), (12, None)])
def test_metadata_of_all_topics_names_each(
    driver: Driver, version: int, everything: tuple[()] | None
) -> None:
    set_fault(driver, "metadata", Refuse(CODE), topic="t")
    answer = driver.ask(1, "metadata", version, MetadataRequest(topics=everything))
    codes = {t.name: (t.error_code, len(t.partitions)) for t in answer.topics}
    assert (codes["t"], codes["u"]) == ((CODE, 0), (0, 2))


def test_metadata_v0_for_the_refused_topic_alone_is_not_taken_for_all(driver: Driver) -> None:
    set_fault(driver, "metadata", Refuse(CODE), topic="t")
    asked = (MetadataRequestTopic(name="t"),)
    answer = driver.ask(1, "metadata", 0, MetadataRequest(topics=asked))
    assert [(t.name, t.error_code) for t in answer.topics] == [("t", CODE)]
    assert answer.brokers


@pytest.mark.parametrize("version", [0, 9, 13])
def test_metadata_names_brokers_whatever_is_refused(driver: Driver, version: int) -> None:
    set_fault(driver, "metadata", Refuse(CODE))
    asked = (MetadataRequestTopic(name="t"),)
    answer = driver.ask(1, "metadata", version, MetadataRequest(topics=asked))
    assert [(t.name, t.error_code) for t in answer.topics] == [("t", CODE)]
    assert [b.node_id for b in answer.brokers] == [1]


def test_metadata_that_asks_to_bootstrap_anew_says_so_at_the_top(driver: Driver) -> None:
    set_fault(driver, "metadata", Refuse(ErrorCode.REBOOTSTRAP_REQUIRED))
    asked = (MetadataRequestTopic(name="t"),)
    answer = driver.ask(1, "metadata", 13, MetadataRequest(topics=asked))
    assert answer.error_code == ErrorCode.REBOOTSTRAP_REQUIRED


@pytest.mark.parametrize(
    ("code", "leader"), [(ErrorCode.LEADER_NOT_AVAILABLE, -1), (ErrorCode.REPLICA_NOT_AVAILABLE, 1)]
)
def test_metadata_refuses_one_partition(driver: Driver, code: ErrorCode, leader: int) -> None:
    set_fault(driver, "metadata", Refuse(code), topic="t", partition=1)
    asked = (MetadataRequestTopic(name="t"),)
    (topic,) = driver.ask(1, "metadata", 12, MetadataRequest(topics=asked)).topics
    assert topic.error_code == 0
    found = [(p.partition_index, p.error_code, p.leader_id) for p in topic.partitions]
    assert found == [(0, 0, 1), (1, code, leader)]


def test_described_topics(driver: Driver) -> None:
    set_fault(driver, "describe_topic_partitions", Refuse(CODE), topic="t", count=None)
    for asked in ((TopicRequest(name="t"), TopicRequest(name="u")), ()):
        request = DescribeTopicPartitionsRequest(topics=asked)
        answer = driver.ask(1, "describe_topic_partitions", 0, request)
        codes = {topic.name: topic.error_code for topic in answer.topics}
        assert (codes["t"], codes["u"]) == (CODE, 0)
    request = DescribeTopicPartitionsRequest(
        topics=(TopicRequest(name="t"),), response_partition_limit=1
    )
    answer = driver.ask(1, "describe_topic_partitions", 0, request)
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [("t", CODE)]
    assert answer.next_cursor is None


def test_an_election_everywhere_is_refused_for_one_topic_and_held_elsewhere() -> None:
    driver = Driver(2)
    for name in ("t", "u"):
        create(driver, name, [(1, 2), (1, 2)])
        driver.elect(name, 0, 2)
    set_fault(driver, "elect_leaders", Refuse(CODE), topic="t")
    answer = driver.ask(1, "elect_leaders", NEWEST, ElectLeadersRequest(topic_partitions=None))
    codes = {
        (topic.topic, result.partition_id): result.error_code
        for topic in answer.replica_election_results
        for result in topic.partition_result
    }
    # As ever, a partition that needs no election is left out.
    assert codes == {("t", 0): CODE, ("t", 1): CODE, ("u", 0): 0}
    image = driver.cluster.controller.image
    assert [image.topics[name].partitions[0].leader for name in ("t", "u")] == [2, 1]


# -- groups and transactional ids ---------------------------------------------------------------


def test_a_described_group_is_refused_alone(driver: Driver) -> None:
    set_fault(driver, "describe_groups", Refuse(CODE), group="g")
    request = DescribeGroupsRequest(groups=("g", "h"))
    groups = driver.ask(1, "describe_groups", NEWEST, request).groups
    assert {g.group_id: g.error_code == CODE for g in groups} == {"g": True, "h": False}


def test_a_deleted_group_is_refused_alone(driver: Driver) -> None:
    commit(driver, "h")
    set_fault(driver, "delete_groups", Refuse(CODE), group="g")
    request = DeleteGroupsRequest(groups_names=("g", "h"))
    results = driver.ask(1, "delete_groups", NEWEST, request).results
    assert {r.group_id: r.error_code for r in results} == {"g": CODE, "h": 0}


@pytest.mark.parametrize(("key_type", "selector"), [(0, "group"), (1, "transactional_id")])
@pytest.mark.parametrize("version", [1, 3, 4, 6])
def test_a_coordinator_is_refused_by_its_kind_of_key(
    driver: Driver, version: int, key_type: int, selector: str
) -> None:
    other = {"group": "transactional_id", "transactional_id": "group"}[selector]
    missed = set_fault(driver, "find_coordinator", Refuse(CODE), **{other: "g"})
    set_fault(driver, "find_coordinator", Refuse(CODE), **{selector: "g"})
    if version < 4:
        request = FindCoordinatorRequest(key="g", key_type=key_type)
        assert driver.ask(1, "find_coordinator", version, request).error_code == CODE
    else:
        request = FindCoordinatorRequest(coordinator_keys=("h", "g"), key_type=key_type)
        found = driver.ask(1, "find_coordinator", version, request).coordinators
        assert {c.key: c.error_code == CODE for c in found} == {"h": False, "g": True}
    assert missed.hits == 0


def offset_fetch(driver: Driver, *groups: OffsetFetchRequestGroup) -> dict[str, Message]:
    answer = driver.ask(1, "offset_fetch", 8, OffsetFetchRequest(groups=groups))
    return {group.group_id: group for group in answer.groups}


def test_a_group_of_many_is_refused_alone_by_offset_fetch(driver: Driver) -> None:
    commit(driver, "h")
    set_fault(driver, "offset_fetch", Refuse(CODE), group="g")
    asked = (OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
    groups = (OffsetFetchRequestGroup(group_id=name, topics=asked) for name in ("g", "h"))
    found = offset_fetch(driver, *groups)
    assert (found["g"].error_code, found["g"].topics) == (CODE, ())
    assert found["h"].topics[0].partitions[0].committed_offset == 7


def test_a_topic_of_one_group_is_refused_alone_by_offset_fetch(driver: Driver) -> None:
    commit(driver, "h")
    set_fault(driver, "offset_fetch", Refuse(CODE), group="g", topic="t", partition=0)
    asked = (OffsetFetchRequestTopics(name="t", partition_indexes=(0, 1)),)
    groups = (OffsetFetchRequestGroup(group_id=name, topics=asked) for name in ("g", "h"))
    found = offset_fetch(driver, *groups)
    offsets = {
        name: {p.partition_index: (p.error_code, p.committed_offset) for p in topic.partitions}
        for name, group in found.items()
        for topic in group.topics
    }
    assert offsets == {"g": {0: (CODE, -1), 1: (0, 7)}, "h": {0: (0, 7), 1: (0, 7)}}


def test_offset_fetch_of_everything_names_each_topic(driver: Driver) -> None:
    set_fault(driver, "offset_fetch", Refuse(CODE), topic="t", partition=1, count=None)
    everything = OffsetFetchRequestGroup(group_id="g", topics=None)
    found = offset_fetch(driver, everything)["g"].topics
    one = driver.ask(1, "offset_fetch", 5, OffsetFetchRequest(group_id="g", topics=None)).topics
    for topics in (found, one):
        told = {
            (t.name, p.partition_index): (p.error_code, p.committed_offset)
            for t in topics
            for p in t.partitions
        }
        one_refused = {("t", 0): (0, 7), ("t", 1): (CODE, -1), ("u", 0): (0, 7), ("u", 1): (0, 7)}
        assert told == one_refused


def test_offset_fetch_for_other_groups_does_not_fit(driver: Driver) -> None:
    faults = [
        set_fault(driver, "offset_fetch", Refuse(CODE), group="x"),
        set_fault(driver, "offset_fetch", Refuse(CODE), group="g", topic="v"),
    ]
    asked = (OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
    offset_fetch(driver, OffsetFetchRequestGroup(group_id="g", topics=asked))
    assert [fault.hits for fault in faults] == [0, 0]


def test_of_resources_only_topics_are_topics(driver: Driver) -> None:
    fault = set_fault(driver, "describe_configs", Refuse(CODE), topic="1")
    wire = message_schema("describe_configs", "request", 4)
    content = smallest(wire)
    content["resources"][0].update(resource_type=4, resource_name="1", configuration_keys=None)
    answer = driver.ask(1, "describe_configs", 4, ours(wire, content))
    assert [r.error_code for r in answer.results] == [0]
    assert fault.hits == 0
