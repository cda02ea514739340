"""One broker's replica of one partition, as it was after the last step."""

from fencepost.broker.replica import Replica
from fencepost.simulation.history import Batches
from fencepost.simulation.schedule import TOPIC
from fencepost.storage.log import Log


class Seen:
    """One broker's replica of one partition, as it was after the last step."""

    __slots__ = ("end", "epoch", "high_watermark", "key", "log", "model", "replica", "where")

    def __init__(self, broker_id: int, index: int) -> None:
        self.key = (TOPIC, index)
        self.where = f"p{index} on broker {broker_id}"
        self.replica: Replica | None = None
        self.log: Log | None = None
        self.model = Batches()
        """What its log holds; it is known while its broker is down as well."""
        self.epoch = -1
        self.end = 0
        self.high_watermark = 0

    def lose(self) -> None:
        """The broker has no replica, at least not any more."""
        if self.replica is not None:
            self.replica = self.log = None
            self.model.begin_at(0)
            self.end = self.high_watermark = 0

    def is_as_before(self, replica: Replica) -> bool:
        """Whether nothing has happened to it."""
        return (
            replica is self.replica
            and replica.high_watermark == self.high_watermark
            and replica.log.log_end_offset == self.end
            and replica.leader_epoch == self.epoch
            and replica.log is self.log
        )

    def starts_anew(self, log: Log) -> bool:
        """Whether the log has dropped all that was seen, and begins further on."""
        start = log.local_log_start_offset
        return start >= log.log_end_offset > self.end and log.segments()[0].base_offset > self.end
