"""One application: a consumer's core on the virtual clock, and what it does with errors.

It reads all partitions, commits when the schedule says so, and begins again where its group has
committed. An error of its policy `none` it heeds, and goes to the divergent offset or to where the
log begins; or it ignores the error and polls again.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

from fencepost.broker.node.broker import Broker
from fencepost.broker.node.cluster import Cluster
from fencepost.client.consumer.core import ConsumerCore
from fencepost.client.consumer.errors import (
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    TruncatedPartitionError,
)
from fencepost.client.consumer.model import OffsetAndMetadata
from fencepost.client.consumer.reset_policy import Target
from fencepost.client.errors import KafkaClientError
from fencepost.client.model import Partition
from fencepost.protocol.apis import Api
from fencepost.simulation.checker import ClusterChecker
from fencepost.simulation.consumers.admitted import ABOVE_THE_END
from fencepost.simulation.consumers.checker import ConsumptionChecker
from fencepost.simulation.consumers.consumed import LogView, view_logs
from fencepost.simulation.consumers.kinds import ConsumerKind
from fencepost.simulation.consumers.messages import Message, Messages
from fencepost.simulation.environment import RequestSender
from fencepost.simulation.schedule import TOPIC

_ABOUT_LOGS: Final = frozenset({"fetch", "offset_for_leader_epoch"})
"""APIs whose answers depend on what the broker's logs hold."""
Handled = Callable[[Api, Broker], None]


class Application:
    """An application with one consumer.

    :param met: Counts the admitted exceptions that were met, by name.
    """

    def __init__(
        self,
        number: int,
        kind: ConsumerKind,
        cluster: Cluster,
        checker: ClusterChecker,
        send: RequestSender,
        met: Counter[str],
    ) -> None:
        self._cluster = cluster
        self._checker = checker
        self._met = met
        self._is_drafted = kind.is_drafted
        self._config = kind.config(number)
        self.partitions = [
            Partition(topic=TOPIC, index=index) for index in range(len(checker.partitions))
        ]
        self.name = f"a{number}"
        self._watch = ConsumptionChecker(
            self.name,
            checker,
            met,
            is_drafted=kind.is_drafted,
            resets=self._config.reset_policy.resets,
        )
        self.messages = Messages(
            cluster,
            send,
            f"application-{number}",
            self._config.draft,
            look=self._look,
            answered=self._answered,
            failed=self._failed,
        )
        self._core = self._start()

    def _start(self) -> ConsumerCore:
        brokers = self._cluster.brokers
        bootstrap = {broker: (f"broker-{broker}", 0) for broker in brokers}
        core = ConsumerCore(
            self._config,
            bootstrap,
            self._cluster.scheduler.wall_ms,
            report=self._watch.reports,
        )
        core.assign(self.partitions)
        return core

    @property
    def _now(self) -> int:
        return self._cluster.scheduler.now_ms()

    # -- what the schedule lets it do -----------------------------------------------------------

    def poll(self, *, heeds: bool) -> None:
        """Take records, or the error that there is instead.

        :param heeds: Whether the error is acted on.
        """
        self.messages.expire(self._now)
        try:
            records = self._core.poll(self._now)
        except (OffsetOutOfRangeError, NoOffsetForPartitionError) as error:
            self._see_error(error, heeds=heeds)
        else:
            for partition, found in records.by_partition.items():
                for record in found:
                    self._watch.gets(partition.index, record)
        self._turn()

    def save(self) -> None:
        """Commit the positions that are valid."""
        offsets: dict[Partition, OffsetAndMetadata] = {}
        for partition in self.partitions:
            position = self._core.position(partition)
            if position is not None:
                self._watch.saves(partition.index, position)
                offsets[partition] = position
        self._core.commit(offsets)
        self._turn()

    def restart(self) -> None:
        """End, and begin again."""
        self.messages.drop_all()
        self._watch.restart()
        self._core = self._start()

    def position(self, index: int) -> int | None:
        """Where it goes on in a partition; None while that is not known."""
        found = self._core.position(self.partitions[index])
        return None if found is None else found.offset

    def is_at(self, index: int, high_watermark: int) -> bool:
        """Whether it has read a partition to the end, or is where it can't see that it is not."""
        found = self._core.position(self.partitions[index])
        if found is None:
            return False
        if found.offset > high_watermark and found.leader_epoch is None and self._is_drafted:
            self._met[ABOVE_THE_END.name] += 1
            return True
        return found.offset == high_watermark

    # -- errors ---------------------------------------------------------------------------------

    def _see_error(
        self, error: OffsetOutOfRangeError | NoOffsetForPartitionError, *, heeds: bool
    ) -> None:
        if isinstance(error, NoOffsetForPartitionError):
            for partition in sorted(error.partitions, key=_index):
                if heeds:
                    self._go_to_start(partition)
            return
        offsets = _divergent_offsets(error)
        for partition in sorted(error.offsets, key=_index):
            if isinstance(error, (LogTruncationError, TruncatedPartitionError)):
                at = offsets.get(partition)
                self._watch.raises(partition.index, None if at is None else at.offset)
                if not heeds:
                    self._watch.ignores(partition.index)
                elif at is not None:
                    self._watch.seeks(partition.index, at.offset)
                    self._core.seek(partition, at)
            if heeds and offsets.get(partition) is None:
                self._go_to_start(partition)

    def _go_to_start(self, partition: Partition) -> None:
        self._watch.resets(partition.index)
        self._core.reset(partition, Target.LOG_START)

    # -- the consumer's requests ----------------------------------------------------------------

    def _turn(self) -> None:
        now = self._now
        for request in self._core.turn(now).requests:
            self._watch.sends(request.message)
            self.messages.add(request, now)

    def _look(self, api: Api, broker: Broker) -> dict[int, LogView]:
        return view_logs(broker, self._checker) if api.name in _ABOUT_LOGS else {}

    def _answered(self, message: Message) -> None:
        request = message.request
        self._watch.takes(
            request.api.name, request.message, message.answer, message.logs, message.served
        )
        self._core.answered(request, message.answer, self._now)
        self._turn()

    def _failed(self, message: Message, error: KafkaClientError) -> None:
        self._core.failed(message.request, error, self._now)


def _index(partition: Partition) -> int:
    return partition.index


def _divergent_offsets(error: OffsetOutOfRangeError) -> dict[Partition, OffsetAndMetadata]:
    """Where the error says that the logs diverge, as far as it does."""
    if isinstance(error, LogTruncationError):
        return dict(error.divergent_offsets)
    if isinstance(error, TruncatedPartitionError):
        return {
            partition: OffsetAndMetadata(offset=offset)
            for partition, offset in error.truncated_offsets.items()
            if offset is not None
        }
    return {}
