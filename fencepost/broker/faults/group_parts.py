"""OffsetFetch from v8 on: groups, with topics each. And OffsetDelete's refusal of partitions."""

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from fencepost.broker.context import Context
from fencepost.broker.faults.parts import Message, Parting, part_topics
from fencepost.broker.faults.rules import Refuse, Rule
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

_NOTHING = -1
_Join = Callable[[Message], Message]


def part_groups(rule: Rule, action: Refuse, ctx: Context, request: Message) -> Parting:
    """Take the rule's group out of a request for many, or its topic out of every group."""
    rest: list[OffsetFetchRequestGroup] = []
    refused: list[OffsetFetchResponseGroup] = []
    joins: dict[str, _Join] = {}
    whole = cast(OffsetFetchRequest, request)
    for group in whole.groups:
        if rule.group not in (None, group.group_id):
            rest.append(group)
        elif rule.topic is None:
            refused.append(
                OffsetFetchResponseGroup(group_id=group.group_id, error_code=action.code)
            )
        else:
            parting = part_topics(rule, action, ctx, group, lambda g: _refused(g, action.code))
            rest.append(cast(OffsetFetchRequestGroup, parting.rest))
            joins[group.group_id] = parting.join

    def join(answer: Message) -> Message:
        told = (
            joins[group.group_id](group) if group.group_id in joins else group
            for group in cast(OffsetFetchResponse, answer).groups
        )
        return replace(answer, groups=(*told, *refused))

    return Parting(None, replace(whole, groups=tuple(rest)), join)


def _refused(group: Message, code: int) -> OffsetFetchResponseGroup:
    asked = cast(OffsetFetchRequestGroup, group)
    return OffsetFetchResponseGroup(
        group_id=asked.group_id,
        topics=tuple(
            OffsetFetchResponseTopics(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    OffsetFetchResponsePartitions(
                        partition_index=index, committed_offset=_NOTHING, error_code=code
                    )
                    for index in topic.partition_indexes
                ),
            )
            for topic in asked.topics or ()
        ),
    )


def refuse_deletions(request: OffsetDeleteRequest, code: int) -> OffsetDeleteResponse:
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
