"""Why no answer came. What a broker answers is no exception: it is a code in the answer."""

from enum import StrEnum
from typing import ClassVar, Final

from fencepost.protocol.errors import ErrorCode


class Failure(StrEnum):
    """Why no answer came, as one word."""

    DISCONNECTED = "disconnected"
    TIMED_OUT = "timed_out"
    UNREACHABLE = "unreachable"
    MALFORMED = "malformed"
    NOT_SERVED = "not_served"
    NO_LEADER = "no_leader"


class KafkaClientError(Exception):
    """No answer came. Whether the request was carried out is not known."""

    failure: ClassVar[Failure]


class Disconnected(KafkaClientError):
    """The connection ended before the answer."""

    failure = Failure.DISCONNECTED


class TimedOut(KafkaClientError):
    """No answer in time. The connection is closed: a late answer would have no request."""

    failure = Failure.TIMED_OUT


class Unreachable(KafkaClientError):
    """No process listens at the broker's address, or no broker has that id; nothing was sent."""

    failure = Failure.UNREACHABLE


class MalformedAnswer(KafkaClientError):
    """What came is no answer to what was asked."""

    failure = Failure.MALFORMED


class NotServed(KafkaClientError):
    """The broker does not serve the API in any version that this client speaks."""

    failure = Failure.NOT_SERVED


class DialectNotServed(NotServed):
    """The broker does not name the feature of the dialect that was asked for; the connection is
    closed, because the frames of a draft and of Kafka can't be told apart.
    """


class NoLeader(KafkaClientError):
    """The partition has no known leader, so there is no broker to ask."""

    failure = Failure.NO_LEADER


RETRIABLE: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""Errors after which Kafka's clients ask again: its ``RetriableException``."""
