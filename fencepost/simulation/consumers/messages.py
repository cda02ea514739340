"""The requests and answers of a consumer that are under way, until the schedule lets each arrive.

They have no order: any may overtake any other, be late, or be lost. Requests and answers are
encoded and decoded, so that each side sees the fields of their version alone.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from fencepost.broker.core.context import Peer
from fencepost.broker.core.waits import Wait
from fencepost.broker.node.broker import Broker
from fencepost.broker.node.cluster import Cluster
from fencepost.client.consumer.requests import Request
from fencepost.client.errors import Disconnected, KafkaClientError, TimedOut, Unreachable
from fencepost.protocol import codec, frames
from fencepost.protocol.apis import Api
from fencepost.protocol.codec.drafts import Draft
from fencepost.simulation.consumers.consumed import LogView
from fencepost.simulation.environment import RequestSender

_SIZE_BYTES: Final = 4
"""Of a frame's length."""
_HOST: Final = "192.0.2.2"
_CORRELATION_ID: Final = 1


class Message(Struct, kw_only=True, eq=False):
    """A request, and its answer as soon as a broker has given it."""

    request: Request
    deadline_ms: int
    answer: object | None = None
    logs: dict[int, LogView] = field(default_factory=dict)
    """The broker's logs when it answered, by partition."""
    served: dict[int, int] = field(default_factory=dict)
    """The leader epochs that the broker had when the request came, by partition."""
    is_waiting: bool = False
    """Whether a broker has it and has not answered yet."""


class Messages:
    """What is under way between one consumer and the brokers.

    :param client_id: The consumer's.
    :param draft: The dialect that it speaks.
    :param look: Sees the logs of a broker that answers a request of an API.
    :param answered: Takes a message whose answer has arrived.
    :param failed: Takes a message that has no answer, and why.
    """

    def __init__(
        self,
        cluster: Cluster,
        send: RequestSender,
        client_id: str,
        draft: Draft | None,
        *,
        look: Callable[[Api, Broker], dict[int, LogView]],
        answered: Callable[[Message], None],
        failed: Callable[[Message, KafkaClientError], None],
    ) -> None:
        self._cluster = cluster
        self._send = send
        self._draft = draft
        self._peer = Peer(connection_id=client_id, host=_HOST, dialect=draft)
        self._look = look
        self._answered = answered
        self._failed = failed
        self._under_way: list[Message] = []

    def __len__(self) -> int:
        return sum(not each.is_waiting for each in self._under_way)

    def add(self, request: Request, now: int) -> None:
        """Take a request from the consumer."""
        deadline_ms = now + request.timeout_ms
        self._under_way.append(Message(request=request, deadline_ms=deadline_ms))

    def drop_all(self) -> None:
        """The consumer has ended."""
        self._under_way.clear()

    def expire(self, now: int) -> None:
        """Fail what was not answered in time, and what waits at a broker that has ended."""
        for each in tuple(self._under_way):
            if each.deadline_ms <= now:
                self._fail(each, TimedOut("there was no answer in time"))
            elif each.is_waiting and not self._cluster.brokers[each.request.node].running:
                self._fail(each, Disconnected("the broker has ended"))

    def carry(self, number: int, *, is_lost: bool) -> int | None:
        """Let a request arrive at its broker, or an answer at the consumer, or lose it.

        :param number: Its index among those that wait for it, modulo their number.
        :returns: The broker that has handled a request; None where none has.
        """
        moving = [each for each in self._under_way if not each.is_waiting]
        if not moving:
            return None
        message = moving[number % len(moving)]
        if is_lost:
            self._fail(message, Disconnected("the schedule lost it"))
        elif message.answer is not None:
            self._under_way.remove(message)
            self._answered(message)
        else:
            return self._handle(message)
        return None

    def _fail(self, message: Message, error: KafkaClientError) -> None:
        self._under_way.remove(message)
        self._failed(message, error)

    def _handle(self, message: Message) -> int | None:
        request = message.request
        broker = self._cluster.brokers[request.node]
        if not broker.running:
            self._fail(message, Unreachable("the broker does not run"))
            return None
        message.is_waiting = True
        before = self._look(request.api, broker)
        message.served = {index: log.leader_epoch for index, log in before.items()}
        answer = self._send(
            broker, request.api, request.version, self._decoded_request(request), self._peer
        )

        def answered(response: object) -> None:
            if message in self._under_way and broker.running:
                message.is_waiting = False
                message.logs = self._look(request.api, broker)
                message.answer = self._decoded_response(request, response)

        if isinstance(answer, Wait):
            answer.then(answered)
        else:
            answered(answer)
        return request.node

    def _decoded_request(self, request: Request) -> object:
        api, version = request.api, request.version
        client_id = self._peer.connection_id
        chunks = codec.encode_request(
            api, version, _CORRELATION_ID, client_id, request.message, self._draft
        )
        frame = bytearray(b"".join(chunks)[_SIZE_BYTES:])
        body = frames.skip_tags(frame, frames.read_header(frame), api)
        return codec.decode_request(api, version, frame, body, self._draft)

    def _decoded_response(self, request: Request, response: object) -> object:
        api, version = request.api, request.version
        chunks = codec.encode_response(api, version, _CORRELATION_ID, response, self._draft)
        body = codec.response_body_offset(api, version)
        return codec.decode_response(
            api, version, b"".join(chunks)[_SIZE_BYTES:], body, self._draft
        )
