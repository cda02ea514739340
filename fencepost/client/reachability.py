"""Which brokers a client can reach from where it runs: each at the address that is advertised.

A client connects to a bootstrap server, and then to the addresses that it is told. A wrong one of
these is the most frequent mistake with containers, and clients only say that they time out.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec import Struct

from fencepost.client.connection import DESCRIBE_CONFIGS, METADATA, Connection, connect
from fencepost.client.errors import KafkaClientError, NotServed
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.listener_text import MAX_PORT
from fencepost.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from fencepost.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)

_CLIENT_ID: Final = "fencepost-check"
_BROKER: Final = 4
"""The type of a broker in DescribeConfigs."""


class AddressCheck(Struct, frozen=True, kw_only=True):
    """An address, and whether the node that is meant answers there."""

    broker: int | None
    """The id of the broker that is advertised there; None for a bootstrap server."""
    host: str
    port: int
    problem: str | None = None
    """Why it can't be used, as the end of a sentence; None where it can."""


async def check_addresses(
    bootstrap: Sequence[tuple[str, int]], *, timeout_s: float
) -> list[AddressCheck]:
    """Check bootstrap servers, and the address of each broker that they name, all at the same time.

    :param timeout_s: For each address.
    :returns: The bootstrap servers in their order, then the brokers in the order of ids, each with
        every address under which it is advertised.
    """
    answers = [_Bootstrap(host, port) for host, port in bootstrap]
    checks = await asyncio.gather(*(each.check(timeout_s) for each in answers))
    advertised = {
        (broker.node_id, broker.host, broker.port): each.cluster_id
        for each in answers
        for broker in each.brokers
    }
    brokers = await asyncio.gather(
        *(
            _check_broker(broker_id, host, port, cluster_id, timeout_s)
            for (broker_id, host, port), cluster_id in sorted(advertised.items())
        )
    )
    return [*checks, *brokers]


class _Bootstrap:
    """A bootstrap server, and what it says of its cluster."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._answer = MetadataResponse()

    @property
    def cluster_id(self) -> str | None:
        return self._answer.cluster_id

    @property
    def brokers(self) -> Sequence[MetadataResponseBroker]:
        return self._answer.brokers

    async def check(self, timeout_s: float) -> AddressCheck:
        problem = await _problem_at(self._host, self._port, self._read, timeout_s)
        if problem is None and not self.brokers:
            problem = "answers, and names no broker that runs"
        return AddressCheck(broker=None, host=self._host, port=self._port, problem=problem)

    async def _read(self, connection: Connection) -> None:
        self._answer = await _metadata(connection)


async def _check_broker(
    broker_id: int, host: str, port: int, cluster_id: str | None, timeout_s: float
) -> AddressCheck:
    async def ask(connection: Connection) -> str | None:
        answer = await _metadata(connection)
        if answer.cluster_id != cluster_id:
            return f"leads to another cluster, {answer.cluster_id}"
        if await _is_another_broker(connection, broker_id):
            return "leads to another broker"
        return None

    problem = await _problem_at(host, port, ask, timeout_s)
    return AddressCheck(broker=broker_id, host=host, port=port, problem=problem)


async def _problem_at(
    host: str, port: int, ask: Callable[[Connection], Awaitable[str | None]], timeout_s: float
) -> str | None:
    """What ``ask`` finds over a connection to an address, or why there was no answer."""
    if not 0 < port <= MAX_PORT:
        return f"has a port that is not a number from 1 to {MAX_PORT}"
    try:
        async with asyncio.timeout(timeout_s):
            connection = await connect(host, port, _CLIENT_ID)
            try:
                return await ask(connection)
            finally:
                await connection.close()
    except TimeoutError:
        return f"does not answer within {timeout_s:g} s"
    except UnicodeError:
        return "has a name that no host can have"
    except KafkaClientError as error:
        cause = error.__cause__
        if isinstance(cause, OSError):
            return f"can't be reached: {_reason(cause)}"
        return f"is no broker: {error}"


def _reason(error: OSError) -> str:
    """The system's words, which asyncio replaces by its own; those of a failed lookup stay."""
    is_of_lookup = isinstance(error, socket.gaierror)
    text = error.strerror if is_of_lookup or error.errno is None else os.strerror(error.errno)
    return (text or str(error)).lower()


async def _metadata(connection: Connection) -> MetadataResponse:
    """Metadata of no topic."""
    version = await connection.best_version(METADATA.api)
    request = MetadataRequest(topics=(), allow_auto_topic_creation=False)
    return await connection.ask(METADATA, request, version)


async def _is_another_broker(connection: Connection, broker_id: int) -> bool:
    """Whether the node refuses to describe the broker's configs, as only that itself does."""
    resource = DescribeConfigsResource(
        resource_type=_BROKER, resource_name=str(broker_id), configuration_keys=("node.id",)
    )
    try:
        version = await connection.best_version(DESCRIBE_CONFIGS.api)
    except NotServed:
        return False
    request = DescribeConfigsRequest(resources=(resource,))
    answer = await connection.ask(DESCRIBE_CONFIGS, request, version)
    return any(each.error_code == ErrorCode.INVALID_REQUEST for each in answer.results)
