"""New topics and partitions: their names, counts and assignments are checked and planned."""

import random
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from fencepost.broker.controller.placement import PlacementError, place_replicas
from fencepost.broker.core.errors import ControllerError
from fencepost.broker.metadata.image import (
    NO_LEADER,
    ClusterImage,
    PartitionImage,
    TopicImage,
)
from fencepost.protocol.errors import ErrorCode

_LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")
MAX_NAME: Final = 249
MAX_PARTITIONS_PER_REQUEST: Final = 10_000
DEFAULT_COUNT: Final = -1
"""As many as the controller's configs say."""


class NewTopic(Struct, frozen=True, kw_only=True):
    """A topic that is to be: counts, or assignments, not both.

    In a broker's request to the controller a count may be `DEFAULT_COUNT`.
    """

    name: str
    partitions: int = 1
    replication_factor: int = 1
    assignments: tuple[tuple[int, ...], ...] | None = None
    """Broker ids of each partition in order of index, the preferred leader first."""
    configs: Mapping[str, str]


def topic_name_problem(name: str) -> str | None:
    """Why a topic can't have this name, in Kafka's words; None when it can."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME:
        return f"the length of '{name}' is longer than the max allowed length {MAX_NAME}"
    if not _LEGAL_NAME.fullmatch(name):
        return (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return None


class TopicPlanner:
    """Plans for a cluster as it is in one image; nothing is changed by them."""

    def __init__(self, image: ClusterImage, rng: random.Random) -> None:
        self.image = image
        """The cluster that it plans for."""
        self._rng = rng

    def plan_topic(self, topic: NewTopic) -> TopicImage:
        """What a topic would look like; nothing is changed.

        :raises ControllerError: When the topic can't be, with Kafka's code and words.
        """
        self.check_new_name(topic.name)
        if topic.assignments is not None:
            if not topic.assignments:
                raise ControllerError(
                    ErrorCode.INVALID_PARTITIONS, "A topic has one partition at least."
                )
            assignments = self.check_assignments(topic.assignments)
        else:
            factor = topic.replication_factor
            try:
                assignments = self._placed(topic.partitions, factor)
            except PlacementError as error:
                text = f"Unable to replicate the partition {factor} time(s): {error}"
                raise ControllerError(ErrorCode.INVALID_REPLICATION_FACTOR, text) from error
        return TopicImage(
            name=topic.name,
            topic_id=UUID(int=self._rng.getrandbits(128) or 1),
            partitions=self._new_partitions(assignments),
        )

    def plan_partitions(
        self, name: str, count: int, assignments: Sequence[Sequence[int]] | None
    ) -> TopicImage:
        """A topic with partitions added up to ``count``; nothing is changed.

        :raises ControllerError: When it can't be, with Kafka's code and words.
        """
        topic = self.image.topics.get(name)
        if topic is None:
            raise ControllerError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                "This server does not host this topic-partition.",
            )
        have = len(topic.partitions)
        _check_growth(name, have, count)
        if assignments is None:
            factor = len(topic.partitions[0].replicas)
            try:
                added = self._placed(count - have, factor)
            except PlacementError as error:
                raise ControllerError(ErrorCode.INVALID_REPLICATION_FACTOR, str(error)) from error
        else:
            if len(assignments) != count - have:
                raise ControllerError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"Attempted to add {count - have} additional partition(s), but only "
                    f"{len(assignments)} assignment(s) were specified.",
                )
            factor = len(topic.partitions[0].replicas)
            added = self.check_assignments(tuple(map(tuple, assignments)), factor, have)
        return replace(topic, partitions=topic.partitions + self._new_partitions(added))

    def check_new_name(self, name: str) -> None:
        """Whether a new topic may have this name.

        :raises ControllerError: When it is illegal, taken, or like another but for dots.
        """
        problem = topic_name_problem(name)
        if problem is not None:
            raise ControllerError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}"
            )
        if name in self.image.topics:
            raise ControllerError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        like = name.replace(".", "_")
        if like == name and "_" not in name:
            return
        other = self._by_likeness.get(like)
        if other is not None:
            raise ControllerError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topic: {other}",
            )

    @cached_property
    def _by_likeness(self) -> dict[str, str]:
        """The first topic of each name, dots taken for underscores."""
        names: dict[str, str] = {}
        for name in self.image.topics:
            names.setdefault(name.replace(".", "_"), name)
        return names

    def _new_partitions(self, assignments: Sequence[tuple[int, ...]]) -> tuple[PartitionImage, ...]:
        """One for each assignment; the same for several, of which there are few different ones."""
        made: dict[tuple[int, ...], PartitionImage] = {}
        for replicas in assignments:
            if replicas not in made:
                made[replicas] = self._new_partition(replicas)
        return tuple(made[replicas] for replicas in assignments)

    def _new_partition(self, replicas: tuple[int, ...]) -> PartitionImage:
        online = tuple(filter(self._is_online, replicas))
        return PartitionImage(
            replicas=replicas, isr=online, leader=online[0] if online else NO_LEADER
        )

    def _placed(self, partitions: int, replication_factor: int) -> tuple[tuple[int, ...], ...]:
        if replication_factor <= 0:
            raise ControllerError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        if partitions <= 0:
            raise ControllerError(
                ErrorCode.INVALID_PARTITIONS,
                "Number of partitions was set to an invalid non-positive value.",
            )
        if partitions > MAX_PARTITIONS_PER_REQUEST:
            raise ControllerError(
                ErrorCode.POLICY_VIOLATION,
                "Excessively large number of partitions per request.",
            )
        return tuple(
            place_replicas(
                self.image.brokers,
                partitions=partitions,
                replication_factor=replication_factor,
                draw=self._rng.randrange,
            )
        )

    def check_assignments(
        self,
        assignments: tuple[tuple[int, ...], ...],
        factor: int | None = None,
        first_partition: int = 0,
    ) -> tuple[tuple[int, ...], ...]:
        """The same assignments, which are right each and together.

        :param factor: How many replicas each must have; None is as many as the first.
        :param first_partition: The index of the partition that the first one is for.
        :raises ControllerError: When an assignment is not right.
        """
        if factor is None:
            factor = len(assignments[0]) if assignments else 0
        for index, replicas in enumerate(assignments, start=first_partition):
            problem = self._assignment_problem(replicas, factor)
            if problem is None and not any(map(self._is_online, replicas)):
                problem = (
                    "All brokers specified in the manual partition assignment for partition "
                    f"{index} are fenced or in controlled shutdown."
                )
            if problem is not None:
                raise ControllerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
        return assignments

    def _is_online(self, broker_id: int) -> bool:
        broker = self.image.brokers.get(broker_id)
        return broker is not None and not broker.fenced

    def _assignment_problem(self, replicas: tuple[int, ...], factor: int) -> str | None:
        if not replicas:
            return "The manual partition assignment includes an empty replica list."
        before = None
        for broker_id in sorted(replicas):  # of several problems Kafka names the first of these
            if broker_id not in self.image.brokers:
                return (
                    f"The manual partition assignment includes broker {broker_id}, but no such "
                    "broker is registered."
                )
            if broker_id == before:
                return (
                    f"The manual partition assignment includes the broker {broker_id} more than "
                    "once."
                )
            before = broker_id
        if len(replicas) != factor:
            return (
                f"The manual partition assignment includes a partition with {len(replicas)} "
                f"replica(s), but this is not consistent with previous partitions, which have "
                f"{factor} replica(s)."
            )
        return None


def _check_growth(name: str, have: int, count: int) -> None:
    if count == have:
        raise ControllerError(
            ErrorCode.INVALID_PARTITIONS, f"Topic already has {have} partition(s)."
        )
    if count < have:
        raise ControllerError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {name} currently has {have} partition(s); {count} would not be an "
            "increase.",
        )
    if count - have > MAX_PARTITIONS_PER_REQUEST:
        raise ControllerError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )
