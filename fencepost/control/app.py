"""The control API over HTTP: which paths there are, and what each leads to.

Every route runs in the cluster's own event loop and does its work in one go, so nothing else
happens meanwhile and nothing is locked. What it answers is what is.
"""

from typing import Annotated, Final

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel

from fencepost.broker.server.server import Server
from fencepost.control import errors, models, verbs
from fencepost.control.models import (
    ClusterState,
    Done,
    ElectBody,
    ErrorAnswer,
    ExchangeState,
    Health,
    NewTopicBody,
    PartitionState,
    TopicState,
    TraceFilter,
)
from fencepost.control.trace import read_journal
from fencepost.control.views import cluster_state, partition_state, topic_state, topic_states

API_VERSION: Final = "1"
_DESCRIPTION: Final = (
    "What a test can see of a cluster and do to it. A request that changes something is answered "
    "when its effect is complete."
)


async def _served(request: Request) -> Server:
    server: Server = request.app.state.server
    return server


Served = Annotated[Server, Depends(_served)]
router = APIRouter(responses={"4XX": {"model": ErrorAnswer, "description": "Refused"}})


def create_app(server: Server) -> FastAPI:
    """The control API of a served cluster."""
    app = FastAPI(
        title="fencepost",
        version=API_VERSION,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
    )
    app.state.server = server
    app.include_router(router)
    errors.install(app, router.routes)
    app.middleware_stack = app.build_middleware_stack()
    _describe(app)
    return app


def _describe(app: FastAPI) -> None:
    """Make the description, which is then kept, with the nulls that FastAPI drops in examples."""
    for name, schema in app.openapi()["components"]["schemas"].items():
        if "examples" in schema:
            model: type[BaseModel] = getattr(models, name)
            schema["examples"] = model.model_json_schema()["examples"]


def _operation_id(route: APIRoute) -> str:
    return route.name


@router.get("/healthz")
async def healthz() -> Health:
    """Tell that the cluster serves."""
    return Health()


@router.get("/v1/cluster")
async def get_cluster(request: Request, server: Served) -> ClusterState:
    """Show brokers, controller, features and time."""
    host, _port = request.scope["server"]
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


@router.get("/v1/topics/{topic}/partitions/{partition}")
async def get_partition(server: Served, topic: str, partition: int) -> PartitionState:
    """Show the whole truth about a partition."""
    return partition_state(server.cluster, topic, partition)


@router.post("/v1/topics/{topic}/partitions/{partition}/elect")
async def elect(server: Served, topic: str, partition: int, body: ElectBody) -> PartitionState:
    """Elect a leader from the ISR; the leader epoch rises, also where the leader stays."""
    verbs.elect(server.cluster, topic, partition, body)
    return partition_state(server.cluster, topic, partition)


@router.post("/v1/reset")
async def reset(server: Served) -> Done:
    """Forget all topics, records, groups, dynamic configs and the journal; keep the ports.

    Topics that the cluster was started with are there again, empty and with new ids.
    """
    server.reset()
    return Done()


@router.get("/v1/trace")
async def get_trace(server: Served, wanted: Annotated[TraceFilter, Query()]) -> list[ExchangeState]:
    """Show the last requests and answers, decoded, the oldest first."""
    return await read_journal(server.journal, server.cluster, wanted)
