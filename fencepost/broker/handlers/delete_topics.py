"""DeleteTopics (20), versions 1-6: delete topics, by name or (v6) by id.

The topics are gone from every view before the answer is sent; their names may be used again at
once, for topics with other ids. What stands twice in a request, by name, by id or by both, is
refused and not deleted. With ``delete.topic.enable=false`` everything is TOPIC_DELETION_DISABLED
(from v3; before, INVALID_REQUEST).

Versions: v3 TOPIC_DELETION_DISABLED; v5 error messages; v6 topic ids.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from fencepost.broker.controller.controller_apis import ControllerContext
from fencepost.broker.metadata.image import ClusterImage, TopicImage
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

_FIRST_WITH_DISABLED: Final = 3
_UNKNOWN_NAME: Final = "This server does not host this topic-partition."
_UNKNOWN_ID: Final = "This server does not host this topic ID."
_DUPLICATE_NAME: Final = "Duplicate topic name."
_DUPLICATE_ID: Final = "Duplicate topic id."
_BOTH: Final = "You may not specify both topic name and topic id."
_NEITHER: Final = "Neither topic name nor id were specified."
_TWICE: Final = "The provided topic name maps to an ID that was already supplied."


def handle(ctx: ControllerContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Delete what can be deleted."""
    if not ctx.configs.delete_topic_enable:
        if ctx.version < _FIRST_WITH_DISABLED:
            return refuse(request, ErrorCode.INVALID_REQUEST)
        return refuse(request, ErrorCode.TOPIC_DELETION_DISABLED)
    results = _results(ctx.controller.image, _asked(request))
    deleted = [r.name for r in results if r.error_code == ErrorCode.NONE and r.name is not None]
    if deleted:
        ctx.controller.delete_topics(deleted)
    return DeleteTopicsResponse(responses=tuple(results))


def refuse(request: DeleteTopicsRequest, error_code: int) -> DeleteTopicsResponse:
    """The same error for every topic."""
    return DeleteTopicsResponse(
        responses=tuple(
            DeletableTopicResult(name=asked.name, topic_id=asked.topic_id, error_code=error_code)
            for asked in _asked(request)
        )
    )


def _asked(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    return [*(DeleteTopicState(name=name) for name in request.topic_names), *request.topics]


def _results(image: ClusterImage, asked: Sequence[DeleteTopicState]) -> list[DeletableTopicResult]:
    """One result for each topic; those without an error are to be deleted."""
    results = [_unclear(one) for one in asked if (one.name is None) == (one.topic_id is None)]
    times = Counter(one for one in asked if (one.name is None) != (one.topic_id is None))
    found = {one: _find(image, one) for one in times}
    named_too = {
        topic.topic_id for one, topic in found.items() if topic is not None and one.name is not None
    }
    by_id = {one.topic_id for one in times if one.name is None}
    for one, topic in found.items():
        if times[one] > 1:
            message = _DUPLICATE_ID if one.name is None else _DUPLICATE_NAME
            results.append(_error(one.name, one.topic_id, ErrorCode.INVALID_REQUEST, message))
        elif topic is None:
            results.append(_unknown(one))
        elif one.name is None and one.topic_id in named_too:
            continue  # answered under its name
        elif topic.topic_id in by_id and one.name is not None:
            results.append(_error(one.name, topic.topic_id, ErrorCode.INVALID_REQUEST, _TWICE))
        else:
            results.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id))
    return results


def _find(image: ClusterImage, asked: DeleteTopicState) -> TopicImage | None:
    if asked.name is None:
        return image.topic_by_id(asked.topic_id)
    return image.topics.get(asked.name)


def _unclear(asked: DeleteTopicState) -> DeletableTopicResult:
    message = _NEITHER if asked.name is None else _BOTH
    return _error(asked.name, asked.topic_id, ErrorCode.INVALID_REQUEST, message)


def _unknown(asked: DeleteTopicState) -> DeletableTopicResult:
    if asked.name is None:
        return _error(None, asked.topic_id, ErrorCode.UNKNOWN_TOPIC_ID, _UNKNOWN_ID)
    return _error(asked.name, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _UNKNOWN_NAME)


def _error(
    name: str | None, topic_id: UUID | None, code: ErrorCode, message: str
) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=code, error_message=message
    )
