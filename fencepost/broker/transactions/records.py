"""The records of ``__transaction_state`` in Kafka's formats, and the state that they replay to.

=====  =================  ===============  ====================================================
key    record             value versions   versions written
=====  =================  ===============  ====================================================
0      TransactionLog     0 and 1          1 from ``transaction.version`` 1 on, before that 0
=====  =================  ===============  ====================================================

A null value is a tombstone: the transactional id has expired. Version 1 is compact and has tagged
fields: the previous producer id (0), the next (1), the client's transaction version (2) and the
next epoch (3). Metadata that version 0 cannot hold, of an id that was used under a higher
``transaction.version``, are written in version 1; Kafka fails such a request.
"""

import struct
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from itertools import groupby
from typing import Final

from msgspec import Struct, field

from fencepost.broker.coordinator.record_fields import FieldReader, FieldWriter, MalformedRecord
from fencepost.broker.coordinator.shard import CoordinatorRecordSerde
from fencepost.broker.transactions.transaction_metadata import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TopicPartition,
    TransactionMetadata,
)
from fencepost.broker.transactions.transaction_state import TransactionState

FLEXIBLE_VERSION: Final = 1
_EMPTY: Final = TransactionState.EMPTY
_KEY_VERSION: Final = 0
_NULL: Final = -1
_HEAD: Final = struct.Struct(">hqhib")
"""Of a value: its version, producer id, producer epoch, timeout and state."""
_TIMES: Final = struct.Struct(">qq")
"""When it was updated last, and when the transaction began."""
_KEPT: Final = 16
"""How many of the encoded parts are kept that the records of a transaction have in common, and
mostly those of the next one too."""
_PREVIOUS_PRODUCER_ID_TAG: Final = 0
_NEXT_PRODUCER_ID_TAG: Final = 1
_CLIENT_VERSION_TAG: Final = 2
_NEXT_PRODUCER_EPOCH_TAG: Final = 3


class TransactionRecord(Struct, frozen=True, kw_only=True):
    """A transactional id; without a value, its expiration."""

    transactional_id: str
    value: TransactionMetadata | None


class ReplayedTransactions(Struct):
    """Transactional ids. Only ``replay`` changes them.

    A shard has two: one up to the log's end, from which it decides, and one up to the high
    watermark.
    """

    transactions: dict[str, TransactionMetadata] = field(default_factory=dict)

    def replay(self, record: TransactionRecord) -> None:
        """Apply a record, in offset order."""
        if record.value is None:
            self.transactions.pop(record.transactional_id, None)
        else:
            self.transactions[record.transactional_id] = record.value


def record_serde(value_version: Callable[[], int]) -> CoordinatorRecordSerde[TransactionRecord]:
    """The formats of these records.

    :param value_version: Of the values that are written, 0 or 1, by the features at that time.
    """
    return CoordinatorRecordSerde(
        encode=lambda record: encode(record, value_version()), decode=decode
    )


def encode(
    record: TransactionRecord, value_version: int = FLEXIBLE_VERSION
) -> tuple[bytes, bytes | None]:
    """Key and value of a record.

    :raises MalformedRecord: When the transactional id is too long for its field.
    """
    value = record.value
    return (
        _encode_key(record.transactional_id),
        None if value is None else _encode_value(value, value_version),
    )


def decode(key: bytes, value: bytes | None) -> TransactionRecord | None:
    """Read a record; None for a key of another type, and for a value of a version that is unknown.

    :raises MalformedRecord: When the bytes end early, or the state is unknown.
    """
    fields = FieldReader(key)
    if fields.int16() != _KEY_VERSION:
        return None
    transactional_id = fields.string()
    if value is None:
        return TransactionRecord(transactional_id=transactional_id, value=None)
    version = FieldReader(value).int16()
    if not 0 <= version <= FLEXIBLE_VERSION:
        return None
    return TransactionRecord(transactional_id=transactional_id, value=_decode_value(value, version))


@lru_cache(_KEPT)
def _encode_key(transactional_id: str) -> bytes:
    key = FieldWriter(flexible=False)
    key.int16(_KEY_VERSION)
    key.string(transactional_id)
    return key.to_bytes()


