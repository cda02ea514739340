"""Every refusal has the same form and says what is wrong; nothing is ignored or converted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.broker.core.scheduler import ManualClock
from fencepost.control.app import ControlApp, create_app
from tests.harness.control_client import ok, refused
from tests.harness.in_process_server import running

if TYPE_CHECKING:
    from fencepost.broker.server.server import Server

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"name": "t", "partitons": 1}, "no field 'partitons'; there are name, partitions,"),
        ({"name": "t", "partitions": "1"}, "partitions: input should be a valid integer"),
        ({"name": "t", "partitions": True}, "partitions: input should be a valid integer"),
        ({"name": "t", "partitions": 1.0}, "partitions: input should be a valid integer"),
        ({"name": "t", "assignments": [[1, "2"]]}, "assignments[0][1]: input should be"),
        ({"name": "t", "assignments": 5}, "assignments: input should be a valid array"),
        ({"name": "t", "configs": {"retention.ms": 5}}, "configs.retention.ms: input should be"),
        ({"name": 7}, "name: input should be a valid string"),
        ({}, "name: field required"),
        ([], "the body is to be a JSON object"),
        (None, "the body is to be a JSON object"),
    ],
)
async def test_a_body_that_is_not_as_it_should_be(
    control: httpx.AsyncClient, body: object, words: str
) -> None:
    status, code, message = await refused(control, "POST", "/v1/topics", body)
    assert (status, code) == (400, "INVALID_REQUEST")
    assert words in message
    assert await ok(control, "GET", "/v1/topics") == []


@pytest.mark.parametrize(
    ("content", "headers", "words"),
    [
        (b'{"name":', JSON, "no JSON: Expecting value at character 8"),
        (b"\xff", JSON, "no UTF-8"),
        (b"[" * 100_000, JSON, "nested too deeply"),
    ],
)
async def test_a_body_that_is_no_json(
    control: httpx.AsyncClient, content: bytes, headers: dict[str, str], words: str
) -> None:
    answer = await control.post("/v1/topics", content=content, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (400, "INVALID_REQUEST")
    assert words in answer.json()["message"]


@pytest.mark.parametrize("headers", [{}, {"content-type": "text/plain"}])
@pytest.mark.parametrize("path", ["/v1/topics", "/v1/reset", "/nowhere"])
async def test_a_body_that_is_not_sent_as_json(
    control: httpx.AsyncClient, path: str, headers: dict[str, str]
) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "kept"})
    answer = await control.post(path, content=b'{"name": "t"}', headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert "Content-Type: application/json" in answer.json()["message"]
    assert [each["name"] for each in await ok(control, "GET", "/v1/topics")] == ["kept"]


@pytest.mark.parametrize(
    ("method", "path", "status", "code", "words"),
    [
        ("GET", "/v2/cluster", 404, "NOT_FOUND", "/v2/cluster"),
        ("GET", "/v1/topics/", 404, "NOT_FOUND", "/v1/topics/"),
        ("POST", "/v1/topics/a%2Fb/partitions/0/elect", 404, "NOT_FOUND", "a/b"),
        ("PUT", "/v1/topics", 405, "METHOD_NOT_ALLOWED", "only GET, POST"),
        ("GET", "/v1/reset", 405, "METHOD_NOT_ALLOWED", "only POST"),
        ("GET", "/v1/topics/t/partitions/x", 400, "INVALID_REQUEST", "partition: input should be"),
        ("GET", "/v1/trace?apii=fetch", 400, "INVALID_REQUEST", "no field 'apii'; there are api,"),
        ("GET", "/v1/trace?limit=0", 400, "INVALID_REQUEST", "limit: input should be greater"),
        ("GET", "/v1/trace?api=Fetsch", 400, "INVALID_REQUEST", "did you mean Fetch?"),
    ],
)
async def test_a_request_that_leads_nowhere(
    control: httpx.AsyncClient, method: str, path: str, status: int, code: str, words: str
) -> None:
    found = await refused(control, method, path)
    assert found[:2] == (status, code)
    assert words in found[2]


async def test_a_wrong_method_is_told_which_are_right(control: httpx.AsyncClient) -> None:
    assert (await control.delete("/v1/topics")).headers["allow"] == "GET, POST"


async def test_a_bug_is_answered_in_the_same_form(server: Server) -> None:
    async def fail(_prepare: object) -> None:
        raise RuntimeError("on purpose")

    server.reset = fail  # type: ignore[method-assign, assignment]  # a bug to be
    transport = httpx.ASGITransport(create_app(server), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://control") as client:
        status, code, message = await refused(client, "POST", "/v1/reset")
    assert (status, code) == (500, "UNKNOWN_SERVER_ERROR")
    assert "RuntimeError: on purpose" in message


names = st.sampled_from(["t", "u", "a/b", "", "..", "é", "x" * 250, "__consumer_offsets"])
numbers = st.sampled_from([-1, 0, 1, 2, 3, 4, 9, 10**20, 1.5, True, None, "1"])
texts = st.dictionaries(
    st.sampled_from(["retention.ms", "cleanup.policy", "nothing", ""]),
    st.sampled_from(["1", "-1", "compact", "", None, 3]),
)
new_topics = st.fixed_dictionaries(
    {},
    optional={
        "name": names,
        "partitions": numbers,
        "replication_factor": numbers,
        "assignments": st.none() | st.lists(st.lists(numbers, max_size=3), max_size=3) | numbers,
        "configs": texts | numbers,
        "more": numbers,
    },
)
elections = st.fixed_dictionaries({}, optional={"leader": numbers, "unclean": numbers, "x": names})
paths = st.builds(
    "/v1/topics/{}/partitions/{}{}".format,
    st.sampled_from(["t", "u", "%00", "a%2Fb", "..", "%FF"]),
    st.sampled_from(["0", "1", "-1", "x", "1e3", "9" * 30]),
    st.sampled_from(["", "/elect", "/elect/", "/hold", "/roll"]),
)
replica_paths = st.builds(
    "/v1/topics/{}/partitions/0/replicas/{}/{}".format,
    st.sampled_from(["t", "t", "t", "u"]),
    st.sampled_from(["1", "2", "3", "4", "-1", "x", "9" * 30]),
    st.sampled_from(["hold", "release", "step", "wipe"]),
)
replica_bodies = st.none() | st.fixed_dictionaries(
    {}, optional={"at": numbers, "leave_isr": st.booleans() | numbers, "fetches": numbers}
)
broker_paths = st.builds(
    "/v1/brokers/{}/{}".format,
    st.sampled_from(["1", "2", "3", "4", "-1", "x", "9" * 30]),
    st.sampled_from(["stop", "start", "kill", "isolate", "rejoin", "list"]),
)
broker_bodies = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "from": st.just("controller") | st.lists(numbers, max_size=2) | numbers,
        "fence": st.sampled_from(["now", "timeout", "never", "", 1, None]),
    },
)
requests = st.one_of(
    st.tuples(st.just("POST"), st.just("/v1/topics"), new_topics),
    st.just(("POST", "/v1/topics", {"name": "t", "assignments": [[1, 2, 3]]})),
    st.tuples(st.just("POST"), paths, elections),
    st.tuples(st.just("POST"), replica_paths, replica_bodies),
    st.tuples(st.just("POST"), broker_paths, broker_bodies),
    st.tuples(
        st.just("POST"),
        st.just("/v1/clock/advance"),
        st.fixed_dictionaries({}, optional={"ms": numbers | st.just(60_000)}),
    ),
    st.tuples(st.sampled_from(["GET", "DELETE", "PUT"]), paths, st.none()),
    st.tuples(st.just("DELETE"), st.sampled_from(["/v1/topics/t", "/v1/topics/%20"]), st.none()),
    st.tuples(
        st.just("GET"),
        st.sampled_from(["/v1/trace?since=-1", "/v1/trace?topic=%FF", "/v1/trace?client_id="]),
        st.none(),
    ),
)


@pytest.fixture
async def app() -> AsyncIterator[ControlApp]:
    async with running(clock=ManualClock()) as server:
        yield create_app(server)


@settings(
    max_examples=200,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(asked=st.lists(requests, min_size=1, max_size=6))
async def test_whatever_is_asked_the_answer_is_a_success_or_a_refusal(
    app: ControlApp, asked: list[tuple[str, str, object]]
) -> None:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://control") as client:
        for method, path, body in asked:
            answer = await client.request(method, path, json=body)
            assert answer.status_code == 200 or 400 <= answer.status_code < 500, answer.text
            if answer.status_code != 200:
                assert set(answer.json()) == {"error", "message"}
        assert await ok(client, "POST", "/v1/reset") == {}
