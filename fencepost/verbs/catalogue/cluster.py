"""The verbs on the cluster as a whole, its brokers and its clock."""

from typing import Final

from fencepost.verbs.catalogue.verb import Method, Verb

_BROKER: Final = "/v1/brokers/{broker}"

CLUSTER: Final[tuple[Verb, ...]] = (
    Verb(
        name="healthz",
        method=Method.GET,
        path="/healthz",
        answer="answers.Health",
        command="healthcheck",
        summary="Answer that the cluster is up.",
    ),
    Verb(
        name="cluster",
        method=Method.GET,
        path="/v1/cluster",
        answer="answers.cluster.ClusterState",
        command="cluster",
        summary="Show brokers, controller, features and time.",
    ),
    Verb(
        name="stop_broker",
        method=Method.POST,
        path=f"{_BROKER}/stop",
        answer="answers.cluster.BrokerState",
        command="broker stop",
        summary="Shut a broker down: others become leaders where it led, then its port refuses.",
    ),
    Verb(
        name="kill_broker",
        method=Method.POST,
        path=f"{_BROKER}/kill",
        request="bodies.KillBody",
        answer="answers.cluster.BrokerState",
        command="broker kill",
        summary=(
            "Kill a broker at once: connections are reset; the controller notices when you choose."
        ),
    ),
    Verb(
        name="start_broker",
        method=Method.POST,
        path=f"{_BROKER}/start",
        answer="answers.cluster.BrokerState",
        command="broker start",
        summary="Start a broker that is down, on its port; answers when it has caught up.",
    ),
    Verb(
        name="isolate_broker",
        method=Method.POST,
        path=f"{_BROKER}/isolate",
        request="bodies.IsolateBody",
        answer="answers.cluster.BrokerState",
        command="broker isolate",
        summary=(
            "Cut a broker off from the controller, or from other brokers; clients still reach it."
        ),
    ),
    Verb(
        name="rejoin_broker",
        method=Method.POST,
        path=f"{_BROKER}/rejoin",
        answer="answers.cluster.BrokerState",
        command="broker rejoin",
        summary="Restore all links of a broker; answers when it has caught up.",
    ),
    Verb(
        name="advance_clock",
        method=Method.POST,
        path="/v1/clock/advance",
        request="bodies.AdvanceBody",
        answer="answers.cluster.ClockState",
        command="clock advance",
        positional=("ms",),
        summary=("Advance a manual clock; answers when everything due by then has happened."),
    ),
    Verb(
        name="reset",
        method=Method.POST,
        path="/v1/reset",
        request="bodies.ResetBody",
        answer="answers.Done",
        command="reset",
        summary=(
            "Forget all topics, records, groups, configs, faults and the journal; keep the ports."
        ),
    ),
)
