"""The verbs on records: produce, read, expect.

They ask the leader's replica in this process: no fault hits them, and the journal has no trace of
them.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.events import Event
from fencepost.broker.core.waits import Wait, WatchList
from fencepost.broker.node import record_actions
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.node.operator_actions import find_leader
from fencepost.broker.node.record_actions import NewRecord, ReadableRange, StoredRecord
from fencepost.broker.produce.append import ALL
from fencepost.broker.server.server import Server
from fencepost.control.asgi import Request
from fencepost.control.record_expectation import FoundRecord, RecordSearch
from fencepost.control.record_reading import ReadRecords, read_forward, read_last
from fencepost.control.routing import Unmet, outcome_within, serves, wait_within
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import NO_PRODUCER_ID, increment_sequence
from fencepost.verbs.answers.records import (
    ExpectedRecords,
    NearRecord,
    ProducedRecord,
    ProducedRecords,
    RecordsMissing,
    RecordsState,
    RecordState,
)
from fencepost.verbs.record_bodies import (
    ExpectBody,
    NewRecordBody,
    ProduceBody,
    RecordsQuery,
    encoded_headers,
)
from fencepost.verbs.record_encoding import Encoding, encode_text, encode_value, show_record

# -- produce ------------------------------------------------------------------------------------


@serves("produce_records")
async def produce_records(
    server: Server, request: Request, topic: str, body: ProduceBody
) -> ProducedRecords:
    appended = record_actions.append(
        server.cluster,
        topic,
        [_new_record(each, body.encoding) for each in body.all_records()],
        partition=body.partition,
        acks=ALL if body.acks == "all" else record_actions.LEADER,
    )
    settled: bool | Wait[bool] = appended.wait()
    await outcome_within(body.timeout_ms, request, settled)
    return ProducedRecords(
        records=tuple(
            ProducedRecord(partition=index, offset=offset) for index, offset in appended.offsets()
        )
    )


def _new_record(given: NewRecordBody, encoding: Encoding) -> NewRecord:
    return NewRecord(
        key=encode_text(given.key, encoding),
        value=encode_value(given.value, encoding),
        headers=encoded_headers(given.headers, encoding),
        timestamp_ms=given.timestamp,
    )


# -- read ---------------------------------------------------------------------------------------


@serves("read_records")
async def read_records(
    server: Server, topic: str, partition: int, wanted: RecordsQuery
) -> RecordsState:
    readable = record_actions.readable_range(
        server.cluster, topic, partition, committed=wanted.isolation == "read_committed"
    )
    found = await _read(server.cluster, readable, wanted)
    return RecordsState(
        records=tuple(_record_state(partition, each, wanted.encoding) for each in found.records),
        next_offset=found.next_offset,
    )


async def _read(cluster: Cluster, readable: ReadableRange, wanted: RecordsQuery) -> ReadRecords:
    end = readable.end if wanted.to is None else min(wanted.to, readable.end)
    if wanted.last is not None:
        return await read_last(cluster, readable, max(end, readable.start), wanted.last)
    start = readable.start if wanted.from_offset is None else wanted.from_offset
    if not readable.start <= start <= readable.end:
        raise ControllerError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"from: {readable.replica.log.name} can be read from offset {readable.start} to"
            f" {readable.end} (exclusive), and not from {start}",
        )
    return await read_forward(cluster, readable, start, max(end, start), wanted.limit)


def _record_state(index: int, stored: StoredRecord, encoding: Encoding) -> RecordState:
    record, header, transaction = stored
    shown = show_record(record.key, record.value, record.headers, encoding)
    is_idempotent = header.producer_id != NO_PRODUCER_ID
    sequence = increment_sequence(header.base_sequence, record.offset - header.base_offset)
    return RecordState(
        partition=index,
        offset=record.offset,
        leader_epoch=header.partition_leader_epoch,
        timestamp=record.timestamp,
        key=shown.key,
        value=shown.value,
        headers=shown.headers,
        encoding=shown.encoding,
        producer_id=header.producer_id if is_idempotent else None,
        producer_epoch=header.producer_epoch if is_idempotent else None,
        sequence=sequence if is_idempotent else None,
        transaction=transaction,
    )


# -- expect -------------------------------------------------------------------------------------


@serves("expect_records", conflict=(RecordsMissing, "Not there"))
async def expect_records(
    server: Server, request: Request, topic: str, body: ExpectBody
) -> ExpectedRecords:
    if body.partition is not None and topic in server.cluster.controller.image.topics:
        server.cluster.controller.partition(topic, body.partition)
    search = RecordSearch(server.cluster, topic, body)
    searching = _search(server.cluster, topic, search)
    await wait_within(body.timeout_ms, request, searching)
    if not search.is_met:
        raise Unmet(_missing(server.cluster, topic, search, body))
    return ExpectedRecords(records=tuple(_found(search.matching(), body)))


async def _search(cluster: Cluster, topic: str, search: RecordSearch) -> None:
    """Search until all records are there."""
    while True:
        with _watching(cluster, topic) as changed:
            await search.read_on()
            if search.is_met:
                return
            await changed.wait()


class _Watcher:
    """Notices that there may be more to read."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()

    def retry(self) -> None:
        """A high watermark has risen, or its replica changed its role."""
        self.changed.set()


