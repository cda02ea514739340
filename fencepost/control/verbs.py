"""What a test can do to a cluster. A verb returns when its effect is complete.

:raises ControllerError: (all of them) When it is refused, with Kafka's code and words.
"""

from fencepost.broker.cluster import Cluster
from fencepost.broker.configs.topic import validate_topic_configs
from fencepost.broker.controller import ControllerError, NewTopic
from fencepost.control.models import ElectBody, NewTopicBody
from fencepost.control.views import topic_state
from fencepost.protocol.errors import ErrorCode


def create_topic(cluster: Cluster, body: NewTopicBody) -> None:
    """Create a topic; every replica is then in the ISR."""
    given_counts = body.partitions is not None or body.replication_factor is not None
    if body.assignments is not None and given_counts:
        raise ControllerError(
            ErrorCode.INVALID_REQUEST,
            "assignments say how many partitions and replicas there are: "
            "give them, or partitions and replication_factor, not both",
        )
    if body.assignments == ():
        raise ControllerError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "assignments are empty: a topic has a partition"
        )
    controller = cluster.controller
    configs = cluster.brokers[controller.image.controller_id].configs
    defaults = (configs.num_partitions, configs.default_replication_factor)
    given = (body.partitions, body.replication_factor)
    partitions, replicas = (d if g is None else g for g, d in zip(given, defaults, strict=True))
    new = NewTopic(
        name=body.name,
        partitions=partitions,
        replication_factor=replicas,
        assignments=body.assignments,
        configs=body.configs,
    )
    planned = controller.plan_topic(new)
    problem = validate_topic_configs(body.configs, configs.layers.topic_defaults)
    if problem is not None:
        raise ControllerError(problem.code, problem.message)
    controller.create_topics([(planned, body.configs)])
    cluster.scheduler.run_due()


def delete_topic(cluster: Cluster, name: str) -> None:
    """Delete a topic, on every broker."""
    topic_state(cluster, name)
    cluster.controller.delete_topics([name])
    cluster.scheduler.run_due()


def elect(cluster: Cluster, topic: str, index: int, body: ElectBody) -> None:
    """Elect a leader from the ISR; the leader epoch rises, and every replica has heard of it."""
    if body.unclean:
        raise ControllerError(
            ErrorCode.INVALID_REQUEST,
            "this fencepost holds clean elections alone: leave unclean out, and choose a leader "
            "from the ISR",
        )
    cluster.controller.elect(topic, index, body.leader)
    cluster.scheduler.run_due()
