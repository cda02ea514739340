"""The control API over HTTP: which paths there are, and what each leads to.

Every route runs in the cluster's own event loop and does its work in one go, so nothing else
happens meanwhile and nothing is locked. What it answers is what is.
"""

from functools import cache
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, FastAPI, Header, Query, Request
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel

from fencepost.broker import steering
from fencepost.broker.server.server import Server
from fencepost.control import bodies, errors, models, verbs
from fencepost.control.bodies import (
    AdvanceBody,
    ElectBody,
    EventFilter,
    HoldBody,
    IsolateBody,
    KillBody,
    NewTopicBody,
    StepBody,
    TraceFilter,
)
from fencepost.control.feed import Feed
from fencepost.control.models import (
    BrokerState,
    ClockState,
    ClusterState,
    Done,
    ErrorAnswer,
    EventState,
    ExchangeState,
    Health,
    PartitionState,
    StepState,
    TopicState,
)
from fencepost.control.trace import read_journal
from fencepost.control.views import (
    broker_state,
    clock_state,
    cluster_state,
    partition_state,
    topic_state,
    topic_states,
)

API_VERSION: Final = "1"
_DESCRIPTION: Final = (
    "What a test can see of a cluster and do to it. A request that changes something is answered "
    "when its effect is complete."
)


async def _served(request: Request) -> Server:
    server: Server = request.app.state.server
    return server


async def _feed(request: Request) -> Feed:
    feed: Feed = request.app.state.feed
    return feed


async def _reached_host(request: Request) -> str:
    host: str = request.scope["server"][0]
    return host


Served = Annotated[Server, Depends(_served)]
ReachedHost = Annotated[str, Depends(_reached_host)]
"""The address that whoever asks has reached."""
router = APIRouter(responses={"4XX": {"model": ErrorAnswer, "description": "Refused"}})
_PARTITION: Final = "/v1/topics/{topic}/partitions/{partition}"
_REPLICA: Final = f"{_PARTITION}/replicas/{{broker}}"
_BROKER: Final = "/v1/brokers/{broker}"
_HOLD: Final = HoldBody()
_STEP: Final = StepBody()
_KILL: Final = KillBody()


class _EventStream(StreamingResponse):
    """Server-sent events."""

    media_type = "text/event-stream"


def create_app(server: Server) -> FastAPI:
    """The control API of a served cluster."""
    app = _bare_app()
    app.state.server = server
    app.state.feed = Feed(server.cluster.events)
    errors.install(app, router.routes)
    app.middleware_stack = app.build_middleware_stack()
    app.openapi = _description  # type: ignore[method-assign]  # FastAPI's own way to change it
    _description()
    return app


def _bare_app() -> FastAPI:
    app = FastAPI(
        title="fencepost",
        version=API_VERSION,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
    )
    app.include_router(router)
    return app


@cache
def _description() -> dict[str, Any]:
    """The OpenAPI document, the same for every cluster, with what FastAPI gets wrong set right.

    It drops the nulls in examples, and has a stream's refusals be streams too.
    """
    document = _bare_app().openapi()
    for operations in document["paths"].values():
        for operation in operations.values():
            content = operation["responses"]["4XX"]["content"]
            content["application/json"] = content.pop(next(iter(content)))
    for name, schema in document["components"]["schemas"].items():
        if "examples" in schema:
            model: type[BaseModel] = getattr(models, name, None) or getattr(bodies, name)
            schema["examples"] = model.model_json_schema()["examples"]
    return document


def _operation_id(route: APIRoute) -> str:
    return route.name


@router.get("/healthz")
async def healthz() -> Health:
    """Tell that the cluster serves."""
    return Health()


@router.get("/v1/cluster")
async def get_cluster(server: Served, host: ReachedHost) -> ClusterState:
    """Show brokers, controller, features and time."""
    return cluster_state(server.cluster, reached_host=host)


@router.get("/v1/topics")
async def list_topics(server: Served) -> list[TopicState]:
    """List all topics, by name."""
    return topic_states(server.cluster)


@router.post("/v1/topics")
async def create_topic(server: Served, body: NewTopicBody) -> TopicState:
    """Create a topic; answers when every replica is in the ISR."""
    verbs.create_topic(server.cluster, body)
    return topic_state(server.cluster, body.name)


@router.delete("/v1/topics/{topic}")
async def delete_topic(server: Served, topic: str) -> Done:
    """Delete a topic; answers when no broker has it."""
    verbs.delete_topic(server.cluster, topic)
    return Done()


@router.get(_PARTITION)
async def get_partition(server: Served, topic: str, partition: int) -> PartitionState:
    """Show the whole truth about a partition."""
    return partition_state(server.cluster, topic, partition)


