"""The journal: the last requests and responses, kept undecoded until a reader wants them.

Exchanges with clients are kept as the bytes that were received and sent. Exchanges between brokers
never were bytes: they are kept as messages. Each kind has its own bounded queue, so that busy
followers do not push out the requests of clients; both share one sequence of numbers.

Every request passes the journal, so it does as little as possible while a client waits. Responses
are counted for the metrics later, several at once: when the loop is idle, when enough of them are
due, or before a reader looks.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from heapq import merge
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from msgspec import Struct

from fencepost.broker.core.context import Context
from fencepost.broker.core.waits import Wait
from fencepost.broker.node.broker import Broker
from fencepost.broker.produce.expected_offsets import ExpectedOffsets
from fencepost.broker.server.journal_history import DeletedTopics, DroppedExchanges
from fencepost.broker.server.request_metrics import RequestMetrics
from fencepost.protocol.apis import BY_NAME, Api
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.codec import decode_request, decode_response, response_body_offset
from fencepost.protocol.codec.error_codes import NO_ERRORS, Finder, error_code_finder
from fencepost.protocol.frames import frame_size
from fencepost.protocol.messages.fetch import FetchResponse

if TYPE_CHECKING:
    from fencepost.protocol.codec.drafts import Draft

MAX_EXCHANGES: Final = 4096
"""The most exchanges with clients that are kept, and as many between brokers."""
MAX_BYTES: Final = 64 << 20
"""The most bytes of requests and responses that are kept, and as many between brokers. Batches that
a log holds as well share its memory."""
MAX_SURPLUS_BYTES: Final = 1 << 20
"""Bytes beyond that which wait until exchanges are counted, rather than have a request wait."""
MAX_DUE: Final = 64
"""The most exchanges that wait to be counted."""
MAX_DUE_BYTES: Final = 64 << 10
"""Of a response that waits to be counted, its records aside; of a larger one the message, which is
kept until then, would take too much memory, and its count too much time of a later request."""
WORTH_COUNTING: Final = 8
"""The fewest that are counted in an idle moment: in a batch each costs less, and a larger one takes
longer than a client to send its next request, which then waits."""
_FETCH: Final = BY_NAME["fetch"]


class Exchange(Struct, eq=False):
    """One request of a client and its response, from when it is opened; connections queue them."""

    time_ms: int
    broker_id: int
    connection_id: str
    client_id: str | None
    api: Api
    version: int
    correlation_id: int
    frame: bytearray
    body_offset: int
    dialect: "Draft | None" = None
    """The draft that its connection speaks."""
    number: int = 0
    """Rises by one with each request of the process."""
    begun_ns: int = 0
    """When it was opened, by the performance counter."""
    chunks: list[Buffer] | None = None
    """The response's frame with its size; None before the response, and always with acks=0."""
    answer: object | None = None
    """The message that the frame encodes, until it is counted; None for a cached response."""
    done: bool = False
    """Whether it is answered or abandoned."""
    answered_ms: int | None = None
    elapsed_us: int | None = None
    """Real time from request to response; None without a response."""
    errors: tuple[int, ...] = NO_ERRORS
    """The error codes in the response, once it is counted."""
    bytes_in: int = 0
    """Size of the request, without the size field."""
    wait: Wait[object] | None = None
    """The wait that completes with the response."""
    counted: int = 0
    """Its bytes in the journal's total; -1 once it is no longer in the journal."""
    newest: int = 0
    """Once it is done, the number of the newest request then."""
    expected_offsets: ExpectedOffsets | None = None
    """The expected offsets of a produce request; None where no topic checks them."""

    def collect_counts(self, errors_in: Finder) -> int:
        """Find the errors in the response, and return its size in bytes."""
        answer = self.answer
        if answer is not None:
            self.answer = None
            self.errors = errors_in(answer)
        chunks = self.chunks
        if not chunks:
            return 0
        return len(chunks[0]) if len(chunks) == 1 else frame_size(chunks[0])

    def request(self) -> object:
        """The decoded request."""
        return decode_request(self.api, self.version, self.frame, self.body_offset, self.dialect)

    def response(self) -> object | None:
        """The decoded response, None while there is none.

        :raises MalformedMessage: When its bytes can't be decoded, as those of a corrupting fault.
        """
        if self.chunks is None:
            return None
        offset = 4 + response_body_offset(self.api, self.version)
        frame = b"".join(self.chunks)
        response: object = decode_response(self.api, self.version, frame, offset, self.dialect)
        return response

    def may_contain(self, texts: Iterable[bytes]) -> bool:
        """Whether any of these texts occurs in its bytes, records aside; a fast filter."""
        heads = (chunk for chunk in self.chunks or () if not isinstance(chunk, memoryview))
        return any(text in chunk for chunk in (self.frame, *heads) for text in texts)


