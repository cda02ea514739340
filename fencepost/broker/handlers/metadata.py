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

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from msgspec.structs import replace

from fencepost.broker.controller.auto_topic_creation import auto_create_topics
from fencepost.broker.controller.topic_changes import topic_name_problem
from fencepost.broker.core.outcomes import answer_in_slices
from fencepost.broker.core.waits import Wait
from fencepost.broker.handlers.context import Context
from fencepost.broker.metadata.image import (
    ClusterImage,
    TopicImage,
    offline_replicas,
    online_brokers,
)
from fencepost.broker.replication.partition_checks import NO_EPOCH
from fencepost.broker.security import authorizer
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


def handle(ctx: Context, request: MetadataRequest) -> MetadataResponse | Wait[MetadataResponse]:
    """Describe the cluster as this broker sees it."""
    asked = request.topics
    everything = asked is None or (not asked and ctx.version < FIRST_WITH_NULL_FOR_ALL)
    named = () if everything else asked or ()
    if ctx.version < FIRST_BY_ID and any(t.topic_id or t.name is None for t in named):
        return refuse(request, ErrorCode.INVALID_REQUEST)
    if any(t.name is None and t.topic_id is None for t in named):
        return refuse(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    if everything:
        topics = [_describe(ctx, request, t) for t in ctx.broker.view.topics.values()]
        return _response(ctx, request, tuple(topics))
    distinct = list(dict.fromkeys(named))
    distinct = [topic for topic in distinct if topic.topic_id] or distinct
    view = ctx.broker.view  # of this answer, which does not have what is created for the next
    _create_missing(ctx, request, distinct)
    return answer_in_slices(
        ctx.broker.scheduler,
        distinct,
        lambda topic: _answer(ctx, request, topic, view),
        lambda found: _response(ctx, request, tuple(found)),
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
    ctx: Context, request: MetadataRequest, topics: tuple[MetadataResponseTopic, ...]
) -> MetadataResponse:
    view = ctx.broker.view
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
        topics=topics,
        cluster_authorized_operations=(
            authorizer.CLUSTER
            if request.include_cluster_authorized_operations
            else authorizer.NOT_REQUESTED
        ),
    )


def _answer(
    ctx: Context, request: MetadataRequest, asked: MetadataRequestTopic, view: ClusterImage
) -> MetadataResponseTopic:
    if asked.topic_id is not None:
        topic = view.topic_by_id(asked.topic_id)
        if topic is None:
            return _unknown_id(asked.topic_id, ctx.version)
        return _describe(ctx, request, topic)
    name = asked.name or ""
    topic = view.topics.get(name)
    if topic is not None:
        return _describe(ctx, request, topic)
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


def _describe(ctx: Context, request: MetadataRequest, topic: TopicImage) -> MetadataResponseTopic:
    partitions = _partitions(ctx, topic)
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=tuple(map(_without_offline, partitions)) if ctx.version == 0 else partitions,
        topic_authorized_operations=_operations(request),
    )


def _partitions(ctx: Context, topic: TopicImage) -> tuple[MetadataResponsePartition, ...]:
    broker = ctx.broker
    online = online_brokers(broker.view)
    has_epochs = broker.configs.log_config(topic.name).keeps_leader_epochs
    return tuple(
        MetadataResponsePartition(
            error_code=ErrorCode.LEADER_NOT_AVAILABLE if p.leader < 0 else ErrorCode.NONE,
            partition_index=index,
            leader_id=p.leader,
            leader_epoch=p.leader_epoch if has_epochs else NO_EPOCH,
            replica_nodes=p.replicas,
            isr_nodes=p.isr,
            offline_replicas=offline_replicas(p, online),
        )
        for index, p in enumerate(topic.partitions)
    )


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
