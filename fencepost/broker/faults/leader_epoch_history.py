"""Each partition as it was in its last leader epochs, for metadata that is stale on purpose.

Every start imports this module; `wrong_responses` would also import the schema of Metadata.
"""

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from fencepost.broker.metadata.image import PartitionImage, TopicImage

MAX_EPOCHS: Final = 32
"""Of a partition; older ones are dropped."""


class LeaderEpochHistory:
    """The partitions as they were at the end of their earlier leader epochs."""

    __slots__ = ("_by_topic",)

    def __init__(self) -> None:
        self._by_topic: dict[UUID, dict[int, tuple[PartitionImage, ...]]] = {}

    def record(
        self,
        before: Mapping[str, TopicImage],
        after: Mapping[str, TopicImage],
        changed: Iterable[str],
    ) -> None:
        """Keep what ends with a new image.

        :param changed: Names of topics that are new, gone or different in it.
        """
        for name in changed:
            old, new = before.get(name), after.get(name)
            if old is None or old is new:
                continue
            if new is None or new.topic_id != old.topic_id:
                self._by_topic.pop(old.topic_id, None)
                continue
            pairs = zip(old.partitions, new.partitions, strict=False)
            for index, was, now in [(i, a, b) for i, (a, b) in enumerate(pairs) if a is not b]:
                if was.leader_epoch != now.leader_epoch:
                    epochs = self._by_topic.setdefault(old.topic_id, {})
                    epochs[index] = (*epochs.get(index, ()), was)[-MAX_EPOCHS:]

    def find(self, topic_id: UUID, index: int, epoch: int) -> PartitionImage | None:
        """A partition at the end of a leader epoch; None where it is not known to have had it."""
        ended = self._by_topic.get(topic_id, {}).get(index, ())
        return next((was for was in reversed(ended) if was.leader_epoch == epoch), None)
