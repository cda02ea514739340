"""The two clusters that are asked: one connection to each, both requests at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fencepost.protocol.apis import Api
from fencepost.protocol.codec import (
    decode_response,
    encode_request,
    response_body_offset,
)
from tests.harness.served_cluster import Cluster
from tests.harness.wire import Connection, Value, frame
from tests.oracle.random_requests.messages import RandomRequest
from tests.oracle.random_requests.twins import Twins

CLIENT: Final = "random"
_ACKS_NONE: Final = 0
_TIMEOUT_S: Final = 8.0


@dataclass(frozen=True, slots=True)
class Closed:
    """The connection was closed instead of an answer."""


@dataclass(frozen=True, slots=True)
class Silence:
    """No answer is due, and the connection goes on."""


@dataclass(frozen=True, slots=True)
class Late:
    """No answer came in time."""


class Side:
    """One cluster, by a connection that is opened again when it was closed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._connection: Connection | None = None
        self._correlation_id = 0

    def send(self, api: Api, version: int, written: int, message: Value) -> None:
        """Send a request; `receive` has its answer."""
        if self._connection is None:
            self._connection = Connection(self._cluster.addresses[0], timeout=_TIMEOUT_S)
        self._correlation_id += 1
        chunks = encode_request(api, written, self._correlation_id, CLIENT, message)
        data = bytearray(b"".join(chunks))
        data[6:8] = version.to_bytes(2, "big", signed=True)
        if api.name == "produce" and message.acks == _ACKS_NONE:
            # It has no answer. What comes then tells whether the connection was closed.
            data += frame("ApiVersions", 0, b"", correlation_id=self._correlation_id)
        self._connection.socket.sendall(data)

    def receive(self, api: Api, version: int, message: Value) -> Value:
        """The answer to what was sent last."""
        assert self._connection is not None
        try:
            payload = self._connection.receive()
        except TimeoutError:
            self.close()
            return Late()
        except ConnectionError:
            self.close()
            return Closed()
        if api.name == "produce" and message.acks == _ACKS_NONE:
            return Silence()
        if not api.serves(version):
            return payload[4:]
        return decode_response(api, version, payload, response_body_offset(api, version))

    def ask(self, api: Api, version: int, message: Value) -> Value:
        """One request and its answer."""
        self.send(api, version, version, message)
        return self.receive(api, version, message)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@dataclass(frozen=True, slots=True)
class Both:
    """Kafka first, fencepost second."""

    kafka: Side
    fencepost: Side

    def ask(self, request: RandomRequest, twins: Twins) -> tuple[Value, Value]:
        """The answers to the same request, with each side's own ids in it."""
        sides = (self.kafka, self.fencepost)
        messages = [
            request.of_side(lambda ref, n=number: twins.value(ref, n))  # type: ignore[misc]  # mypy infers no type for its default
            for number in range(2)
        ]
        for side, message in zip(sides, messages, strict=True):
            side.send(request.api, request.version, request.written, message)
        kafka, fencepost = (
            side.receive(request.api, request.version, message)
            for side, message in zip(sides, messages, strict=True)
        )
        return kafka, fencepost

    def close(self) -> None:
        self.kafka.close()
        self.fencepost.close()
