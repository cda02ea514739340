"""A page in a developer's browser tries every verb, in every way that there is: nothing changes.

The page comes from another origin: another site, another port of this machine, and a name that is
bound to this machine after the page was loaded.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx
import pytest

from fencepost.broker.core.events import Event
from fencepost.broker.server.listener import bind
from fencepost.control.access import Access, Refusal, RequestHead
from fencepost.verbs.catalogue import CATALOGUE, Method, Verb
from tests.harness.browser import Site, visiting
from tests.harness.control_client import Json, ok
from tests.harness.in_process_server import control_plane

if TYPE_CHECKING:
    from fencepost.broker.server.server import Server

PAGE: Final = Path(__file__).with_name("attack.html")
EVIL: Final = "evil.test"
HOSTS: Final = {EVIL: "127.0.0.1", "rebound.test": "127.0.0.2"}
Attempt = tuple[str, str, str]
"""Method, path, and what became of it."""


def attack(verb: Verb) -> Json:
    """A verb as the page tries it; its body is the model's own example."""
    path = verb.path.format(
        topic="orders", partition=0, broker=2, group="g", member="m", transactional_id="x", id=1
    )
    body = None
    if verb.method is Method.POST and verb.request_model is not None:
        body = verb.request_model.examples[0]
    return {"method": verb.method, "path": path, "body": body}


ATTACKS: Final = [attack(verb) for verb in CATALOGUE]


def page(target: str, attacks: Sequence[Json], *, report: str, following: str = "") -> str:
    text = PAGE.read_text(encoding="utf-8")
    for place, value in (
        ('"the target"', target),
        ('["the verbs"]', attacks),
        ('"the next page"', following),
        ('"the report"', report),
    ):
        text = text.replace(place, json.dumps(value))
    return text


@pytest.fixture
def decisions(monkeypatch: pytest.MonkeyPatch) -> list[Attempt]:
    """What the guard has decided."""
    made: list[Attempt] = []
    decide = Access.refusal

    def decided(self: Access, head: RequestHead) -> Refusal | None:
        refusal = decide(self, head)
        made.append((head.method, head.path, "answered" if refusal is None else refusal.code))
        return refusal

    monkeypatch.setattr(Access, "refusal", decided)
    return made


@asynccontextmanager
async def untouched(
    server: Server, control: httpx.AsyncClient, decisions: list[Attempt]
) -> AsyncIterator[None]:
    """A cluster with a topic and a fault, which has to be the same in the end, without an event."""
    await ok(control, "POST", "/v1/topics", {"name": "orders", "replication_factor": 3})
    fault = {"api": "Fetch", "client_id": "none", "action": "drop"}
    await ok(control, "POST", "/v1/faults", fault)
    before = await state(control)
    events: list[Event] = []
    server.cluster.events.listeners += (events.append,)
    decisions.clear()
    yield
    answered = [attempt for attempt in decisions if attempt[2] == "answered"]
    assert answered == []
    assert events == []
    assert await state(control) == before


async def state(control: httpx.AsyncClient) -> Json:
    cluster = await ok(control, "GET", "/v1/cluster")
    partition = await ok(control, "GET", "/v1/topics/orders/partitions/0")
    del cluster["clock"]
    return cluster, partition, await ok(control, "GET", "/v1/faults")


def check_every_verb_was_tried(decisions: list[Attempt]) -> None:
    tried = Counter(method_and_path[:2] for method_and_path in decisions)
    for each in ATTACKS:
        # A preflight comes before a DELETE, and is refused.
        method = "OPTIONS" if each["method"] == "DELETE" else each["method"]
        assert tried[method, each["path"]] >= 2, each


async def test_a_page_of_another_origin_changes_nothing(
    server: Server, control: httpx.AsyncClient, decisions: list[Attempt], tmp_path: Path
) -> None:
    target = str(control.base_url).rstrip("/")
    async with Site() as site, Site() as second, untouched(server, control, decisions):
        here = f"http://127.0.0.1:{second.port}/"
        site.page = page(target, ATTACKS, report="", following=here)
        second.page = page(target, ATTACKS, report="/done")
        async with visiting(f"http://{EVIL}:{site.port}/", tmp_path / "profile", HOSTS):
            await second.wait_for("/done")
        check_every_verb_was_tried(decisions)


async def test_a_name_that_is_bound_to_this_machine_changes_nothing(
    server: Server, control: httpx.AsyncClient, decisions: list[Attempt], tmp_path: Path
) -> None:
    async with Site() as other, Site("127.0.0.2") as site, untouched(server, control, decisions):
        report = f"http://127.0.0.1:{other.port}/done"
        site.page = page("", ATTACKS, report=report)
        url = f"http://rebound.test:{site.port}/"
        async with visiting(url, tmp_path / "profile", HOSTS):
            await site.wait_for("/loaded")
            site.close()
            sock = bind("127.0.0.2", site.port, 100)
            async with control_plane(server, sock):
                await other.wait_for("/done")
        tried = {attempt[:2] for attempt in decisions}
        assert tried >= {(each["method"], each["path"]) for each in ATTACKS}


async def test_the_same_page_resets_a_cluster_without_a_guard(
    server: Server, control: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Access, "refusal", lambda _self, _head: None)
    await ok(control, "POST", "/v1/topics", {"name": "lost"})
    resets = [each for each in ATTACKS if each["path"] == "/v1/reset"]
    async with Site() as site:
        site.page = page(str(control.base_url).rstrip("/"), resets, report="/done")
        async with visiting(f"http://{EVIL}:{site.port}/", tmp_path / "profile", HOSTS):
            await site.wait_for("/done")
    assert await ok(control, "GET", "/v1/topics") == []
