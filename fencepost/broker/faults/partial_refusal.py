"""The refusal of a request, or of a part of it: the rest is carried out, and both responses join.

Produce and Fetch refuse single partitions themselves, as the request's context says: the partitions
of a fetch session are not in the request. All other APIs are split here. OffsetFetch from v8 on has
groups with topics each.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from fencepost.broker.core.context import PartitionRefusal
from fencepost.broker.core.outcomes import HANG_UP
from fencepost.broker.core.waits import Wait
from fencepost.broker.faults.interceptor import Interception, Message
from fencepost.broker.faults.matching import (
    FIRST_OFFSET_FETCH_OF_GROUPS,
    asks_for_all,
    named_topics,
    partition_index_of,
    topic_name_of,
    topics_of,
)
from fencepost.broker.faults.offset_refusals import refused_group, refused_offset_deletions
from fencepost.broker.faults.request_fields import (
    FieldName,
    TopicFields,
    group_fields,
    topic_fields,
    transactional_id_fields,
)
from fencepost.broker.faults.selectors import Selectors
from fencepost.broker.handlers import handler_of
from fencepost.broker.handlers.context import Context
from fencepost.protocol.apis import Api
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from fencepost.protocol.messages.fetch import FetchResponse
from fencepost.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
)
from fencepost.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from fencepost.protocol.messages.write_txn_markers import (
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)

RefuseWith: TypeAlias = Callable[[Message], Message]
"""Makes the response that refuses a request, or a part of one, with the fault's error."""
_LEADERLESS: Final = (ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.LISTENER_NOT_FOUND)
_SESSION_CODES: Final = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)
"""Errors of Fetch that are about the session, not about a partition."""
_FIRST_FETCH_WITH_SESSIONS: Final = 7


def refuse(hit: Interception, code: int) -> object:
    """Refuse what the fault selects with an error code; carry out the rest.

    REQUEST_TIMED_OUT comes late: what is selected is carried out as well.
    """
    selectors, name = hit.selectors, hit.api.name
    is_late = code == ErrorCode.REQUEST_TIMED_OUT
    has_session = name == "fetch" and hit.ctx.version >= _FIRST_FETCH_WITH_SESSIONS
    if has_session and code in _SESSION_CODES:
        return FetchResponse(error_code=code)
    if name == "fetch" or (name == "produce" and hit.selects_partitions):
        topic, partition = selectors.topic, selectors.partition
        refusal = PartitionRefusal(code, topic, partition, is_late, hit.partitions)
        return hit.carry_out(ctx=hit.ctx._replace(refusal=refusal))
    request = cast("Message", hit.request)
    split = split_request(_Part(hit.api, selectors, code, hit.ctx), request)
    if split is None:
        if is_late:
            _cancel_wait(hit.carry_out())
        hangs_up = getattr(request, "acks", None) == 0
        return HANG_UP if hangs_up else handler_of(hit.api).refuse(request, code)
    if is_late and split.selected is not None:
        _cancel_wait(hit.carry_out(split.selected))
    return hit.convert(
        hit.carry_out(split.rest), lambda response: split.join(cast("Message", response))
    )


def _cancel_wait(answer: object) -> None:
    """The request is carried out; its response is another one."""
    if isinstance(answer, Wait):
        answer.cancel()


class _Part(Struct, frozen=True):
    """What a fault refuses of one request."""

    api: Api
    selectors: Selectors
    code: int
    ctx: Context

    @property
    def shape(self) -> TopicFields:
        """Where the API names topics."""
        return topics_of(topic_fields(self.api))


class SplitRequest(NamedTuple):
    """A request in two, and how its response is put together."""

    selected: Message | None
    """What is refused; None where only the response has it, as that to a request for all topics."""
    rest: Message
    """What is carried out."""
    join: Callable[[Message], Message]
    """Makes the response to the whole request from that to the rest."""


def split_request(part: _Part, request: Message) -> SplitRequest | None:
    """Split a request that matches; None where all of it is refused."""
    selectors = part.selectors

    def refuse(selected: Message) -> Message:
        if isinstance(selected, OffsetDeleteRequest):
            return refused_offset_deletions(selected, part.code)
        return cast("Message", handler_of(part.api).refuse(selected, part.code))

    if part.api.name == "offset_fetch" and part.ctx.version >= FIRST_OFFSET_FETCH_OF_GROUPS:
        return _split_groups(part, request) if selectors.selects_parts else None
    if isinstance(request, ElectLeadersRequest) and request.topic_partitions is None:
        return None if selectors.topic is None else _split_elections(part, request, refuse)
    if selectors.topic is not None or _is_about_topics(part, request):
        split = _split_topics(part, request, refuse)
        # With no topic left the rest would mean every topic, page by page.
        is_paged = part.api.name == "describe_topic_partitions" and split.selected is not None
        return None if is_paged and not any(named_topics(part.shape, split.rest)) else split
    return _split_keys(part, request, refuse)


