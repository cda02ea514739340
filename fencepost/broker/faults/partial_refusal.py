"""A refusal of a part of a request: the rest is carried out, and the two answers become one.

OffsetFetch from v8 on: groups, with topics each. And OffsetDelete's refusal of partitions.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast

from fencepost.broker.faults.matching import (
    FIRST_OFFSET_FETCH_OF_GROUPS,
    asks_for_all,
    partition_index_of,
    topic_name_of,
)
from fencepost.broker.faults.request_fields import (
    GROUPS,
    TOPICS,
    TRANSACTIONAL_IDS,
    FieldName,
    TopicFields,
)
from fencepost.broker.faults.rules import FaultRule, Refuse
from fencepost.broker.handlers import handler_of
from fencepost.broker.handlers.context import Context
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from fencepost.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Message: TypeAlias = DataclassInstance
    """A request or answer of any API, or a struct in one."""
else:
    Message: TypeAlias = object

RefuseWith: TypeAlias = Callable[[Message], Message]
"""Answers a request, or what was cut out of one, with the rule's error."""
_LEADERLESS: Final = (ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.LISTENER_NOT_FOUND)


class SplitRequest(NamedTuple):
    """A request in two, and how its answer is put together."""

    selected: Message | None
    """What is refused; None where only the answer tells, as that to a request for all topics."""
    rest: Message
    """What is carried out."""
    join: Callable[[Message], Message]
    """Makes the answer to the rest that to the whole request."""


def split_request(
    rule: FaultRule, action: Refuse, ctx: Context, request: Message
) -> SplitRequest | None:
    """Take a request that fits apart; None where all of it is refused."""
    # MOVED

    def refuse(selected: Message) -> Message:
        if isinstance(selected, OffsetDeleteRequest):
            return refuse_offset_deletions(selected, action.code)
        return cast("Message", handler_of(rule.api).refuse(selected, action.code))

    if rule.api.name == "offset_fetch" and ctx.version >= FIRST_OFFSET_FETCH_OF_GROUPS:
        return split_groups(rule, action, ctx, request) if rule.selects_parts else None
    if rule.topic is not None or _is_about_topics(rule, action, ctx, request):
        parting = split_topics(rule, action, ctx, request, refuse)
        # With nothing left it would be asked for everything, page by page.
        asks_anew = rule.api.name == "describe_topic_partitions" and parting.selected is not None
        return (
            None if asks_anew and not any(_named(TOPICS[rule.api.name], parting.rest)) else parting
        )
    return _split_keys(rule, request, refuse)


def _is_about_topics(rule: FaultRule, action: Refuse, ctx: Context, request: Message) -> bool:
    """Whether a rule without a topic refuses each topic that is asked for.

    Metadata tells of brokers whatever it says of topics: without them no client would believe it.
    """
    if rule.api.name != "metadata" or action.code == ErrorCode.REBOOTSTRAP_REQUIRED:
        return False
    shape = TOPICS[rule.api.name]
    return asks_for_all(shape, ctx.version, request) or any(_named(shape, request))


# -- topics -------------------------------------------------------------------------------------


def split_topics(
    rule: FaultRule, action: Refuse, ctx: Context, holder: Message, refuse: RefuseWith
) -> SplitRequest:
    """Take the rule's topic, or its partition, out of what names topics.

    :param holder: A request, or what is within one for each group.
    """
    shape = TOPICS[rule.api.name]
    told_alone = shape.partitions is None and rule.partition is not None
    if told_alone or asks_for_all(shape, ctx.version, holder):
        return SplitRequest(None, holder, lambda answer: _changed(rule, action, ctx, shape, answer))
    halves: dict[FieldName, tuple[tuple[object, ...], tuple[object, ...]]] = {
        field: _partition_topics(rule, ctx, shape, getattr(holder, field) or ())
        for field in shape.request_fields
    }
    selected = replace(holder, **{field: half[0] for field, half in halves.items()})
    rest = replace(holder, **{field: half[1] for field, half in halves.items()})
    answered = shape.response_field
    assert answered is not None, "such a rule is refused"
    nothing_is_all = asks_for_all(shape, ctx.version, rest)

    def join(answer: Message) -> Message:
        told = () if nothing_is_all else getattr(answer, answered)
        refused = getattr(refuse(selected), answered)
        return replace(answer, **{answered: _joined(shape, told, refused)})

    return SplitRequest(selected, rest, join)


def _named(shape: TopicFields, holder: Message) -> Iterable[object]:
    return (topic for field in shape.request_fields for topic in getattr(holder, field) or ())


def _partition_topics(
    rule: FaultRule, ctx: Context, shape: TopicFields, topics: Iterable[Message | str]
) -> tuple[tuple[object, ...], tuple[object, ...]]:
    selected: list[object] = []
    rest: list[object] = []
    for topic in topics:
        if rule.topic not in (None, topic_name_of(shape, ctx, topic)):
            rest.append(topic)
        elif rule.partition is None or shape.partitions is None or isinstance(topic, str):
            selected.append(topic)
        else:
            partitions = getattr(topic, shape.partitions)
            inside = tuple(p for p in partitions if partition_index_of(shape, p) == rule.partition)
            others = tuple(p for p in partitions if partition_index_of(shape, p) != rule.partition)
            if inside:
                selected.append(replace(topic, **{shape.partitions: inside}))
            if others or not inside:
                rest.append(replace(topic, **{shape.partitions: others}))
    return tuple(selected), tuple(rest)