class BrokerExchange(Struct, eq=False, gc=False):
    """One request of a broker to another and its response, as messages."""

    time_ms: int
    broker_id: int
    """The broker that handles the request."""
    connection_id: str
    """Names the requesting broker: there are no connections between brokers."""
    client_id: str | None
    api: Api
    version: int
    message: object
    """The request."""
    answer: object | None = None
    number: int = 0
    begun_ns: int = 0
    done: bool = False
    answered_ms: int | None = None
    elapsed_us: int | None = None
    errors: tuple[int, ...] = NO_ERRORS
    counted: int = 0
    correlation_id: int = 0
    """Always 0."""
    bytes_in: int = 0
    """Always 0."""
    newest: int = 0
    expected_offsets: ExpectedOffsets | None = None
    """Always None: brokers do not produce."""
    dialect: "Draft | None" = None
    """Always None: brokers use Kafka's versions among themselves."""

    def collect_counts(self, errors_in: Finder) -> int:
        """Find the errors in the response, and return the size of its records in bytes."""
        if self.answer is None:
            return 0
        self.errors = errors_in(self.answer)
        return _records_size(cast(FetchResponse, self.answer)) if self.api is _FETCH else 0

    def request(self) -> object:
        """The request."""
        return self.message

    def response(self) -> object | None:
        """The response, None while there is none."""
        return self.answer

    def may_contain(self, texts: Iterable[bytes]) -> bool:  # noqa: ARG002  # there are no bytes
        """Always: it has no bytes to search."""
        return True


AnyExchange: TypeAlias = Exchange | BrokerExchange


class _ExchangeQueue:
    """The last exchanges of one kind, bounded in number and bytes, and the metrics of all."""

    __slots__ = ("_of_brokers", "bytes", "dropped", "due", "exchanges", "metrics")

    def __init__(self, dropped: DroppedExchanges, *, of_brokers: bool) -> None:
        self.dropped = dropped
        self._of_brokers = of_brokers
        self.exchanges: deque[AnyExchange] = deque()
        self.due: list[AnyExchange] = []
        """Exchanges that are done and not counted yet."""
        self.bytes = 0
        self.metrics = RequestMetrics()

    def count_due(self) -> None:
        """Count the exchanges that are done and not counted yet."""
        due, self.due = self.due, []
        last: tuple[int, Api, int, Draft | None] | None = None
        for exchange in due:  # mostly of one kind: its lookups are done once
            kind = exchange.broker_id, exchange.api, exchange.version, exchange.dialect
            if kind != last:
                last = kind
                api_metrics = self.metrics.of(exchange.broker_id, exchange.api)
                errors_in = error_code_finder(exchange.api, exchange.version, exchange.dialect)
            size = exchange.collect_counts(errors_in)
            api_metrics.count(exchange.elapsed_us, exchange.bytes_in, size, exchange.errors)
            if exchange.counted >= 0:
                exchange.counted += size
                self.bytes += size
        self.drop_oldest()

    def drop_oldest(self) -> None:
        """Drop the oldest exchanges that exceed the bounds."""
        exchanges = self.exchanges
        while len(exchanges) > MAX_EXCHANGES or self.bytes > MAX_BYTES:
            oldest = exchanges.popleft()
            self.bytes -= oldest.counted
            oldest.counted = -1
            self.dropped.count(
                (
                    self._of_brokers,
                    oldest.broker_id,
                    oldest.api.key,
                    oldest.version,
                    oldest.client_id,
                ),
                oldest.number,
            )

    def clear(self) -> deque[AnyExchange]:
        """Drop all exchanges and return them."""
        gone, self.exchanges = self.exchanges, deque()
        for exchange in gone:
            exchange.counted = -1
        self.bytes = 0
        return gone