def _is_about_topics(part: _Part, request: Message) -> bool:
    """Whether a rule without a topic refuses each topic that the request names.

    A response to Metadata has the brokers whatever it says of topics: without them no client would
    believe it.
    """
    if part.api.name != "metadata" or part.code == ErrorCode.REBOOTSTRAP_REQUIRED:
        return False
    shape = part.shape
    return asks_for_all(shape, part.ctx.version, request) or any(named_topics(shape, request))


# -- topics -------------------------------------------------------------------------------------


def _split_topics(part: _Part, holder: Message, refuse: RefuseWith) -> SplitRequest:
    """Take the selected topic, or its partition, out of what names topics.

    :param holder: A request, or a group in one.
    """
    shape = part.shape
    only_in_response = shape.partitions is None and part.selectors.partition is not None
    if only_in_response or asks_for_all(shape, part.ctx.version, holder):
        return SplitRequest(None, holder, lambda response: _with_errors(part, response))
    selected, rest = _halves(part, holder)
    topics_field = shape.response_field
    assert topics_field is not None, "such a rule is refused"
    nothing_is_all = asks_for_all(shape, part.ctx.version, rest)
    if shape.response_container is not None:
        return SplitRequest(
            selected, rest, lambda response: _joined_markers(shape, response, refuse(selected))
        )

    def join(response: Message) -> Message:
        carried_out = () if nothing_is_all else getattr(response, topics_field)
        refused = getattr(refuse(selected), topics_field)
        return replace(response, **{topics_field: _joined(shape, carried_out, refused)})

    return SplitRequest(selected, rest, join)


def _joined_markers(shape: TopicFields, carried_out: Message, refused: Message) -> Message:
    """The topics of each producer's marker in two responses to WriteTxnMarkers."""
    markers: dict[int, WritableTxnMarkerResult] = {}
    for response in (carried_out, refused):
        for marker in cast(WriteTxnMarkersResponse, response).markers:
            topics = markers.get(marker.producer_id, WritableTxnMarkerResult()).topics
            joined = _joined(shape, topics, marker.topics)
            markers[marker.producer_id] = replace(
                marker, topics=cast("tuple[WritableTxnMarkerTopicResult, ...]", joined)
            )
    return replace(carried_out, markers=tuple(markers.values()))


def _halves(part: _Part, holder: Message) -> tuple[Message, Message]:
    """What names topics with those that are selected, and with the others."""
    container = part.shape.container
    if container is not None:
        halves = [_halves_of_fields(part, each) for each in getattr(holder, container)]
        selected, rest = (tuple(half[side] for half in halves) for side in (0, 1))
        return replace(holder, **{container: selected}), replace(holder, **{container: rest})
    return _halves_of_fields(part, holder)


def _halves_of_fields(part: _Part, holder: Message) -> tuple[Message, Message]:
    halves: dict[FieldName, tuple[tuple[object, ...], tuple[object, ...]]] = {
        field: _partition_topics(part, getattr(holder, field) or ())
        for field in part.shape.request_fields
    }
    selected = replace(holder, **{field: half[0] for field, half in halves.items()})
    rest = replace(holder, **{field: half[1] for field, half in halves.items()})
    return selected, rest


def _split_elections(part: _Part, request: ElectLeadersRequest, refuse: RefuseWith) -> SplitRequest:
    """Split a request for elections everywhere, which is carried out everywhere else.

    As with null, the response leaves out partitions that need no election.
    """
    topics = part.ctx.broker.view.topics.values()
    everywhere = tuple(
        TopicPartitions(topic=topic.name, partitions=tuple(range(len(topic.partitions))))
        for topic in topics
    )
    split = _split_topics(part, replace(request, topic_partitions=everywhere), refuse)

    def join(response: Message) -> Message:
        elected = cast(ElectLeadersResponse, response)
        results = tuple(
            replace(
                topic,
                partition_result=tuple(
                    each
                    for each in topic.partition_result
                    if each.error_code != ErrorCode.ELECTION_NOT_NEEDED
                ),
            )
            for topic in elected.replica_election_results
        )
        return split.join(replace(elected, replica_election_results=results))

    return split._replace(join=join)


