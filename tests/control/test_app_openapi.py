"""/openapi.json is true: every route answers as its schema says, and the examples fit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from fencepost.broker.core.scheduler import Clock, ManualClock
from tests.harness.control_client import Json, ok
from tests.harness.typed_client import produce

if TYPE_CHECKING:
    import httpx

    from fencepost.broker.server.server import Server

PARTITION: Final = "/v1/topics/{topic}/partitions/{partition}"
REPLICA: Final = f"{PARTITION}/replicas/{{broker}}"
BROKER: Final = "/v1/brokers/{broker}"
FAULT: Final = "/v1/faults/{id}"
GROUP: Final = "/v1/groups/{group}"
PLACE: Final = {
    "topic": "t",
    "partition": 0,
    "broker": 3,
    "group": "g",
    "member": "m",
    "id": 1,
    "transactional_id": "x",
}
EVENTS: Final = ("GET", "/v1/events")
"""Answers a stream; `test_the_data_of_an_event_is_as_described` reads it."""
NEED_MEMBERS: Final = (
    ("POST", f"{GROUP}/rebalance"),
    ("POST", f"{GROUP}/members/{{member}}/remove"),
)
"""Answer a group as others do; test_routes_groups.py has one with members."""
TRANSACTION: Final = "/v1/transactions/{transactional_id}"
NEED_TRANSACTIONS: Final = (
    ("GET", TRANSACTION),
    *(("POST", f"{TRANSACTION}/{verb}") for verb in ("abort", "expire", "hold", "release")),
    ("POST", "/v1/transactions/abort"),
)
"""Answer a transaction, or a partition as others do; test_routes_transactions.py has them."""
CALLS: Final[dict[tuple[str, str], Json]] = {
    ("GET", "/healthz"): None,
    ("GET", "/v1/cluster"): None,
    ("POST", "/v1/topics"): {"name": "new", "replication_factor": 2, "configs": {}},
    ("GET", "/v1/topics"): None,
    ("GET", PARTITION): None,
    ("POST", "/v1/topics/{topic}/records"): {"records": [{"headers": [["a", "1"], ["a", None]]}]},
    ("GET", f"{PARTITION}/records"): None,
    ("POST", "/v1/topics/{topic}/records/expect"): {"key": None},
    ("POST", f"{PARTITION}/elect"): {"leader": 2},
    ("POST", f"{PARTITION}/roll"): None,
    ("POST", f"{PARTITION}/compact"): None,
    ("POST", f"{PARTITION}/tier"): {"action": "upload"},
    ("POST", "/v1/tier/faults"): {"operation": "fetch", "error": True},
    ("GET", "/v1/tier/faults"): None,
    ("DELETE", "/v1/tier/faults/{id}"): None,
    ("DELETE", "/v1/tier/faults"): None,
    ("POST", f"{REPLICA}/hold"): {},
    ("POST", "/v1/faults"): {"api": "Fetch", "action": {"error": "KAFKA_STORAGE_ERROR"}},
    ("POST", f"{REPLICA}/step"): None,
    ("POST", f"{REPLICA}/release"): None,
    ("POST", f"{REPLICA}/wipe"): None,
    ("POST", f"{GROUP}/offsets"): {"offsets": [{"topic": "t", "partition": 0, "offset": 3}]},
    ("GET", "/v1/groups"): None,
    ("GET", GROUP): None,
    ("GET", "/v1/transactions"): None,
    ("POST", f"{GROUP}/wait"): {"state": "Empty"},
    ("POST", f"{GROUP}/coordinator"): {"broker": 2},
    ("POST", f"{GROUP}/offsets/delete"): {"topics": ["t"]},
    ("POST", f"{BROKER}/isolate"): {"from": "controller"},
    ("POST", f"{BROKER}/rejoin"): None,
    ("POST", f"{BROKER}/stop"): None,
    ("POST", f"{BROKER}/start"): None,
    ("POST", f"{BROKER}/kill"): None,
    ("POST", "/v1/clock/advance"): {"ms": 1},
    ("GET", "/v1/timeline"): None,
    ("GET", "/v1/trace"): None,
    ("GET", "/v1/trace/wait"): None,
    ("POST", "/v1/trace/verify"): {"api": "Heartbeat", "count": 0},
    ("GET", "/v1/faults"): None,
    ("GET", FAULT): None,
    ("GET", f"{FAULT}/wait"): None,
    ("DELETE", FAULT): None,
    ("DELETE", "/v1/faults"): None,
    ("DELETE", "/v1/topics/{topic}"): None,
    ("POST", "/v1/reset"): None,
}
"""A request for every operation, in an order in which each succeeds."""
COMPACTED: Final = "c"
"""The topic that can be compacted; the other is tiered."""
_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "null": type(None),
    "number": (int, float),
    "object": dict,
    "string": str,
}


class Schemas:
    """A document's schemas; as much of JSON Schema as our models need."""

    def __init__(self, document: Json) -> None:
        self._document = document

    def resolve(self, schema: Json) -> Json:
        while "$ref" in schema:
            found = self._document
            for part in schema["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            schema = found
        return schema

    def problem(self, schema: Json, value: Json, at: str = "$") -> str | None:
        """Why a value is not as a schema says; None when it is."""
        schema = self.resolve(schema)
        if "anyOf" in schema:
            problems = [self.problem(each, value, at) for each in schema["anyOf"]]
            return None if None in problems else "; ".join(map(str, problems))
        if "const" in schema and value != schema["const"]:
            return f"{at}: {value!r} is not {schema['const']!r}"
        if "enum" in schema and value not in schema["enum"]:
            return f"{at}: {value!r} is not one of {schema['enum']}"
        kind = schema.get("type")
        if kind is None:
            return None
        if not isinstance(value, _TYPES[kind]) or (kind == "integer" and isinstance(value, bool)):
            return f"{at}: {value!r} is no {kind}"
        if kind == "array":
            return self._in_array(schema, value, at)
        return self._in_object(schema, value, at) if kind == "object" else None

    def _in_array(self, schema: Json, value: Json, at: str) -> str | None:
        first = schema.get("prefixItems", [])
        kinds = [*first, *[schema.get("items")] * (len(value) - len(first))]
        problems = (
            self.problem(kind, v, f"{at}[{i}]")
            for i, (kind, v) in enumerate(zip(kinds, value, strict=True))
        )
        return next(filter(None, problems), None)

    def _in_object(self, schema: Json, value: Json, at: str) -> str | None:
        missing = [name for name in schema.get("required", ()) if name not in value]
        if missing:
            return f"{at}: {missing} are missing"
        known, others = schema.get("properties", {}), schema.get("additionalProperties", False)
        for name, each in value.items():
            inner = known.get(name, others)
            if inner is False:
                return f"{at}: {name} is not described"
            found = None if inner is True else self.problem(inner, each, f"{at}.{name}")
            if found is not None:
                return found
        return None


@pytest.fixture
async def document(control: httpx.AsyncClient) -> Json:
    return await ok(control, "GET", "/openapi.json")


def operations(document: Json) -> dict[tuple[str, str], Json]:
    return {
        (method.upper(), path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


@pytest.fixture
def clock() -> Clock:
    return ManualClock()


@pytest.fixture
def configs() -> dict[str, str]:
    return {"remote.log.storage.system.enable": "true"}


async def test_every_operation_answers_as_described(
    server: Server, control: httpx.AsyncClient, document: Json
) -> None:
    described = operations(document)
    assert described.keys() == {*CALLS, *NEED_MEMBERS, *NEED_TRANSACTIONS, EVENTS}
    schemas = Schemas(document)
    for name, config in (
        ("t", "remote.storage.enable=true"),
        (COMPACTED, "cleanup.policy=compact"),
    ):
        configs = dict([config.split("=")])
        body = {"name": name, "assignments": [[1, 2, 3]], "configs": configs}
        await ok(control, "POST", "/v1/topics", body)
    await produce(server, "t")
    for (method, path), body in CALLS.items():
        answers = described[method, path]["responses"]
        schema = answers["200"]["content"]["application/json"]["schema"]
        place = {**PLACE, "topic": COMPACTED} if path.endswith("/compact") else PLACE
        called = path.format(**place)
        answer = await ok(control, method, called, body)
        assert answer is not None
        assert schemas.problem(schema, answer) is None, called
        if isinstance(answer, list):
            assert answer, f"{called} shows nothing to compare"


async def test_the_data_of_an_event_is_as_described(
    control: httpx.AsyncClient, document: Json
) -> None:
    answers = operations(document)[EVENTS]["responses"]
    schema = answers["200"]["content"]["text/event-stream"]["schema"]
    async with control.stream("GET", "/v1/events") as stream:
        await ok(control, "POST", "/v1/topics", {"name": "t"})
        data = await anext(line async for line in stream.aiter_lines() if line.startswith("data"))
    problem = Schemas(document).problem(schema, json.loads(data.removeprefix("data: ")))
    assert problem is None


async def test_every_operation_describes_its_refusals(
    control: httpx.AsyncClient, document: Json
) -> None:
    schemas = Schemas(document)
    for (method, path), operation in operations(document).items():
        assert {"200", "4XX"} <= set(operation["responses"]) <= {"200", "409", "4XX"}
        schema = operation["responses"]["4XX"]["content"]["application/json"]["schema"]
        answer = await control.request(method, f"{path}/nowhere".format(**PLACE))
        assert 400 <= answer.status_code < 500
        assert schemas.problem(schema, answer.json()) is None


async def test_examples_are_as_their_schemas_say(document: Json) -> None:
    schemas = Schemas(document)
    with_examples = {
        name: schema
        for name, schema in document["components"]["schemas"].items()
        if "examples" in schema
    }
    assert {"NewTopicBody", "ElectBody", "PartitionState", "ExchangeState"} <= set(with_examples)
    for name, schema in with_examples.items():
        for example in schema["examples"]:
            assert schemas.problem(schema, example) is None, name


async def test_examples_of_bodies_are_accepted(control: httpx.AsyncClient, document: Json) -> None:
    orders = "/v1/topics/orders/partitions/0"
    accepted = {
        "NewTopicBody": ["/v1/topics"],
        "ProduceBody": ["/v1/topics/orders/records"],
        "ExpectBody": ["/v1/topics/orders/records/expect"],
        "OffsetsBody": ["/v1/groups/shipping/offsets"],
        "CoordinatorBody": ["/v1/groups/shipping/coordinator"],
        "TopicsBody": ["/v1/groups/shipping/offsets/delete"],
        "ElectBody": [f"{orders}/elect"],
        "HoldBody": [f"{orders}/replicas/2/hold"],
        "StepBody": [f"{orders}/replicas/2/step"],
        "IsolateBody": ["/v1/brokers/2/isolate"],
        "KillBody": ["/v1/brokers/3/kill", "/v1/brokers/3/start"],
        "AdvanceBody": ["/v1/clock/advance"],
        "FaultBody": ["/v1/faults"],
        "TierFaultBody": ["/v1/tier/faults"],
        "ResetBody": ["/v1/reset"],
    }
    # Of a topic with a tier; a part of others; of a group with members; of requests to verify; of
    # transactions.
    elsewhere = {"TierBody", "NewRecordBody", "OffsetBody", "GroupWaitBody", "VerifyBody"}
    elsewhere |= {"HangingTransactionBody", "MarkerBody"}
    schemas = document["components"]["schemas"]
    assert {name for name in schemas if name.endswith("Body")} == accepted.keys() | elsewhere
    for name, paths in accepted.items():
        for example in schemas[name]["examples"]:
            for path in paths:
                await ok(control, "POST", path, None if path.endswith("/start") else example)


async def test_operations_have_names_that_generated_clients_can_use(document: Json) -> None:
    names = [operation["operationId"] for operation in operations(document).values()]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() for name in names)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"a": [1], "b": "x"}, None),
        ({"a": [1], "b": None}, None),
        ({"a": [True], "b": "x"}, "$.a[0]: True is no integer"),
        ({"b": "x"}, "$: ['a'] are missing"),
        ({"a": [], "b": 1}, "$.b: 1 is no string; $.b: 1 is no null"),
        ({"a": [], "c": 1}, "$: c is not described"),
    ],
)
def test_the_check_itself(value: Json, problem: str | None) -> None:
    document = {"ints": {"type": "array", "items": {"type": "integer"}}}
    schema = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/ints"},
            "b": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["a"],
    }
    assert Schemas(document).problem(schema, value) == problem
