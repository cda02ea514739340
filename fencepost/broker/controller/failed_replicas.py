"""Replicas whose logs a broker can't use, can use again, or has lost: who is in sync then."""

from collections.abc import Collection, Iterable, Iterator
from uuid import UUID

from msgspec.structs import replace

from fencepost.broker.controller.controller import Controller
from fencepost.broker.controller.elections import change_partition, without_failed
from fencepost.broker.metadata.image import PartitionImage, with_next_epoch


def fail_replicas(
    controller: Controller, broker_id: int, replicas: Iterable[tuple[str, UUID, int]]
) -> None:
    """A broker can't use these replicas' logs: it leaves their ISRs, and others lead.

    They are offline until the broker registers again, or says that it can use them again.

    :param replicas: Topic, its id, and index; those reported before stay as they are.
    """
    changes = {}
    for name, index, before in _reported(controller, broker_id, replicas):
        if broker_id not in before.failed:
            failed = replace(before, failed=(*before.failed, broker_id))
            changes[name, index] = _next_state(controller, name, failed, gone=(broker_id,))
    if changes:
        controller.update_partitions(changes)


def restore_replicas(
    controller: Controller, broker_id: int, replicas: Iterable[tuple[str, UUID, int]]
) -> None:
    """A broker can use these replicas' logs again, and may lead where it is eligible.

    :param replicas: Topic, its id, and index; those that have not failed stay as they are.
    """
    changes = {}
    for name, index, before in _reported(controller, broker_id, replicas):
        if broker_id in before.failed:
            usable = without_failed(before, broker_id)
            changes[name, index] = _next_state(controller, name, usable)
    if changes:
        controller.update_partitions(changes)


def wipe_replica(controller: Controller, topic: str, index: int, broker_id: int) -> None:
    """A broker has lost a replica's records: it leaves the ISR, and its registration is over.

    With the new broker epoch, fetches from before the loss admit it nowhere (KIP-903, KIP-966).
    Where it alone can lead it leads again, in the next leader epoch and without a record.

    :raises ControllerError: UNKNOWN_TOPIC_OR_PARTITION where there is no such partition.
    """
    before = without_failed(controller.partition(topic, index), broker_id)
    isr = [b for b in before.isr if b != broker_id]
    rules = controller.election_rules(topic)
    after = change_partition(before, rules, isr=isr, lost=[broker_id])
    if after.leader == before.leader == broker_id:
        after = replace(
            after,
            leader_epoch=before.leader_epoch + 1,
            partition_epoch=before.partition_epoch + 1,
        )
    controller.load_image(with_next_epoch(controller.image, broker_id))
    controller.update_partitions({(topic, index): after})


def _reported(
    controller: Controller, broker_id: int, replicas: Iterable[tuple[str, UUID, int]]
) -> Iterator[tuple[str, int, PartitionImage]]:
    """The partitions that a broker reports, as they are; without those it has no replica of."""
    image = controller.image
    for name, topic_id, index in replicas:
        topic, partition = image.topics.get(name), image.partition(name, index)
        if topic is None or topic.topic_id != topic_id or partition is None:
            continue
        if broker_id in partition.replicas:
            yield name, index, partition


def _next_state(
    controller: Controller, topic: str, changed: PartitionImage, gone: Collection[int] = ()
) -> PartitionImage:
    """A partition whose failed replicas have changed, in its next epoch."""
    after = controller.reevaluated(topic, changed, gone)
    if after is changed:
        return replace(changed, partition_epoch=changed.partition_epoch + 1)
    return after
