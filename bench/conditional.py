"""What conditional publish (KIP-27) costs: produce with the check on, and with it off.

Two topics of one cluster get the same batches in turns, one with ``check.expected.offsets`` by
batch and one without. Every batch says the offset that is upcoming in its topic, which is true in
both and looked at in one. They are handed over `inside` this process, where the check is the larger
part of a request because there is no network; and over TCP, to a server of its own.

What the feature costs where it is off is found the other way round: the handler is replaced by one
that knows nothing of it, and put back.
"""

from __future__ import annotations

import contextlib
import statistics
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final
from uuid import UUID

from bench import control, inside, process, servers, wire
from bench.inside import Inside, Pair, cost, throughput
from fencepost.broker.core.outcomes import HANG_UP, Answer, HangUp
from fencepost.broker.handlers import produce
from fencepost.broker.handlers.context import Context
from fencepost.broker.handlers.produce import _respond
from fencepost.broker.metadata.image import resolve_name
from fencepost.broker.produce.append import PartitionOutcome
from fencepost.broker.replication.partition_checks import find_leader
from fencepost.broker.server.run import tune_garbage_collection
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
)
from fencepost.protocol.records import TRANSACTIONAL_FLAG
from fencepost.storage.log.append_result import AppendResult

CHECKED: Final = "checked"
PLAIN: Final = "plain"
CONFIGS: Final = {"check.expected.offsets": "true", "check.expected.offsets.source": "batch"}
SMALL_RECORDS: Final = 16
"""A batch of the size at which a Java producer sends it (``batch.size``)."""
LOADS_SHARE: Final = 25
"""Of requests with a full batch, one to so many with a record."""
WARM_UP: Final = 20
"""Requests to each topic before the first that is measured."""
_BASE_OFFSET: Final = struct.Struct(">q")
_ATTRIBUTES_LOW_BYTE: Final = 22


