"""The guard of the control API over HTTP: token, form, cookie, limits of number and of time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final

import httpx
import pytest

from fencepost.control import guard, limits, routes_events
from fencepost.verbs.catalogue import CATALOGUE, Verb
from tests.harness.control_client import ok
from tests.harness.in_process_server import HOST, control_plane, sockets, url

if TYPE_CHECKING:
    from fencepost.broker.server.server import Server

TOKEN: Final = "a-token-of-ours"
BEARER: Final = {"Authorization": f"Bearer {TOKEN}"}
FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
async def locked(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    """A control API that needs a token, as one that listens on 0.0.0.0 does; here on loopback."""
    async with serving(server, host="0.0.0.0", token=TOKEN) as client:
        yield client


@asynccontextmanager
async def serving(
    server: Server, host: str = HOST, token: str | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    (sock,) = sockets(1)
    async with (
        control_plane(server, sock, host=host, token=token),
        httpx.AsyncClient(base_url=url(sock), trust_env=False, timeout=30) as client,
    ):
        yield client


def path_of(verb: Verb) -> str:
    return verb.path.format(
        topic="t", partition=0, broker=2, group="g", member="m", transactional_id="x", id=1
    )


async def test_without_the_token_all_but_healthz_is_401(locked: httpx.AsyncClient) -> None:
    asked = {(str(verb.method), path_of(verb)) for verb in CATALOGUE}
    others = {("GET", "/"), ("GET", "/metrics"), ("GET", "/openapi.json"), ("GET", "/nowhere")}
    for method, path in sorted(asked | others):
        answer = await locked.request(method, path)
        assert answer.status_code == (200 if path == "/healthz" else 401), path
        assert path == "/healthz" or answer.headers["www-authenticate"] == "Bearer"
    await ok(locked, "GET", "/healthz")


async def test_with_the_token_it_is_as_ever(locked: httpx.AsyncClient) -> None:
    locked.headers.update(BEARER)
    await ok(locked, "POST", "/v1/topics", {"name": "t"})
    assert [each["name"] for each in await ok(locked, "GET", "/v1/topics")] == ["t"]
    assert (await locked.get("/metrics")).status_code == 200
    answer = await locked.get("/v1/topics", headers={"Host": "any.test"})
    assert answer.status_code == 200


async def test_the_page_asks_for_the_token_once_and_holds_nothing_else(
    locked: httpx.AsyncClient,
) -> None:
    form = await locked.get("/")
    assert form.status_code == 401
    assert form.headers["content-type"] == "text/html; charset=utf-8"
    assert "frame-ancestors 'none'" in form.headers["content-security-policy"]
    assert re.findall(r"<(script|a|img|iframe)\b|/v1/", form.text) == []
    assert len(re.findall(r"<input\b", form.text)) == 1
    taken = await locked.post("/", content=f"token={TOKEN}", headers=FORM)
    assert (taken.status_code, taken.headers["location"]) == (303, "/")
    page = await locked.get("/")  # the client keeps the cookie
    assert page.status_code == 200
    assert "<script>" in page.text
    await ok(locked, "POST", "/v1/topics", {"name": "t"})


@pytest.mark.parametrize(
    "content", ["", "token=", "token=wrong", "other=x", "token=%FF", f"token={'x' * 10_000}"]
)
async def test_a_wrong_token_is_answered_with_the_form(
    locked: httpx.AsyncClient, content: str
) -> None:
    answer = await locked.post("/", content=content, headers=FORM)
    assert answer.status_code == 401
    assert answer.text == (await locked.get("/")).text
    assert "set-cookie" not in answer.headers


async def test_a_form_has_a_limited_size(locked: httpx.AsyncClient) -> None:
    content = f"token={TOKEN}&more="
    for size, status in ((guard.MAX_FORM, 303), (guard.MAX_FORM + 1, 401)):
        padded = content + "x" * (size - len(content))
        assert (await locked.post("/", content=padded, headers=FORM)).status_code == status


async def test_another_page_cannot_hand_in_the_form(locked: httpx.AsyncClient) -> None:
    foreign = {**FORM, "Origin": "http://evil.test"}
    answer = await locked.post("/", content=f"token={TOKEN}", headers=foreign)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


async def test_there_is_no_form_where_there_is_no_token(control: httpx.AsyncClient) -> None:
    assert (await control.get("/")).status_code == 200
    answer = await control.post("/", content="token=x", headers=FORM)
    assert answer.status_code == 415


@pytest.mark.parametrize("headers", [{"Host": "evil.test"}, {"Origin": "http://evil.test"}])
async def test_what_is_foreign_is_refused_before_it_changes_anything(
    control: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "kept"})
    for verb in CATALOGUE:
        answer = await control.request(verb.method, path_of(verb), headers=headers)
        assert answer.status_code == 403, verb.name
        assert answer.json()["error"] == "FORBIDDEN"
    assert [each["name"] for each in await ok(control, "GET", "/v1/topics")] == ["kept"]


@pytest.mark.parametrize(
    ("name", "foreign", "own", "status"),
    [
        ("Origin", "http://evil.test", "http://{host}", 403),
        ("Sec-Fetch-Site", "cross-site", "same-origin", 403),
        ("Content-Type", "text/plain", "application/json", 415),
        ("Authorization", "Bearer wrong", f"Bearer {TOKEN}", 401),
    ],
)
async def test_a_header_that_is_repeated_is_judged_by_all_of_its_values(
    locked: httpx.AsyncClient, name: str, foreign: str, own: str, status: int
) -> None:
    host = locked.base_url.netloc.decode()
    proper = [("Authorization", BEARER["Authorization"]), ("Content-Type", "application/json")]
    given = [foreign, own.format(host=host)]
    for values in (given, given[::-1]):
        headers = [each for each in proper if each[0] != name] + [(name, each) for each in values]
        answer = await locked.post("/v1/topics", content=b'{"name": "t"}', headers=headers)
        assert answer.status_code == status, values


async def test_cookies_in_several_headers_are_all_looked_at(locked: httpx.AsyncClient) -> None:
    taken = await locked.post("/", content=f"token={TOKEN}", headers=FORM)
    session = taken.headers["set-cookie"].partition(";")[0]
    locked.cookies.clear()
    for values in (("a=b", session), (session, "a=b")):
        answer = await locked.get("/v1/topics", headers=[("Cookie", each) for each in values])
        assert answer.status_code == 200


async def test_a_body_for_healthz_is_not_read_without_the_token(locked: httpx.AsyncClient) -> None:
    for method in ("GET", "POST"):
        body = b" " * limits.MAX_BODY_BYTES
        headers = {"Content-Type": "application/json"}
        answer = await locked.request(method, "/healthz", content=body, headers=headers)
        assert answer.status_code == 401


async def test_a_post_without_a_body_is_answered_as_ever(control: httpx.AsyncClient) -> None:
    port = control.base_url.port
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(f"POST /v1/reset HTTP/1.1\r\nHost: {HOST}:{port}\r\n\r\n".encode())
    assert (await reader.readline()) == b"HTTP/1.1 200 OK\r\n"
    writer.close()
    await writer.wait_closed()


async def test_advertised_hosts_are_names_of_the_control_api(
    server: Server, control: httpx.AsyncClient
) -> None:
    assert server.cluster.options.addresses[0].advertised_host == HOST
    async with serving(server, host="steer.test") as client:
        for name, wanted in (("steer.test", 200), ("localhost", 200), ("kafka.test", 403)):
            answer = await client.get("/healthz", headers={"Host": f"{name}:1"})
            assert answer.status_code == wanted, name


# -- limits -------------------------------------------------------------------------------------


@asynccontextmanager
async def connection(
    control: httpx.AsyncClient,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to the control API; whatever is awaited on it must come within 20 s."""
    reader, writer = await asyncio.open_connection(HOST, control.base_url.port)
    async with asyncio.timeout(20):
        yield reader, writer
    writer.close()
    await writer.wait_closed()


