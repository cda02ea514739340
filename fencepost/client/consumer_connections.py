"""The connections of a consumer: to each node one for each `Channel`, opened when it is needed."""

import asyncio
from typing import Final

from fencepost.client.connection import Connection, connect
from fencepost.client.consumer.nodes import Address
from fencepost.client.consumer.requests import Channel, Request
from fencepost.client.errors import Unreachable
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse

_API_VERSIONS: Final = BY_NAME["api_versions"]


class ConsumerConnections:
    """Carries requests to nodes.

    :param dialect: The draft that all connections speak; None: Kafka's protocol.
    :param connect_timeout_s: How long a node may take to accept.
    """

    def __init__(
        self, client_id: str | None, dialect: str | None, connect_timeout_s: float
    ) -> None:
        self._client_id = client_id
        self._dialect = dialect
        self._connect_timeout_s = connect_timeout_s
        self._open: dict[tuple[int, Channel], tuple[Address, Connection]] = {}
        self._locks: dict[tuple[int, Channel], asyncio.Lock] = {}

    async def ask(self, request: Request, address: Address | None) -> object:
        """Send a request to its node's address, and wait for the answer.

        :raises KafkaClientError: When none comes.
        """
        if address is None:
            raise Unreachable(f"no metadata names a broker {request.node}")
        connection = await self._connect(request, address)
        timeout_s = request.timeout_ms / 1000
        if request.api is _API_VERSIONS:
            return await _versions(connection, timeout_s)
        answer: object = await connection.ask_any(
            request.api, request.version, request.message, timeout_s=timeout_s
        )
        return answer

    async def close(self) -> None:
        """Close all connections."""
        connections, self._open = self._open, {}
        for _, connection in connections.values():
            await connection.close()

    async def _connect(self, request: Request, address: Address) -> Connection:
        key = request.node, request.channel
        # A request that comes while another opens the connection gets the same one.
        async with self._locks.setdefault(key, asyncio.Lock()):
            known, connection = self._open.get(key, (None, None))
            if connection is not None:
                if known == address and connection.is_open:
                    return connection
                del self._open[key]
                await connection.close()
            opened = await connect(
                *address,
                self._client_id,
                dialect=self._dialect,
                timeout_s=self._connect_timeout_s,
            )
            self._open[key] = address, opened
            return opened


async def _versions(connection: Connection, timeout_s: float) -> ApiVersionsResponse:
    """The answer to ApiVersions, which the connection asks for by itself, with its dialect."""
    served = await connection.versions(timeout_s=timeout_s)
    return ApiVersionsResponse(
        api_keys=tuple(
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in served.items()
        )
    )