def measure(kind: servers.Kind, *, requests: int) -> Mapping[str, float]:
    """Ratios of throughput with the check over without; costs in microseconds a request.

    What the feature costs where it is off is also given in percent of what a full batch takes.

    :param requests: How many with one record; fewer with more.
    """
    full = max(requests // LOADS_SHARE, 1)
    tune_garbage_collection()
    filled, off_us = inside_pairs(inside.BATCH_RECORDS, full), cost(off_pairs(requests))
    filled_us = statistics.median(pair.stripped for pair in filled)
    return {
        "conditional_full": throughput(filled),
        "conditional_small": throughput(inside_pairs(SMALL_RECORDS, requests)),
        "conditional_tcp": throughput(tcp_pairs(kind, inside.BATCH_RECORDS, full)),
        "conditional_tcp_small": throughput(tcp_pairs(kind, SMALL_RECORDS, requests)),
        "conditional_request": cost(inside_pairs(1, requests)),
        "conditional_off": off_us,
        "conditional_off_share": off_us / filled_us * 100,
    }


class Stream:
    """Batches for one topic, each of which says the offset that is upcoming.

    :ivar offset: The upcoming one.
    :param ask: Hands a request over, and comes back when it is answered.
    """

    def __init__(self, ask: Callable[[bytearray], object], topic: str, records: int) -> None:
        batch = inside.batch_of(records)
        self._ask = ask
        self._frame = bytearray(inside.produce_request(batch, topic))
        self._base_offset_at = self._frame.index(batch)
        self._records = records
        self.offset = 0

    def send(self) -> None:
        """Send the next batch."""
        _BASE_OFFSET.pack_into(self._frame, self._base_offset_at, self.offset)
        self._ask(self._frame)
        self.offset += self._records


def inside_pairs(records: int, count: int) -> list[Pair]:
    """Send so many batches of so many records in all, inside this process.

    :raises bench.wire.BadAnswer: When any was not appended.
    """
    server = Inside({CHECKED: CONFIGS, PLAIN: {}})
    streams = [Stream(server.ask, topic, records) for topic in (CHECKED, PLAIN)]
    found = pairs(streams, count)
    for topic, stream in zip((CHECKED, PLAIN), streams, strict=True):
        require_end(topic, server.log_end(topic), stream.offset)
    return found


def tcp_pairs(kind: servers.Kind, records: int, count: int) -> list[Pair]:
    """The same over one connection to a server of its own, one request after the other.

    :raises bench.wire.BadAnswer: When any was not appended.
    """
    with servers.running(kind) as server:
        process.wait_until_idle(server.pid)
        with control.Control(server) as steering:
            for topic, configs in ((CHECKED, CONFIGS), (PLAIN, {})):
                body = {"name": topic, "assignments": [[1]], "configs": configs}
                steering.ask("POST", "/v1/topics", body)
        with server.connect_to_leader(CHECKED, 0) as connection, process.no_collector():
            streams = [Stream(connection.ask, topic, records) for topic in (CHECKED, PLAIN)]
            found = pairs(streams, count)
            for topic, stream in zip((CHECKED, PLAIN), streams, strict=True):
                answer = connection.ask(wire.list_offsets_request(topic, 0))
                require_end(topic, wire.decode_list_offsets(answer), stream.offset)
    return found


def pairs(streams: Sequence[Stream], count: int) -> list[Pair]:
    """Send so many batches in all, one to the topic that checks and one to the other.

    Nothing is replaced from one to the next, and so none has to settle: the shorter the portions,
    the more alike is what else the machine does in both of a pair.
    """
    checked, plain = streams
    for stream in streams:
        for _ in range(WARM_UP):
            stream.send()
    return inside.in_turns(
        lambda: inside.once_us(checked.send), lambda: inside.once_us(plain.send), count // 2
    )


def off_pairs(count: int) -> list[Pair]:
    """Send so many batches of one record in all, to a topic that does not check."""
    each = max(count // (2 * inside.PORTIONS), 1)
    server = Inside({PLAIN: {}})
    stream = Stream(server.ask, PLAIN, 1)

    def whole() -> float:
        return inside.median_us(stream.send, each)

    def stripped() -> float:
        with without_the_feature():
            return whole()

    found = inside.in_turns(whole, stripped)
    require_end(PLAIN, server.log_end(PLAIN), stream.offset)
    return found


def require_end(topic: str, found: int, expected: int) -> None:
    """:raises bench.wire.BadAnswer: When a topic does not end where it has to."""
    if found != expected:
        raise wire.BadAnswer(f"{topic} ends at {found}, and {expected} records were produced")


# -- without the feature --------------------------------------------------------------------------


@contextlib.contextmanager
def without_the_feature() -> Iterator[None]:
    """Produce as it would be without the code for expected offsets."""
    before = produce.handle
    setattr(produce, "handle", _handle)  # noqa: B010  # a module's function, as handlers are found
    try:
        yield
    finally:
        setattr(produce, "handle", before)  # noqa: B010  # as above


def _handle(ctx: Context, request: ProduceRequest) -> Answer[ProduceResponse] | HangUp:
    """Each partition is appended to as soon as its leader is found; never for acks=all."""
    if request.acks not in (0, 1):
        return produce.refuse(request, ErrorCode.INVALID_REQUIRED_ACKS)
    if _is_transactional(request):
        return produce.refuse(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    outcomes = [
        _append(ctx, topic.name, topic.topic_id, data)
        for topic in request.topic_data
        for data in topic.partition_data
    ]
    if request.acks == 0:
        return HANG_UP if any(each.response.error_code for each in outcomes) else None
    pending = [each.appended for each in outcomes if each.appended and not each.appended.is_settled]
    assert not pending
    return _respond(ctx, outcomes)


def _is_transactional(request: ProduceRequest) -> bool:
    for topic in request.topic_data:
        for partition in topic.partition_data:
            records = partition.records
            if records is not None and records[_ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_FLAG:
                return True
    return False


def _append(
    ctx: Context, topic: str, topic_id: UUID | None, data: PartitionProduceData
) -> PartitionOutcome:
    name = resolve_name(ctx.broker.view, topic, topic_id, by_id=False)
    assert not isinstance(name, ErrorCode)
    replica = find_leader(ctx.broker, name, data.index)
    assert not isinstance(replica, ErrorCode)
    result = replica.append(data.records or b"", now_ms=ctx.wall_ms, allow_zstd=True)
    assert isinstance(result, AppendResult)
    response = PartitionProduceResponse(
        index=data.index,
        base_offset=result.first_offset,
        log_append_time_ms=result.log_append_time_ms,
        log_start_offset=result.log_start_offset,
    )
    return PartitionOutcome(topic, topic_id, response)
