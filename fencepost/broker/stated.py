"""What a produce request expects (KIP-27), noted before it is appended.

Offsets are stamped into the very bytes that came: afterwards nobody could tell what they said.
"""

import struct
from typing import TYPE_CHECKING, Final, TypeAlias

from fencepost.protocol.buffers import Buffer
from fencepost.protocol.messages.produce import ProduceRequest, TopicProduceData
from fencepost.protocol.records import LOG_OVERHEAD
from fencepost.storage.config import ExpectedOffsetsScope, ExpectedOffsetsSource

if TYPE_CHECKING:
    from fencepost.broker.broker import Broker

IN_HEADERS: Final[tuple[int, ...]] = ()
"""Of a partition whose records state it in headers, which are not stamped."""

Stated: TypeAlias = tuple[tuple[int, ...] | None, ...]
"""For each partition of the request, in its order, the base offsets of its batches; None where they
are not compared, or not with the end of the log."""

_HEAD: Final = struct.Struct(">qi")
_BY_KEY: Final = ExpectedOffsetsScope.KEY
_BY_HEADER: Final = ExpectedOffsetsSource.HEADER
"""An enum's members take long to look up, for what every request waits for."""


def stated_offsets(broker: "Broker", request: ProduceRequest) -> Stated:
    """What the batches of a request say, as long as nothing is appended."""
    found: list[tuple[int, ...] | None] = []
    for topic in request.topic_data:
        source = _source(broker, topic)
        for partition in topic.partition_data:
            records = partition.records
            if records is None or source is None:
                found.append(None)
            elif source is _BY_HEADER:
                found.append(IN_HEADERS)
            else:
                found.append(_base_offsets(records))
    return tuple(found)


def _source(broker: "Broker", topic: TopicProduceData) -> ExpectedOffsetsSource | None:
    name: str | None = topic.name
    if topic.topic_id is not None:
        name = broker.view.names.get(topic.topic_id)
    config = broker.configs.log_config(name or "")
    if not config.check_expected_offsets or config.check_expected_offsets_scope is _BY_KEY:
        return None
    return config.check_expected_offsets_source


def _base_offsets(records: Buffer) -> tuple[int, ...]:
    found: tuple[int, ...] = ()
    at, size = 0, len(records)
    while at + LOG_OVERHEAD <= size:
        base_offset, length = _HEAD.unpack_from(records, at)
        found += (base_offset,)
        if length <= 0:
            break
        at += length + LOG_OVERHEAD
    return found