def _joined(
    shape: TopicFields, told: Iterable[Message], refused: Iterable[Message]
) -> tuple[Message, ...]:
    """All topics of two answers; those that both tell of have the partitions of both."""
    inner = shape.response_partitions
    topics = list(told)
    places = {_identity(shape, topic): place for place, topic in enumerate(topics)}
    for topic in refused:
        place = places.get(_identity(shape, topic))
        if place is None or inner is None:
            topics.append(topic)
        else:
            partitions = (*getattr(topics[place], inner), *getattr(topic, inner))
            topics[place] = replace(topics[place], **{inner: partitions})
    return tuple(topics)


def _identity(shape: TopicFields, topic: Message) -> tuple[object, ...]:
    fields = (shape.name, "topic_id", "resource_type")
    return tuple(getattr(topic, field, None) for field in fields)


def _changed(
    rule: FaultRule, action: Refuse, ctx: Context, shape: TopicFields, answer: Message
) -> Message:
    """An answer in which the rule's topics or partitions have its error instead."""
    answered, inner = shape.response_field, shape.response_partitions
    assert answered is not None, "such a rule is refused"
    assert inner is not None, "such a rule is refused"

    def topic(told: Message) -> Message:
        if rule.topic not in (None, topic_name_of(shape, ctx, told)):
            return told
        if rule.partition is None and hasattr(told, "error_code"):
            return replace(told, **{"error_code": action.code, inner: ()})
        partitions = tuple(
            _with_error(p, action.code)
            if rule.partition in (None, getattr(p, shape.response_index))
            else p
            for p in getattr(told, inner)
        )
        return replace(told, **{inner: partitions})

    return replace(answer, **{answered: tuple(map(topic, getattr(answer, answered)))})


def _with_error(partition: Message, code: int) -> Message:
    changes: dict[str, object] = {"error_code": code}
    if hasattr(partition, "leader_id") and code in _LEADERLESS:
        changes["leader_id"] = -1
    if hasattr(partition, "committed_offset"):
        changes["committed_offset"] = -1
    return replace(partition, **changes)


# -- groups and transactional ids ---------------------------------------------------------------


def _split_keys(rule: FaultRule, request: Message, refuse: RefuseWith) -> SplitRequest | None:
    shape, wanted = GROUPS.get(rule.api.name), rule.group
    if rule.transactional_id is not None:
        shape, wanted = TRANSACTIONAL_IDS[rule.api.name], rule.transactional_id
    if shape is None or wanted is None or shape.many is None or shape.response_field is None:
        return None
    keys: tuple[str, ...] = getattr(request, shape.many)
    if not keys:
        return None
    answered = shape.response_field
    selected = replace(request, **{shape.many: tuple(key for key in keys if key == wanted)})
    rest = replace(request, **{shape.many: tuple(key for key in keys if key != wanted)})

    def join(answer: Message) -> Message:
        told = (*getattr(answer, answered), *getattr(refuse(selected), answered))
        return replace(answer, **{answered: told})

    return SplitRequest(selected, rest, join)


_NO_OFFSET = -1
_JoinResponses = Callable[[Message], Message]


def split_groups(rule: FaultRule, action: Refuse, ctx: Context, request: Message) -> SplitRequest:
    """Take the rule's group out of a request for many, or its topic out of every group."""
    rest: list[OffsetFetchRequestGroup] = []
    refused: list[OffsetFetchResponseGroup] = []
    joins: dict[str, _JoinResponses] = {}
    whole = cast(OffsetFetchRequest, request)
    for group in whole.groups:
        if rule.group not in (None, group.group_id):
            rest.append(group)
        elif rule.topic is None:
            refused.append(
                OffsetFetchResponseGroup(group_id=group.group_id, error_code=action.code)
            )
        else:
            parting = split_topics(
                rule, action, ctx, group, lambda g: _refused_group(g, action.code)
            )
            rest.append(cast(OffsetFetchRequestGroup, parting.rest))
            joins[group.group_id] = parting.join

    def join(answer: Message) -> Message:
        told = (
            joins[group.group_id](group) if group.group_id in joins else group
            for group in cast(OffsetFetchResponse, answer).groups
        )
        return replace(answer, groups=(*told, *refused))

    return SplitRequest(None, replace(whole, groups=tuple(rest)), join)


def _refused_group(group: Message, code: int) -> OffsetFetchResponseGroup:
    asked = cast(OffsetFetchRequestGroup, group)
    return OffsetFetchResponseGroup(
        group_id=asked.group_id,
        topics=tuple(
            OffsetFetchResponseTopics(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    OffsetFetchResponsePartitions(
                        partition_index=index, committed_offset=_NO_OFFSET, error_code=code
                    )
                    for index in topic.partition_indexes
                ),
            )
            for topic in asked.topics or ()
        ),
    )


def refuse_offset_deletions(request: OffsetDeleteRequest, code: int) -> OffsetDeleteResponse:
    """The same error for every partition, and none for the whole."""
    return OffsetDeleteResponse(
        topics=tuple(
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetDeleteResponsePartition(
                        partition_index=partition.partition_index, error_code=code
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )
