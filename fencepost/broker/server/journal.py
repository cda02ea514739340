"""The journal: the last requests and answers, kept as they are and decoded only when asked for.

A client's are kept as the bytes that came and went. Those between brokers never were bytes: they
are kept as the messages that were handed over. Each sort has a row of its own, so that busy
followers do not push out what clients asked; numbers are shared.

Every request is noted, so as little as possible is done while its client waits. What it takes to
count an answer is done later, for a few at once: when the loop has nothing else to do, when enough
are due, or before somebody looks.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from heapq import merge
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from fencepost.broker.core.context import Context
from fencepost.broker.core.waits import Wait
from fencepost.broker.node.broker import Broker
from fencepost.broker.produce.expected_offsets import ExpectedOffsets
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
"""Of clients, and as many between brokers."""
MAX_BYTES: Final = 64 << 20
"""Of frames and answers together, and as many between brokers. What a log keeps anyway costs
nothing more while it does."""
MAX_DUE: Final = 64
"""Answers that are not counted yet."""
WORTH_COUNTING: Final = 32
"""So many are counted in an idle moment: in a row each costs a fraction of what it does alone."""
_FETCH: Final = BY_NAME["fetch"]


@dataclass(slots=True, eq=False)
class Exchange:
    """One request of a client and its answer, from when it is taken up; connections queue them."""

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
    """The draft of the connection that it came by."""
    number: int = 0
    """Rises by one with each request of the process."""
    begun_ns: int = 0
    """When it was taken up, by a clock that only measures."""
    chunks: list[Buffer] | None = None
    """The answer's frame, size included; None while there is none (or, with acks=0, ever)."""
    answer: object | None = None
    """The message that this frame was made of, until it is counted; None where it is as before."""
    done: bool = False
    """Whether it is answered, or never will be."""
    answered_ms: int | None = None
    elapsed_us: int | None = None
    """From when it was taken up until it was answered, real time; None where it was not."""
    errors: tuple[int, ...] = NO_ERRORS
    """The error codes in its answer, once it is counted."""
    bytes_in: int = 0
    """Of the request, its size not counted."""
    wait: Wait[object] | None = None
    """What its answer is to come from."""
    counted: int = 0
    """Bytes that the journal counts for it; -1 when it is no longer in the journal."""
    newest: int = 0
    """Once it is done, the number of the last request that was taken up before."""
    expected_offsets: ExpectedOffsets | None = None
    """What a produce request expects; None where no topic checks that."""

    def collect_counts(self, errors_in: Finder) -> int:
        """Take from the answer what is counted: its errors, and how many bytes it has."""
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
        """The decoded answer, None while there is none.

        :raises MalformedMessage: When what was answered is not to be read.
        """
        if self.chunks is None:
            return None
        offset = 4 + response_body_offset(self.api, self.version)
        frame = b"".join(self.chunks)
        response: object = decode_response(self.api, self.version, frame, offset, self.dialect)
        return response

    def may_contain(self, texts: Iterable[bytes]) -> bool:
        """Whether any of these occurs in its bytes, records aside; quick to tell."""
        heads = (chunk for chunk in self.chunks or () if not isinstance(chunk, memoryview))
        return any(text in chunk for chunk in (self.frame, *heads) for text in texts)


@dataclass(slots=True, eq=False)
class BrokerExchange:
    """One request of a broker to another and its answer, as the messages that they are."""

    time_ms: int
    broker_id: int
    """Who was asked."""
    connection_id: str
    """Names who asks: these have no connections."""
    client_id: str | None
    api: Api
    version: int
    asked: object
    answer: object | None = None
    number: int = 0
    begun_ns: int = 0
    done: bool = False
    answered_ms: int | None = None
    elapsed_us: int | None = None
    errors: tuple[int, ...] = NO_ERRORS
    counted: int = 0
    correlation_id: int = 0
    """They need none."""
    bytes_in: int = 0
    """They have none."""
    newest: int = 0
    expected_offsets: ExpectedOffsets | None = None
    """Brokers produce nothing."""
    dialect: "Draft | None" = None
    """Brokers speak Kafka's versions among themselves."""

    def collect_counts(self, errors_in: Finder) -> int:
        """Take from the answer what is counted: its errors, and how many bytes its records have."""
        if self.answer is None:
            return 0
        self.errors = errors_in(self.answer)
        return _records_size(cast(FetchResponse, self.answer)) if self.api is _FETCH else 0

    def request(self) -> object:
        """The request."""
        return self.asked

    def response(self) -> object | None:
        """The answer, None while there is none."""
        return self.answer

    def may_contain(self, texts: Iterable[bytes]) -> bool:  # noqa: ARG002  # there are no bytes
        """Whether it may be about what these texts name."""
        return True


AnyExchange: TypeAlias = Exchange | BrokerExchange


class _ExchangeQueue:
    """The last exchanges of one sort, bounded in number and bytes, and what all of them come to."""

    __slots__ = ("bytes", "due", "exchanges", "metrics")

    def __init__(self) -> None:
        self.exchanges: deque[AnyExchange] = deque()
        self.due: list[AnyExchange] = []
        """Those that are over and not counted yet."""
        self.bytes = 0
        self.metrics = RequestMetrics()

    def count_due(self) -> None:
        """Count what is over and is not counted yet."""
        due, self.due = self.due, []
        last: tuple[int, Api, int, Draft | None] | None = None
        for exchange in due:  # mostly the same again and again: what it takes is looked up once
            sort = exchange.broker_id, exchange.api, exchange.version, exchange.dialect
            if sort != last:
                last = sort
                figures = self.metrics.of(exchange.broker_id, exchange.api)
                errors_in = error_code_finder(exchange.api, exchange.version, exchange.dialect)
            size = exchange.collect_counts(errors_in)
            figures.count(exchange.elapsed_us, exchange.bytes_in, size, exchange.errors)
            if exchange.counted >= 0:
                exchange.counted += size
                self.bytes += size
        self.drop_oldest()

    def drop_oldest(self) -> None:
        """Keep within the bounds."""
        exchanges = self.exchanges
        while len(exchanges) > MAX_EXCHANGES or self.bytes > MAX_BYTES:
            oldest = exchanges.popleft()
            self.bytes -= oldest.counted
            oldest.counted = -1

    def clear(self) -> deque[AnyExchange]:
        """Forget all; gives back what there was."""
        gone, self.exchanges = self.exchanges, deque()
        for exchange in gone:
            exchange.counted = -1
        self.bytes = 0
        return gone


class Journal:
    """The last exchanges of clients, and those between brokers."""

    def __init__(self) -> None:
        self._clients = _ExchangeQueue()
        self._brokers = _ExchangeQueue()
        self.newest = 0
        """The number of the last request."""
        self.listeners: list[Callable[[AnyExchange], None]] = []
        """Called with each exchange as it is answered, or as it is clear that it never will be."""

    def __iter__(self) -> Iterator[AnyExchange]:
        """All exchanges, the oldest first."""
        return reversed(tuple(self.newest_first()))

    def newest_first(self, *, clients: bool = True, brokers: bool = True) -> Iterator[AnyExchange]:
        """The exchanges of one sort or both, as they are now."""
        self.count_due()
        rows = [
            tuple(row.exchanges)
            for row, wanted in ((self._clients, clients), (self._brokers, brokers))
            if wanted
        ]
        return merge(*map(reversed, rows), key=_number, reverse=True)

    @property
    def metrics(self) -> tuple[RequestMetrics, RequestMetrics]:
        """What is counted of clients' requests, and of those between brokers.

        Between brokers, bytes are those of records in answers alone.
        """
        self.count_due()
        return self._clients.metrics, self._brokers.metrics

    @property
    def size(self) -> tuple[int, int]:
        """How many exchanges are kept, and how many bytes they count."""
        self.count_due()
        rows = (self._clients, self._brokers)
        return sum(len(row.exchanges) for row in rows), sum(row.bytes for row in rows)

    # -- one exchange ---------------------------------------------------------------------------

    def open(self, exchange: Exchange) -> None:
        """Note a client's request that is taken up."""
        row = self._clients
        exchange.number = self.newest = self.newest + 1
        size = exchange.counted = exchange.bytes_in = len(exchange.frame)
        row.bytes += size
        row.exchanges.append(exchange)
        if row.bytes > MAX_BYTES:  # their number is seen to when they are counted
            row.drop_oldest()
        exchange.begun_ns = perf_counter_ns()

    def close(
        self, exchange: Exchange, chunks: list[Buffer] | None, answer: object, now_ms: int
    ) -> None:
        """Note its answer, or that it gets none.

        :param answer: What the answer's bytes were made of, if they were.
        """
        exchange.chunks = chunks
        exchange.answer = answer
        exchange.wait = None
        self._finish(self._clients, exchange, now_ms)

    def abandon(self, exchange: Exchange) -> None:
        """Its connection is gone: if it is not answered by now, it never is."""
        if not exchange.done:
            self._finish(self._clients, exchange, None)

    def observe(
        self, api: Api, ctx: Context[Broker], message: object
    ) -> Callable[[object | None], None]:
        """Note a request that a broker takes up from another.

        :returns: What takes the answer, None where none comes.
        """
        row, peer = self._brokers, ctx.peer.connection_id
        broker_id, number = ctx.broker.broker_id, self.newest + 1
        exchange = BrokerExchange(
            ctx.now_ms, broker_id, peer, ctx.client_id, api, ctx.version, message, None, number
        )
        self.newest = number
        row.exchanges.append(exchange)
        if len(row.exchanges) > MAX_EXCHANGES:
            row.drop_oldest()
        exchange.begun_ns = perf_counter_ns()
        return partial(self._answered, exchange, ctx)

    def _answered(
        self, exchange: BrokerExchange, ctx: Context[Broker], answer: object | None
    ) -> None:
        exchange.answer = answer
        self._finish(self._brokers, exchange, ctx.broker.scheduler.now_ms())

    def _finish(self, row: _ExchangeQueue, exchange: AnyExchange, now_ms: int | None) -> None:
        """It is answered now, or (None) never will be."""
        exchange.done = True
        exchange.newest = self.newest
        if now_ms is not None:
            exchange.answered_ms = now_ms
            exchange.elapsed_us = (perf_counter_ns() - exchange.begun_ns) // 1000
        due = row.due
        due.append(exchange)
        if len(due) >= MAX_DUE or self.listeners:
            self._notify(exchange)

    def _notify(self, exchange: AnyExchange) -> None:
        self.count_due()
        for listener in self.listeners:
            listener(exchange)

    # -- all of them ----------------------------------------------------------------------------

    def count_if_many(self) -> None:
        """Count what is over, if there is enough of it: there is nothing else to do just now."""
        if len(self._clients.due) >= WORTH_COUNTING or len(self._brokers.due) >= WORTH_COUNTING:
            self.count_due()

    def count_due(self) -> None:
        """Count what is over and is not counted yet."""
        self._clients.count_due()
        self._brokers.count_due()

    def clear(self) -> Iterator[None]:
        """Forget all; numbers go on. What was kept is freed by the steps, a little with each."""
        self.count_due()
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


def _free_in_steps(rows: list[deque[AnyExchange]]) -> Iterator[None]:
    for exchanges in rows:
        while exchanges:
            exchanges.popleft()
            yield
