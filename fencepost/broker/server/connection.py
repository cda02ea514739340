"""The broker's side of one client connection: bytes go in, responses come out in request order.

A pure protocol object: it knows no socket and no event loop, and has the time from the clock it is
given. `AsyncioConnection` moves its bytes.

Requests are handled as they arrive, so a request that waits (a long poll) does not delay the work
of later requests; only their responses wait for it. `Connection.wants_input` is false while too
many requests wait, or while the client does not read its responses. Malformed input closes the
connection it arrived on and affects nothing else.
"""

from collections import deque
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final, TypeAlias, assert_never, cast

from fencepost.broker.core.context import Context, Peer
from fencepost.broker.core.events import Kind
from fencepost.broker.core.outcomes import (
    HANG_UP,
    BlockingResponse,
    Delivery,
    HangUp,
    PacedResponse,
    ThrottledResponse,
)
from fencepost.broker.core.scheduler import Clock
from fencepost.broker.core.waits import Wait
from fencepost.broker.handlers import changes_too_much, handler_of, refuse_changes
from fencepost.broker.node.broker import Broker
from fencepost.broker.node.controller_server import ControllerServer
from fencepost.broker.produce.expected_offsets import extract_expected_offsets
from fencepost.broker.server.journal import Exchange, Journal
from fencepost.broker.server.resources import DESCRIPTORS, MEMORY_FULL
from fencepost.broker.server.response_cache import CACHED_API, Key, ResponseCache
from fencepost.broker.server.responses import (
    NO_OWNER,
    SLICED_BYTES,
    CloseReason,
    ConnectionOwner,
    Responses,
)
from fencepost.protocol.apis import BY_KEY, BY_NAME, Api
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.codec import MalformedMessage, decode_request, decode_request_in_slices
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.frames import (
    FrameAssembler,
    InvalidFrame,
    RequestHeader,
    RequestMemory,
    RequestMemoryFull,
    read_header,
    skip_tags,
)
from fencepost.protocol.messages.produce import ProduceRequest
from fencepost.protocol.other_protocols import OtherProtocol, protocol_of, protocol_of_frame
from fencepost.storage.files.file_system import lacks_descriptors

if TYPE_CHECKING:
    from fencepost.protocol.codec.drafts import Draft

MAX_IN_FLIGHT: Final = 256
"""Requests of one connection that may wait; a real broker handles one at a time."""
_SCRATCH: Final = memoryview(bytearray(256 << 10))
"""The receive buffer of all connections: each consumes its bytes before another one receives."""
_new_tuple: Final = tuple.__new__
"""Makes a named tuple without a call of its constructor in Python."""
_API_VERSIONS: Final = BY_NAME["api_versions"]
_PRODUCE: Final = BY_NAME["produce"]


ListeningNode: TypeAlias = Broker | ControllerServer
"""What a connection talks to."""


