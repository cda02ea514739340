"""Simulated producers inside the core, and the answers that they get.

Where the topic checks expected offsets (KIP-27), two producers compete for each partition. Each
states where it believes the log to end, learns better when it is refused, and tries once more.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, cast

from msgspec import Struct

from fencepost.broker.core.waits import Wait
from fencepost.broker.node.broker import Broker
from fencepost.broker.node.cluster import Cluster
from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.expected_offsets import parse_mismatch
from fencepost.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from fencepost.protocol.records import (
    NO_LEADER_EPOCH,
    BatchHeader,
    Record,
    build_batch,
    read_header,
    stamp,
)
from fencepost.simulation import client_invariants as must
from fencepost.simulation.checker import ClusterChecker
from fencepost.simulation.client_requests import ClientRequests
from fencepost.simulation.environment import RunEnvironment
from fencepost.simulation.invariants import require
from fencepost.simulation.schedule import ACKS_ALL, TOPIC
from fencepost.simulation.setup import NO_CONSUMERS, Setup

_PRODUCERS: Final = 5
_FIRST_PRODUCER_ID: Final = 1 << 40
"""Beside transactions, whose producers have what the controller gives out, from 0 on."""
_COMPETITORS: Final = 2
_MOST_RECORDS: Final = 3
_TIMESTAMP: Final = 1_700_000_000_000
_ATTEMPTS: Final = 2
_KNOWN_BATCHES: Final = 4096
"""Those of a few seeds: seeds number their batches alike."""
_CODECS: Final = (Codec.NONE, Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)


class _Publish(Struct, frozen=True):
    """One request of one batch, or of two where expected offsets are checked."""

    index: int
    broker_id: int
    acks: str
    competitor: int
    batches: Sequence[bytearray]
    crcs: Sequence[int]
    before_last: int
    """How many records there are before the last batch."""
    next_offset: int
    """Where the log is believed to end then, exclusive."""
    lacked_replicas: bool
    """Whether its leader had fewer than ``min.insync.replicas`` in sync when it was sent."""


class _Answer(Struct, frozen=True):
    """What the producer of a publish was told."""

    publish: _Publish
    error: ErrorCode | None
    """None where it was told nothing yet."""
    base_offset: int


class Producers:
    """All producers of one cluster."""

    def __init__(
        self, cluster: Cluster, watch: ClusterChecker, setup: Setup, stage: RunEnvironment
    ) -> None:
        self._cluster = cluster
        self._watch = watch
        self._is_realistic = stage.is_realistic
        self._is_timed = stage.is_realistic or setup.consumers != NO_CONSUMERS
        """Whether records bear the time: consumers look offsets up by it."""
        self._requests = [
            ClientRequests(stage.send, f"producer-{n + 1}") for n in range(_COMPETITORS)
        ]
        first_id = _FIRST_PRODUCER_ID if setup.has_transactions else 0
        self._first_id = first_id if setup.is_tiered else None
        """With a tier producers take turns. Without one their state is not checked."""
        self._expects = setup.checks_offsets
        self._believed: dict[tuple[int, int], int] = {}
        """Where each competitor believes a partition's log to end."""
        self._partitions = setup.partitions
        self._answers: list[_Answer] = []
        """Of acks=all, in this step."""
        self._produced = 0
        self.last_error: ErrorCode = ErrorCode.NONE
        """Of the last answer."""

    def produce(self, index: int, broker_id: int, acks: str, count: int) -> None:
        """Send so many requests, each with one to three records in a batch."""
        broker = self._cluster.brokers[broker_id]
        for _ in range(count):
            competitor = (self._produced + 1) % _COMPETITORS
            for _ in range(_ATTEMPTS if self._expects else 1):
                self._send(broker, [self._prepared(index, broker_id, acks, competitor)])
                if self.last_error != ErrorCode.EXPECTED_OFFSET_MISMATCH:
                    break

    def produce_each(self, broker_id: int, acks: str) -> None:
        """Send one request with a batch for each partition."""
        competitor = (self._produced + 1) % _COMPETITORS
        indexes = range(self._partitions)
        publishes = [self._prepared(index, broker_id, acks, competitor) for index in indexes]
        self._send(self._cluster.brokers[broker_id], publishes)

    def check_answers(self) -> None:
        """Hold the cluster to the answers of acks=all that came since; the logs are looked at."""
        if self._answers:
            for answer in self._answers:
                self._check_answer(answer)
            self._answers.clear()

    def _check_answer(self, answer: _Answer) -> None:
        publish, error = answer.publish, answer.error
        crc = publish.crcs[-1]
        where = f"p{publish.index} on broker {publish.broker_id}"
        appended = crc in self._watch.partitions[publish.index].appended
        require(
            must.too_small_an_isr_is_told_before_the_append,
            where,
            error,
            appended,
            publish.lacked_replicas,
        )
        if error is ErrorCode.NONE:
            last = answer.base_offset + publish.before_last
            self._watch.record_acknowledged(publish.broker_id, publish.index, last, crc)

    def _prepared(self, index: int, broker_id: int, acks: str, competitor: int) -> _Publish:
        expected = self._believed.get((index, competitor), 0) if self._expects else None
        offset = expected or 0
        timestamp = self._cluster.scheduler.wall_ms() if self._is_timed else _TIMESTAMP
        batches: list[bytearray] = []
        crcs: list[int] = []
        count, size = 1, 0
        while len(batches) < count:
            self._produced += 1
            number = self._produced
            if expected is not None and not batches:
                count += number % 4 == 0
            codec = _CODECS[number % len(_CODECS)] if self._is_realistic else Codec.NONE
            batch, header = _numbered_batch(number, timestamp, codec, self._first_id)
            batches.append(bytearray(batch))
            crcs.append(header.crc)
            size = header.record_count
            if expected is not None:
                stamp(batches[-1], 0, header, base_offset=offset, leader_epoch=NO_LEADER_EPOCH)
                self._watch.partitions[index].expected[header.crc] = offset
                offset += size
        before_last = 0 if count == 1 else offset - size - (expected or 0)
        lacked = self._lacks_replicas(broker_id, index)
        return _Publish(
            index, broker_id, acks, competitor, batches, crcs, before_last, offset, lacked
        )

    def _lacks_replicas(self, broker_id: int, index: int) -> bool:
        """Whether a broker leads a partition with fewer in sync than acks=all needs."""
        replica = self._cluster.brokers[broker_id].replicas.get((TOPIC, index))
        if replica is None or not replica.is_leader:
            return False
        return self._watch.lacks_replicas(replica)

    def _send(self, broker: Broker, publishes: Sequence[_Publish]) -> None:
        def answered(answer: object) -> None:
            found = cast(ProduceResponse, answer).responses[0].partition_responses
            by_index = {each.index: each for each in found}
            for publish in publishes:
                self._see_answer(publish, by_index[publish.index])

        acks = -1 if publishes[0].acks == ACKS_ALL else 1
        records = {
            p.index: p.batches[0] if len(p.batches) == 1 else b"".join(p.batches) for p in publishes
        }
        sender = self._requests[publishes[0].competitor]
        answer = sender.produce(broker, records, acks=acks)
        if isinstance(answer, Wait):
            self.last_error = ErrorCode.REQUEST_TIMED_OUT
            if acks < 0:
                self._answers += [_Answer(publish, None, -1) for publish in publishes]
            answer.then(answered)
        else:
            answered(answer)

    def _see_answer(self, publish: _Publish, response: PartitionProduceResponse) -> None:
        self.last_error = ErrorCode(response.error_code)
        who = (publish.index, publish.competitor)
        if response.error_code == ErrorCode.EXPECTED_OFFSET_MISMATCH:
            self._watch.partitions[publish.index].refused.update(publish.crcs)
            text = response.record_errors[0].batch_index_error_message or ""
            mismatch = parse_mismatch(text)
            assert mismatch is not None, text
            self._believed[who] = mismatch.upcoming
        elif not response.error_code and self._expects:
            self._believed[who] = publish.next_offset
        if publish.acks == ACKS_ALL:
            self._answers.append(_Answer(publish, self.last_error, response.base_offset))


@lru_cache(_KNOWN_BATCHES)
def _numbered_batch(
    number: int, timestamp: int, codec: Codec, first_id: int | None
) -> tuple[bytes, BatchHeader]:
    """A batch of one to three records as its producer makes it, at offset 0.

    :param first_id: Of its producers, which take turns, each time in a new epoch, where any
        sequence may begin; None where it has no producer id.
    """
    value = b"%d" % number
    records = [Record(i, timestamp, None, value) for i in range(number % _MOST_RECORDS + 1)]
    if first_id is None:
        batch = build_batch(records, codec=codec)
    else:
        epoch, producer_id = divmod(number, _PRODUCERS)
        batch = build_batch(
            records,
            codec=codec,
            producer_id=first_id + producer_id,
            producer_epoch=epoch,
            base_sequence=0,
        )
    return bytes(batch), read_header(batch)