class Journal:
    """The last exchanges of clients, and those between brokers."""

    def __init__(self) -> None:
        self.dropped = dropped = DroppedExchanges()
        """Counts of those that are not kept any more, since the last `clear`."""
        self.deleted_topics = DeletedTopics()
        self._clients = _ExchangeQueue(dropped, of_brokers=False)
        self._brokers = _ExchangeQueue(dropped, of_brokers=True)
        self.newest = 0
        """The number of the last request."""
        self.listeners: list[Callable[[AnyExchange], None]] = []
        """Called with each exchange as it is answered or abandoned."""

    def __iter__(self) -> Iterator[AnyExchange]:
        """All exchanges, the oldest first."""
        return reversed(tuple(self.newest_first()))

    def newest_first(self, *, clients: bool = True, brokers: bool = True) -> Iterator[AnyExchange]:
        """A snapshot of the exchanges of one kind or both."""
        self.count_due()
        queues = [
            tuple(queue.exchanges)
            for queue, is_wanted in ((self._clients, clients), (self._brokers, brokers))
            if is_wanted
        ]
        return merge(*map(reversed, queues), key=_number, reverse=True)

    @property
    def metrics(self) -> tuple[RequestMetrics, RequestMetrics]:
        """The metrics of clients' requests, and of those between brokers.

        Between brokers, bytes are those of the records in responses alone.
        """
        self.count_due()
        return self._clients.metrics, self._brokers.metrics

    @property
    def size(self) -> tuple[int, int]:
        """How many exchanges are kept, and how many bytes they count."""
        self.count_due()
        queues = (self._clients, self._brokers)
        return sum(len(queue.exchanges) for queue in queues), sum(queue.bytes for queue in queues)

    # -- one exchange ---------------------------------------------------------------------------

    def open(self, exchange: Exchange) -> None:
        """Add a client's request."""
        queue = self._clients
        exchange.number = self.newest = self.newest + 1
        size = exchange.counted = exchange.bytes_in = len(exchange.frame)
        queue.bytes += size
        queue.exchanges.append(exchange)
        if queue.bytes > MAX_BYTES + MAX_SURPLUS_BYTES:  # else when they are counted
            queue.drop_oldest()
        exchange.begun_ns = perf_counter_ns()

    def close(
        self, exchange: Exchange, chunks: list[Buffer] | None, answer: object, now_ms: int
    ) -> None:
        """Add the response of a request, or that it gets none.

        :param answer: The message that the chunks encode; None for a cached response.
        """
        exchange.chunks = chunks
        exchange.answer = answer
        exchange.wait = None
        self._finish(self._clients, exchange, now_ms)
        if chunks and len(chunks[0]) > MAX_DUE_BYTES:
            self._clients.count_due()

    def abandon(self, exchange: Exchange) -> None:
        """Finish an exchange whose connection is gone, unless it is answered."""
        if not exchange.done:
            self._finish(self._clients, exchange, None)

    def observe(
        self, api: Api, ctx: Context[Broker], message: object
    ) -> Callable[[object | None], None]:
        """Add a request of a broker to another.

        :returns: To be called with the response, or with None where there is none.
        """
        peer, broker_id, number = ctx.peer.connection_id, ctx.broker.broker_id, self.newest + 1
        exchange = BrokerExchange(
            ctx.wall_ms, broker_id, peer, ctx.client_id, api, ctx.version, message, None, number
        )
        self.newest = number
        self._brokers.exchanges.append(exchange)  # their number is bounded when they are counted
        exchange.begun_ns = perf_counter_ns()
        return partial(self._answered, exchange, ctx)

    def _answered(
        self, exchange: BrokerExchange, ctx: Context[Broker], answer: object | None
    ) -> None:
        exchange.answer = answer
        self._finish(self._brokers, exchange, ctx.broker.scheduler.wall_ms())

    def _finish(self, queue: _ExchangeQueue, exchange: AnyExchange, now_ms: int | None) -> None:
        """Mark an exchange as answered, or as abandoned (None)."""
        exchange.done = True
        exchange.newest = self.newest
        if now_ms is not None:
            exchange.answered_ms = now_ms
            exchange.elapsed_us = (perf_counter_ns() - exchange.begun_ns) // 1000
        due = queue.due
        due.append(exchange)
        if len(due) >= MAX_DUE or self.listeners:
            self._notify(exchange)

    def _notify(self, exchange: AnyExchange) -> None:
        self.count_due()
        for listener in self.listeners:
            listener(exchange)

    # -- all of them ----------------------------------------------------------------------------

    def count_if_many(self) -> None:
        """Count what is due if it is worth the time; for idle moments."""
        if len(self._clients.due) >= WORTH_COUNTING or len(self._brokers.due) >= WORTH_COUNTING:
            self.count_due()

    def count_due(self) -> None:
        """Count the exchanges that are done and not counted yet."""
        self._clients.count_due()
        self._brokers.count_due()

    def clear(self) -> Iterator[None]:
        """Drop all exchanges; numbers go on. Each step of the iterator frees a little."""
        self.count_due()
        self.dropped.clear()
        self.deleted_topics.clear()
        return _free_in_steps([self._clients.clear(), self._brokers.clear()])


def _number(exchange: AnyExchange) -> int:
    return exchange.number


def _records_size(answer: FetchResponse) -> int:
    return sum(
        len(buffer)
        for topic in answer.responses
        for partition in topic.partitions
        for buffer in partition.records or ()
    )


def _free_in_steps(queues: list[deque[AnyExchange]]) -> Iterator[None]:
    for exchanges in queues:
        while exchanges:
            exchanges.popleft()
            yield
