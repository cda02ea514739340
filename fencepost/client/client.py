"""A client of a cluster: one connection a broker, opened when it is needed.

Brokers may differ about who leads a partition; the client takes the newest leader epoch.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Final, Self
from uuid import UUID

from msgspec import Struct

from fencepost.client.cluster import ClusterMetadata, PartitionMetadata, metadata
from fencepost.client.connection import TIMEOUT_S, Connection, connect, find_dialect
from fencepost.client.errors import KafkaClientError, NoLeader, Unreachable
from fencepost.client.model import Partition
from fencepost.protocol.shown_text import without_user_info

Address = tuple[str, int]
"""Host and port."""
DEFAULT_CLIENT_ID: Final = "fencepost"


class ClosedAtExit:
    """What is closed in the end where it is an async context."""

    async def close(self) -> None:
        """End it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class Client(ClosedAtExit):
    """Connections to the brokers of a cluster, and what their metadata said last.

    As an async context it is closed in the end. All of it belongs to one event loop.

    :param bootstrap: ``host:port,...`` of brokers by which the others are learnt.
    :param client_id: Sent with every request; None sends a null.
    :param dialect: That all connections speak: see `connect`. A broker that does not serve it is
        not asked: `DialectNotServed`.
    :raises ValueError: When that is no such list, or there is no such dialect.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str | None = DEFAULT_CLIENT_ID,
        dialect: str | None = None,
    ) -> None:
        self.client_id = client_id
        self.dialect = None if dialect is None else find_dialect(dialect).name
        self._bootstrap = parse_bootstrap(bootstrap)
        self._addresses: dict[int, Address] = {}
        self._connections: dict[Address, Connection] = {}
        self._opening: dict[Address, asyncio.Lock] = {}
        self._seen: ClusterMetadata | None = None

    def add_addresses(self, addresses: Mapping[int, Address]) -> None:
        """Where brokers are, by their ids, from elsewhere than Metadata."""
        self._addresses.update(addresses)

    async def broker(self, broker_id: int, *, timeout_s: float = TIMEOUT_S) -> Connection:
        """The connection to a broker; another one where the last has ended.

        :raises Unreachable: When no broker accepts there, or no broker of that id is known.
        """
        address = self._addresses.get(broker_id)
        if address is None:
            await self.refresh(timeout_s=timeout_s)
            address = self._addresses.get(broker_id)
        if address is None:
            raise Unreachable(f"no metadata tells of a broker {broker_id}")
        return await self._connection(address, timeout_s)

    async def refresh(self, *topics: str, timeout_s: float = TIMEOUT_S) -> ClusterMetadata:
        """Ask the first broker that answers for metadata, and learn addresses by it.

        :raises KafkaClientError: When none answers; of several reasons the last.
        """
        last: KafkaClientError = Unreachable("there is no broker to ask")
        for address in self._known():
            try:
                connection = await self._connection(address, timeout_s)
                seen = await metadata(connection, topics, timeout_s=timeout_s)
            except KafkaClientError as error:
                last = error
                continue
            self._addresses.update(seen.brokers)
            self._seen = seen
            return seen
        raise last

    async def ask_all(
        self, topic: str, *, timeout_s: float = TIMEOUT_S, linger_s: float = 0.5
    ) -> list[ClusterMetadata]:
        """Ask every broker for metadata, as one alone may have been left behind (KAFKA-2334).

        Their answers are not cached: the caller decides which one to believe.

        :param linger_s: How long to wait for the others once one has answered.
        :raises KafkaClientError: When none answers; of several reasons any.
        """

        async def ask(address: Address) -> ClusterMetadata:
            connection = await self._connection(address, timeout_s)
            return await metadata(connection, (topic,), timeout_s=timeout_s)

        asked = {asyncio.create_task(ask(address)) for address in self._known()}
        try:
            answers, last = await _collect_answers(asked, linger_s)
        finally:
            for each in asked:
                each.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        if not answers:
            raise last
        for seen in answers:
            self._addresses.update(seen.brokers)
        return answers

    async def any_broker(self, *, timeout_s: float = TIMEOUT_S) -> Connection:
        """The connection to the first broker that accepts.

        :raises Unreachable: When none does.
        """
        for address in self._known():
            with suppress(Unreachable):
                return await self._connection(address, timeout_s)
        raise Unreachable("no broker accepts")

    async def leader(
        self, topic: str, partition: int, *, timeout_s: float = TIMEOUT_S
    ) -> Connection:
        """The connection to whom the last metadata names as leader; asked for where it does not.

        :raises NoLeader: When metadata knows of no leader.
        :raises KafkaClientError: When it cannot be asked for, or the leader is not reached.
        """
        known = self._partition(topic, partition)
        if known is None or known.leader < 0:
            await self.refresh(topic, timeout_s=timeout_s)
            known = self._partition(topic, partition)
        if known is None or known.leader < 0:
            raise NoLeader(f"metadata knows of no leader of {topic}-{partition}")
        return await self.broker(known.leader, timeout_s=timeout_s)

    def forget(self) -> None:
        """Ask for metadata before the next request to a leader."""
        self._seen = None

    async def close(self) -> None:
        """Close all connections."""
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            await connection.close()

    # -- inside ---------------------------------------------------------------------------------

    def _known(self) -> Iterator[Address]:
        """Addresses to ask, those of brokers by their ids first, each once."""
        learnt = (address for _, address in sorted(self._addresses.items()))
        yield from dict.fromkeys((*learnt, *self._bootstrap))

    def _partition(self, topic: str, partition: int) -> PartitionMetadata | None:
        return None if self._seen is None else self._seen.partition(topic, partition)

    async def _connection(self, address: Address, timeout_s: float) -> Connection:
        # Who asks while another opens it is to get the same one.
        async with self._opening.setdefault(address, asyncio.Lock()):
            found = self._connections.get(address)
            if found is not None and found.is_open:
                return found
            if found is not None:
                await found.close()
            opened = await connect(
                *address, self.client_id, dialect=self.dialect, timeout_s=timeout_s
            )
            self._connections[address] = opened
            return opened


async def _collect_answers(
    asked: "set[asyncio.Task[ClusterMetadata]]", linger_s: float
) -> tuple[list[ClusterMetadata], KafkaClientError]:
    """The answers up to a while after the first, and why another did not come."""
    answers: list[ClusterMetadata] = []
    last: KafkaClientError = Unreachable("there is no broker to ask")
    pending = asked
    while pending:
        done, pending = await asyncio.wait(
            pending,
            timeout=linger_s if answers else None,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if not done:
            break
        for each in done:
            try:
                answers.append(each.result())
            except KafkaClientError as error:
                last = error
    return answers, last


def parse_bootstrap(text: str) -> tuple[Address, ...]:
    """The addresses of ``host:port,...``.

    :raises ValueError: When that is no such list.
    """
    return tuple(map(_address, text.split(",")))


def _address(text: str) -> Address:
    host, colon, port = text.strip().rpartition(":")
    if not colon or not port.isdigit() or "@" in host or "/" in host:
        raise ValueError(f"{without_user_info(text)!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


class Leader(Struct, frozen=True, kw_only=True):
    """A leader of a partition."""

    broker: int
    epoch: int
    """-1 where brokers are too old to tell."""
    topic_id: UUID | None
    """None where brokers are too old to tell."""


async def find_leader(
    client: Client, partition: Partition, *, last: Leader | None, timeout_s: float
) -> Leader:
    """Who leads in the newest epoch that any broker knows of.

    A broker that lost touch with the controller goes on naming a leader who was deposed. By its
    epoch it is told from the one who leads.

    :param last: The last leader that was found: what is older is not believed, and another
        topic of the same name is not the same topic.
    :raises NoLeader: When no broker knows of one.
    :raises KafkaClientError: When no broker answers.
    """
    answers = await client.ask_all(partition.topic, timeout_s=timeout_s)
    found = [leader for each in answers if (leader := _leader(each, partition)) is not None]
    if last is not None:
        found = [each for each in found if each.epoch >= last.epoch and _same_topic(each, last)]
    if not found:
        raise NoLeader(f"no broker knows of a leader of {partition.topic}-{partition.index}")
    return max(found, key=lambda each: each.epoch)


def _leader(seen: ClusterMetadata, partition: Partition) -> Leader | None:
    found = seen.partition(partition.topic, partition.index)
    if found is None or found.leader < 0:
        return None
    topic_id = seen.topics[partition.topic].topic_id
    return Leader(broker=found.leader, epoch=found.leader_epoch, topic_id=topic_id)


def _same_topic(one: Leader, other: Leader) -> bool:
    return one.topic_id is None or other.topic_id is None or one.topic_id == other.topic_id
