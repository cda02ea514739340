"""What a broker keeps when its process ends: its replicas' logs and their high watermarks."""

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from fencepost.broker.image import ClusterImage, TopicImage
from fencepost.broker.replica import Replica
from fencepost.storage.config import LogConfig
from fencepost.storage.log import Log

MakeLog = Callable[[str, LogConfig], Log]
"""Makes a log by its name (``topic-0``) and configs."""


class _Kept(NamedTuple):
    topic_id: UUID
    log: Log
    high_watermark: int


class Disk:
    """One broker's logs while no replica has them."""

    def __init__(self, make_log: MakeLog) -> None:
        self._make_log = make_log
        self._kept: dict[tuple[str, int], _Kept] = {}
        self.discard: Callable[[list[Log]], None] = _let_go
        """Takes the logs that are gone; the edge sets it, to free them bit by bit."""

    def put(self, key: tuple[str, int], replica: Replica, *, crash: bool) -> None:
        """Keep a replica's log.

        :param crash: Whether its high watermark was written at the last checkpoint only.
        """
        high_watermark = replica.checkpoint if crash else replica.high_watermark
        self._kept[key] = _Kept(replica.topic_id, replica.log, high_watermark)

    def take(self, topic: TopicImage, index: int, config: LogConfig) -> tuple[Log, int]:
        """A replica's log and high watermark; a new log where there is none of this topic id."""
        kept = self._kept.pop((topic.name, index), None)
        if kept is not None:
            if kept.topic_id == topic.topic_id:
                return kept.log, kept.high_watermark
            self.discard([kept.log])
        return self._make_log(f"{topic.name}-{index}", config), 0

    def drop(self, topic: str, index: int) -> None:
        """Lose a log that no replica has; it may not be there."""
        kept = self._kept.pop((topic, index), None)
        if kept is not None:
            self.discard([kept.log])

    def forget_all_but(self, image: ClusterImage) -> None:
        """Lose the logs of topics that were deleted while the broker was down."""
        for (topic, index), kept in list(self._kept.items()):
            if kept.topic_id not in image.names:
                self.drop(topic, index)

    def clear(self) -> None:
        """Lose everything that no replica has."""
        kept = [each.log for each in self._kept.values()]
        self._kept.clear()
        self.discard(kept)

    def look(self, topic: str, index: int) -> Log | None:
        """The log of a replica whose broker is down."""
        kept = self._kept.get((topic, index))
        return None if kept is None else kept.log


def _let_go(_logs: list[Log]) -> None:
    """Nobody frees logs bit by bit: they go at once, with the last reference."""
