"""What clients ask when they meet a fault: stale metadata, a throttle, an end before the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

from fencepost.verbs.answers.cluster import ExchangeState
from fencepost.verbs.methods import Verbs
from tests.clients.faults import CLIENTS
from tests.clients.grounds import Fencepost, Stand, append, stored
from tests.harness.served_cluster import unique
from tests.harness.wait import wait_until

FENCED = 74
NOT_LEADER = 6

pytestmark = pytest.mark.timeout(600)  # the first builds a Go program and fetches jars


@dataclass(frozen=True, slots=True)
class Scene:
    """The clients on a fencepost, a topic for each, and a client id."""

    stand: Stand
    verbs: Verbs
    topics: dict[str, str]
    client_ids: dict[str, str]

    def say(self, verb: str, what: str) -> None:
        """Let each do the same, with its own topic."""
        self.stand.say(
            {each: f"{verb} {self.client_ids[each]} {self.topics[each]} {what}" for each in CLIENTS}
        )

    def fault(self, api: str, **given: object) -> dict[str, int]:
        """A fault for each; their ids."""
        add = partial(self.verbs.add_fault, api, **given)  # type: ignore[arg-type]  # each's own type
        return {
            client: add(client_id=client_id).id for client, client_id in self.client_ids.items()
        }

    def asked(self, client: str, api: str, since: int = 0) -> list[ExchangeState]:
        return self.verbs.trace(api=api, client_id=self.client_ids[client], since=since, limit=4096)

    def wait_for_fetch(self, client: str) -> None:
        """Return when it has been answered a Fetch by the leader."""
        wait_until(f"{client} has fetched", lambda: (2, 0) in self.met(client, "Fetch"))

    def met(self, client: str, api: str) -> list[tuple[int, int]]:
        """Whom it asked about the partition, and with which error code it was answered."""
        return [
            (exchange.broker, code)
            for exchange in self.asked(client, api)
            for code in _codes(exchange)
        ]


def _codes(exchange: ExchangeState) -> list[int]:
    response = exchange.response or {}
    topics = response.get("topics") or response.get("responses") or []
    assert isinstance(topics, list)
    return [
        partition["error_code"]
        for topic in topics
        for partition in topic.get("partitions") or topic.get("partition_responses") or []
    ]


def _batch(exchange: ExchangeState) -> tuple[int, int, int]:
    """Producer id, epoch and sequence of the batch that a Produce brought."""
    (topic,) = exchange.model_dump()["request"]["topic_data"]
    (partition,) = topic["partition_data"]
    (batch,) = partition["records"]["batches"]
    assert batch["producer_id"] >= 0
    return batch["producer_id"], batch["producer_epoch"], batch["base_sequence"]


@pytest.fixture
def scene(stand: Callable[[str], Stand]) -> Scene:
    """Each client's topic was led by broker 1 in epoch 0, and is led by broker 2 in epoch 1."""
    here = stand("fencepost")
    assert isinstance(here.ground, Fencepost)
    verbs = here.ground.verbs
    verbs.reset()
    topics = {client: unique("stale") for client in CLIENTS}
    for topic in topics.values():
        verbs.create_topic(topic, assignments=[[1, 2, 3]])
        verbs.elect(topic, 0, leader=2)
    return Scene(here, verbs, topics, {client: unique(client) for client in CLIENTS})


def test_a_producer_with_stale_metadata_is_told_the_leader_by_the_broker(scene: Scene) -> None:
    """KIP-951: the answer to Produce names the new leader, and metadata are not needed."""
    scene.fault("Metadata", count=None, action={"stale_metadata": 0})
    scene.say("produce", "a")
    assert scene.stand.hear() == dict.fromkeys(CLIENTS, "0")
    for client in CLIENTS:
        assert scene.met(client, "Produce") == [(1, NOT_LEADER), (2, 0)]


def test_a_consumer_with_stale_metadata_asks_for_newer(scene: Scene) -> None:
    """ListOffsets has no such hint: FENCED_LEADER_EPOCH, and it asks for metadata again."""
    for topic in scene.topics.values():
        append(scene.stand.ground.cluster, topic, "a")
    faults = scene.fault("Metadata", action={"stale_metadata": 0})
    scene.say("consume", "1")
    assert scene.stand.hear() == dict.fromkeys(CLIENTS, "a")
    for client in CLIENTS:
        *before, last = scene.met(client, "ListOffsets")
        # librdkafka may have asked for metadata a second time before it asks this.
        assert set(before) == {(1, FENCED)} or (client, before) == ("confluent", [])
        assert last == (2, 0)
        assert scene.verbs.fault(faults[client]).hits == 1


def test_a_consumer_that_knows_better_is_not_led_astray(scene: Scene) -> None:
    """KIP-232: metadata of an older epoch are ignored. (After the fifth franz-go believes them.)"""
    cluster = scene.stand.ground.cluster
    for topic in scene.topics.values():
        append(cluster, topic, "a")
    scene.say("consume", "2 refresh_ms=100")
    for client in CLIENTS:
        scene.wait_for_fetch(client)
    faults = scene.fault("Metadata", count=3, action={"stale_metadata": 0})
    for fault in faults.values():
        scene.verbs.wait_for_fault(fault, hits=3)
    for topic in scene.topics.values():
        append(cluster, topic, "b")
    assert scene.stand.hear() == dict.fromkeys(CLIENTS, "a; b")
    for client in CLIENTS:
        assert {broker for broker, _ in scene.met(client, "Fetch")} == {2}


def test_a_throttled_producer_waits(scene: Scene) -> None:
    scene.fault("Produce", action={"throttle": 200})
    scene.say("produce", "a,b")
    assert scene.stand.hear() == dict.fromkeys(CLIENTS, "0; 1; throttled 200")
    for client in CLIENTS:
        *_, first, second = scene.asked(client, "Produce")
        assert first.response is not None
        assert first.response["throttle_time_ms"] == 200
        assert second.time_ms - first.time_ms >= 200


def test_a_batch_that_is_sent_again_is_the_same_batch(scene: Scene) -> None:
    """The broker knows it by producer id and sequence, and answers its first offset."""
    scene.fault("Produce", action={"disconnect": "after"})
    scene.say("produce", "a")
    assert scene.stand.hear() == dict.fromkeys(CLIENTS, "0")
    for client in CLIENTS:
        first, second = scene.asked(client, "Produce")
        assert first.response is None
        assert _codes(second) == [0]
        assert first.connection != second.connection
        assert _batch(first) == _batch(second)
        assert stored(scene.stand.ground.cluster, scene.topics[client]) == "a"
