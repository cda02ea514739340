"""A cluster without sockets or event loop: the test sends requests and moves its clock.

Requests and answers are encoded and decoded on the way, so that handlers see the fields of the
request's version only, and tests those of the answer's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.context import Context, Peer
from fencepost.broker.core.outcomes import BlockingResponse, HangUp, ThrottledResponse
from fencepost.broker.core.scheduler import ManualClock, advance
from fencepost.broker.core.waits import Wait
from fencepost.broker.data_dir.directory import DataDir
from fencepost.broker.data_dir.persistence import DataDirPersistence
from fencepost.broker.metadata.image import Address, PartitionImage
from fencepost.broker.network.links import Arrive, Link, Transport, deliver_now
from fencepost.broker.node.broker import Broker
from fencepost.broker.node.cluster import (
    Cluster,
    ClusterOptions,
    Conformance,
    MakeObjectStore,
)
from fencepost.broker.replication.replica import Replica
from fencepost.protocol import codec, frames
from fencepost.protocol.apis import BY_NAME, Api
from fencepost.protocol.codec.drafts import Draft
from fencepost.protocol.listener_text import PLAINTEXT
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import iter_headers
from fencepost.storage.log.leader_epoch_cache import EpochEntry

Message: TypeAlias = Any
"""A request or response of any API."""
NEWEST: Final = -1
"""As a version: the newest that is served."""


def versions(api_name: str, first: int = 0) -> range:
    """Every version of an API that is served.

    :param first: Those below it are left out.
    """
    api = BY_NAME[api_name]
    return range(max(first, api.min_version), api.max_version + 1)


class Asked:
    """A request that was sent, and its answer as soon as there is one."""

    def __init__(self) -> None:
        self.done = False
        self.hung_up = False
        self.until: BlockingResponse | None = None
        """Until when its connection is held up, although it is answered."""
        self._response: Message = None

    @property
    def response(self) -> Message:
        assert self.done, "no answer yet"
        return self._response

    def take(self, response: Message) -> None:
        assert not self.done, "answered twice"
        self.done = True
        self._response = response


class SettableClock(ManualClock):
    """A manual clock whose time of day can be set, as that of a machine; its timers go on."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead_ms = 0
        """How far the time of day is ahead of what it would be."""

    def wall_ms(self) -> int:
        return self.now_ms() + self.ahead_ms