@router.post(f"{_PARTITION}/elect")
async def elect(server: Served, topic: str, partition: int, body: ElectBody) -> PartitionState:
    """Elect a leader, cleanly or not; the leader epoch rises, also where the leader stays."""
    return verbs.elect(server.cluster, topic, partition, body)


@router.post(f"{_PARTITION}/roll")
async def roll(server: Served, topic: str, partition: int) -> PartitionState:
    """Close the active segment of every replica; an empty one stays."""
    return verbs.roll(server.cluster, topic, partition)


@router.post(f"{_REPLICA}/hold")
async def hold(
    server: Served, topic: str, partition: int, broker: int, body: HoldBody = _HOLD
) -> PartitionState:
    """Keep a replica from fetching, at once or from an offset on."""
    return verbs.hold(server.cluster, topic, partition, broker, body)


@router.post(f"{_REPLICA}/release")
async def release(server: Served, topic: str, partition: int, broker: int) -> PartitionState:
    """Let a replica fetch again; answers when it has caught up."""
    return verbs.release(server.cluster, topic, partition, broker)


@router.post(f"{_REPLICA}/step")
async def step(
    server: Served, topic: str, partition: int, broker: int, body: StepBody = _STEP
) -> StepState:
    """Let a replica fetch so many times, held or not; answers what each fetch did."""
    return verbs.step(server.cluster, topic, partition, broker, body)


@router.post(f"{_REPLICA}/wipe")
async def wipe(server: Served, topic: str, partition: int, broker: int) -> PartitionState:
    """Lose a replica's disk: it leaves the ISR and starts empty."""
    return verbs.wipe(server.cluster, topic, partition, broker)


@router.post(f"{_BROKER}/stop")
async def stop_broker(server: Served, host: ReachedHost, broker: int) -> BrokerState:
    """Shut a broker down in order: others lead where it led, then its port refuses."""
    await server.stop_broker(broker)
    return broker_state(server.cluster, broker, reached_host=host)


@router.post(f"{_BROKER}/kill")
async def kill_broker(
    server: Served, host: ReachedHost, broker: int, body: KillBody = _KILL
) -> BrokerState:
    """End a broker at once: connections are reset; the controller learns of it as you say."""
    await server.kill_broker(broker, body.fence)
    return broker_state(server.cluster, broker, reached_host=host)


@router.post(f"{_BROKER}/start")
async def start_broker(server: Served, host: ReachedHost, broker: int) -> BrokerState:
    """Start a broker that is down, on its port; answers when it has caught up."""
    await server.start_broker(broker)
    return broker_state(server.cluster, broker, reached_host=host)


@router.post(f"{_BROKER}/isolate")
async def isolate_broker(
    server: Served, host: ReachedHost, broker: int, body: IsolateBody
) -> BrokerState:
    """Cut a broker off from the controller, or from other brokers; clients still reach it."""
    verbs.isolate(server.cluster, broker, body)
    return broker_state(server.cluster, broker, reached_host=host)


@router.post(f"{_BROKER}/rejoin")
async def rejoin_broker(server: Served, host: ReachedHost, broker: int) -> BrokerState:
    """Mend all links of a broker; answers when it has heard and caught up."""
    steering.rejoin(server.cluster, broker)
    return broker_state(server.cluster, broker, reached_host=host)


@router.post("/v1/clock/advance")
async def advance_clock(server: Served, body: AdvanceBody) -> ClockState:
    """Let time pass on a manual clock; answers when all that was due by then has happened."""
    server.advance(body.ms)
    return clock_state(server.cluster)


@router.post("/v1/reset")
async def reset(server: Served) -> Done:
    """Forget all topics, records, groups, dynamic configs and the journal; keep the ports.

    Topics that the cluster was started with are there again, empty and with new ids. Every broker
    runs and reaches every other, and no replica is held.
    """
    await server.reset()
    return Done()


@router.get(
    "/v1/events",
    response_class=_EventStream,
    responses={200: {"model": EventState, "description": "The data of each event"}},
)
async def get_events(
    feed: Annotated[Feed, Depends(_feed)],
    wanted: Annotated[EventFilter, Query()],
    last_event_id: Annotated[int | None, Header(ge=0)] = None,
) -> StreamingResponse:
    """Stream every change of state as server-sent events, from now on or from a number on."""
    since = wanted.since if last_event_id is None else last_event_id
    return _EventStream(feed.watch(since))


@router.get("/v1/trace")
async def get_trace(server: Served, wanted: Annotated[TraceFilter, Query()]) -> list[ExchangeState]:
    """Show the last requests and answers, decoded, the oldest first."""
    return await read_journal(server.journal, server.cluster, wanted)
