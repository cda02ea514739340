"""Changes of existing partitions by administrators: leaders (KIP-460) and replicas (KIP-455).

Every partition of a request is judged by itself, by the image before the request: it changes, stays
as it is, or has an error. All changes of a request are in one new image of the cluster.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from fencepost.broker.controller import reassignment
from fencepost.broker.controller.elections import ElectionType, change_partition
from fencepost.broker.metadata.image import PartitionImage
from fencepost.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from fencepost.broker.controller.controller import Controller

Key: TypeAlias = tuple[str, int]
"""Topic name and partition index."""


class PartitionError(Struct, frozen=True, kw_only=True):
    """Why a partition is not changed, by Kafka's code and words."""

    code: ErrorCode
    message: str | None = None


class Reassignment(Struct, frozen=True, kw_only=True):
    """Who is to hold a partition."""

    topic: str
    index: int
    target: tuple[int, ...] | None
    """Broker ids, the preferred leader first; None cancels what is in progress."""


_NOT_NEEDED = PartitionError(
    code=ErrorCode.ELECTION_NOT_NEEDED,
    message="Leader election not needed for topic partition.",
)
_NOT_AVAILABLE = {
    ElectionType.PREFERRED: PartitionError(
        code=ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        message="The preferred leader was not available.",
    ),
    ElectionType.UNCLEAN: PartitionError(
        code=ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        message="Eligible topic partition leaders are not available.",
    ),
}


class PartitionAdmin:
    """Elections and reassignments at a controller."""

    def __init__(self, controller: "Controller") -> None:
        self._controller = controller

    def elect_leaders(
        self, partitions: Iterable[Key], election: ElectionType
    ) -> list[PartitionError | None]:
        """Hold elections; None where a leader was elected, in the order of ``partitions``.

        :param election: ``PREFERRED`` or ``UNCLEAN``; an unclean one is held only where there is
            no leader, and prefers a replica that may lead cleanly.
        """
        return self._apply((key, self._elected(*key, election)) for key in partitions)

    def alter_reassignments(
        self, asked: Sequence[Reassignment], *, keep_factor: bool
    ) -> list[PartitionError | None]:
        """Begin and cancel reassignments; None where that was done, in the order of ``asked``.

        :param keep_factor: Whether a partition must have as many replicas afterwards as before.
        """
        return self._apply(
            ((one.topic, one.index), self._reassigned(one, keep_factor)) for one in asked
        )

    def _apply(
        self, outcomes: Iterable[tuple[Key, PartitionImage | PartitionError]]
    ) -> list[PartitionError | None]:
        problems: list[PartitionError | None] = []
        changes: dict[Key, PartitionImage] = {}
        for key, outcome in outcomes:
            if isinstance(outcome, PartitionError):
                problems.append(outcome)
                continue
            problems.append(None)
            if outcome is not self._controller.image.partition(*key):
                changes[key] = outcome
        if changes:
            self._controller.update_partitions(changes)
        return problems

    def _elected(
        self, topic: str, index: int, election: ElectionType
    ) -> PartitionImage | PartitionError:
        partition = self._controller.image.partition(topic, index)
        if partition is None:
            known = topic in self._controller.image.topics
            what = f"partition as {topic}-{index}" if known else f"topic as {topic}"
            return _unknown(f"No such {what}")
        preferred = election is ElectionType.PREFERRED
        leads = partition.leader == partition.replicas[0] if preferred else partition.leader >= 0
        if leads:
            return _NOT_NEEDED
        after = change_partition(
            partition, self._controller.election_rules(topic), election=election
        )
        return _NOT_AVAILABLE[election] if after is partition else after

    def _reassigned(
        self, asked: Reassignment, keep_factor: bool
    ) -> PartitionImage | PartitionError:
        partition = self._controller.image.partition(asked.topic, asked.index)
        if partition is None:
            known = asked.topic in self._controller.image.topics
            what = (
                f"partition {asked.topic}:{asked.index}"
                if known
                else f"a topic named {asked.topic}"
            )
            return _unknown(f"Unable to find {what}.")
        if asked.target is None:
            return self._cancelled(asked.topic, asked.index, partition)
        problem = self._target_problem(partition, asked.target, keep_factor)
        if problem is not None:
            return problem
        assignment = reassignment.begin(partition, asked.target)
        return change_partition(
            partition, self._controller.election_rules(asked.topic), assignment=assignment
        )

    def _cancelled(
        self, topic: str, index: int, partition: PartitionImage
    ) -> PartitionImage | PartitionError:
        if not reassignment.is_in_progress(partition):
            return PartitionError(code=ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        rules, before = self._controller.election_rules(topic), reassignment.revert(partition)
        if before.unclean and not rules.unclean:
            return PartitionError(
                code=ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                message=(
                    f"Unable to revert partition assignment for {topic}:{index} because it would "
                    "require an unclean leader election."
                ),
            )
        return change_partition(
            partition,
            rules,
            isr=before.isr,
            election=ElectionType.UNCLEAN if rules.unclean else ElectionType.ANY,
            assignment=before.assignment,
        )

    def _target_problem(
        self, partition: PartitionImage, target: tuple[int, ...], keep_factor: bool
    ) -> PartitionError | None:
        wrong = self._target_error(target)
        if wrong is not None:
            return PartitionError(
                code=ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                message=f"The manual partition assignment includes {wrong}",
            )
        factor = reassignment.replication_factor(partition)
        if keep_factor and len(target) != factor:
            return PartitionError(
                code=ErrorCode.INVALID_REPLICATION_FACTOR,
                message=f"The replication factor is changed from {factor} to {len(target)}",
            )
        return None

    def _target_error(self, target: tuple[int, ...]) -> str | None:
        """What a target must not include; of several errors, the one that a real broker names."""
        if not target:
            return "an empty replica list."
        before = None
        for broker_id in sorted(target):
            if broker_id not in self._controller.image.brokers:
                return f"broker {broker_id}, but no such broker is registered."
            if broker_id == before:
                return f"the broker {broker_id} more than once."
            before = broker_id
        return None


def _unknown(message: str) -> PartitionError:
    return PartitionError(code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message=message)
