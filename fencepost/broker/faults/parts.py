"""A refusal of a part of a request: the rest is carried out, and the two answers become one."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast

from fencepost.broker.context import Context
from fencepost.broker.faults.rules import Refuse, Rule
from fencepost.broker.faults.scopes import (
    FIRST_OFFSET_FETCH_OF_GROUPS,
    asks_for_all,
    index_of,
    name_of,
)
from fencepost.broker.faults.shapes import (
    GROUPS,
    TOPICS,
    TRANSACTIONAL_IDS,
    FieldName,
    TopicsShape,
)
from fencepost.broker.handlers import handler_of
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.offset_delete import OffsetDeleteRequest

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Message: TypeAlias = DataclassInstance
    """A request or answer of any API, or a struct in one."""
else:
    Message = object
RefuseWith: TypeAlias = Callable[[Message], Message]
"""Answers a request, or what was cut out of one, with the rule's error."""
_LEADERLESS: Final = (ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.LISTENER_NOT_FOUND)


class Parting(NamedTuple):
    """A request in two, and how its answer is put together."""

    selected: Message | None
    """What is refused; None where only the answer tells, as that to a request for all topics."""
    rest: Message
    """What is carried out."""
    join: Callable[[Message], Message]
    """Makes the answer to the rest that to the whole request."""


def part(rule: Rule, action: Refuse, ctx: Context, request: Message) -> Parting | None:
    """Take a request that fits apart; None where all of it is refused."""
    from fencepost.broker.faults.group_parts import part_groups, refuse_deletions

    def refuse(selected: Message) -> Message:
        if isinstance(selected, OffsetDeleteRequest):
            return refuse_deletions(selected, action.code)
        return cast("Message", handler_of(rule.api).refuse(selected, action.code))

    if rule.api.name == "offset_fetch" and ctx.version >= FIRST_OFFSET_FETCH_OF_GROUPS:
        return part_groups(rule, action, ctx, request) if rule.selects_parts else None
    if rule.topic is not None or _is_about_topics(rule, action, ctx, request):
        parting = part_topics(rule, action, ctx, request, refuse)
        # With nothing left it would be asked for everything, page by page.
        asks_anew = rule.api.name == "describe_topic_partitions" and parting.selected is not None
        return (
            None if asks_anew and not any(_named(TOPICS[rule.api.name], parting.rest)) else parting
        )
    return _part_keys(rule, request, refuse)


def _is_about_topics(rule: Rule, action: Refuse, ctx: Context, request: Message) -> bool:
    """Whether a rule without a topic refuses each topic that is asked for.

    Metadata tells of brokers whatever it says of topics: without them no client would believe it.
    """
    if rule.api.name != "metadata" or action.code == ErrorCode.REBOOTSTRAP_REQUIRED:
        return False
    shape = TOPICS[rule.api.name]
    return asks_for_all(shape, ctx.version, request) or any(_named(shape, request))


# -- topics -------------------------------------------------------------------------------------


def part_topics(
    rule: Rule, action: Refuse, ctx: Context, holder: Message, refuse: RefuseWith
) -> Parting:
    """Take the rule's topic, or its partition, out of what names topics.

    :param holder: A request, or what is within one for each group.
    """
    shape = TOPICS[rule.api.name]
    told_alone = shape.partitions is None and rule.partition is not None
    if told_alone or asks_for_all(shape, ctx.version, holder):
        return Parting(None, holder, lambda answer: _changed(rule, action, ctx, shape, answer))
    halves: dict[FieldName, tuple[tuple[object, ...], tuple[object, ...]]] = {
        field: _cut_topics(rule, ctx, shape, getattr(holder, field) or ()) for field in shape.asked
    }
    selected = replace(holder, **{field: half[0] for field, half in halves.items()})
    rest = replace(holder, **{field: half[1] for field, half in halves.items()})
    answered = shape.answered
    assert answered is not None, "such a rule is refused"
    nothing_is_all = asks_for_all(shape, ctx.version, rest)

    def join(answer: Message) -> Message:
        told = () if nothing_is_all else getattr(answer, answered)
        refused = getattr(refuse(selected), answered)
        return replace(answer, **{answered: _joined(shape, told, refused)})

    return Parting(selected, rest, join)


def _named(shape: TopicsShape, holder: Message) -> Iterable[object]:
    return (topic for field in shape.asked for topic in getattr(holder, field) or ())


def _cut_topics(
    rule: Rule, ctx: Context, shape: TopicsShape, topics: Iterable[Message | str]
) -> tuple[tuple[object, ...], tuple[object, ...]]:
    selected: list[object] = []
    rest: list[object] = []
    for topic in topics:
        if rule.topic not in (None, name_of(shape, ctx, topic)):
            rest.append(topic)
        elif rule.partition is None or shape.partitions is None or isinstance(topic, str):
            selected.append(topic)
        else:
            partitions = getattr(topic, shape.partitions)
            inside = tuple(p for p in partitions if index_of(shape, p) == rule.partition)
            others = tuple(p for p in partitions if index_of(shape, p) != rule.partition)
            if inside:
                selected.append(replace(topic, **{shape.partitions: inside}))
            if others or not inside:
                rest.append(replace(topic, **{shape.partitions: others}))
    return tuple(selected), tuple(rest)


def _joined(
    shape: TopicsShape, told: Iterable[Message], refused: Iterable[Message]
) -> tuple[Message, ...]:
    """All topics of two answers; those that both tell of have the partitions of both."""
    inner = shape.answered_partitions
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


def _identity(shape: TopicsShape, topic: Message) -> tuple[object, ...]:
    fields = (shape.name, "topic_id", "resource_type")
    return tuple(getattr(topic, field, None) for field in fields)


def _changed(
    rule: Rule, action: Refuse, ctx: Context, shape: TopicsShape, answer: Message
) -> Message:
    """An answer in which the rule's topics or partitions have its error instead."""
    answered, inner = shape.answered, shape.answered_partitions
    assert answered is not None, "such a rule is refused"
    assert inner is not None, "such a rule is refused"

    def topic(told: Message) -> Message:
        if rule.topic not in (None, name_of(shape, ctx, told)):
            return told
        if rule.partition is None and hasattr(told, "error_code"):
            return replace(told, **{"error_code": action.code, inner: ()})
        partitions = tuple(
            _with_error(p, action.code)
            if rule.partition in (None, getattr(p, shape.answered_index))
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


def _part_keys(rule: Rule, request: Message, refuse: RefuseWith) -> Parting | None:
    shape, wanted = GROUPS.get(rule.api.name), rule.group
    if rule.transactional_id is not None:
        shape, wanted = TRANSACTIONAL_IDS[rule.api.name], rule.transactional_id
    if shape is None or wanted is None or shape.many is None or shape.answered is None:
        return None
    keys: tuple[str, ...] = getattr(request, shape.many)
    if not keys:
        return None
    answered = shape.answered
    selected = replace(request, **{shape.many: tuple(key for key in keys if key == wanted)})
    rest = replace(request, **{shape.many: tuple(key for key in keys if key != wanted)})

    def join(answer: Message) -> Message:
        told = (*getattr(answer, answered), *getattr(refuse(selected), answered))
        return replace(answer, **{answered: told})

    return Parting(selected, rest, join)
