"""What ``fencepost watch`` knows of a cluster: what was seen last, and what to look at again."""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple

from fencepost.verbs.answers.cluster import ClusterState
from fencepost.verbs.answers.faults import FaultState
from fencepost.verbs.answers.journal import EventState
from fencepost.verbs.answers.topics import PartitionState, TopicState
from fencepost.verbs.catalogue import VERBS
from fencepost.verbs.remote import ControlConnection, Refused

MAX_EVENTS: Final = 4096
"""Events that are kept."""
MAX_PARTITIONS: Final = 200
"""Partitions that are looked at: to look at one takes the cluster a moment."""
REFRESH_BATCH: Final = 20
"""Partitions that are looked at again where nothing tells of a change: no event says that records
came."""

_CLUSTER_WIDE_KINDS: Final = frozenset(
    {"broker_changed", "partitions_added", "reset", "topic_created", "topic_deleted"}
)
"""Kinds of events that tell of more than one partition."""


class TopicPartition(NamedTuple):
    """A partition."""

    topic: str
    partition: int


class WatchState:
    """A cluster, as it was seen last.

    :param topics: Those to be watched; all of them where none is named.
    :raises Unreachable: From every method, when the cluster is gone.
    """

    def __init__(self, line: ControlConnection, topics: Sequence[str]) -> None:
        self._line = line
        self.cluster: ClusterState
        self.partitions: dict[TopicPartition, PartitionState] = {}
        self.faults: Sequence[FaultState] = ()
        self.events: deque[EventState] = deque(maxlen=MAX_EVENTS)
        self.omitted = 0
        """Partitions that are too many to be looked at."""
        self._topics = frozenset(topics)
        self._next = 0
        self.refresh_all()

    def is_watched(self, event: EventState) -> bool:
        """Whether it is about what is watched."""
        return event.topic is None or not self._topics or event.topic in self._topics

    def record(self, events: Iterable[EventState]) -> None:
        """Keep events, and look at what they are about."""
        news = list(filter(self.is_watched, events))
        self.events += news
        if any(each.kind in _CLUSTER_WIDE_KINDS for each in news):
            self.refresh_all()
            return
        if any(each.partition is None for each in news):
            self._refresh_cluster()
        names = {(each.topic, each.partition) for each in news}
        self._refresh_partitions([name for name in sorted(self.partitions) if name in names])

    def refresh_some(self) -> None:
        """Look at the cluster, its faults, and some partitions: the next ones, in turn."""
        self._refresh_cluster()
        names = sorted(self.partitions)
        self._next = self._next if self._next < len(names) else 0
        self._refresh_partitions(names[self._next : self._next + REFRESH_BATCH])
        self._next += REFRESH_BATCH

    def refresh_all(self) -> None:
        """Look at everything."""
        self._refresh_cluster()
        topics = self._line.call_list(VERBS["topics"], TopicState, {}, {})
        names = [
            TopicPartition(topic.name, index)
            for topic in topics
            if topic.name in (self._topics or {topic.name})
            for index in range(topic.partitions)
        ]
        wanted = list(islice(names, MAX_PARTITIONS))
        self.omitted = len(names) - len(wanted)
        for gone in self.partitions.keys() - set(wanted):
            del self.partitions[gone]
        self._refresh_partitions(wanted)

    def _refresh_cluster(self) -> None:
        self.cluster = self._line.call(VERBS["cluster"], ClusterState, {}, {})
        self.faults = self._line.call_list(VERBS["faults"], FaultState, {}, {})

    def _refresh_partitions(self, names: Iterable[TopicPartition]) -> None:
        for name in names:
            path = {"topic": name.topic, "partition": name.partition}
            try:
                state = self._line.call(VERBS["partition"], PartitionState, path, {})
            except Refused:  # it is gone by now
                self.partitions.pop(name, None)
            else:
                self.partitions[name] = state