def _encode_value(value: TransactionMetadata, version: int) -> bytes:
    if value.client_version or value.next_producer_id != NO_PRODUCER_ID:
        version = FLEXIBLE_VERSION
    flexible = version >= FLEXIBLE_VERSION
    head = _HEAD.pack(
        version, value.producer_id, value.producer_epoch, value.timeout_ms, value.state
    )
    has_partitions = value.state is not _EMPTY
    partitions = _encode_partitions(value.partitions if has_partitions else None, flexible=flexible)
    times = _TIMES.pack(value.last_update_ms, value.start_ms)
    if not flexible:
        return head + partitions + times
    tags = _encode_tags(
        value.previous_producer_id,
        value.next_producer_id,
        value.client_version,
        value.next_producer_epoch,
    )
    return head + partitions + times + tags


@lru_cache(_KEPT)
def _encode_partitions(partitions: frozenset[TopicPartition] | None, *, flexible: bool) -> bytes:
    """The array of partitions, null where there are none in an empty transaction."""
    out = FieldWriter(flexible=flexible)
    if partitions is None:
        out.array_size(None)
        return out.to_bytes()
    topics = [
        (topic, [index for _, index in of_topic])
        for topic, of_topic in groupby(sorted(partitions), lambda each: each[0])
    ]
    out.array_size(len(topics))
    for topic, indexes in topics:
        out.string(topic)
        out.array_size(len(indexes))
        for index in indexes:
            out.int32(index)
        if flexible:
            out.tags({})
    return out.to_bytes()


@lru_cache(_KEPT)
def _encode_tags(
    previous_producer_id: int, next_producer_id: int, client_version: int, next_epoch: int
) -> bytes:
    """The tagged fields that do not have their defaults."""
    tags: dict[int, bytes] = {}
    if previous_producer_id != NO_PRODUCER_ID:
        tags[_PREVIOUS_PRODUCER_ID_TAG] = previous_producer_id.to_bytes(8, "big")
    if next_producer_id != NO_PRODUCER_ID:
        tags[_NEXT_PRODUCER_ID_TAG] = next_producer_id.to_bytes(8, "big")
    if client_version:
        tags[_CLIENT_VERSION_TAG] = client_version.to_bytes(2, "big")
    if next_epoch != NO_PRODUCER_EPOCH:
        tags[_NEXT_PRODUCER_EPOCH_TAG] = next_epoch.to_bytes(2, "big", signed=True)
    out = FieldWriter(flexible=True)
    out.tags(tags)
    return out.to_bytes()


def _decode_value(data: bytes, version: int) -> TransactionMetadata:
    body = FieldReader(data, flexible=version >= FLEXIBLE_VERSION)
    body.int16()
    producer_id = body.int64()
    producer_epoch = body.int16()
    timeout_ms = body.int32()
    state = _state(body.int8())
    partitions = frozenset(_decode_partitions(body))
    last_update_ms, start_ms = body.int64(), body.int64()
    tagged = partial(_tagged, body.tags())
    return TransactionMetadata(
        producer_id=producer_id,
        previous_producer_id=tagged(_PREVIOUS_PRODUCER_ID_TAG, NO_PRODUCER_ID),
        next_producer_id=tagged(_NEXT_PRODUCER_ID_TAG, NO_PRODUCER_ID),
        next_producer_epoch=tagged(_NEXT_PRODUCER_EPOCH_TAG, NO_PRODUCER_EPOCH),
        producer_epoch=producer_epoch,
        timeout_ms=timeout_ms,
        state=state,
        partitions=frozenset() if state is TransactionState.EMPTY else partitions,
        start_ms=start_ms,
        last_update_ms=last_update_ms,
        client_version=tagged(_CLIENT_VERSION_TAG, 0),
    )


def _state(number: int) -> TransactionState:
    try:
        return TransactionState(number)
    except ValueError as error:
        raise MalformedRecord(str(error)) from error


def _decode_partitions(body: FieldReader) -> Iterable[TopicPartition]:
    count = body.array_size()
    for _ in range(0 if count == _NULL else count):
        topic = body.string()
        for _ in range(body.array_size()):
            yield topic, body.int32()
        body.tags()


def _tagged(tags: dict[int, bytes], tag: int, default: int) -> int:
    data = tags.get(tag)
    return default if data is None else int.from_bytes(data, "big", signed=True)
