"""The cluster as it really is, told by its control API and not by its brokers.

By it a scenario's client knows whom to ask, so that nothing but the request that a step speaks of
reaches a broker, and no fault is met by another one.
"""

from dataclasses import dataclass
from uuid import UUID

from fencepost.client.errors import NoLeader, Unreachable
from fencepost.client.model import Partition
from fencepost.verbs.methods import AsyncVerbs
from fencepost.verbs.remote import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Led:
    """A partition and who leads it."""

    partition: Partition
    leader: int
    """-1 for nobody, or where there is no such partition."""
    exists: bool


class Truth:
    """What is asked of the control API.

    :param verbs: Of the cluster.
    """

    def __init__(self, verbs: AsyncVerbs) -> None:
        self.verbs = verbs
        """To ask it anything else."""

    async def addresses(self) -> dict[int, tuple[str, int]]:
        """Host and port by broker id."""
        cluster = await self.verbs.cluster()
        return {each.id: (each.host, each.port) for each in cluster.brokers}

    async def now_ms(self) -> int:
        """The cluster's time."""
        return (await self.verbs.cluster()).clock.now_ms

    async def first_running(self) -> int:
        """The lowest id of a broker that runs.

        :raises Unreachable: When none does.
        """
        cluster = await self.verbs.cluster()
        for each in cluster.brokers:
            if each.state == "running":
                return each.id
        raise Unreachable("no broker runs")

    async def led(self, topic: str, index: int) -> Led:
        """A partition with its topic's id."""
        try:
            state = await self.verbs.partition(topic, index)
        except Refused:
            return Led(partition=Partition(topic=topic, index=index), leader=-1, exists=False)
        partition = Partition(topic=topic, index=index, topic_id=UUID(state.topic_id))
        return Led(partition=partition, leader=state.leader, exists=True)

    async def whom(self, led: Led) -> int:
        """Whom to ask of a partition.

        :raises NoLeader: When nobody leads it.
        :raises Unreachable: When there is no such partition, and no broker runs that would say so.
        """
        if not led.exists:
            return await self.first_running()
        if led.leader < 0:
            raise NoLeader(f"nobody leads {led.partition.topic}-{led.partition.index}")
        return led.leader
