"""Metadata (3), versions 0-13: brokers, topics, who leads what.

Topics are asked for by name, by id, or all. A name that is not there yet is created, with
``num.partitions`` and ``default.replication.factor``, when the request allows it and
``auto.create.topics.enable`` does. As in Kafka it is UNKNOWN_TOPIC_OR_PARTITION in this answer, and
the next one has it, unless it could not be created. Illegal names are never created. Where a
request has ids, its names count for nothing.

Replicas are offline whose brokers the controller does not believe in, or whose log failed. A
partition without a leader is LEADER_NOT_AVAILABLE. In the old message format leader epochs are -1.

Versions: v0 an empty list means all topics, from v1 null does; v0 leaves out the replicas that are
offline, which is REPLICA_NOT_AVAILABLE; v1 controller, racks, internal topics; v2 cluster id; v4
the request says whether to create; v5 offline replicas; v7 leader epochs (KIP-320); v8-v10
authorized operations of the cluster (v8+ of topics); v10 topic ids in answers and v12 in requests
(KIP-516); v13 a top-level error.
"""

import struct
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, TypeAlias, cast
from uuid import UUID

from msgspec.structs import replace

from fencepost.broker.controller.auto_topic_creation import auto_create_topics
from fencepost.broker.controller.topic_changes import topic_name_problem
from fencepost.broker.core.outcomes import answer_in_slices
from fencepost.broker.core.waits import Wait
from fencepost.broker.handlers.context import Context
from fencepost.broker.metadata.image import (
    ClusterImage,
    PartitionImage,
    TopicImage,
    offline_replicas,
    online_brokers,
)
from fencepost.broker.metadata.topic_fragments import FragmentKey
from fencepost.broker.replication.partition_checks import NO_EPOCH
from fencepost.broker.security import authorizer
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.codec import encode_element, split_element
from fencepost.protocol.codec.encoded_array import EncodedArray, join_arrays
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

FIRST_WITH_NULL_FOR_ALL: Final = 1
FIRST_BY_ID: Final = 12
_API: Final = BY_NAME["metadata"]
_TOPICS: Final = ("topics",)
_PARTITIONS: Final = ("topics", "partitions")
_pack_index: Final = struct.Struct(">i").pack
_Found: TypeAlias = TopicImage | MetadataResponseTopic
"""A topic that there is, or the error of one that there is not."""
_Described: TypeAlias = MetadataResponseTopic | EncodedArray
"""A topic of the response; encoded, an array of one element."""


