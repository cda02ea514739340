"""Bodies of the control API: what is too large is refused, and not kept."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator

import httpx
import pytest

from fencepost.broker.server.resources import CONTROL_CONNECTIONS, DescriptorBudget
from fencepost.broker.server.server import Server
from fencepost.control import limits
from fencepost.control.asgi import Message, Receive, Scope, Send
from fencepost.control.limits import MAX_BODY_BYTES, MAX_HEAD_BYTES, BodyLimit
from fencepost.verbs import bodies
from tests.harness.control_client import Json, ok
from tests.harness.in_process_server import HOST
from tests.harness.wait import wait_beside_loop

CHUNK = bytes(64 << 10)
CREATE = "/v1/topics"
OF_BODIES = (limits.__file__, __file__)
"""The modules that a body's bytes are of; threads of other tests and coverage allocate as well."""
JSON = {"content-type": "application/json"}


async def chunks(total: int) -> AsyncIterator[bytes]:
    for _ in range(total // len(CHUNK)):
        yield CHUNK


def refused(answer: httpx.Response) -> bool:
    said: Json = answer.json()
    assert answer.status_code == 413, answer.text
    assert said["error"] == "INVALID_REQUEST"
    return str(MAX_BODY_BYTES) in said["message"]


async def test_a_body_of_the_limit_is_read(control: httpx.AsyncClient) -> None:
    body = json.dumps({"name": "t"}).encode()
    padded = body + b" " * (MAX_BODY_BYTES - len(body))
    answer = await control.post(CREATE, content=padded, headers=JSON)
    assert answer.is_success, answer.text
    assert refused(await control.post(CREATE, content=padded + b" ", headers=JSON))


@pytest.mark.parametrize("states_its_size", [True, False])
async def test_a_body_beyond_it_is_refused_to_a_client_that_sends_all_of_it_first(
    control: httpx.AsyncClient, states_its_size: bool
) -> None:
    size = 20 * MAX_BODY_BYTES
    headers = {**JSON, "content-length": str(size)} if states_its_size else JSON
    assert refused(await control.post(CREATE, content=chunks(size), headers=headers))


async def test_a_refused_body_is_read_to_its_end_and_not_kept() -> None:
    left = 300
    kept = 0
    sent: list[Message] = []
    files = [tracemalloc.Filter(inclusive=True, filename_pattern=f) for f in OF_BODIES]

    async def never(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise AssertionError("it was handled")

    async def receive() -> Message:
        nonlocal left, kept
        left -= 1
        if left == 0:
            taken = tracemalloc.take_snapshot().filter_traces(files).statistics("filename")
            kept = sum(each.size for each in taken)
        return {"type": "http.request", "body": bytes(1 << 20), "more_body": left > 0}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {"type": "http", "headers": [(b"transfer-encoding", b"chunked")]}
    tracemalloc.start()
    try:
        await BodyLimit(never)(scope, receive, send)
    finally:
        tracemalloc.stop()
    assert left == 0
    assert sent[0]["status"] == 413
    assert 0 < kept < 4 << 20


async def test_a_refused_body_that_does_not_end_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "BODY_S", 0)
    sent: list[Message] = []

    async def never(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise AssertionError("it was handled")

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError("it came")

    async def send(message: Message) -> None:
        sent.append(message)

    stated = str(MAX_BODY_BYTES + 1).encode()
    scope: Scope = {"type": "http", "headers": [(b"content-length", stated)]}
    async with asyncio.timeout(20):
        await BodyLimit(never)(scope, receive, send)
    assert sent[0]["status"] == 413
    assert [message.get("more_body") for message in sent] == [None, True, False]


async def test_after_a_refusal_the_control_api_goes_on(control: httpx.AsyncClient) -> None:
    size = 4 * MAX_BODY_BYTES
    refusals = await asyncio.gather(
        *(control.post(CREATE, content=chunks(size), headers=JSON) for _ in range(8))
    )
    assert all(map(refused, refusals))
    assert (await control.get("/v1/cluster")).is_success


async def test_a_body_that_a_client_breaks_off_is_nothing(
    control: httpx.AsyncClient,
) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b'{"name": "never"'
        raise ConnectionAbortedError

    with pytest.raises(ConnectionAbortedError):
        await control.post(CREATE, content=broken(), headers=JSON)
    state: Json = (await control.get("/v1/cluster")).json()
    assert "never" not in json.dumps(state)


@pytest.mark.parametrize("size", [MAX_HEAD_BYTES, MAX_HEAD_BYTES + 1])
async def test_a_head_has_a_limited_size(control: httpx.AsyncClient, size: int) -> None:
    await ok(control, "GET", "/healthz")
    reader, writer = await asyncio.open_connection(HOST, control.base_url.port)
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: "
    writer.write(head.ljust(size, b"x"))
    if size <= MAX_HEAD_BYTES:
        writer.write(b"\r\n\r\n")
    async with asyncio.timeout(20):
        answer = await reader.read()  # up to the end of the connection
    assert answer.startswith(b"HTTP/1.1 200 " if size <= MAX_HEAD_BYTES else b"HTTP/1.1 400 ")
    writer.close()
    await writer.wait_closed()


STEP = "/v1/topics/t/partitions/0/replicas/1/step"


@pytest.mark.parametrize(
    ("path", "field", "limit"),
    [
        ("/v1/trace", "limit", bodies.MAX_LISTED),
        ("/v1/trace/wait", "timeout_ms", bodies.MAX_DELAY_MS),
        ("/v1/tier/faults", "delay_ms", bodies.MAX_DELAY_MS),
        (STEP, "fetches", bodies.MAX_FETCHES),
        ("/v1/clock/advance", "ms", bodies.MAX_ADVANCE_MS),
    ],
)
async def test_numbers_have_limits(
    control: httpx.AsyncClient, path: str, field: str, limit: int
) -> None:
    more = {field: limit + 1}
    if "trace" in path:
        answer = await control.get(path, params=more)
    else:
        answer = await control.post(
            path, json={"operation": "list", **more} if "tier" in path else more
        )
    said: Json = answer.json()
    assert (answer.status_code, said["error"]) == (400, "INVALID_REQUEST")
    assert field in said["message"]
    assert str(limit) in said["message"]


# -- connections --------------------------------------------------------------------------------


async def test_connections_beyond_the_descriptors_are_closed_and_leave_room_when_they_end(
    server: Server, control: httpx.AsyncClient
) -> None:
    port = control.base_url.port
    assert port is not None
    assert (await control.get("/healthz")).is_success
    server.descriptors = DescriptorBudget(1)
    # They belong to the budget that they have taken from: the one of before counts nothing here.
    kept = [await asyncio.open_connection(HOST, port) for _ in range(CONTROL_CONNECTIONS + 1)]
    reader, refused_writer = await asyncio.open_connection(HOST, port)
    async with asyncio.timeout(20):
        assert await reader.read() == b""
    refused_writer.close()
    for _, writer in kept[:2]:
        writer.close()
        await writer.wait_closed()

    def is_served() -> bool:
        try:
            return httpx.get(
                f"{str(control.base_url).rstrip('/')}/healthz", trust_env=False
            ).is_success
        except httpx.TransportError:
            return False

    await wait_beside_loop("there is room again", is_served)
    for _, writer in kept[2:]:
        writer.close()


async def test_metrics_tell_of_refusals_and_of_memory(
    server: Server, control: httpx.AsyncClient
) -> None:
    server.count_refusal("descriptors")
    text = (await control.get("/metrics")).text
    assert 'fencepost_connections_refused_total{limit="descriptors"} 1.0' in text
    assert 'fencepost_connections_refused_total{limit="request_memory"} 0.0' in text
    assert "fencepost_log_memory_bytes 0.0" in text
    assert "fencepost_request_memory_bytes 0.0" in text