def _partition_topics(
    part: _Part, topics: Iterable[Message | str]
) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """The topics that are selected, and the others; a topic may be in both with its partitions."""
    shape, selectors = part.shape, part.selectors
    selected: list[object] = []
    rest: list[object] = []
    for topic in topics:
        if selectors.topic not in (None, topic_name_of(shape, part.ctx, topic)):
            rest.append(topic)
        elif selectors.partition is None or shape.partitions is None or isinstance(topic, str):
            selected.append(topic)
        else:
            partitions = getattr(topic, shape.partitions)
            wanted = [partition_index_of(shape, p) == selectors.partition for p in partitions]
            inside = tuple(p for p, is_in in zip(partitions, wanted, strict=True) if is_in)
            others = tuple(p for p, is_in in zip(partitions, wanted, strict=True) if not is_in)
            if inside:
                selected.append(replace(topic, **{shape.partitions: inside}))
            if others or not inside:
                rest.append(replace(topic, **{shape.partitions: others}))
    return tuple(selected), tuple(rest)


def _joined(
    shape: TopicFields, carried_out: Iterable[Message], refused: Iterable[Message]
) -> tuple[Message, ...]:
    """All topics of two responses; those that are in both have the partitions of both."""
    inner = shape.response_partitions
    topics = list(carried_out)
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
    name = getattr(topic, shape.response_name or shape.name)
    return (name, *(getattr(topic, field, None) for field in ("topic_id", "resource_type")))


def _with_errors(part: _Part, response: Message) -> Message:
    """A response in which the selected topics or partitions have the error instead."""
    shape, selectors = part.shape, part.selectors
    topics_field, inner, index = (
        shape.response_field,
        shape.response_partitions,
        shape.response_index,
    )
    assert topics_field is not None, "such a rule is refused"
    assert inner is not None, "such a rule is refused"
    assert index is not None, "where there are partitions they have an index"

    def topic(current: Message) -> Message:
        if selectors.topic not in (None, topic_name_of(shape, part.ctx, current)):
            return current
        if selectors.partition is None and hasattr(current, "error_code"):
            return replace(current, **{"error_code": part.code, inner: ()})
        partitions = tuple(
            _with_error(p, part.code) if selectors.partition in (None, getattr(p, index)) else p
            for p in getattr(current, inner)
        )
        return replace(current, **{inner: partitions})

    return replace(response, **{topics_field: tuple(map(topic, getattr(response, topics_field)))})


def _with_error(partition: Message, code: int) -> Message:
    changes: dict[str, object] = {"error_code": code}
    if hasattr(partition, "leader_id") and code in _LEADERLESS:
        changes["leader_id"] = -1
    if hasattr(partition, "committed_offset"):
        offset_fields = ("committed_offset", "committed_leader_epoch", "timestamp")
        changes |= {name: -1 for name in offset_fields if hasattr(partition, name)}
    return replace(partition, **changes)


# -- groups and transactional ids ---------------------------------------------------------------


def _split_keys(part: _Part, request: Message, refuse: RefuseWith) -> SplitRequest | None:
    selectors = part.selectors
    shape, wanted = group_fields(part.api), selectors.group
    if selectors.transactional_id is not None:
        shape, wanted = transactional_id_fields(part.api), selectors.transactional_id
    if shape is None or wanted is None or shape.many is None or shape.response_field is None:
        return None
    keys: tuple[str, ...] = getattr(request, shape.many)
    if not keys:
        return None
    response_field = shape.response_field
    selected = replace(request, **{shape.many: tuple(key for key in keys if key == wanted)})
    rest = replace(request, **{shape.many: tuple(key for key in keys if key != wanted)})

    def join(response: Message) -> Message:
        refused = getattr(refuse(selected), response_field)
        return replace(response, **{response_field: (*getattr(response, response_field), *refused)})

    return SplitRequest(selected, rest, join)


_JoinResponses = Callable[[Message], Message]


def _split_groups(part: _Part, request: Message) -> SplitRequest:
    """Take the selected group out of a request for many, or the selected topic out of each."""
    selectors, code = part.selectors, part.code
    rest: list[OffsetFetchRequestGroup] = []
    refused: list[OffsetFetchResponseGroup] = []
    joins: dict[str, _JoinResponses] = {}
    whole = cast(OffsetFetchRequest, request)
    for group in whole.groups:
        if selectors.group not in (None, group.group_id):
            rest.append(group)
        elif selectors.topic is None:
            refused.append(OffsetFetchResponseGroup(group_id=group.group_id, error_code=code))
        else:
            split = _split_topics(
                part, group, lambda g: refused_group(cast(OffsetFetchRequestGroup, g), code)
            )
            rest.append(cast(OffsetFetchRequestGroup, split.rest))
            joins[group.group_id] = split.join

    def join(response: Message) -> Message:
        carried_out = (
            joins[group.group_id](group) if group.group_id in joins else group
            for group in cast(OffsetFetchResponse, response).groups
        )
        return replace(response, groups=(*carried_out, *refused))

    return SplitRequest(None, replace(whole, groups=tuple(rest)), join)
