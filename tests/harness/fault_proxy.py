"""A proxy before a real Kafka that injects fencepost's faults of requests into its answers.

So the results of a fault, for the client and in the log, are recorded from Kafka itself:
`tests.clients.faults` compares fencepost with them. The proxy takes one request of a connection at
a time, as a broker does.
"""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec.structs import replace

from fencepost.protocol.apis import BY_KEY, Api
from fencepost.protocol.codec import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    response_body_offset,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.frames import RequestHeader, read_header, skip_tags
from fencepost.verbs.fault_bodies import FaultBody

if TYPE_CHECKING:
    from collections.abc import Callable

HOST: Final = "127.0.0.1"
Message: TypeAlias = Any
"""Of any API."""
_OTHER: Final = Api(
    key=-1,
    name="other",
    min_version=0,
    max_version=0,
    first_flexible=0,
    advertised_min=0,
    releases="",
)
"""One that fencepost does not serve, and no fault is about."""


class HangUp(Exception):
    """The connection ends."""


class FaultProxy:
    """Listens on the port that the broker advertises."""

    def __init__(self) -> None:
        self.port = 0
        self.upstream = 0
        """The port that the broker listens on."""
        self.delayed = 0
        """The number of requests that a delay holds now."""
        self._faults: list[_Set] = []
        self._tasks: set[asyncio.Task[object] | None] = set()
        """Of connections. Without these references they may be collected while they wait."""

    def add(self, fault: FaultBody) -> Callable[[], int]:
        """Set a fault, of an API by name and a client id; what it gives tells its hits."""
        made = _Set(fault)
        self._faults.append(made)
        return lambda: made.hits

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client, and one to the broker."""
        task = asyncio.current_task()
        self._tasks.add(task)
        line = _Line(reader, writer, *await asyncio.open_connection(HOST, self.upstream))
        try:
            with suppress(HangUp, asyncio.IncompleteReadError, ConnectionError):
                while True:
                    await self._exchange(line, _Request(await _read(reader)))
        finally:
            line.close()
            self._tasks.discard(task)

    async def _exchange(self, line: _Line, request: _Request) -> None:
        hit = self._hit(request)
        if hit is None:
            line.answer(await line.ask(request.frame))
            return
        action = hit.fault.action
        if action.error is not None:
            await self._error(line, request, ErrorCode[str(action.error)])
        elif action.delay is not None:
            await self._delay(line, request, action.delay / 1000)
        elif action.throttle is not None:
            await self._throttle(line, request, action.throttle)
        elif action.corrupt:
            await self._corrupt(line, request, hit)
        else:
            if action.disconnect != "before":
                await line.ask(request.frame)
            if action.drop:
                await line.reader.read()  # until the client goes
            raise HangUp

    async def _error(self, line: _Line, request: _Request, code: ErrorCode) -> None:
        if request.api.name == "fetch":
            found = await line.ask(request.frame)
            line.answer(request.changed_answer(found, lambda it: _refused_fetch(it, code)))
            return
        if code is ErrorCode.REQUEST_TIMED_OUT:
            await line.ask(request.frame)
        line.answer(request.refuse(code))

    async def _delay(self, line: _Line, request: _Request, seconds: float) -> None:
        self.delayed += 1
        await asyncio.sleep(seconds)
        found = await line.ask(request.frame)
        self.delayed -= 1
        line.answer(found)

    async def _throttle(self, line: _Line, request: _Request, ms: int) -> None:
        found = await line.ask(request.frame)
        line.answer(request.changed_answer(found, lambda it: replace(it, throttle_time_ms=ms)))
        await asyncio.sleep(ms / 1000)

    async def _corrupt(self, line: _Line, request: _Request, hit: _Set) -> None:
        if request.api.name == "produce":
            line.answer(await line.ask(request.changed(_corrupt_produce)))
            return
        found = await line.ask(request.frame)
        changed = request.changed_answer(found, _corrupt_records)
        hit.hits -= changed == found  # only an answer with records can be hit
        line.answer(changed)

    def _hit(self, request: _Request) -> _Set | None:
        for each in self._faults:
            fault = each.fault
            is_over = fault.count is not None and each.hits >= fault.count
            if not is_over and (request.api.title, request.header.client_id) == (
                fault.api,
                fault.client_id,
            ):
                each.hits += 1
                return each
        return None


@dataclass(slots=True)
class _Set:
    fault: FaultBody
    hits: int = 0


@dataclass(frozen=True, slots=True)
class _Line:
    """A client's connection and the broker's."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    from_broker: asyncio.StreamReader
    to_broker: asyncio.StreamWriter

    async def ask(self, frame: bytes) -> bytes:
        self.to_broker.write(struct.pack(">i", len(frame)) + frame)
        return await _read(self.from_broker)

    def answer(self, frame: bytes) -> None:
        self.writer.write(struct.pack(">i", len(frame)) + frame)

    def close(self) -> None:
        self.writer.close()
        self.to_broker.close()


