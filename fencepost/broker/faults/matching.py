"""Whether a request fits a rule."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias, cast
from uuid import UUID

from fencepost.broker.faults.request_fields import (
    GROUPS,
    TOPICS,
    TRANSACTIONAL_IDS,
    KeyFields,
    TopicFields,
    throttled_since,
)
from fencepost.broker.faults.rules import FaultRule, Throttle
from fencepost.broker.handlers.context import Context
from fencepost.protocol.messages.fetch import FetchRequest

if TYPE_CHECKING:
    from fencepost.protocol.messages.offset_fetch import OffsetFetchRequest

Matcher: TypeAlias = Callable[[Context, object], bool]
OF_TOPIC = 2
"""The resource type of a topic."""
FIRST_OFFSET_FETCH_OF_GROUPS = 8


def matcher_of(rule: FaultRule) -> Matcher:
    """What tells whether a request of the rule's API fits it."""
    lowest = (throttled_since(rule.api) or 0) if isinstance(rule.action, Throttle) else 0

    def fits(ctx: Context, request: object) -> bool:
        if ctx.version < lowest:
            return False
        if rule.versions is not None and ctx.version not in rule.versions:
            return False
        if rule.broker is not None and ctx.broker.broker_id != rule.broker:
            return False
        if rule.brokers_ask is not None and ctx.peer.is_broker != rule.brokers_ask:
            return False
        if rule.client_id is not None and ctx.client_id != rule.client_id:
            return False
        return _names_key(TRANSACTIONAL_IDS, rule.transactional_id, rule, request) and (
            _names_group_and_topic(rule, ctx, request)
        )

    return fits


def topic_name_of(shape: TopicFields, ctx: Context, topic: object) -> str | None:
    """The name of a topic that a request or an answer names; None where nobody knows its id."""
    if isinstance(topic, str):
        return topic
    # Only some kinds of topics have this field, as their shape says.
    if shape.resources and getattr(topic, "resource_type") != OF_TOPIC:  # noqa: B009  # as above
        return None
    name: str | None = getattr(topic, shape.name)
    topic_id: UUID | None = getattr(topic, "topic_id", None)
    if not name and topic_id is not None:
        return ctx.broker.view.names.get(topic_id)
    return name


def partition_index_of(shape: TopicFields, partition: object) -> int:
    """The index of a partition that a request names."""
    if isinstance(partition, int):
        return partition
    assert shape.index is not None
    index: int = getattr(partition, shape.index)
    return index


def asks_for_all(shape: TopicFields, version: int, holder: object) -> bool:
    """Whether no topic is named, and each is meant."""
    named = [getattr(holder, field) for field in shape.request_fields]
    return shape.one_error_for_all and (
        None in named or (version < shape.none_below and not any(named))
    )


def _names_group_and_topic(rule: FaultRule, ctx: Context, request: object) -> bool:
    if rule.api.name == "offset_fetch" and ctx.version >= FIRST_OFFSET_FETCH_OF_GROUPS:
        groups = cast("OffsetFetchRequest", request).groups
        return any(
            rule.group in (None, group.group_id) and _names_topic(rule, ctx, group)
            for group in groups
        )
    return _names_key(GROUPS, rule.group, rule, request) and _names_topic(rule, ctx, request)


def _names_key(
    shapes: Mapping[str, KeyFields], wanted: str | None, rule: FaultRule, request: object
) -> bool:
    return wanted is None or wanted in keys_of(shapes[rule.api.name], request)


def keys_of(shape: KeyFields, request: object) -> tuple[str, ...]:
    """The groups (or transactional ids) that a request names."""
    # Only FindCoordinator has this field, as its shape says.
    if shape.kind is not None and getattr(request, "key_type") != shape.kind:  # noqa: B009  # as above
        return ()
    one = () if shape.one is None else (getattr(request, shape.one),)
    many = () if shape.many is None else getattr(request, shape.many)
    return (*one, *many)


def _names_topic(rule: FaultRule, ctx: Context, holder: object) -> bool:
    if rule.topic is None:
        return True
    shape = TOPICS[rule.api.name]
    if asks_for_all(shape, ctx.version, holder):
        return True
    return any(
        name == rule.topic
        and (rule.partition is None or indexes is None or rule.partition in indexes)
        for name, indexes in _topics(shape, ctx, holder)
    )


def _topics(
    shape: TopicFields, ctx: Context, holder: object
) -> Iterator[tuple[str | None, Collection[int] | None]]:
    """The topics that are named, and their partitions where these are too."""
    if isinstance(holder, FetchRequest):
        yield from _fetched(ctx, holder)
        return
    for field in shape.request_fields:
        for topic in getattr(holder, field) or ():
            indexes = None
            if shape.partitions is not None:
                indexes = [partition_index_of(shape, p) for p in getattr(topic, shape.partitions)]
            yield topic_name_of(shape, ctx, topic), indexes


def _fetched(ctx: Context, request: FetchRequest) -> Iterator[tuple[str | None, Collection[int]]]:
    """What a Fetch is about: its session too, which it need not name again (KIP-227)."""
    for name, topic_id, index in ctx.broker.fetch_sessions.requested(request):
        known = name or (None if topic_id is None else ctx.broker.view.names.get(topic_id))
        yield known, (index,)