class Connection:
    """The state of one client connection.

    Input is put into `buffer()` and handed over by `receive`. After each call, the owner sends what
    `take_output` returns while there is `output`, closes the transport if `is_closing`, and reads
    from it only while `wants_input`.
    """

    def __init__(
        self,
        broker: ListeningNode,
        peer: Peer,
        owner: ConnectionOwner,
        *,
        clock: Clock,
        journal: Journal,
        response_cache: ResponseCache,
        memory: RequestMemory | None = None,
    ) -> None:
        self.peer: Final = peer
        self.client_id: str | None = None
        """Of the last request."""
        self.last_active_ms = clock.now_ms()
        """When bytes arrived last."""
        self.is_closing = False
        """Whether the connection closes once `output` is sent; it takes no further input."""
        self.close_reason: CloseReason | None = None
        """Why it closes by itself; None where its owner closed it."""
        self._broker = broker
        self._owner: ConnectionOwner = owner
        self._clock = clock
        self._journal = journal
        self._response_cache = response_cache
        self._memory = memory = memory or RequestMemory()
        self._responses = responses = Responses(clock, journal, memory, owner, self.close)
        self.output: Final = responses.output
        """Encoded responses whose turn has come."""
        self._queue: Final = responses.queue
        self._writing: Final = responses.writing
        max_bytes = broker.configs.socket_request_max_bytes
        self._assembler = assembler = FrameAssembler(_SCRATCH, max_bytes, memory)
        self._received = assembler.received
        self.buffer: Final = assembler.buffer
        """Returns where to put the next bytes."""
        self._inbox: deque[bytearray] = deque()
        self._max_in_flight = MAX_IN_FLIGHT
        """Requests that may wait now; 0 while one response blocks those behind it."""
        self._reading: Generator[None, None, None] | None = None
        """The request that is being read in slices; those behind it wait."""
        self._hung_up: Exchange | None = None
        """The request in whose place the connection closes."""
        self._is_output_paused = False

    # -- input and output -----------------------------------------------------------------------

    @property
    def wants_input(self) -> bool:
        """Whether the owner should read from the transport."""
        queue, memory = self._queue, self._memory
        return (
            not self._inbox
            and self._reading is None
            and not self._is_output_paused
            and len(queue) < self._max_in_flight
            and (not queue or memory.used < memory.limit)
        )

    def receive(self, count: int) -> None:
        """Handle the requests that `count` bytes, put into `buffer()`, complete."""
        self.last_active_ms = self._clock.now_ms()
        try:
            self._inbox += self._received(count)
        except (
            RequestMemoryFull,
            MemoryError,
        ) as error:  # it may have less than it seemed
            reason = str(error) or "the system gives no memory for the frame"
            self.close(CloseReason(MEMORY_FULL, reason))
            return
        except InvalidFrame as error:
            self._close_on(protocol_of(error.head), CloseReason("bad_frame", str(error)))
            return
        self.resume()

    def take_output(self) -> list[Buffer]:
        """The responses that are ready, as chunks to send."""
        output = self.output.copy()
        self.output.clear()
        return output

    def pause_output(self) -> None:
        """The client does not read: handle no further requests."""
        self._is_output_paused = True

    def resume_output(self) -> None:
        """The client reads again."""
        self._is_output_paused = False
        self.resume()

    def resume(self) -> None:
        """Handle requests while there is room for their responses."""
        inbox, queue = self._inbox, self._queue
        if (self._reading is not None or self._writing) and not self.is_closing:
            self._continue_slices()
        while (
            inbox
            and self._reading is None
            and len(queue) < self._max_in_flight
            and not self._is_output_paused
            and not self.is_closing
        ):
            self._start_request(inbox.popleft())
            if queue:
                self._responses.hold()
        if self._hung_up is not None and not self.is_closing and queue[0] is self._hung_up:
            self.close(CloseReason("hung_up"))

    def close(self, reason: CloseReason | None = None) -> None:
        """Close once `output` is sent; requests that wait get no response."""
        if self.is_closing:
            return
        self._responses.end_pace()
        self.is_closing = True
        self.close_reason = reason
        self._drop_input()

    def abandon(self) -> None:
        """The transport is gone, or no response may be sent any more: cancel what waits."""
        self.is_closing = True
        self._responses.abandon()
        self._drop_input()
        self._owner = NO_OWNER

    def _close_on(self, other: OtherProtocol | None, otherwise: CloseReason) -> None:
        """Close on bytes of another protocol, or for what else is wrong with them."""
        if other is None:
            self.close(otherwise)
            return
        self._broker.events.emit(
            Kind.OTHER_PROTOCOL,
            broker=self._broker.broker_id,
            protocol=other.value,
            connection=self.peer.connection_id,
            client_id=self.client_id,
        )
        self.close(CloseReason(other.value, other.advice))

    def _drop_input(self) -> None:
        self._inbox.clear()
        self._assembler.discard()
        if self._reading is not None:
            self._reading.close()
            self._reading = None

    # -- requests -------------------------------------------------------------------------------

    def _start_request(self, frame: bytearray) -> None:
        try:
            header = read_header(frame)
            api, version = BY_KEY.get(header.api_key), header.version
            if api is None or (
                (self._broker.version_limits or not api.min_version <= version <= api.max_version)
                and not self._serves(api, version)
            ):
                self._refuse_version(api, header, frame)
                return
            self.client_id = header.client_id
            offset = skip_tags(frame, header, api)
            key = None
            dialect = self.peer.dialect
            if (
                api is CACHED_API
                and (dialect is None or not dialect.serves(api, version))
                and not self._broker.faults.active
            ):
                key = (version, self.peer.listener_host, bytes(frame[offset:]))
                if self._respond_from_cache(key, api, header, frame, offset):
                    return
            if api is _API_VERSIONS:  # in which the client may ask for the broker's
                dialect = self._broker.dialect
            if len(frame) > SLICED_BYTES:
                self._reading = self._read_in_slices(api, header, frame, offset, dialect)
                self._continue_slices()
                return
            request = decode_request(api, version, frame, offset, dialect)
        except InvalidFrame as error:
            self._close_on(protocol_of_frame(frame), CloseReason("bad_request", str(error)))
            return
        except MalformedMessage as error:
            self.close(CloseReason("bad_request", str(error)))
            return
        except OSError as error:  # the messages of an API are imported when it is used first
            if not lacks_descriptors(error):
                raise
            self.close(CloseReason(DESCRIPTORS, str(error)))
            return
        self._handle(self._open(api, version, header, frame, offset, dialect), request, key)

    def _read_in_slices(
        self,
        api: Api,
        header: RequestHeader,
        frame: bytearray,
        offset: int,
        dialect: "Draft | None",
    ) -> Generator[None, None, None]:
        """Read a request, handle it, and be done."""
        version = header.version
        self._memory.used += len(frame)
        try:
            read = yield from decode_request_in_slices(api, version, frame, offset, dialect)
        except MalformedMessage as error:
            self._reading = None
            self.close(CloseReason("bad_request", str(error)))
            return
        finally:
            self._memory.used -= len(frame)
        self._reading = None
        exchange = self._open(api, version, header, frame, offset, dialect)
        is_refused = changes_too_much(api, read.elements)
        self._handle(exchange, read.message, None, is_refused=is_refused)
        self._responses.hold()

    def _continue_slices(self) -> None:
        """Read and write one more slice."""
        if self._reading is not None:
            next(self._reading, None)
            if self._reading is not None:
                self._owner.output_ready()
        if self._writing:
            self._responses.write_slice()

    def _serves(self, api: Api, version: int) -> bool:
        if version > self._broker.version_limits.get(api.name, version):
            return False
        dialect = self.peer.dialect
        return api.serves(version) or (dialect is not None and dialect.serves(api, version))

    def _is_replaced(self, api: Api, version: int) -> bool:
        """Whether the broker's draft has another schema, and the client has not asked for it.

        Its frame may be of either, and can't be told apart.
        """
        dialect = self._broker.dialect
        return dialect is not None and dialect.replaces(api, version)

    def _respond_from_cache(
        self, key: Key, api: Api, header: RequestHeader, frame: bytearray, offset: int
    ) -> bool:
        """Respond with the cached response, if there is one."""
        cached = self._response_cache.get(self._broker.view, key, header.correlation_id)
        if cached is None:
            return False
        exchange = self._open(api, header.version, header, frame, offset)
        chunks, exchange.errors = cached
        self._responses.finish(exchange, chunks)
        return True

    def _refuse_version(self, api: Api | None, header: RequestHeader, frame: bytearray) -> None:
        """Respond to any ApiVersions in version 0 (KIP-511); close on any other API."""
        other = protocol_of_frame(frame) if api is None else None
        if other is None:  # else it may be part of a password
            self.client_id = header.client_id
        if api is not _API_VERSIONS:
            name = f"API key {header.api_key}" if api is None else api.title
            self._close_on(other, CloseReason("not_served", f"{name} v{header.version}"))
            return
        exchange = self._open(api, 0, header, frame, skip_tags(frame, header, api))
        from fencepost.broker.handlers.api_versions import refuse_version

        self._responses.write(exchange, refuse_version(self._broker))

    def _handle(
        self, exchange: Exchange, request: object, key: Key | None, *, is_refused: bool = False
    ) -> None:
        """Handle a request, or refuse it, where it would change too much in one turn."""
        api, version, client_id = exchange.api, exchange.version, exchange.client_id
        now_ms, wall_ms = self.last_active_ms, exchange.time_ms
        peer, size = self.peer, exchange.bytes_in
        fragments = None if key is None else self._response_cache.fragments
        ctx: Context[Any] = _new_tuple(
            Context,
            (self._broker, version, client_id, peer, now_ms, wall_ms, None, size, fragments),
        )
        if api is _PRODUCE and self._broker.configs.may_check_expected_offsets:
            exchange.expected_offsets = extract_expected_offsets(
                cast(Broker, self._broker), cast(ProduceRequest, request)
            )
        try:
            if is_refused:
                outcome = refuse_changes(api, request)
            elif self.peer.dialect is not self._broker.dialect and self._is_replaced(api, version):
                outcome = handler_of(api).refuse(request, ErrorCode.UNSUPPORTED_VERSION)
            else:
                outcome = self._broker.handle(api, ctx, request)
        except Exception:  # noqa: BLE001  # a bug costs one response, never the broker
            self._owner.log_exception("handler_failed", api=api.title, version=version)
            outcome = self._unknown_server_error(api, request)
        if isinstance(outcome, Wait):
            exchange.wait = outcome
            if isinstance(outcome, BlockingResponse):
                self._max_in_flight = 0
                outcome.then(lambda result: self._unblock(exchange, result))
            else:
                outcome.then(lambda response: self._respond_later(exchange, response))
        elif isinstance(outcome, HangUp):
            self._hang_up(exchange)
        else:
            chunks = self._responses.write(exchange, outcome)
            if key is not None and chunks is not None:
                self._response_cache.put(self._broker.view, key, chunks, exchange, outcome)

    def _unknown_server_error(self, api: Api, request: object) -> object:
        """The response after a handler failed; the connection closes if this fails as well."""
        try:
            return handler_of(api).refuse(request, ErrorCode.UNKNOWN_SERVER_ERROR)
        except Exception:  # noqa: BLE001  # as above
            self._owner.log_exception("refusal_failed", api=api.title)
            return HANG_UP

    def _open(
        self,
        api: Api,
        version: int,
        header: RequestHeader,
        frame: bytearray,
        offset: int,
        dialect: "Draft | None" = None,
    ) -> Exchange:
        exchange = Exchange(
            self._clock.wall_ms(),
            self._broker.broker_id,
            self.peer.connection_id,
            header.client_id,
            api,
            version,
            header.correlation_id,
            frame,
            offset,
            dialect,
        )
        self._journal.open(exchange)
        self._queue.append(exchange)
        if self._broker.log_levels.logs_requests:
            self._owner.log_request(api, version)
        return exchange

    # -- responses ------------------------------------------------------------------------------

    def _respond_later(self, exchange: Exchange, response: object) -> None:
        """Respond after a wait."""
        if self.is_closing:
            return
        if isinstance(response, HangUp):
            self._hang_up(exchange)
        else:
            self._responses.write(exchange, response)
        self._owner.output_ready()

    def _unblock(self, exchange: Exchange, outcome: object) -> None:
        """Respond after a wait that blocked the requests behind it."""
        if self.is_closing:
            return
        if isinstance(outcome, HangUp):
            self._hang_up(exchange)
        elif isinstance(outcome, Delivery):
            self._deliver(exchange, outcome)
        else:
            self._responses.write(exchange, outcome)
            self._max_in_flight = MAX_IN_FLIGHT
        self._owner.output_ready()

    def _deliver(self, exchange: Exchange, delivery: Delivery) -> None:
        match delivery:
            case ThrottledResponse(response, until):
                self._responses.write(exchange, response)
                until.then(lambda _: self._unmute())
            case PacedResponse():
                self._pace(exchange, delivery)
            case _:
                assert_never(delivery)

    def _pace(self, exchange: Exchange, delivery: PacedResponse) -> None:
        def on_sent(_: object) -> None:
            self._responses.end_pace()
            self._unmute()

        delivery.until.then(on_sent)
        self._responses.pace(exchange, delivery, self._broker.scheduler)
        if delivery.response is None:  # acks=0
            delivery.until.complete(None)

    def _unmute(self) -> None:
        """The throttle time is over, or a slow response is sent."""
        self._max_in_flight = MAX_IN_FLIGHT
        self._owner.output_ready()

    def _hang_up(self, exchange: Exchange) -> None:
        """Close in the place of this response; the responses before it are sent first."""
        self._max_in_flight = 0
        self._hung_up = exchange