def handle(ctx: Context, request: MetadataRequest) -> MetadataResponse | Wait[MetadataResponse]:
    """Describe the cluster as this broker sees it."""
    asked = request.topics
    everything = asked is None or (not asked and ctx.version < FIRST_WITH_NULL_FOR_ALL)
    named = () if everything else asked or ()
    if ctx.version < FIRST_BY_ID and any(t.topic_id or t.name is None for t in named):
        return refuse(request, ErrorCode.INVALID_REQUEST)
    if any(t.name is None and t.topic_id is None for t in named):
        return refuse(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    view = ctx.broker.view  # of this answer, which does not have what is created for the next
    describe = partial(_describe, ctx, _operations(request), online_brokers(view))
    if everything:
        if ctx.fragments is not None:
            ctx.fragments.drop_except(view.topics)
        return _response(ctx, request, [describe(topic) for topic in view.topics.values()])
    distinct = list(dict.fromkeys(named))
    distinct = [topic for topic in distinct if topic.topic_id] or distinct
    _create_missing(ctx, request, distinct)
    return answer_in_slices(
        ctx.broker.scheduler,
        distinct,
        lambda topic: describe(_find(ctx.version, request, topic, view)),
        lambda described: _response(ctx, request, described),
    )


def refuse(request: MetadataRequest, error_code: int) -> MetadataResponse:
    """The same error for every topic asked for, and at the top (v13+)."""
    return MetadataResponse(
        error_code=error_code,
        topics=tuple(
            MetadataResponseTopic(
                error_code=error_code, name=topic.name or "", topic_id=topic.topic_id
            )
            for topic in request.topics or ()
        ),
    )


def _response(
    ctx: Context, request: MetadataRequest, described: Sequence[_Described]
) -> MetadataResponse:
    view = ctx.broker.view
    topics: object = tuple(described)
    if ctx.fragments is not None:
        topics = join_arrays(cast("Sequence[EncodedArray]", described))
    return MetadataResponse(
        brokers=tuple(
            MetadataResponseBroker(
                node_id=b.broker_id, host=ctx.host_of(b), port=ctx.port_of(b), rack=b.rack
            )
            for b in view.brokers.values()
            if not b.fenced
        ),
        cluster_id=view.cluster_id,
        controller_id=view.controller_id,
        topics=cast("tuple[MetadataResponseTopic, ...]", topics),
        cluster_authorized_operations=(
            authorizer.CLUSTER
            if request.include_cluster_authorized_operations
            else authorizer.NOT_REQUESTED
        ),
    )


def _find(
    version: int, request: MetadataRequest, asked: MetadataRequestTopic, view: ClusterImage
) -> _Found:
    if asked.topic_id is not None:
        return view.topic_by_id(asked.topic_id) or _unknown_id(asked.topic_id, version)
    name = asked.name or ""
    topic = view.topics.get(name)
    if topic is not None:
        return topic
    if topic_name_problem(name) is not None:
        return _error(request, name, ErrorCode.INVALID_TOPIC_EXCEPTION)
    return _error(request, name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _create_missing(
    ctx: Context, request: MetadataRequest, asked: Iterable[MetadataRequestTopic]
) -> None:
    """Have the topics created that are not there, where that is allowed."""
    if not (request.allow_auto_topic_creation and ctx.broker.configs.auto_create_topics_enable):
        return
    known = ctx.broker.view.topics
    names = [topic.name or "" for topic in asked if topic.topic_id is None]
    missing = [name for name in names if name not in known and topic_name_problem(name) is None]
    if missing:
        auto_create_topics(ctx.broker, missing)


def _error(request: MetadataRequest, name: str, code: ErrorCode) -> MetadataResponseTopic:
    """What a client may do is said of a topic that there is not as well, as in Kafka."""
    return MetadataResponseTopic(
        error_code=code, name=name, topic_authorized_operations=_operations(request)
    )


def _operations(request: MetadataRequest) -> int:
    if request.include_topic_authorized_operations:
        return authorizer.TOPIC
    return authorizer.NOT_REQUESTED


def _unknown_id(topic_id: UUID, version: int) -> MetadataResponseTopic:
    """Names may be null from v12 on; before, there is none to give."""
    return MetadataResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_ID,
        name=None if version >= FIRST_BY_ID else "",
        topic_id=topic_id,
    )


def _describe(ctx: Context, operations: int, online: frozenset[int], found: _Found) -> _Described:
    """A topic as the response has it, encoded where that is all that is done with the response."""
    fragments = ctx.fragments
    if isinstance(found, MetadataResponseTopic):
        return found if fragments is None else _encode_error(ctx.version, found)
    has_epochs = ctx.broker.configs.log_config(found.name).keeps_leader_epochs
    key = FragmentKey(ctx.version, online, has_epochs, operations)
    if fragments is not None:
        return fragments.get(found, key, _encode)
    partitions = tuple(_partition(key, i, each) for i, each in enumerate(found.partitions))
    return _topic(found, key, partitions)


def _topic(
    topic: TopicImage, key: FragmentKey, partitions: tuple[MetadataResponsePartition, ...]
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=partitions,
        topic_authorized_operations=key.operations,
    )


def _partition(
    key: FragmentKey, index: int, partition: PartitionImage
) -> MetadataResponsePartition:
    described = MetadataResponsePartition(
        error_code=ErrorCode.LEADER_NOT_AVAILABLE if partition.leader < 0 else ErrorCode.NONE,
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch if key.has_epochs else NO_EPOCH,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        offline_replicas=offline_replicas(partition, key.online),
    )
    return described if key.version else _without_offline(described)


def _without_offline(partition: MetadataResponsePartition) -> MetadataResponsePartition:
    """As version 0 tells it: it has no place for offline replicas of their own."""
    offline = partition.offline_replicas
    if not offline:
        return partition
    return replace(
        partition,
        error_code=partition.error_code or ErrorCode.REPLICA_NOT_AVAILABLE,
        replica_nodes=tuple(b for b in partition.replica_nodes if b not in offline),
        isr_nodes=tuple(b for b in partition.isr_nodes if b not in offline),
    )


def _encode_error(version: int, topic: MetadataResponseTopic) -> EncodedArray:
    data = encode_element(_API, version, _TOPICS, topic)
    return EncodedArray(1, data, (topic.error_code,))


def _encode(topic: TopicImage, key: FragmentKey) -> EncodedArray:
    partitions = _encode_partitions(topic, key)
    described = _topic(topic, key, cast("tuple[MetadataResponsePartition, ...]", partitions))
    data = encode_element(_API, key.version, _TOPICS, described)
    return EncodedArray(1, data, partitions.errors)


def _encode_partitions(topic: TopicImage, key: FragmentKey) -> EncodedArray:
    """Partitions of which many are the same but for their index: each of these is encoded once."""
    known: dict[object, tuple[bytes, bytes, int]] = {}
    parts: list[bytes] = []
    errors: list[int] = []
    for index, each in enumerate(topic.partitions):
        same = each.leader, each.leader_epoch, each.replicas, each.isr, each.failed
        found = known.get(same)
        if found is None:
            described = _partition(key, index, each)
            split = split_element(_API, key.version, _PARTITIONS, described, "partition_index")
            found = known[same] = *split, described.error_code
        before, behind, error = found
        parts += before, _pack_index(index), behind
        if error:
            errors.append(error)
    return EncodedArray(len(topic.partitions), b"".join(parts), tuple(errors))