@contextmanager
def _watching(cluster: Cluster, topic: str) -> Iterator[asyncio.Event]:
    """Watch the partitions that a topic has now, and its events: creation, elections, deletion."""
    watcher = _Watcher()

    def listener(event: Event) -> None:
        if event.topic in (None, topic):
            watcher.changed.set()

    lists = list(_watch_lists(cluster, topic))
    for watchers in lists:
        watchers.waits[watcher] = None
    cluster.events.listeners.append(listener)
    try:
        yield watcher.changed
    finally:
        cluster.events.listeners.remove(listener)
        for watchers in lists:
            watchers.waits.pop(watcher, None)


def _watch_lists(cluster: Cluster, topic: str) -> Iterator[WatchList]:
    image = cluster.controller.image.topics.get(topic)
    for index in range(0 if image is None else len(image.partitions)):
        try:
            yield find_leader(cluster, topic, index)[1].watermark_watch
        except ControllerError:
            continue


_MAX_SHOWN: Final = 100
"""Characters of a field that a message shows."""
_MAX_NAMED: Final = 3
"""Records that a message shows."""


def _missing(
    cluster: Cluster, topic: str, search: RecordSearch, body: ExpectBody
) -> RecordsMissing:
    nearest = search.nearest()
    matching = search.matching()
    count = f"{len(matching)} of {body.count} times the" if matching else "no"
    where = topic if body.partition is None else f"{topic}-{body.partition}"
    message = f"{where} has {count} {search.expected} after {body.timeout_ms} ms"
    if nearest:
        shown = (_near_text(topic, each, body.encoding) for each in nearest[:_MAX_NAMED])
        message += f"; nearest: {'; '.join(shown)}"
    elif not matching:
        message += f"; {_why_empty(cluster, topic, body.partition)}"
    return RecordsMissing(
        error=ErrorCode.REQUEST_TIMED_OUT.name,
        message=message,
        records=tuple(_found(matching, body)),
        nearest=tuple(
            NearRecord(**dict(state), differs=each.differs)
            for state, each in zip(_found(nearest, body), nearest, strict=True)
        ),
    )


def _why_empty(cluster: Cluster, topic: str, partition: int | None) -> str:
    """Why there is no record that could be near."""
    image = cluster.controller.image.topics.get(topic)
    if image is None:
        return f"there is no topic {topic!r}"
    try:
        for index in range(len(image.partitions)) if partition is None else [partition]:
            record_actions.readable_range(cluster, topic, index)
    except ControllerError as error:
        return error.message
    return "it has no records"


def _found(found: list[FoundRecord], body: ExpectBody) -> Iterator[RecordState]:
    for each in found:
        yield _record_state(each.partition, each.stored, body.encoding)


def _near_text(topic: str, found: FoundRecord, encoding: Encoding) -> str:
    """Such as ``orders-0 offset 42: value "two"``: what differs, as it is."""
    state = dict(_record_state(found.partition, found.stored, encoding))
    said = (
        f"{name} {_shortened(json.dumps(state[name], ensure_ascii=False))}"
        for name in found.differs
    )
    return f"{topic}-{found.partition} offset {found.stored.record.offset}: {', '.join(said)}"


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