async def test_a_body_that_does_not_come_is_not_waited_for(
    control: httpx.AsyncClient, locked: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BODY_S", 0)
    for asked, path, kind, begun, status in (
        (control, "/v1/topics", "application/json", "{", 408),
        (locked, "/", FORM["Content-Type"], "token=", 401),
    ):
        async with connection(asked) as (reader, writer):
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
            writer.write(f"{head}Content-Length: 100\r\n\r\n{begun}".encode())
            answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(f"HTTP/1.1 {status} ".encode())


HEALTHZ: Final = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
REFUSED: Final = b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"


@pytest.mark.parametrize(
    ("answered", "end", "begun"),
    [
        (b"", b"", b""),
        (HEALTHZ, b'{"status":"ok"}', b"GET /healthz HT"),
        (REFUSED, b"}", b"a part of the body"),
    ],
    ids=["first head", "second head", "refused body"],
)
async def test_what_a_client_owes_is_not_waited_for(
    control: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    answered: bytes,
    end: bytes,
    begun: bytes,
) -> None:
    await ok(control, "GET", "/healthz")
    if not answered:
        monkeypatch.setattr(limits, "HEAD_S", 0)
    async with connection(control) as (reader, writer):
        if answered:
            writer.write(answered)
            await reader.readuntil(end)
            monkeypatch.setattr(limits, "HEAD_S", 0)
        writer.write(begun)
        assert await reader.read() == b""
    await ok(control, "GET", "/healthz")


async def test_no_more_requests_are_answered_at_a_time_than_may_be(
    control: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "MAX_REQUESTS", 2)
    async with AsyncExitStack() as streams:
        for _ in range(2):
            stream = await streams.enter_async_context(control.stream("GET", "/v1/events"))
            assert stream.status_code == 200
        answer = await control.get("/v1/topics")
        assert (answer.status_code, answer.json()["error"]) == (429, "THROTTLING_QUOTA_EXCEEDED")
        await ok(control, "GET", "/healthz")
    await until_ok(control, "/v1/topics")


async def test_no_more_streams_are_open_than_may_be(
    control: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes_events, "MAX_STREAMS", 2)
    async with AsyncExitStack() as streams:
        for _ in range(2):
            await streams.enter_async_context(control.stream("GET", "/v1/events"))
        async with control.stream("GET", "/v1/events") as refused:
            assert refused.status_code == 429
            assert b"THROTTLING_QUOTA_EXCEEDED" in await refused.aread()
        await ok(control, "GET", "/v1/topics")
    async with asyncio.timeout(20):
        while True:
            async with control.stream("GET", "/v1/events") as stream:
                if stream.status_code == 200:
                    break


async def until_ok(control: httpx.AsyncClient, path: str) -> None:
    async def is_ok() -> bool:
        return (await control.get(path)).status_code == 200

    async with asyncio.timeout(20):
        while not await is_ok():
            pass