class _Request:
    """A request's frame, read as far as is needed."""

    def __init__(self, frame: bytes) -> None:
        self.frame = frame
        self.header: RequestHeader = read_header(bytearray(frame))
        self.api: Api = BY_KEY.get(self.header.api_key, _OTHER)

    def refuse(self, code: ErrorCode) -> bytes:
        """The answer of a broker that refuses all of it."""
        handler = import_module(f"fencepost.broker.handlers.{self.api.name}")
        return self._response(handler.refuse(self._body(), code))

    def changed(self, change: Callable[[Message], Message]) -> bytes:
        head = self.header
        body = change(self._body())
        chunks = encode_request(self.api, head.version, head.correlation_id, head.client_id, body)
        return b"".join(map(bytes, chunks))[4:]

    def changed_answer(self, frame: bytes, change: Callable[[Message], Message]) -> bytes:
        offset = response_body_offset(self.api, self.header.version)
        return self._response(change(decode_response(self.api, self.header.version, frame, offset)))

    def _body(self) -> Message:
        frame = bytearray(self.frame)
        offset = skip_tags(frame, self.header, self.api)
        return decode_request(self.api, self.header.version, frame, offset)

    def _response(self, message: Message) -> bytes:
        head = self.header
        chunks = encode_response(self.api, head.version, head.correlation_id, message)
        return b"".join(map(bytes, chunks))[4:]


def _corrupt_produce(request: Message) -> Message:
    def corrupt(topic: Message) -> Message:
        partitions = (replace(each, records=_other(each.records)) for each in topic.partition_data)
        return replace(topic, partition_data=tuple(partitions))

    return replace(request, topic_data=tuple(map(corrupt, request.topic_data)))


def _refused_fetch(response: Message, code: ErrorCode) -> Message:
    """Refused in each partition; the first answer of a session has all of them."""

    def refuse(topic: Message) -> Message:
        partitions = (
            replace(each, error_code=code, high_watermark=-1, last_stable_offset=-1, records=())
            for each in topic.partitions
        )
        return replace(topic, partitions=tuple(partitions))

    return replace(response, responses=tuple(map(refuse, response.responses)))


def _corrupt_records(response: Message) -> Message:
    def corrupt(topic: Message) -> Message:
        partitions = (
            replace(each, records=(_other(b"".join(each.records)),)) if each.records else each
            for each in topic.partitions
        )
        return replace(topic, partitions=tuple(partitions))

    return replace(response, responses=tuple(map(corrupt, response.responses)))


def _other(records: bytes) -> bytes:
    """With the last byte of the first batch another one."""
    copy = bytearray(records)
    (size,) = struct.unpack_from(">i", copy, 8)
    copy[12 + size - 1] ^= 0xFF
    return bytes(copy)


async def _read(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


@contextmanager
def fault_proxy() -> Iterator[FaultProxy]:
    """A proxy with a port of its own, in a thread; its ``upstream`` is to be set."""
    proxy, ready = FaultProxy(), threading.Event()
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()

    async def serve() -> None:
        server = await asyncio.start_server(proxy.serve, HOST, 0)
        proxy.port = server.sockets[0].getsockname()[1]
        ready.set()
        await ended.wait()
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(10)
        yield proxy
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()