class Driver:
    """A cluster with its clock.

    :param dialect: What the cluster serves, and all clients of this driver speak.
    """

    def __init__(
        self,
        brokers: int = 3,
        configs: Mapping[str, str] | None = None,
        conformance: Conformance = Conformance.KIP,
        *,
        dialect: Draft | None = None,
        broker_ids: Sequence[int] = (),
        other_addresses: Sequence[Sequence[Address]] = (),
        controller_ids: Sequence[int] = (),
        controller_address: Address | None = None,
        racks: Sequence[str] = (),
        broker_configs: Mapping[int, Mapping[str, str]] | None = None,
        features: Mapping[str, int] | None = None,
        api_max: Mapping[str, int] | None = None,
        carry: Transport = deliver_now,
        data_dir: DataDir | None = None,
        log_dirs: int = 1,
        topics: Sequence[NewTopic] = (),
        strict_configs: bool = False,
        seed: int = 0,
        make_objects: MakeObjectStore | None = None,
        clock: ManualClock | None = None,
        max_log_bytes: int | None = None,
    ) -> None:
        self.clock = clock or ManualClock()
        self.listener = PLAINTEXT
        """Which one requests reach."""
        addresses = (
            Address(host="127.0.0.1", port=9091 + n, advertised_host=f"broker-{broker_id}")
            for n, broker_id in enumerate(broker_ids or range(1, brokers + 1), start=1)
        )
        options = ClusterOptions(
            addresses=tuple(addresses),
            other_addresses=tuple(map(tuple, other_addresses)),
            broker_ids=tuple(broker_ids),
            controller_ids=tuple(controller_ids),
            controller_address=controller_address,
            configs=configs or {},
            racks=tuple(racks),
            broker_configs=broker_configs or {},
            features=features or {},
            log_dirs=log_dirs,
            conformance=conformance,
            dialect=dialect,
            api_max=api_max or {},
            topics=tuple(topics),
            strict_configs=strict_configs,
            seed=seed,
        )
        self.cluster = Cluster(
            options,
            self.clock,
            carry,
            make_persistence=None if data_dir is None else partial(DataDirPersistence, data_dir),
            make_objects=make_objects,
            max_log_bytes=max_log_bytes,
        )

    def send(
        self, broker_id: int, api_name: str, version: int, request: Message, client: str = "c1"
    ) -> Asked:
        """Send a request; everything that is due happens before this returns."""
        api, asked = BY_NAME[api_name], Asked()
        version = api.max_version if version == NEWEST else version

        def answered(response: object) -> None:
            if isinstance(response, HangUp):
                asked.hung_up = True
                return
            if isinstance(response, ThrottledResponse):
                asked.until = response.until
                response = response.response
            if response is None:
                asked.take(None)
                return
            sent = b"".join(codec.encode_response(api, version, 1, response, dialect))[4:]
            body = codec.response_body_offset(api, version)
            asked.take(codec.decode_response(api, version, sent, body, dialect))

        dialect = self.cluster.options.dialect
        frame = b"".join(codec.encode_request(api, version, 1, client, request, dialect))
        self.handle(broker_id, api, version, frame, answered, client)
        return asked

    def handle(
        self,
        broker_id: int,
        api: Api,
        version: int,
        frame: bytes,
        answered: Callable[[object], None],
        client: str = "c1",
    ) -> None:
        """Let a broker handle a request's frame; ``answered`` is called with its response.

        Everything that is due happens before this returns.
        """
        broker, data = self.broker(broker_id), bytearray(frame[4:])
        dialect = self.cluster.options.dialect
        peer = Peer(
            connection_id=client,
            host="192.0.2.1",
            listener=self.listener,
            listener_host="203.0.113.7",
            dialect=dialect,
        )
        ctx = Context(
            broker=broker,
            version=version,
            client_id=client,
            peer=peer,
            now_ms=self.clock.now_ms(),
            wall_ms=self.clock.wall_ms(),
        )
        body = frames.skip_tags(data, frames.read_header(data), api)
        answer = broker.handle(api, ctx, codec.decode_request(api, version, data, body, dialect))
        if isinstance(answer, Wait):
            answer.then(answered)
        else:
            answered(answer)
        self.cluster.scheduler.run_due()

    def ask(
        self, broker_id: int, api_name: str, version: int, request: Message, client: str = "c1"
    ) -> Message:
        """Send a request that is answered without waiting; its answer."""
        return self.send(broker_id, api_name, version, request, client).response

    def advance(self, by_ms: int) -> None:
        """Let time pass, and all that is due meanwhile happen."""
        advance(self.cluster.scheduler, self.clock, by_ms)

    def broker(self, broker_id: int) -> Broker:
        return self.cluster.brokers[broker_id]

    def replica(self, broker_id: int, topic: str, index: int = 0) -> Replica:
        return self.broker(broker_id).replicas[topic, index]

    def partition(self, topic: str, index: int = 0) -> PartitionImage:
        """Its state in the controller's image."""
        return self.cluster.controller.partition(topic, index)

    def leader(self, topic: str, index: int = 0) -> Replica:
        found = self.partition(topic, index)
        return self.replica(found.leader, topic, index)

    def elect(self, topic: str, index: int, leader: int) -> None:
        self.cluster.controller.elect(topic, index, leader)
        self.cluster.scheduler.run_due()

    def hold(self, *broker_ids: int) -> None:
        """The replicas that these brokers have now fetch nothing more."""
        for broker_id in broker_ids:
            for topic, index in self.broker(broker_id).replicas:
                self.broker(broker_id).replica_manager.hold(topic, index, None)
        self.cluster.scheduler.run_due()

    def release(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            for topic, index in list(self.broker(broker_id).replica_manager.holds):
                self.broker(broker_id).replica_manager.release(topic, index)
        self.cluster.scheduler.run_due()


class ManualTransport:
    """Delivers messages at once, or keeps them for the test to deliver."""

    def __init__(self) -> None:
        self.keeps = False
        self.kept: deque[tuple[Link, Arrive]] = deque()

    def __call__(self, link: Link, arrive: Arrive) -> None:
        if self.keeps:
            self.kept.append((link, arrive))
        else:
            arrive()

    def deliver(self, count: int = 1) -> list[Link]:
        """Deliver the oldest messages; the messages that these cause are kept."""
        delivered = []
        for _ in range(count):
            link, arrive = self.kept.popleft()
            arrive()
            delivered.append(link)
        return delivered


def content(replica: Replica, offset: int | None = None) -> list[tuple[int, int, bytes | None]]:
    """Offset, leader epoch and value of every record, from the log start or an offset on."""
    log = replica.log
    found = []
    offset = log.log_start_offset if offset is None else offset
    while offset < log.log_end_offset:
        read = log.read(
            offset, max_bytes=1 << 20, upper_bound=log.log_end_offset, min_one_batch=True
        )
        for buffer in read.buffers:
            for at, header in iter_headers(buffer):
                records = iter_records(buffer, at)
                found += [(r.offset, header.partition_leader_epoch, r.value) for r in records]
                offset = header.last_offset + 1
    return found


def written_epochs(replica: Replica) -> list[EpochEntry]:
    """The epochs with records: a follower learns of another epoch with its first record."""
    entries = replica.log.epoch_entries()
    return [entry for entry in entries if entry.start_offset < replica.log.log_end_offset]


def assert_same(driver: Driver, topic: str = "t") -> None:
    """All replicas have the same records and epochs, and the high watermark is their end."""
    leader = driver.leader(topic)
    for broker_id in leader.assigned:
        replica = driver.replica(broker_id, topic)
        assert content(replica) == content(leader)
        assert written_epochs(replica) == written_epochs(leader)
        assert replica.high_watermark == leader.high_watermark == leader.log.log_end_offset
