"""Why a transaction, or its producer, cannot go on, and by which answers that is known.

An answer that says "later" is no error: the request is repeated. `TransactionAbortable` ends the
transaction, `ProducerFenced` and `TransactionFailed` end the producer. As Kafka's producer has it,
an old epoch is final where the coordinator says so, and where a partition's leader does it is not:
a coordinator that aborted a transaction for its time-out has fenced the epoch as well (KIP-588).
"""

from typing import Final

from fencepost.client.errors import RETRIABLE
from fencepost.protocol.errors import ErrorCode, error_name


class TransactionError(Exception):
    """A request of a transaction was refused.

    :ivar request: Its API.
    :ivar error: Kafka's code.
    """

    def __init__(self, request: str, error: int) -> None:
        super().__init__(f"{request}: {error_name(error)}")
        self.request = request
        self.error = error


class TransactionAbortable(TransactionError):
    """The transaction can only be aborted; the producer may begin another."""


class ProducerFenced(TransactionError):
    """Another producer has the transactional id by now: this one is over."""


class TransactionFailed(TransactionError):
    """The producer is over, for another reason."""


RETRIED: Final = RETRIABLE | {ErrorCode.CONCURRENT_TRANSACTIONS}
"""After these a request is repeated."""
COORDINATOR_MOVED: Final = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}
)
"""After these the coordinator is looked for."""
_ABORTABLE: Final = frozenset(
    {
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
    }
)
_FATAL_OF_PRODUCE: Final = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)


def error_of_coordinator(request: str, error: int) -> TransactionError:
    """What a coordinator's answer means."""
    if error in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH):
        return ProducerFenced(request, error)
    if error in _ABORTABLE:
        return TransactionAbortable(request, error)
    return TransactionFailed(request, error)


def error_of_produce(error: int) -> TransactionError:
    """What the answer of a partition's leader means."""
    if error == ErrorCode.PRODUCER_FENCED:
        return ProducerFenced("Produce", error)
    if error in _FATAL_OF_PRODUCE:
        return TransactionFailed("Produce", error)
    return TransactionAbortable("Produce", error)
